// One job: why it waits, what happened so far, what it carries, what it belongs to.
import {Component, html} from './dom.js';
import {actions} from './job_table.js';
import {askReschedule} from './ask.js';
import {Explain} from './explain.js';
import {ago, bytes, bytesOf, isNumber, number, plain, span} from './format.js';
import {Badge, Button, Empty, Facts, GateOf, JobLink, Json, Link, Name, Progress, QueueLink, Text, When} from './parts.js';

const CAN = {waiting: ['run', 'cancel'], parked: ['cancel'], running: ['cancel'], dead: ['retry']};

function Actions({page, job}) {
  const can = CAN[job.state] ?? [];
  if (!page.canWrite || can.length === 0) return null;
  return html`<p class="buttons">${can.map((a) => actions[a](page, job))}${job.state === 'waiting' && html`<${Button} onClick=${() => askReschedule(page, job)}>Move…<//>`}</p>`;
}

const status = (code) => (code === 0 ? null : code > 128 && code < 193 ? html`<code>signal ${code - 128}</code>` : html`<code>exit status ${code}</code>`);

const ENDS = {
  __proto__: null,
  done: {look: 'ok', what: 'done'},
  dead: {look: 'bad', what: 'died'},
  failed: {look: 'warn', what: 'an attempt failed'},
};

const placeOf = (f) => f && `${plain(f.host)}, worker ${plain(f.worker)}`;

// The outcome is also the last of the failures, where the job failed: it is told once.
function ends(job) {
  const o = job.outcome;
  const failures = job.failures ?? [];
  const list = failures.filter((f) => f.when_ms !== o?.when_ms)
    .map((f) => ({...ENDS.failed, ms: f.when_ms, where: placeOf(f), code: f.code, text: f.reason}));
  if (!o) return list;
  const end = ENDS[o.state] ?? {look: 'warn', what: o.state};
  const where = placeOf(failures.find((f) => f.when_ms === o.when_ms));
  return [...list, {...end, ms: o.when_ms, where, code: o.code, text: o.text === 'ok' ? '' : o.text, start: o.start}];
}

// Everything that has an instant, in its order.
function moments(job) {
  const o = job.outcome;
  const list = [{ms: job.added_ms, what: 'added'}, ...ends(job)];
  if (isNumber(job.died_ms) && o?.state !== 'dead') list.push({ms: job.died_ms, look: 'bad', what: 'died'});
  if (isNumber(job.started_ms))
    list.push({ms: job.started_ms, look: 'on', what: 'it began to run', where: isNumber(job.worker) && `worker ${job.worker}`});
  if (isNumber(job.cancelling)) list.push({ms: job.cancelling, look: 'warn', what: 'a cancel was asked for'});
  if (isNumber(job.due_ms) && job.state !== 'running') list.push({ms: job.due_ms, what: 'due'});
  if (isNumber(job.until_ms)) list.push({ms: job.until_ms, what: 'is forgotten'});
  return list.filter((m) => isNumber(m.ms)).sort((a, b) => a.ms - b.ms);
}

const Timeline = ({job, now}) => html`<ol class="timeline">${moments(job).map((m, i) => html`<li key=${i}
  class=${`${m.look ?? ''}${m.ms > now ? ' next' : ''}`}>
  <span class="at"><${When} ms=${m.ms} now=${now} /></span> <span><b>${plain(m.what)}</b>
    ${isNumber(m.start) && m.start > 0 && html` <span class="quiet">start ${m.start}</span>`}${m.where && html` <span
    class="quiet">on ${m.where}</span>`}
  ${isNumber(m.code) && !/^(exit status|killed by signal)/.test(m.text ?? '') && html` ${status(m.code)}`}${m.text && html`<br />
    <${Text} value=${m.text} most=${400} />`}</span></li>`)}</ol>`;

const parsed = (text) => {
  try {
    return {value: JSON.parse(text)};
  } catch {
    return null;
  }
};

class Payload extends Component {
  render({page, job, start}, {isRaw}) {
    const json = start !== undefined && new Blob([start]).size === job.payload_bytes ? parsed(start) : null;
    const isTree = json !== null && typeof json.value === 'object' && json.value !== null && !isRaw;
    return html`<section><h2>Payload <small class="quiet">${bytes(job.payload_bytes)}</small></h2>
      <p class="buttons">${json !== null && typeof json.value === 'object' && html`<${Button}
        aria-pressed=${Boolean(isRaw)} onClick=${() => this.setState({isRaw: !isRaw})}>As text<//>`}
        ${page.me.payloads && job.payload_bytes > 0 && html`<${Button} onClick=${() => page.download(['jobs', job.id, 'payload'], `${job.id}.txt`)}>Download<//>`}</p>
      ${!page.me.payloads ? html`<${Empty}>This server shows no payloads.<//>`
        : start === undefined ? html`<${Empty}>${job.payload_bytes > 0 ? 'It is no text. Download it to look at it.' : 'It is empty.'}<//>`
          : isTree ? html`<div class="box tree" tabindex="0" role="region" aria-label="Payload as JSON"><${Json} value=${json.value} />
            </div>`
            : html`<pre class="box" tabindex="0" role="region" aria-label="Payload as text">${plain(start)}</pre>`}
      ${start !== undefined && json === null && new Blob([start]).size < job.payload_bytes && html`<p
        class="quiet">Only its beginning.</p>`}
    </section>`;
  }
}

const Output = ({outcome}) => {
  const output = outcome && bytesOf(outcome, 'output');
  return output ? html`<section><h2>Output</h2><pre class="box" tabindex="0" role="region" aria-label="Output">${plain(output)}</pre>
    </section>` : null;
};

const ids = (text) => plain(text).split(',').filter((id) => id !== '').map((id, i) => html`${i > 0 && ', '}<${JobLink} id=${id} />`);

// Each queue that a chain goes on in.
function queuesOf(text) {
  const s = plain(text);
  if (!/^[\w.:-]+(,[\w.:-]+)*$/.test(s)) return html`<${Text} value=${s} />`;
  return s.split(',').map((q, i) => html`${i > 0 && ', '}<${QueueLink} name=${q} />`);
}

function facts(job, now) {
  const gate = (kind) => bytesOf(job, kind) && html`<${GateOf} of=${job} name=${kind} kind=${kind} />`;
  return [
    ['Queue', html`<${QueueLink} name=${job.queue} />`],
    ['Attempts', isNumber(job.attempt) && `${number(job.attempt)}${isNumber(job.attempts_max) ? ` of ${number(job.attempts_max)}` : ''}`],
    ['Starts', isNumber(job.starts) && number(job.starts)],
    ['Crashes', job.crashes > 0 && html`<span class="bad">${number(job.crashes)}</span>`],
    ['Priority', isNumber(job.priority) && number(job.priority)],
    ['Due', isNumber(job.due_ms) && html`<${When} ms=${job.due_ms} now=${now} />`],
    ['Progress', job.progress && html`<${Progress} text=${job.progress} />`],
    ['Waits for', bytesOf(job, 'gate') && html`<${GateOf} of=${job} name="gate" />`],
    ['Lock', gate('lock')], ['Semaphore', gate('sem')], ['Rate', gate('rate')],
    ['Key', bytesOf(job, 'key') && html`<${Text} value=${bytesOf(job, 'key')} />`],
    ['Unique key', bytesOf(job, 'unique') && html`<${Text} value=${bytesOf(job, 'unique')} />`],
    ['Unique until', isNumber(job.unique_until_ms) && html`<${When} ms=${job.unique_until_ms} now=${now} />`],
    ['Timeout', isNumber(job.timeout_ms) && span(job.timeout_ms)],
    ['Expires after', isNumber(job.expire_ms) && span(job.expire_ms)],
    ['Kept for', isNumber(job.keep_ms) && span(job.keep_ms)],
    ['Trace', job.trace && html`<${Link} to=${['search']} params=${{q: job.trace}}><${Text} value=${job.trace} /><//>`],
    ['Batch', job.batch && html`<${Link} to=${['batches', job.batch]}><${Name} value=${job.batch} /><//>`],
    ['Callback of batch', job.callback_of && html`<${Link} to=${['batches', job.callback_of]}><${Name} value=${job.callback_of} /><//>`],
    ['Schedule', job.schedule && html`<${Link} to=${['schedules', job.schedule]}><${Name} value=${job.schedule} /><//>`],
    ['Occurrence', isNumber(job.occurrence_ms) && html`<${When} ms=${job.occurrence_ms} now=${now} />`],
    ['Goes on in', job.then && queuesOf(job.then)],
    ['Death is told to', job.on_dead && queuesOf(job.on_dead)],
    ['Caused by', job.parent && html`<${JobLink} id=${job.parent} />`],
    ['Since that died', job.reason && html`<${Text} value=${job.reason} />`],
    ['Caused', job.caused && ids(job.caused)],
  ];
}

function view({page, data}) {
  const {job, explain} = data;
  return html`
    <section class="card"><p class="lead"><${Badge} state=${job.state} /> in <${QueueLink} name=${job.queue} />
      ${isNumber(job.added_ms) && html` <span class="quiet">added ${ago(job.added_ms, page.now)}</span>`}</p>
      ${explain && html`<${Explain} explain=${explain} now=${page.now} />`}
      <${Actions} page=${page} job=${job} /></section>
    <div class="pair"><section><h2>What happened</h2><${Timeline} job=${job} now=${page.now} /></section>
      <section><h2>Facts</h2><${Facts} facts=${facts(job, page.now)} /></section></div>
    <${Output} outcome=${job.outcome} />
    <${Payload} page=${page} job=${job} start=${data.payload_start} />`;
}

export default {title: (id) => `Job ${id ?? ''}`, load: ({get, name}) => get(['jobs', name]), view};
