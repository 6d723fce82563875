// Who does the work, and which jobs may have killed a worker.
import {html} from './dom.js';
import {number, plain} from './format.js';
import {Badge, Bar, Due, JobLink, Name, QueueLink, Table, Text, When} from './parts.js';

const SILENT_MS = 12000;

const Queues = ({text}) => {
  const names = plain(text).split(/[ ,]+/).filter((q) => q !== '');
  if (!names.every((q) => /^[\w.-]+$/.test(q))) return html`<${Text} value=${text} />`;
  return html`<span class="list">${names.slice(0, 12).map((q) => html`<${QueueLink} key=${q}
    name=${q} /> `)}${names.length > 12 && html`<span class="quiet">and ${number(names.length - 12)} more</span>`}</span>`;
};

const columns = (now) => [
  {head: 'Worker', cell: (w) => html`<b>${plain(w.worker)}</b> on <${Name} value=${w.host} /> <span
    class="quiet">pid ${plain(w.pid)}</span>`},
  {head: 'State', cell: (w) => html`<${Badge} state=${w.state} />`},
  {head: 'Places taken', num: true, cell: (w) => html`${number(w.running)}${w.places !== undefined && ` of ${number(w.places)}`}
    ${' '}<${Bar} value=${w.running} max=${w.places} label=${`places taken of worker ${w.worker}`} />`},
  {head: 'Held', num: true, cell: (w) => number(w.held)},
  {head: 'Last beat', num: true, cell: (w) => html`<span class=${now - w.beat_ms > SILENT_MS ? 'bad' : null}><${When} ms=${w.beat_ms}
    now=${now} /></span>`},
  {head: 'Started', num: true, cell: (w) => html`<${When} ms=${w.started_ms} now=${now} />`},
  {head: 'Version', cell: (w) => html`<${Text} value=${w.version} />`},
  {head: 'Queues', wide: true, cell: (w) => html`<${Queues} text=${w.queues} />`},
];

const suspects = (now) => [
  {head: 'Job', cell: (s) => html`<${JobLink} id=${s.id} />`},
  {head: 'Queue', cell: (s) => html`<${QueueLink} name=${s.queue} />`},
  {head: 'Workers died', num: true, cell: (s) => number(s.crashes)},
  {head: 'Due', num: true, cell: (s) => html`<${Due} ms=${s.due_ms} now=${now} />`},
];

const view = ({page, data}) => html`
  <${Table} label="Workers" columns=${columns(page.now)} rows=${data.workers} id=${(w) => w.worker}
    mark=${(w) => (w.state === 'dead' ? 'bad' : null)} empty="No worker is running in this namespace: start laterd." />
  <section><h2>Suspects</h2><p class="quiet">Jobs whose worker died twice under them. They start only where nothing else runs.</p>
    <${Table} label="Suspects" columns=${suspects(page.now)} rows=${data.suspects ?? []} id=${(s) => s.id} empty="None." /></section>`;

export default {title: () => 'Workers', load: ({get}) => get(['workers']), view};
