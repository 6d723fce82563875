// Overview: is all well, and if not, why.
import {html} from './dom.js';
import {History} from './history.js';
import {count, isNumber, number, plain, plural} from './format.js';
import {Due, Empty, GateLink, JobLink, Link, QueueLink, Sentence, Text, When} from './parts.js';
import {QueueTable} from './queue_table.js';

function headline({health, workers}) {
  const n = health.causes.length;
  if (health.status === 'down') return 'Redis does not answer as it should.';
  if (n > 0) return `Not all is well, for ${n === 1 ? 'one reason' : `${number(n)} reasons`}.`;
  const w = plural(health.workers ?? workers, 'worker');
  return health.warnings.length > 0
    ? `All runs with ${w}, but look at ${health.warnings.length === 1 ? 'one warning' : `${health.warnings.length} warnings`}.`
    : `All is well: ${w}, and no due job waits that could run.`;
}

// Where a cause can be looked at.
const Places = ({of}) => html`<span class="places">${of.queue !== undefined && html`<span>queue <${QueueLink} name=${of.queue} /></span>`}
  ${of.job !== undefined && html`<span>job <${JobLink} id=${of.job} /></span>`}
  ${of.gate !== undefined && html`<span>gate <${GateLink} gate=${of.gate} /></span>`}
  ${of.schedule !== undefined && html`<span>schedule <${Link} to=${['schedules', of.schedule]}>${plain(of.schedule)}<//></span>`}
  ${of.batch !== undefined && html`<span>batch <${Link} to=${['batches', of.batch]}>${plain(of.batch)}<//></span>`}
  ${(of.worker !== undefined || of.host !== undefined || of.cause === 'no-worker') && html`<span><${Link} to=${['workers']}>
    ${of.worker !== undefined ? `worker ${plain(of.worker)}` : 'workers'}<//></span>`}</span>`;

const Causes = ({list, kind, look}) => html`<ul class=${`causes ${look}`}>${list.map((c, i) => html`<li key=${i}>
  <code>${plain(c[kind])}</code> <span><${Sentence} text=${c.text} /> <${Places} of=${c} /></span></li>`)}</ul>`;

const Tile = ({label, to, params, kind, children}) => html`<div><dt>${to ? html`<${Link} to=${to} params=${params}>
  ${label}<//>` : label}</dt><dd class=${kind}>${children}</dd></div>`;

function Figures({data: d, now}) {
  return html`<dl class="figures">
    <${Tile} label="Running" to=${['running']}>${number(d.running)}<//>
    <${Tile} label="Jobs" to=${['queues']}>${count(d.jobs, d.more)}<//>
    <${Tile} label="Parked" to=${['gates']} kind=${d.parked > 0 ? 'warn' : null}>${number(d.parked)}<//>
    <${Tile} label="Dead" to=${['dead']} kind=${d.dead > 0 ? 'bad' : null}>${count(d.dead, d.more_dead)}<//>
    <${Tile} label="Workers" to=${['workers']} kind=${d.workers === 0 ? 'bad' : null}>${number(d.workers)}<//>
    <${Tile} label="Queues" to=${['queues']}>${number(d.queues)}<//>
    <${Tile} label="Oldest due">${d.oldest_due ? html`<${Due} ms=${d.oldest_due.due_ms} now=${now} /> <small><${QueueLink}
      name=${d.oldest_due.queue} /></small>` : html`<span class="quiet">none</span>`}<//>
  </dl>`;
}

function view({page, data}) {
  const {health} = data;
  const isBad = health.status !== 'ok';
  return html`
    <section class=${`health ${isBad ? 'bad' : health.warnings.length > 0 ? 'warn' : 'ok'}`} aria-labelledby="health">
      <h2 id="health">${headline(data)}</h2>
      ${health.causes.length > 0 && html`<${Causes} list=${health.causes} kind="cause" look="bad" />`}
    </section>
    <${Figures} data=${data} now=${page.now} />
    <${History} history=${data.history} />
    <section><h2>Needs attention</h2>
      ${health.warnings.length > 0 && html`<${Causes} list=${health.warnings} kind="warning" look="warn" />`}
      ${data.notes?.length > 0 && html`<details><summary class="quiet">${plural(data.notes.length, 'note')} of the workers</summary><ul
        class="causes notes">${data.notes.map((n) => html`<li key=${n.note}><span><${Text} value=${n.note} most=${300} /> <span
        class="quiet">seen <${When} ms=${n.seen_ms} now=${page.now} /></span></span></li>`)}</ul></details>`}
      ${health.warnings.length === 0 && !(data.notes?.length > 0) && html`<${Empty}>Nothing.<//>`}
    </section>
    <section><h2>Worst queues</h2><${QueueTable} rows=${data.worst} now=${page.now} label="Worst queues" />
      ${isNumber(data.queues) && data.queues > data.worst.length && html`<p><${Link}
        to=${['queues']}>All ${number(data.queues)} queues<//></p>`}</section>`;
}

export default {title: () => 'Overview', load: ({get}) => get(['overview']), view};
