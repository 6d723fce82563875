// Queues as rows.
import {html} from './dom.js';
import {count, isNumber, number} from './format.js';
import {Due, Paused, QueueLink, Table, Trouble} from './parts.js';
import {href} from './route.js';

const COLUMNS = (now) => [
  {head: 'Queue', cell: (q) => html`<${QueueLink} name=${q.queue} />`},
  {head: 'Running', num: true, cell: (q) => number(q.running)},
  {head: 'Waiting', num: true, cell: (q) => count(waiting(q), q.more)},
  {head: 'Parked', num: true, cell: (q) => (isNumber(q.parked) ? html`<${Trouble} n=${q.parked} kind="warn" />` : '–')},
  {head: 'Dead', num: true, cell: (q) => (q.dead > 0 ? html`<a class="bad" href=${deadOf(q)}>${number(q.dead)}</a>` : html`<${Trouble}
    n=${q.dead} />`)},
  {head: 'Oldest due', num: true, cell: (q) => html`<${Due} ms=${q.due_ms} now=${now} />`},
  {head: 'Paused', wide: true, cell: (q) => (q.paused ? html`<${Paused} paused=${q.paused} now=${now} />` : html`<span
    class="quiet">no</span>`)},
];

const deadOf = (q) => href(['dead'], {queue: q.queue});

export const waiting = (q) => (q.waiting ?? 0) + (q.raw ?? 0);

export const isIdle = (q) => waiting(q) === 0 && !(q.running > 0) && !(q.parked > 0) && !(q.dead > 0) && !q.paused;

// Where no row says how many run, nothing is said about it.
const columnsOf = (rows, now) => COLUMNS(now).filter((c) => c.head !== 'Running' || rows.some((q) => isNumber(q.running)));

export const QueueTable = ({rows, now, label = 'Queues'}) =>
  html`<${Table} label=${label} columns=${columnsOf(rows, now)} rows=${rows} id=${(q) => q.queue} mark=${(q) => (q.paused ? 'paused' : null)}
    empty="No queue." />`;
