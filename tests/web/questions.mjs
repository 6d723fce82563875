// The five questions of doc/web.md: each is answered by clicks on what can be seen, from the overview
// on, and by as many as the table there says.
import fs from 'node:fs';

const DOC = process.env.WEB_DOC ?? new URL('../../doc/web.md', import.meta.url);

// The clicks of a row of the table: "1; 2 for one queue" -> [1, 2].
function told() {
  const rows = fs.readFileSync(DOC, 'utf8').split('\n').filter((line) => /^\| .*\? \|/.test(line)).map((line) => line.split('|'));
  return new Map(rows.map(([, question, , clicks]) => [question.trim(), [...clicks.matchAll(/\b\d+\b/g)].map((m) => Number(m[0]))]));
}

const link = (where, name) => (page) => page.locator(where).getByRole('link', {name, exact: true}).first();
const inMenu = (name) => link('#nav', name);
const figure = (name) => link('.figures', name);
const inTable = (name) => link('main .rows', name);
const card = '.explain .lead';

// {question: [[way, ...], ...]}: the ways to an answer, in the order of the numbers in the table. A way
// is {clicks, sees: what must be visible then, wide: only there}.
const WAYS = {
  'What runs, on which host, since when?': [
    [{clicks: [inMenu('Running')], wide: true}, {clicks: [figure('Running')]}].map((w) => (
      {...w, sees: [['.rows tbody td[data-head=Host]', /\S/], ['.rows tbody td[data-head=Since]', /now|ago/]]})),
  ],
  'Why does this queue not run?': [
    [{clicks: [inTable('fax')], sees: [[card, /no live worker serves queue fax/i]]}],
    [{clicks: [inMenu('Queues'), inTable('deploy')], wide: true}, {clicks: [figure('Queues'), inTable('deploy')]}].map((w) => (
      {...w, sees: [[card, /lock site is held by job/i]]})),
  ],
  'What do jobs die of?': [
    [{clicks: [inMenu('Dead')], wide: true}, {clicks: [figure('Dead')]}].map((w) => ({...w, sees: [['.rows tbody th', /mailbox \* is full/]]})),
    [{clicks: [figure('Dead'), link('main .tabs', /^mail /)], sees: [['.rows tbody th', /mailbox \* is full/]]}],
  ],
  'Who paused what, and why?': [
    [{clicks: [inMenu('Queues')], wide: true}, {clicks: [figure('Queues')]}].map((w) => (
      {...w, sees: [['.rows .paused', /by anna@ops1.*the disk is full, ticket 1482/s]]})),
    [{clicks: [], sees: [['.rows .paused', /by anna@ops1.*the disk is full, ticket 1482/s]]}],
  ],
  'What waits behind what?': [
    [{clicks: [inMenu('Gates')], wide: true}, {clicks: [figure('Parked')]}].map((w) => (
      {...w, sees: [['.rows tbody tr', /site.*job j\w+.*deploy/s]]})),
  ],
};

async function answered(page, sees) {
  for (const [where, what] of sees) await page.locator('main').locator(where).filter({hasText: what, visible: true}).first().waitFor();
}

async function go(t, page, question, width, {clicks, sees}, wanted) {
  const where = `question "${question}" ${width}`;
  if (clicks.length !== wanted) t.fault(where, `${clicks.length} clicks, and the table says ${wanted}`);
  await t.visit(page, '#/');
  try {
    for (const click of clicks) await click(page).click();
    await answered(page, sees);
  } catch (e) {
    t.fault(where, `is not answered after ${clicks.length} clicks: ${e.message.split('\n')[0]}`);
  }
}

export async function questions(t) {
  const table = told();
  if (table.size === 0 || [...table.keys()].sort().join() !== Object.keys(WAYS).sort().join())
    t.fault('questions', `the table has others: ${[...table.keys()].join(' ')}`);
  for (const width of [1280, 360]) {
    const page = await t.open(width);
    await page.goto(`${t.base}#token=${encodeURIComponent(t.token)}`);
    await page.waitForSelector('main[data-state=ready]');
    // A queue is late after ten seconds.
    await page.locator('main .rows').getByRole('link', {name: 'fax', exact: true}).first().waitFor();
    await page.locator('main .rows').getByRole('link', {name: 'backup', exact: true}).first().waitFor();
    for (const [question, all] of Object.entries(WAYS)) {
      const numbers = table.get(question) ?? [];
      if (all.length !== numbers.length) t.fault(`question "${question}"`, `the table has ${numbers.length} numbers, not ${all.length}`);
      for (const [i, ways] of all.entries()) {
        for (const way of ways) if (!way.wide || width > 920) await go(t, page, question, width, way, numbers[i]);
      }
      console.log(`ok question ${width} ${question}`);
    }
    await page.context().close();
  }
}
