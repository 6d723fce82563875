// One queue: what comes in the next hour, why its next job waits, and its jobs by state.
import {html} from './dom.js';
import {askBulk, askPause, resume, STATES, VERBS} from './ask.js';
import {Chart} from './charts.js';
import {Explain} from './explain.js';
import {History} from './history.js';
import {count, isNumber, number} from './format.js';
import {JobTable} from './job_table.js';
import {Button, Due, Facts, Link, Pager, Paused} from './parts.js';
import {waiting} from './queue_table.js';

const VERBS_OF = {due: ['cancel', 'reschedule', 'purge'], parked: ['cancel'], running: ['cancel'], dead: ['retry', 'purge'], done: ['purge']};

const many = (q) => ({due: waiting(q), parked: q.parked, running: q.running, dead: q.dead, done: q.kept});

const stateOf = (params) => (Object.hasOwn(STATES, params.get('state') ?? '') ? params.get('state') : 'due');

// One request each time: the queue and the list of its jobs take turns.
async function load({get, params, name, old}) {
  const state = stateOf(params);
  const queue = () => get(['queues', name]);
  const jobs = () => get(['queues', name, 'jobs'], {state, cursor: params.get('cursor'), count: 25});
  if (old === null) {
    const [q, j] = await Promise.all([queue(), jobs()]);
    return {...q, list: j, turn: 0};
  }
  return old.turn % 2 === 0 ? {...old, ...(await queue()), turn: 1} : {...old, list: await jobs(), turn: 0};
}

function Head({page, q}) {
  return html`<section class=${`card ${q.paused ? 'paused' : ''}`}>
    ${q.paused && html`<p class="lead"><${Paused} paused=${q.paused} now=${page.now} /></p>`}
    <${Facts} facts=${[
      ['Running', number(q.running)], ['Waiting', number(waiting(q))], ['Parked', number(q.parked)],
      ['Dead', q.dead > 0 ? html`<span class="bad">${number(q.dead)}</span>` : number(q.dead)],
      ['Oldest due', isNumber(q.due_ms) && html`<${Due} ms=${q.due_ms} now=${page.now} />`],
      ['Kept', number(q.kept)], ['Done so far', number(q.done)], ['Died so far', number(q.died)], ['Cancelled so far', number(q.cancelled)],
    ]} />
    ${page.canWrite && html`<p class="buttons">${q.paused
      ? html`<${Button} main onClick=${() => resume(page, 'queue', q.queue)}>Resume<//>`
      : html`<${Button} onClick=${() => askPause(page, 'queue', q.queue)}>Pause…<//>`}
      <${Link} class="button" to=${['add']} params=${{queue: q.queue}}>Add a job<//></p>`}
  </section>`;
}

function Ahead({ahead}) {
  return html`<${Chart} title="Next 60 minutes" note="jobs by due time" times=${ahead.map((a) => a.from_ms)}
    bars=${[{name: 'jobs', look: 'a', values: ahead.map((a) => a.jobs)}]} empty="No job becomes due in the next hour." />`;
}

function Jobs({page, q, list}) {
  const state = stateOf(page.params);
  const counts = many(q);
  return html`<section><h2>Jobs</h2>
    <nav class="tabs" aria-label="State of the jobs"><ul>${Object.entries(STATES).map(([key, word]) => html`<li key=${key}><${Link}
      to=${['queues', q.queue]}
      params=${{state: key}} aria-current=${key === state ? 'true' : null}>${word} <span class="num">${number(counts[key])}</span><//>
        </li>`)}</ul></nav>
    ${page.canWrite && VERBS_OF[state].length > 0 && counts[state] !== 0 && html`<p class="buttons"><span
      class="quiet">All ${count(counts[state], q.more)} ${STATES[state]}:</span> ${VERBS_OF[state].map((verb) => html`<${Button}
      key=${verb} danger=${VERBS[verb].danger}
      onClick=${() => askBulk(page, {verb, queue: q.queue, state, count: counts[state], more: q.more})}>
        ${VERBS[verb].title} all…<//>`)}</p>`}
    <${JobTable} page=${page} rows=${list.jobs} state=${state} label=${`${STATES[state]} jobs`} empty=${`No ${STATES[state]} job.`} />
    <${Pager} to=${['queues', q.queue]} params=${{state}} name="cursor" now=${page.params.get('cursor')} next=${list.cursor} /></section>`;
}

function view({page, data}) {
  const q = data.queue;
  return html`<${Head} page=${page} q=${q} />
    ${data.next && html`<section class="card"><h2>Its next job</h2><${Explain} explain=${data.next} now=${page.now} withJob /></section>`}
    <${History} history=${data.history}><${Ahead} ahead=${data.ahead ?? []} /><//>
    <${Jobs} page=${page} q=${q} list=${data.list} />`;
}

export default {title: (name) => `Queue ${name}`, load, view};
