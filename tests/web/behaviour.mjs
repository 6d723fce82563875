// What the page does over time: refresh, trouble, the token, dialogs. Time is the test's.

const isApi = (url) => /\/api\/v1\/./.test(url);

async function opened({open, base, token}, withClock, width) {
  const page = await open(width);
  page.asked = [];
  page.open = 0; // requests that are not answered yet
  page.on('request', (r) => {
    if (!isApi(r.url())) return;
    page.asked.push(r.url());
    page.open++;
  });
  for (const end of ['requestfinished', 'requestfailed']) page.on(end, (r) => { page.open -= isApi(r.url()) ? 1 : 0; });
  if (withClock) await page.clock.install();
  await page.goto(`${base}#token=${encodeURIComponent(token)}`);
  await page.waitForSelector('main[data-state=ready]');
  return page;
}

// One request each 2 s while somebody looks, none when the tab is hidden or the switch is off.
async function refresh(t) {
  const page = await opened(t, true);
  const during = async (ms) => {
    page.asked.length = 0;
    for (let passed = 0; passed < ms; passed += 1000) {
      await page.clock.runFor(1000);
      do await page.evaluate(() => new Promise((done) => { const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0); }));
      while (page.open > 0);
    }
    return page.asked.length;
  };
  const hide = (isHidden) => page.evaluate((h) => {
    Object.defineProperty(document, 'hidden', {value: h, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
  }, isHidden);
  const seen = await during(10000);
  if (seen < 3 || seen > 6) t.fault('refresh', `${seen} requests in 10 s`);
  // The tab is hidden while an answer is on its way.
  let release;
  const held = new Promise((done) => { release = done; });
  await page.route('**/api/v1/**', async (r) => { await held; await r.continue(); });
  while (page.open === 0) await page.clock.runFor(500);
  await hide(true);
  release();
  while (page.open > 0) await page.evaluate(() => 0);
  await page.unroute('**/api/v1/**');
  const hidden = await during(20000);
  if (hidden > 0) t.fault('refresh', `${hidden} requests while the tab was hidden`);
  await hide(false);
  if (await during(4000) === 0) t.fault('refresh', 'it does not go on when the tab is seen again');
  await page.click('.fresh button');
  const off = await during(20000);
  if (off > 0) t.fault('refresh', `${off} requests while it was off`);
  await page.click('.fresh button');
  await trouble(t, page, during);
  await page.context().close();
}

// The old data stays, says how old it is, and the page asks less often.
async function trouble(t, page, during) {
  await page.route('**/api/v1/**', (r) => r.abort());
  const asked = await during(60000);
  const told = await page.locator('.fresh.stale').innerText().catch(() => '');
  if (!/Old data, from .* ago/.test(told)) t.fault('trouble', `it does not say that its data is old: ${told}`);
  if (await page.locator('.figures dd').count() === 0) t.fault('trouble', 'the old data is gone');
  if (asked > 10 || asked < 3) t.fault('trouble', `${asked} requests in a minute of trouble`);
  await page.unroute('**/api/v1/**');
  await during(20000);
  if (await page.locator('.fresh.stale').count() > 0) t.fault('trouble', 'it does not come back');
}

async function token(t) {
  if (!t.token) return;
  const page = await t.open();
  await page.goto(t.base);
  await page.waitForSelector('input[name=token]');
  (await t.axe(page)).forEach((w) => t.fault('token', w));
  await page.fill('input[name=token]', 'wrong');
  await Promise.all([page.waitForResponse((r) => r.status() === 401), page.keyboard.press('Enter')]);
  await page.fill('input[name=token]', t.token);
  await page.keyboard.press('Enter');
  await page.waitForSelector('main[data-state=ready]');
  await page.reload();
  await page.waitForSelector('main[data-state=ready]');
  if (page.url().includes(t.token)) t.fault('token', 'it is in the address');
  await page.context().close();
}

// Opened and closed by the keyboard. Focus goes back to where it was, and nothing is written.
async function dialogs(t) {
  const page = await opened(t, false);
  let writes = 0;
  page.on('request', (r) => { writes += r.method() === 'POST' ? 1 : 0; });
  for (const name of ['queue', 'dead', 'running', 'bulk', 'schedules']) {
    await t.visit(page, t.pages.find((p) => p.name === name).hash);
    for (const button of (await page.locator('main button', {hasText: '…'}).all()).slice(0, 3)) await dialog(t, page, name, button);
  }
  if (writes > 0) t.fault('dialog', `${writes} writes without a confirmation`);
  await page.context().close();
}

async function dialog(t, page, name, button) {
  const label = await button.innerText();
  if (!/^(Pause|Retry|Remove|Cancel|Move|Abort)/.test(label)) return;
  await button.focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]');
  const words = await page.locator('dialog').innerText();
  if (await page.getByRole('dialog', {name: /./}).count() === 0) t.fault(`dialog ${name}`, `"${label}" opens one without a name`);
  if (words.length < 40) t.fault(`dialog ${name}`, `"${label}" does not say what will be done`);
  (await t.axe(page)).forEach((w) => t.fault(`dialog ${name} ${label}`, w));
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog', {state: 'detached'});
  if (!await button.evaluate((b) => b === document.activeElement)) t.fault(`dialog ${name}`, `focus is lost after "${label}"`);
}

// On a narrow screen the pages are behind a button.
async function menu(t) {
  const page = await opened(t, false, 360);
  await page.locator('button.menu').focus();
  await page.keyboard.press('Enter');
  (await t.axe(page)).forEach((w) => t.fault('menu', w));
  await page.locator('#nav a', {hasText: 'Workers'}).focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('main')?.dataset.route === 'workers');
  if (await page.locator('#nav').isVisible()) t.fault('menu', 'it stays open over the page');
  if (await page.evaluate(() => document.activeElement.id) !== 'main') t.fault('menu', 'focus does not go to the page');
  await page.context().close();
}

export async function behaviour(t) {
  await Promise.all([refresh(t), menu(t).then(() => token(t)).then(() => (t.pages.some((p) => p.name === 'add') ? dialogs(t) : null))]);
}
