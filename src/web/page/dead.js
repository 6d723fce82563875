// What jobs died of, grouped by reason.
import {html} from './dom.js';
import {askBulk} from './ask.js';
import {ChartTable} from './charts.js';
import {count, number, plain, plural, short} from './format.js';
import {Button, JobLink, Link, QueueLink, Table, Text, When} from './parts.js';

const TABS = 12; // of the queues with the most dead jobs

const askAll = (page, verb, r, more) => askBulk(page, {verb, queue: r.queue, state: 'dead', reason: r.reason, count: r.count, more});

// An empty reason would mean all of them to the server, so there is nothing to press.
function Actions({page, r, more}) {
  if (!r.reason) return html`<span class="quiet">–</span>`;
  const which = `those of ${r.queue}: ${short(r.reason, 120)}`;
  return html`<span class="buttons">
    <${Button} aria-label=${`Retry ${which}`} onClick=${() => askAll(page, 'retry', r, more)}>Retry…<//>
    <${Button} danger aria-label=${`Remove ${which}`} onClick=${() => askAll(page, 'purge', r, more)}>Remove…<//></span>`;
}

function Reasons({page, rows, more}) {
  const columns = [
    {head: 'Reason', wide: true, cell: (r) => html`<${Text} value=${r.reason === '' ? '(no reason told)' : r.reason} most=${240} />`},
    {head: 'Queue', cell: (r) => html`<${QueueLink} name=${r.queue} />`},
    {head: 'Dead', num: true, cell: (r) => html`<b>${count(r.count, r.more)}</b>`},
    {head: 'Last day', cell: (r) => html`<${Spark} deaths=${r.deaths} />`},
    {head: 'First', num: true, cell: (r) => html`<${When} ms=${r.first_ms} now=${page.now} />`},
    {head: 'Last', num: true, cell: (r) => html`<${When} ms=${r.last_ms} now=${page.now} />`},
    {head: 'Newest', cell: (r) => r.last_id && html`<${JobLink} id=${r.last_id} />`},
    ...(page.canWrite ? [{head: 'Actions', cell: (r) => html`<${Actions} page=${page} r=${r} more=${more} />`}] : []),
  ];
  return html`<${Table} label="Reasons" columns=${columns} rows=${rows} id=${(r) => `${r.queue} ${r.reason}`} empty="No dead job." />`;
}

// When the jobs of a reason died, in the last day.
function Spark({deaths}) {
  const most = Math.max(...deaths, 1);
  return html`<svg class="spark" role="img" width="72" height="18" aria-label=${`in the last day: ${deaths.join(' ')}`}><path
    class="grid" d="M0 17.5H72" />${deaths.map((n, i) => n > 0 && html`<rect class="area c" x=${6 * i} width="5"
    y=${17 - Math.ceil(16 * n / most)} height=${Math.ceil(16 * n / most)} />`)}</svg>`;
}

function view({page, data}) {
  const only = page.params.get('queue');
  const {reasons, queues, from_ms: from, by_ms: by} = data;
  return html`
    ${queues.length > 0 && html`<nav class="tabs" aria-label="Queue"><ul><li><${Link} to=${['dead']}
      aria-current=${only === null ? 'true' : null}>all queues${only === null && html` <span class="num">${count(data.dead, data.more)}</span>`}<//></li>
      ${queues.slice(0, TABS).map((q) => html`<li key=${q.queue}><${Link} to=${['dead']}
        params=${{queue: q.queue}} aria-current=${only === q.queue ? 'true' : null}><bdi>${plain(q.queue)}</bdi> <span
        class="num">${number(q.dead)}</span><//></li>`)}
      ${data.dead_queues > TABS && html`<li><${Link} to=${['queues']}>and ${number(data.dead_queues - TABS)} more<//></li>`}</ul></nav>`}
    ${only !== null && html`<p><${Link} to=${['queues', only]} params=${{state: 'dead'}}>
      Dead jobs of <bdi>${plain(only)}</bdi>, one by one<//></p>`}
    <${Reasons} page=${page} rows=${reasons} more=${data.more} />
    ${reasons.length > 0 && html`<${ChartTable} title="when they died" summary="When they died" times=${reasons[0].deaths.map((_, i) => from + i * by)}
      series=${reasons.map((r) => ({name: short(r.reason || '(none told)', 40), values: r.deaths}))} format=${number} />`}
    <p class="quiet">${plural(reasons.length, 'reason', data.more)}. Numbers in them are written as *, so that reasons that differ only by a number count together.</p>`;
}

// The page of one queue asks for that queue only, which sees more of its jobs.
async function load({get, params}) {
  const queue = params.get('queue');
  if (queue === null) return get(['dead']);
  const answer = await get(['queues', queue, 'reasons']);
  return {...answer, queues: [{queue, dead: answer.seen}]};
}

export default {title: () => 'Dead', load, view};
