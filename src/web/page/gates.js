// Locks, semaphores and rates: who holds them, who waits.
import {html} from './dom.js';
import {bytesOf, isNumber, number, plain, short, span} from './format.js';
import {Bar, Empty, For, Link, Pager, Table, Text, When, Who} from './parts.js';

const WORDS = {__proto__: null, lock: 'lock', sem: 'semaphore', rate: 'rate'};
const idOf = (g) => `${g.kind}:${bytesOf(g, 'name')}`;

const People = ({list, all, now}) => (list.length === 0 ? html`<span class="quiet">nobody</span>` : html`<ul class="plain">
  ${list.map((w, i) => html`<li key=${i}><${Who} who=${w} />${
  w.waiting > 1 && html` <b>${number(w.waiting)} jobs</b>`}${isNumber(w.since_ms) && w.since_ms > 0 && html` <span class="quiet">
    <${For} ms=${w.since_ms} now=${now} /></span>`}${isNumber(w.until_ms) && html` <span class="quiet">lease ends <${When}
    ms=${w.until_ms} now=${now} /></span>`}</li>`)}
  ${all > list.length && html`<li class="quiet">and ${number(all - list.length)} more</li>`}</ul>`);

// "semaphore 2 keep", "rate gcra 100 60000 20": the numbers that say how many may pass.
function Held({g}) {
  if (g.kind === 'lock') return number(g.held);
  if (g.limit === undefined) return html`${number(g.held)} <span class="bad">not defined</span>`;
  const sem = /^semaphore (\d+)/.exec(g.limit);
  const rate = /^rate \S+ (\d+) (\d+)/.exec(g.limit);
  if (rate) return `${number(Number(rate[1]))} in ${span(Number(rate[2]))}`;
  if (!sem) return html`${number(g.held)} of <${Text} value=${g.limit} />`;
  return html`${number(g.held)} of ${number(Number(sem[1]))} <${Bar} value=${g.held} max=${Number(sem[1])}
    label=${`held of ${short(bytesOf(g, 'name'))}`} />`;
}

const columns = (now) => [
  {head: 'Gate', cell: (g) => html`<span class="quiet">${WORDS[g.kind] ?? plain(g.kind)}</span> <${Text} value=${bytesOf(g, 'name')} most=${80} />`},
  {head: 'Held', num: true, cell: (g) => html`<${Held} g=${g} />`},
  {head: 'Holders', wide: true, cell: (g) => html`<${People} list=${g.holders ?? []} all=${g.held} now=${now} />`},
  {head: 'Waiting', num: true, cell: (g) => html`<span class=${g.waiting > 0 ? 'warn' : 'quiet'}>${number(g.waiting)}</span>`},
  {head: 'Waiters', wide: true, cell: (g) => html`<${People} list=${g.waiters ?? []} all=${0} now=${now} />`},
  {head: 'Opens', num: true, cell: (g) => html`<${When} ms=${g.opens_ms} now=${now} />`},
];

function view({page, data}) {
  const only = page.params.get('gate');
  const rows = data.gates.filter((g) => only === null || idOf(g) === only);
  return html`
    ${only !== null && html`<p>Only <bdi><b>${short(only)}</b></bdi>. <${Link} to=${['gates']}>All gates<//></p>`}
    ${only !== null && rows.length === 0
      ? html`<${Empty}>Nobody holds it and nobody waits for it now.<//>`
      : html`<${Table} label="Gates" columns=${columns(page.now)} rows=${[...rows].sort((a, b) => b.waiting - a.waiting)} id=${idOf}
        mark=${(g) => (g.waiting > 0 ? 'warn' : null)} empty="No gate." />`}
    ${only === null && html`<${Pager} to=${['gates']} params=${{}} name="after" now=${page.params.get('after')} next=${data.after} />`}`;
}

export default {
  title: () => 'Gates',
  load: ({get, params}) => get(['gates'], {after: params.get('after'), gate: params.get('gate')}),
  view,
};
