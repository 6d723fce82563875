// Jobs as rows. What is shown of one depends on its state.
import {html} from './dom.js';
import {bytesOf, isNumber, number, plain, span} from './format.js';
import {askCancel, sendNow} from './ask.js';
import {Bar, Button, Due, GateOf, JobLink, Name, Progress, QueueLink, Table, Text, When} from './parts.js';

// How much of the time that it may take a run has taken.
function Used({job: {since_ms: since, timeout_ms: all}, now}) {
  if (!isNumber(all)) return html`<span class="quiet">–</span>`;
  const share = isNumber(since) ? Math.max(0, now - since) / all : 0;
  return html`${isNumber(since) && html`<${Bar} value=${share} max=${1} label="share of the timeout" /> <span
    class=${share > 0.8 ? 'warn' : null}>${Math.floor(100 * share)} %</span> `}of ${span(all)}`;
}

const columnsOf = {
  due: (page) => [{head: 'Due', num: true, cell: (j) => html`<${Due} ms=${j.due_ms} now=${page.now} />`}],
  parked: () => [{head: 'Waits for', cell: (j) => (bytesOf(j, 'gate') ? html`<${GateOf} of=${j} name="gate" />` : '–')}],
  running: (page) => [
    {head: 'Host', cell: (j) => (j.host ? html`<${Name} value=${j.host} />` : html`<span class="quiet">worker ${number(j.worker)}</span>`)},
    {head: 'Since', num: true, cell: (j) => html`<${When} ms=${j.since_ms} now=${page.now} />`},
    {head: 'Of its timeout', num: true, cell: (j) => html`<${Used} job=${j} now=${page.now} />`},
    {head: 'Progress', wide: true, cell: (j) => html`<${Progress} text=${j.progress} />`},
  ],
  dead: (page) => [
    {head: 'Died', num: true, cell: (j) => html`<${When} ms=${j.died_ms} now=${page.now} />`},
    {head: 'Reason', wide: true, cell: (j) => html`<${Text} value=${j.outcome?.text ?? ''} />`},
  ],
  done: (page) => [
    {head: 'Ended', num: true, cell: (j) => html`<${When} ms=${j.outcome?.when_ms} now=${page.now} />`},
    {head: 'Kept', num: true, cell: (j) => html`<${When} ms=${j.until_ms} now=${page.now} />`},
  ],
};

export const actions = {
  retry: (page, j) => html`<${Button} aria-label=${`Retry ${j.id}`} onClick=${() => sendNow(page, `Retry ${j.id}`,
    ['jobs', j.id, 'retry'])}>Retry<//>`,
  run: (page, j) => html`<${Button} aria-label=${`Run now: ${j.id}`} onClick=${() => sendNow(page, `Run ${j.id}`,
    ['jobs', j.id, 'run'])}>Run now<//>`,
  cancel: (page, j) => html`<${Button} danger aria-label=${`Cancel ${j.id}`} onClick=${() => askCancel(page, j)}>Cancel<//>`,
};

const ACTIONS = {due: ['run', 'cancel'], parked: ['cancel'], running: ['cancel'], dead: ['retry']};

const data = (j) => {
  const key = bytesOf(j, 'key');
  const start = bytesOf(j, 'payload_start');
  return html`${key && html`<span class="quiet">key</span> <${Text} value=${key} most=${60} /> `}${start !== undefined
    && html`<code class="payload"><${Text} value=${start} most=${100} /></code>`}`;
};

export function JobTable({page, rows, state, withQueue, label, empty}) {
  const can = page.canWrite ? ACTIONS[state] ?? [] : [];
  const columns = [
    {head: 'Job', cell: (j) => (j.raw ? html`<span class="quiet">no id yet</span>` : html`<${JobLink} id=${j.id} />`)},
    ...(withQueue ? [{head: 'Queue', cell: (j) => html`<${QueueLink} name=${j.queue} />`}] : []),
    ...(columnsOf[state] ?? (() => [{head: 'State', cell: (j) => plain(j.state)}]))(page),
    {head: 'Attempts', num: true, cell: (j) => number(j.attempts)},
    ...(state === 'running' ? [] : [{head: 'Payload', wide: true, cell: data}]),
    ...(can.length > 0 ? [{head: 'Actions', cell: (j) => !j.raw && html`<span class="buttons">
      ${can.map((a) => actions[a](page, j))}</span>`}] : []),
  ];
  return html`<${Table} label=${label} columns=${columns} rows=${rows} id=${(j) => j.id} empty=${empty} />`;
}
