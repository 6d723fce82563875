// Find something by its name, id, key or trace.
import {html} from './dom.js';
import {bytesOf, plain} from './format.js';
import {Badge, GateOf, JobLink, Link, Name, QueueLink, Table, Text} from './parts.js';
import {href} from './route.js';

const LINKS = {
  job: (f) => html`<${JobLink} id=${f.id ?? f.name} />`,
  queue: (f) => html`<${QueueLink} name=${f.name} />`,
  batch: (f) => html`<${Link} to=${['batches', f.name]}><${Name} value=${f.name} /><//>`,
  schedule: (f) => html`<${Link} to=${['schedules', f.name]}><${Name} value=${f.name} /><//>`,
  lock: (f) => html`<${GateOf} of=${f} name="name" kind="lock" />`,
  sem: (f) => html`<${GateOf} of=${f} name="name" kind="sem" />`,
  rate: (f) => html`<${GateOf} of=${f} name="name" kind="rate" />`,
};

const columns = [
  {head: 'Found', cell: (f) => (Object.hasOwn(LINKS, f.kind) ? LINKS[f.kind](f) : html`<${Text} value=${bytesOf(f, 'name')} />`)},
  {head: 'Kind', cell: (f) => plain(f.kind)},
  {head: 'State', cell: (f) => (f.state ? html`<${Badge} state=${f.state} />` : '–')},
  {head: 'More', wide: true, cell: (f) => html`${f.kind === 'job' && f.queue && html`queue <${QueueLink}
    name=${f.queue} /> `}${f.key && html`key <${Text} value=${f.key} />`}`},
];

function search(e) {
  e.preventDefault();
  const q = new FormData(e.currentTarget).get('q').trim();
  location.hash = href(['search'], {q});
}

const view = ({page, data}) => html`
  <form class="filter" role="search" onSubmit=${search}><label for="q">Id, key, trace, or the first letters of a name</label>
    <input id="q" name="q" type="search" autocomplete="off" spellcheck=${false} defaultValue=${page.params.get('q') ?? ''} /><button
      type="submit" class="main">Search</button></form>
  ${data.found && html`<${Table} label="Found" columns=${columns} rows=${data.found} id=${(f) => `${f.kind} ${bytesOf(f, 'name')}`}
    empty="Nothing is called like this." />`}`;

export default {
  title: () => 'Search',
  once: true,
  load: async ({get, params}) => (params.get('q') ? get(['search'], {q: params.get('q')}) : {}),
  view,
};
