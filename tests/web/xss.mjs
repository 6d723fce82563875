// 200 attacks in every place that somebody else writes to: none may run, and none may be reported.
//
//     node xss.mjs
//
// It sees each attack as text on each page, else it fails, too.
import {chromium} from 'playwright-core';
import {evil, groups} from './evil.mjs';
import {pause} from './servers.mjs';
import {found, strings} from './strings.mjs';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const DEADLINE_MS = 30000;
const e = encodeURIComponent;

const faults = new Set();
const fault = (where, what) => {
  if (!faults.has(`${where}: ${what}`)) console.log(`not ok ${where}: ${what}`);
  faults.add(`${where}: ${what}`);
};

const every = (n, f) => Array.from({length: n}, (_, i) => f(i));

// name -> its addresses. Pages with further parts are followed to their end.
const places = (ids) => ({
  queues: ['#/queues'],
  queue: every(groups.length, (i) => `#/queues/q${i}`),
  'dead jobs of a queue': ['#/queues/evil?state=dead'],
  'raw members': ['#/queues/raw'],
  running: ['#/running'],
  dead: ['#/dead'],
  job: ids.map((id) => `#/jobs/${id}`),
  gates: ['#/gates'],
  workers: ['#/workers'],
  schedules: ['#/schedules'],
  schedule: every(groups.length, (i) => `#/schedules/s${i}`),
  batches: ['#/batches'],
  batch: every(groups.length, (i) => `#/batches/b${i}`),
  bulk: ['#/bulk'],
  overview: ['#/'],
  // What stands in the address is somebody else's, too.
  address: strings.map((s, i) => [`#/search?q=${e(s)}`, `#/queues/${e(s)}`, `#/jobs/${e(s)}`, `#/gates?gate=${e(s)}`, `#/add?queue=${e(s)}`,
    `#/dead?queue=${e(s)}`, `#/schedules/${e(s)}`, `#/batches/${e(s)}?after=${e(s)}`, `#/${e(s)}?ns=${e(s)}`, `#/queues/nothing?state=${e(s)}&cursor=${e(s)}`][i % 10]),
});

// Not on each page is each of them: these show none, or those of the address in part.
const SEEN_DEAD = 150; // some are the same but for their numbers
const SEEN_BULKS = 100; // no more are kept
const SHOWS_NONE = ['overview', 'workers', 'batches', 'address'];

// In the page: go through the addresses, open what is cut, look for what is not ours.
async function walk(hashes) {
  const seen = [];
  const wrong = new Set();
  const pause = () => new Promise((done) => setTimeout(done, 4));
  const route = (h) => h.replace(/^#\/?/, '').split('?')[0].split('/').filter((p) => p !== '').map(decodeURIComponent).join('/');
  const isThere = (h) => {
    const main = document.querySelector('main');
    return main && (main.dataset.route ?? route(h)) === route(h) && main.dataset.state !== 'loading';
  };
  const look = () => {
    for (const more of document.querySelectorAll('main button.more[aria-expanded=false]')) more.click();
    for (const el of document.querySelectorAll('*')) {
      if (['SCRIPT', 'IFRAME', 'OBJECT', 'EMBED', 'IMG', 'BASE', 'STYLE', 'TEMPLATE', 'VIDEO', 'AUDIO', 'MATH', 'MARQUEE'].includes(el.nodeName.toUpperCase()) &&
        el.getAttribute('src') !== 'app.js') wrong.add(`<${el.nodeName}> is not ours`);
      for (const {name, value} of el.attributes) {
        if (/^on/i.test(name) || name === 'srcdoc' || name === 'formaction') wrong.add(`attribute ${name}`);
        if (name === 'href' && el.nodeName === 'A' && !value.startsWith('#')) wrong.add(`a link to ${value.slice(0, 60)}`);
      }
    }
  };
  for (const first of hashes) {
    for (let hash = first; hash; ) {
      location.hash = hash;
      const end = Date.now() + 30000;
      do await pause(); while (!isThere(hash) && Date.now() < end);
      if (!isThere(hash)) wrong.add(`${hash.slice(0, 80)} does not come`);
      look();
      await pause();
      const buttons = [...document.querySelectorAll('main button[aria-label^="Retry those"]')];
      for (const button of buttons.filter((_, i) => i % 5 === 0)) { // a dialog repeats what its row says
        button.click();
        await pause();
        const dialog = document.querySelector('dialog');
        look();
        seen.push(dialog?.textContent ?? '');
        dialog?.close();
        await pause();
      }
      seen.push(document.querySelector('main')?.textContent ?? '');
      hash = [...document.querySelectorAll('.pager a')].find((a) => a.innerText === 'Next page')?.getAttribute('href');
    }
  }
  return {text: seen.join('\n'), wrong: [...wrong]};
}

async function open(browser, base, token) {
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, acceptDownloads: false});
  await context.exposeBinding('tell', (_, what) => fault('run or reported', what));
  await context.addInitScript(() => {
    window.xss = (n) => window.tell(`attack ${n} ran`);
    window.alert = window.xss;
    document.addEventListener('securitypolicyviolation', (v) => window.tell(`CSP ${v.effectiveDirective} ${v.blockedURI} ${v.sample}`));
  });
  context.on('request', (r) => !r.url().startsWith(base) && !r.url().startsWith('blob:') && fault('request', r.url()));
  const page = await context.newPage();
  context.on('page', (p) => p !== page && fault('window', p.url()));
  page.on('dialog', (d) => { fault('dialog', d.message()); d.dismiss(); });
  page.on('pageerror', (x) => fault('exception', x.message));
  page.on('framenavigated', (f) => f === page.mainFrame() && !f.url().startsWith(base) && f.url() !== 'about:blank' && fault('navigation', f.url()));
  page.setDefaultTimeout(DEADLINE_MS);
  await page.goto(`${base}#token=${token}`);
  await page.waitForSelector('main[data-state=ready]');
  return page;
}

// How many bytes of a text a page shows, where that is less than all.
const SHOWN = {'raw members': 60, tail: 100};

function judge(place, text) {
  const numbers = new Set(found(text));
  const wanted = strings.map((s) => s.slice(0, SHOWN[place])).flatMap(found);
  const missing = wanted.filter((n) => !numbers.has(n));
  // Reasons that differ by a number only are told together, and a * stands for it.
  const seen = place === 'dead' ? text.split('xss(*)').length - 1 : numbers.size;
  if (place === 'dead' ? seen < SEEN_DEAD : place === 'bulk' ? seen < SEEN_BULKS : missing.length > 0 && !SHOWS_NONE.includes(place))
    fault(place, `shows ${seen} of ${strings.length} attacks; not ${missing.slice(0, 5)}`);
  console.log(`ok ${place}: ${seen} attacks seen`);
}

async function visit(page, all, mine) {
  for (const [place, hashes] of Object.entries(all).filter((_, i) => mine(i))) {
    const {text, wrong} = await page.evaluate(walk, hashes);
    wrong.forEach((w) => fault(place, w));
    judge(place, text);
  }
}

// Jobs die again while somebody looks, some at a time, since the page keeps the last 300 events.
async function tail(page, scene) {
  let text = '';
  await page.evaluate(() => { location.hash = '#/tail'; });
  await page.waitForFunction(() => document.querySelector('main')?.dataset.route === 'tail');
  for (let from = 0; from < strings.length; from += 50) {
    const wanted = strings.slice(from, from + 50).map((s) => s.slice(0, SHOWN.tail)).flatMap(found);
    const ask = () => page.evaluate(() => document.querySelector('main').textContent);
    const end = Date.now() + DEADLINE_MS;
    await scene.again(from, from + 50);
    let now = '';
    while (!wanted.every((n) => found(now).includes(n)) && Date.now() < end) {
      await pause(50);
      now = await ask();
    }
    text += now;
  }
  judge('tail', text);
}

// An answer of the API is never a page, also where a proxy has logged somebody in.
async function answers(browser, {base, token, ids}) {
  const context = await browser.newContext({extraHTTPHeaders: {Authorization: `Bearer ${token}`}});
  await context.exposeBinding('tell', (_, what) => fault('answer', what));
  await context.addInitScript(() => { window.xss = (n) => window.tell(`attack ${n} ran`); });
  const page = await context.newPage();
  await page.goto(`${base}api/v1/default/jobs/${ids[0]}`);
  if (await page.locator('script, img').count() > 0) fault('answer', 'JSON is shown as a page');
  const saved = page.waitForEvent('download');
  await page.goto(`${base}api/v1/default/jobs/${ids[0]}/payload`).catch(() => null);
  await saved.catch(() => fault('answer', 'a payload is shown, not saved'));
  await context.close();
}

async function main() {
  const began = Date.now();
  const scene = await evil();
  const browser = await chromium.launch({executablePath: CHROMIUM, args: ['--no-sandbox']});
  try {
    const all = places(scene.ids);
    const [one, other] = [await open(browser, scene.base, scene.token), await open(browser, scene.base, scene.token)];
    await Promise.all([visit(one, all, (i) => i % 2 === 0), visit(other, all, (i) => i % 2 === 1)]);
    await tail(one, scene);
    await answers(browser, scene);
  } finally {
    await browser.close();
    await scene.stop();
  }
  console.log(`${faults.size} faults, ${strings.length} attacks, ${((Date.now() - began) / 1000).toFixed(1)} s`);
  process.exitCode = faults.size > 0 ? 1 : 0;
}

await main();
