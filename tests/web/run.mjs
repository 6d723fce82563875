// Looks at every page of later web in Chromium, wide and narrow, light and dark.
//
//     BASE_URL=http://127.0.0.1:8377/ TOKEN=… node run.mjs      (SHOTS=folder keeps pictures)
//
// A page without data fails. So the first namespace must have a queue with waiting and dead jobs, a
// queue with parked ones, a running job, a gate with a holder, a schedule, a batch, a bulk, and jobs
// that start and end meanwhile, for the tail.
import fs from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {chromium} from 'playwright-core';
import {behaviour} from './behaviour.mjs';
import {discover} from './discover.mjs';
import {keyboard} from './keyboard.mjs';
import {questions} from './questions.mjs';

const {BASE_URL, TOKEN = '', SHOTS, CHROMIUM = '/usr/bin/chromium'} = process.env;
const DEADLINE_MS = 30000;
const AXE = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'));
const VARIANTS = [
  {width: 1280, look: 'light', keys: true, axe: 'all'},
  {width: 1280, look: 'dark', axe: 'colours'},
  {width: 360, look: 'light', axe: 'all'},
  {width: 360, look: 'dark'}, // axe has seen its colours and its layout above
];

const faults = [];
const fault = (where, what) => {
  faults.push(`${where}: ${what}`);
  console.log(`not ok ${where}: ${what}`);
};

// axe and the ear for reports are there before the page's own code, where its policy does not reach.
async function open(browser, {width, look}) {
  const context = await browser.newContext({viewport: {width, height: 900}, colorScheme: look, reducedMotion: 'reduce'});
  await context.addInitScript({path: AXE});
  await context.addInitScript(() => {
    window.reports = [];
    document.addEventListener('securitypolicyviolation', (e) => window.reports.push(`${e.effectiveDirective} ${e.blockedURI} ${e.sample}`));
  });
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  page.said = [];
  page.on('console', (m) => ['error', 'warning'].includes(m.type()) && page.said.push(m.text()));
  page.on('pageerror', (e) => page.said.push(`exception: ${e.message}`));
  return page;
}

async function visit(page, hash) {
  await page.evaluate((h) => { location.hash = h; }, hash);
  await page.waitForFunction((h) => {
    const route = h.replace(/^#\/?/, '').split('?')[0].split('/').map(decodeURIComponent).join('/');
    const main = document.querySelector('main');
    return main?.dataset.route === route && main.dataset.state !== 'loading';
  }, hash);
}

async function axe(page, what = 'all') {
  const only = what === 'colours' ? {runOnly: {type: 'rule', values: ['color-contrast', 'link-in-text-block']}} : {};
  const found = await page.evaluate((o) => window.axe.run(document, {resultTypes: ['violations'], ...o}), only);
  return found.violations.map((v) => `axe ${v.id} (${v.nodes.length}): ${v.nodes[0].target.join(' ')} ${v.nodes[0].failureSummary.split('\n')[1] ?? ''}`);
}

// What is wrong with the page as it stands.
const look = (page, selectors) => page.evaluate((wanted) => {
  const out = [];
  const main = document.querySelector('main');
  if (main.dataset.state !== 'ready') out.push(`it has no data: ${main.innerText.slice(0, 200)}`);
  for (const s of wanted) {
    const shown = [...main.querySelectorAll(s)].filter((e) => e.checkVisibility() && (e instanceof SVGElement || e.innerText.trim() !== ''));
    if (shown.length === 0) out.push(`no data: nothing matches ${s}`);
  }
  if (main.querySelectorAll('h1').length !== 1 || document.title.trim() === '') out.push('it has no heading or title');
  if (/\b(undefined|NaN|\[object)/.test(main.innerText)) out.push(`a value is shown wrongly: ${/.{0,40}\b(undefined|NaN|\[object).{0,20}/.exec(main.innerText)[0]}`);
  const over = document.documentElement.scrollWidth - window.innerWidth;
  if (over > 0) out.push(`it is ${over} px too wide`);
  for (const chart of main.querySelectorAll('.chart')) {
    const words = chart.querySelector('svg.graph')?.getAttribute('aria-label') ?? chart.querySelector('.empty')?.innerText ?? '';
    if (chart.querySelectorAll('details table tbody tr').length === 0) out.push('a chart has no table');
    if (words.length < 10) out.push('a chart has no words');
  }
  if (main.querySelector('.spark') && main.querySelectorAll(':scope > .behind tbody tr').length === 0) out.push('the small charts have no table');
  for (const cell of main.querySelectorAll('td.num'))
    if (innerWidth > 920 && !cell.closest('.box') && getComputedStyle(cell).textAlign !== 'right') out.push('a number is not at the right');
  return [...out, ...window.reports.map((r) => `CSP report: ${r}`)];
}, selectors);

async function see(browser, variant, pages) {
  const page = await open(browser, variant);
  await page.goto(`${BASE_URL}#token=${encodeURIComponent(TOKEN)}`);
  await page.waitForSelector('main[data-state=ready]');
  if (page.url().includes('token')) fault('address', 'the token stays in it');
  for (const {name, hash, data, comesLater} of pages) {
    const where = `${name} ${variant.width} ${variant.look}`;
    await visit(page, hash);
    if (comesLater) await page.waitForSelector(`main ${data[0]}`).catch(() => null);
    const wrong = [...await look(page, data), ...(variant.axe ? await axe(page, variant.axe) : [])];
    wrong.forEach((w) => fault(where, w));
    page.said.splice(0).forEach((s) => fault(where, `console: ${s}`));
    if (SHOTS) await page.screenshot({path: path.join(SHOTS, `${name}-${variant.width}-${variant.look}.png`)});
    if (variant.keys) (await keyboard(page)).forEach((w) => fault(where, w));
    console.log(`ok ${where}`);
  }
  await page.context().close();
}

async function main() {
  if (!BASE_URL) throw new Error('BASE_URL is missing');
  if (SHOTS) fs.mkdirSync(SHOTS, {recursive: true});
  const began = Date.now();
  const pages = await discover(BASE_URL, TOKEN);
  const browser = await chromium.launch({executablePath: CHROMIUM, args: ['--no-sandbox']});
  try {
    await Promise.all([VARIANTS.slice(0, 1), VARIANTS.slice(1)].map(async (some) => {
      for (const v of some) await see(browser, v, pages);
    }));
    const t = {open: (width = 1280) => open(browser, {width, look: 'light'}), visit, axe, fault, base: BASE_URL, token: TOKEN, pages};
    await questions(t);
    await behaviour(t);
  } finally {
    await browser.close();
  }
  console.log(`${faults.length} faults, ${pages.length} pages, ${VARIANTS.length} looks, ${((Date.now() - began) / 1000).toFixed(1)} s`);
  process.exitCode = faults.length > 0 ? 1 : 0;
}

await main();
