// What jobs died of, grouped by reason.
import {html} from './dom.js';
import {askBulk} from './ask.js';
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
    {head: 'First', num: true, cell: (r) => html`<${When} ms=${r.first_ms} now=${page.now} />`},
    {head: 'Last', num: true, cell: (r) => html`<${When} ms=${r.last_ms} now=${page.now} />`},
    {head: 'Newest', cell: (r) => r.last_id && html`<${JobLink} id=${r.last_id} />`},
    ...(page.canWrite ? [{head: 'Actions', cell: (r) => html`<${Actions} page=${page} r=${r} more=${more} />`}] : []),
  ];
  return html`<${Table} label="Reasons" columns=${columns} rows=${rows} id=${(r) => `${r.queue} ${r.reason}`} empty="No dead job." />`;
}

function view({page, data}) {
  const only = page.params.get('queue');
  const rows = data.reasons.filter((r) => only === null || r.queue === only).sort((a, b) => b.count - a.count);
  const queues = [...data.queues].sort((a, b) => b.dead - a.dead);
  const all = queues.reduce((sum, q) => sum + q.dead, 0);
  return html`
    ${queues.length > 0 && html`<nav class="tabs" aria-label="Queue"><ul><li><${Link} to=${['dead']}
      aria-current=${only === null ? 'true' : null}>all queues${only === null && html` <span class="num">${count(all, data.more)}</span>`}<//></li>
      ${queues.filter((q, i) => i < TABS || q.queue === only).map((q) => html`<li key=${q.queue}><${Link} to=${['dead']}
        params=${{queue: q.queue}} aria-current=${only === q.queue ? 'true' : null}><bdi>${plain(q.queue)}</bdi> <span
        class="num">${number(q.dead)}</span><//></li>`)}
      ${queues.length > TABS && html`<li><${Link} to=${['queues']}>and ${number(queues.length - TABS)} more<//></li>`}</ul></nav>`}
    ${only !== null && html`<p><${Link} to=${['queues', only]} params=${{state: 'dead'}}>
      Dead jobs of <bdi>${plain(only)}</bdi>, one by one<//></p>`}
    <${Reasons} page=${page} rows=${rows} more=${data.more} />
    <p class="quiet">${plural(rows.length, 'reason', data.more)}. Numbers in them are written as *, so that reasons that differ only by a number count together.</p>`;
}

// The page of one queue asks for that queue only, which sees more of its jobs.
async function load({get, params}) {
  const queue = params.get('queue');
  if (queue === null) return get(['dead']);
  const answer = await get(['queues', queue, 'reasons']);
  const reasons = answer.reasons.map((r) => ({...r, queue}));
  return {...answer, reasons, queues: [{queue, dead: answer.seen}]};
}

export default {title: () => 'Dead', load, view};
