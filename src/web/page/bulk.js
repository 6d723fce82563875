// What is being done to many jobs at once.
import {html} from './dom.js';
import {bulkWords, send} from './ask.js';
import {number, plain, plural, span} from './format.js';
import {Badge, Bar, Button, QueueLink, Table, Text, Trouble, When} from './parts.js';

const askAbort = (page, b) =>
  page.ask({
    title: html`Abort bulk <bdi>${plain(b.bulk)}</bdi>?`,
    text: html`${bulkWords(b)} of queue <bdi>
      ${plain(b.queue)}</bdi>. ${plural(b.changed, 'job')} stay as they are now; ${plural(b.left, 'job')} are not touched.`,
    confirm: 'Abort it',
    danger: true,
    run: () => send(page, `Abort bulk ${b.bulk}`, ['bulks', b.bulk, 'abort'], {}),
  });

const columns = (page) => [
  {head: 'Bulk', cell: (b) => html`<b>${bulkWords(b)}</b> <span class="quiet"><bdi>${plain(b.bulk)}</bdi></span>`},
  {head: 'Queue', cell: (b) => html`<${QueueLink} name=${b.queue} />`},
  {head: 'Status', cell: (b) => html`<${Badge} state=${b.status} />`},
  {head: 'Progress', num: true, cell: (b) => html`${number(b.total - b.left)} of ${number(b.total)} <${Bar} value=${b.total - b.left}
    max=${b.total} label=${`progress of bulk ${b.bulk}`} />`},
  {head: 'Changed', num: true, cell: (b) => number(b.changed)},
  {head: 'Refused', num: true, cell: (b) => html`<${Trouble} n=${b.failed} />`},
  {head: 'Time left', num: true, cell: (b) => (b.status === 'active' ? span(b.left_ms) : '–')},
  {head: 'Rate', num: true, cell: (b) => (b.rate === undefined ? html`<span
    class="quiet">no limit</span>` : b.per_ms === 1000 ? `${number(b.rate)}/s` : `${number(b.rate)} in ${span(b.per_ms)}`)},
  {head: 'Begun', cell: (b) => html`<${When} ms=${b.created_ms} now=${page.now} />${b.by && html` by <${Text} value=${b.by} />`}`},
  ...(page.canWrite ? [{head: 'Actions', cell: (b) => (b.status === 'active' ? html`<${Button} danger
    aria-label=${`Abort ${b.bulk}`} onClick=${() => askAbort(page, b)}>Abort…<//>` : html`<span class="quiet">–</span>`)}] : []),
];

const view = ({page, data}) => html`
  <${Table} label="Bulk operations" columns=${columns(page)} rows=${[...data.bulks].sort((a, b) => b.created_ms - a.created_ms)}
    id=${(b) => b.bulk}
    empty="None. A queue, and the page of the dead, can retry, cancel, move or remove many jobs at once." />`;

export default {title: () => 'Bulk', load: ({get}) => get(['bulks']), view};
