// Jobs that are counted together: how far they are, how fast, how long still.
import {html} from './dom.js';
import {bytesOf, isNumber, number, plain, span} from './format.js';
import {Badge, Bar, Facts, Link, Name, Pager, Table, Text, Trouble, When, JobLink} from './parts.js';

const ended = (b) => b.total - b.live;

const Share = ({b}) => html`${number(ended(b))} of ${number(b.total)} <${Bar} value=${ended(b)} max=${b.total}
  label=${`ended of ${b.batch}`} />`;

// The server tells the pace of one batch; in the list it follows from the counts.
function pace(b, now) {
  const took = (b.ended_ms ?? now) - b.created_ms;
  if (isNumber(b.ended_per_s)) return {perS: b.ended_per_s, leftMs: b.left_ms};
  if (!(ended(b) > 0) || !(took > 0)) return {};
  return {perS: (1000 * ended(b)) / took, leftMs: b.live > 0 ? (b.live * took) / ended(b) : undefined};
}

const rate = (perS) => (!isNumber(perS) ? '–' : perS >= 1 ? `${number(Math.round(perS * 10) / 10)}/s` : `${number(Math.round(perS * 600) / 10)}/min`);

const columns = (now) => [
  {head: 'Batch', cell: (b) => html`<${Link} to=${['batches', b.batch]} ><${Name} value=${b.batch} /><//>`},
  {head: 'State', cell: (b) => html`<${Badge} state=${b.state} />`},
  {head: 'Progress', num: true, cell: (b) => html`<${Share} b=${b} />`},
  {head: 'Dead', num: true, cell: (b) => html`<${Trouble} n=${b.dead} />`},
  {head: 'Cancelled', num: true, cell: (b) => html`<${Trouble} n=${b.cancelled} kind="warn" />`},
  {head: 'Pace', num: true, cell: (b) => (b.live > 0 ? rate(pace(b, now).perS) : '–')},
  {head: 'Time left', num: true, cell: (b) => (b.live > 0 ? span(pace(b, now).leftMs) : '–')},
  {head: 'Opened', num: true, cell: (b) => html`<${When} ms=${b.created_ms} now=${now} />`},
];

const view = ({page, data}) => html`
  <${Table} label="Batches" columns=${columns(page.now)} rows=${data.batches} id=${(b) => b.batch} empty="No batch." />
  <${Pager} to=${['batches']} params=${{}} name="after" now=${page.params.get('after')} next=${data.after} />`;

const JOBS = [
  {head: 'Job', cell: (j) => html`<${JobLink} id=${j.id} />`},
  {head: 'State', cell: (j) => html`<${Badge} state=${j.state} />`},
];

function OneView({page, data}) {
  const b = data.batch;
  const p = pace(b, page.now);
  const payload = bytesOf(b, 'payload');
  return html`<section class="card"><p class="lead"><${Badge} state=${b.state} /> <${Share} b=${b} />
    ${b.live > 0 && isNumber(p.leftMs) && html`, about ${span(p.leftMs)} left at ${rate(p.perS)}`}</p>
      <${Facts} facts=${[
        ['Live', number(b.live)], ['Done', number(b.done)], ['Dead', html`<${Trouble} n=${b.dead} />`], ['Cancelled', number(b.cancelled)],
        ['Opened', isNumber(b.created_ms) && html`<${When} ms=${b.created_ms} now=${page.now} />`],
          ['Last joined', isNumber(b.touched_ms) && html`<${When} ms=${b.touched_ms} now=${page.now} />`],
        ['Sealed', isNumber(b.sealed_ms) && html`<${When} ms=${b.sealed_ms} now=${page.now} />`],
          ['Ended', isNumber(b.ended_ms) && html`<${When} ms=${b.ended_ms} now=${page.now} />`],
        ['Kept until', isNumber(b.until_ms) && html`<${When} ms=${b.until_ms} now=${page.now} />`],
          ['Died first', b.first_dead && html`<${JobLink} id=${b.first_dead} />`],
        ['Then', b.then && html`<${Text} value=${b.then} />`], ['Finally', b.finally && html`<${Text} value=${b.finally} />`],
          ['On dead', b.on_dead && html`<${Text} value=${b.on_dead} />`], ['Callbacks added', b.fired && html`<${Text}
          value=${b.fired} />`],
      ]} /></section>
    <section><h2>Jobs</h2><${Table} label="Jobs of the batch" columns=${JOBS} rows=${data.jobs ?? []} id=${(j) => j.id}
      empty="No job." /><${Pager} to=${['batches', b.batch]} params=${{}} name="after" now=${page.params.get('after')} next=${data.after} /></section>
    ${payload && html`<section><h2>Payload of its callbacks</h2><pre class="box" tabindex="0" role="region" aria-label="Payload">
      ${plain(payload)}</pre></section>`}`;
}

export default {
  title: () => 'Batches',
  load: ({get, params}) => get(['batches'], {after: params.get('after')}),
  view,
  one: {title: (name) => `Batch ${name}`, load: ({get, name, params}) => get(['batches', name], {after: params.get('after')}), view: OneView},
};
