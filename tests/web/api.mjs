// Asks later-web every question of etc/later-web.openapi.json and holds its answers against it.
//
//     BASE_URL=http://127.0.0.1:8377/ TOKEN=… node api.mjs
//
// Names come from the listings, so the namespace must have one of each thing, and later-web must run
// with --write: jobs are added, retried, cancelled, queues and schedules paused. It fails if a path
// gave no answer of status 200, if an answer is not as described, and if a described field was in no
// answer (but RARE ones, unless EVERY_FIELD is set).
import fs from 'node:fs';
import {Ajv2020} from 'ajv/dist/2020.js';

const {BASE_URL, TOKEN = ''} = process.env;
const DEADLINE_MS = 30000;
const MOST = 200; // names of a kind that are asked for
const PAGES_MAX = 1000;
const doc = JSON.parse(fs.readFileSync(process.env.OPENAPI ?? new URL('../../etc/later-web.openapi.json', import.meta.url)));

// Fields that take a state which a scene does not have at will.
const RARE = [
  /^Bulk\.error(_base64)?$/, /^Bulk\.(key|reason|why)_base64$/, // a bulk that went wrong, and its words in other bytes
  /^Job\.(lock|sem|rate|then|on_dead|trace|reason|progress)_base64$/, /^Outcome\.output_base64$/,
  /^Job\.unique$/, // here its bytes are no UTF-8
  /^Schedule\.options$/, // the same
  /^Job\.cancelling$/, /^Explain\.(aside|cancelling_ms|defect|granted_ms|unique_owner|unserved_since_ms)$/, // for moments, or after a minute
  /^Explain\.workers$/, /^ServingWorker\./, // all places taken
  /^(Explain|Job|JobRow)\.gate_base64$/, /^(Found|Gate)\.name_base64$/, // a gate's name in other bytes: test_web_calls.c
  /^Holder\.program$/, // a job behind a program
  /^Health(Cause|Warning)\./, /^Suspect\./, // a fleet in trouble
  /^TailLeft\./, // a reader who is too slow
  /^(Dead|Reasons|Queues)\.more$/, /^Overview\.more_dead$/, // tens of thousands: many.mjs
  /^(Batches|Gates|Schedules|OneBatch)\.after$/, // more than a page
];
const IS_STRICT = process.env.EVERY_FIELD === undefined;

let failed = 0;
const fault = (where, what) => {
  failed++;
  console.log(`not ok ${where}: ${what}`);
};

// ---- schemas

const ajv = new Ajv2020({strict: true, strictTypes: false, strictRequired: false, allErrors: true});
for (const name of ['int32', 'int64']) ajv.addFormat(name, {type: 'number', validate: Number.isSafeInteger});
const defs = JSON.parse(JSON.stringify(doc.components.schemas).replaceAll('#/components/schemas/', 'api#/$defs/'));
ajv.addSchema({$id: 'api', $defs: defs});

const localName = (schema) => schema.$ref.split('/').pop();
const described = new Set();
const seen = new Set();

// Each object says what it may have.
function checkStrict(name, schema) {
  if (schema === null || typeof schema !== 'object') return;
  if (schema.type === 'object' && schema.maxProperties !== 0 && schema.additionalProperties !== false) {
    fault(name, 'an object may have any field');
  }
  for (const field of schema.required ?? []) {
    if (schema.type === 'object' && schema.properties[field] === undefined) fault(name, `${field} is required and not described`);
  }
  for (const one of Object.values(schema)) checkStrict(name, one);
}

// Walk a value along its schema: `visit` is told each field, with the name of its object.
function walk(name, schema, value, visit) {
  if (schema.$ref !== undefined) {
    walk(localName(schema), defs[localName(schema)], value, visit);
  } else if (Array.isArray(value)) {
    value.forEach((one) => walk(name, schema.items, one, visit));
  } else if (value !== null && typeof value === 'object') {
    for (const [field, of] of Object.entries(value)) {
      visit(`${name}.${field}`);
      if (schema.properties?.[field]) walk(`${name}.${field}`, schema.properties[field], of, visit);
    }
  }
}

// All fields that answers may have.
function describe(name, schema, done = new Set()) {
  if (schema.$ref !== undefined) {
    const target = localName(schema);
    if (!done.has(target)) describe(target, defs[target], done.add(target));
  } else if (schema.items) {
    describe(name, schema.items, done);
  }
  for (const [field, of] of Object.entries(schema.properties ?? {})) {
    described.add(`${name}.${field}`);
    describe(`${name}.${field}`, of, done);
  }
}

const validators = new Map();
function check(where, schema, value) {
  const name = localName(schema);
  if (!validators.has(name)) validators.set(name, ajv.compile({$ref: `api#/$defs/${name}`}));
  const isValid = validators.get(name);
  if (!isValid(value)) {
    const words = isValid.errors.slice(0, 3).map((e) => `${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`);
    fault(where, `${name}: ${words.join('; ')}`);
  }
  walk(name, defs[name], value, (field) => seen.add(field));
}

// ---- questions

const operations = new Map();
for (const [path, methods] of Object.entries(doc.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    if (method !== 'parameters') operations.set(operation.operationId, {path, method: method.toUpperCase(), ...operation});
  }
}
const good = new Map();
const largest = {bytes: 0};
let ns;
let asked = 0;

const resolved = (response) => (response.$ref ? doc.components.responses[response.$ref.split('/').pop()] : response);

function address(operation, names, query) {
  const path = operation.path.slice(1).replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent({ns, ...names}[name]));
  const words = new URLSearchParams(query).toString();
  return new URL(words ? `${path}?${words}` : path, BASE_URL);
}

// -> {status, body}; what it is must be described. wants: the status that it has to have, null for any.
async function ask(id, {names = {}, query = {}, body, wants = 200, token = TOKEN} = {}) {
  const operation = operations.get(id);
  const url = address(operation, names, query);
  const where = `${operation.method} ${url.pathname}${url.search}`;
  const headers = {Authorization: `Bearer ${token}`};
  if (operation.method === 'POST') headers['Content-Type'] = 'application/json';
  const answer = await fetch(url, {
    method: operation.method, headers, body: operation.method === 'POST' ? JSON.stringify(body ?? {}) : undefined,
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  asked++;
  if (bytes.length > largest.bytes) Object.assign(largest, {bytes: bytes.length, where});
  const response = operation.responses[answer.status] && resolved(operation.responses[answer.status]);
  if (wants !== null && answer.status !== wants) fault(where, `status ${answer.status}, not ${wants}: ${bytes.toString().slice(0, 200)}`);
  if (!response) {
    fault(where, `status ${answer.status} is not described`);
    return {status: answer.status};
  }
  if (answer.status === 200) good.set(id, (good.get(id) ?? 0) + 1);
  const type = answer.headers.get('content-type');
  const content = response.content[type];
  if (!content) {
    fault(where, `media type ${type} is not described`);
    return {status: answer.status};
  }
  if (type !== 'application/json') return {status: answer.status, body: bytes};
  const value = JSON.parse(bytes.toString('utf8'));
  check(where, content.schema, value);
  return {status: answer.status, body: value};
}

// All pages of a listing. -> its things
async function all(id, list, given = {}) {
  const found = [];
  const query = {...given.query};
  for (let page = 0; page < PAGES_MAX; page++) {
    const {body} = await ask(id, {...given, query});
    found.push(...(body?.[list] ?? []));
    const next = body?.after ?? body?.cursor;
    if (next === undefined) return found;
    query[body.after === undefined ? 'cursor' : 'after'] = next;
  }
  fault(id, 'the pages do not end');
  return found;
}

async function askAll(id, name, values, more = {}) {
  for (const value of values.slice(0, MOST)) await ask(id, {names: {[name]: value}, ...more});
}

// ---- what is looked at

// Workers tell what they counted, and since when a job runs, each ten seconds.
async function untilTold() {
  const end = Date.now() + DEADLINE_MS;
  for (;;) {
    const {body: {history}} = await ask('overview');
    const {body: {jobs}} = await ask('running');
    const isTold = jobs.some((job) => job.since_ms) && history.buckets.some((b) => b.late_p99_us);
    if (isTold || Date.now() > end) return;
    await new Promise((done) => setTimeout(done, 200));
  }
}

async function look() {
  const {body: hello} = await ask('hello');
  ns = hello.namespaces[0];
  await untilTold();
  for (const id of ['overview', 'health', 'workers', 'dead']) await ask(id);
  const queues = (await all('queues', 'queues')).map((one) => one.queue);
  const schedules = (await all('schedules', 'schedules')).map((one) => one.schedule);
  const batches = (await all('batches', 'batches')).map((one) => one.batch);
  const bulks = await all('bulks', 'bulks');
  const gates = await all('gates', 'gates');
  const of = {};
  await all('queues', 'queues', {query: {count: 1}});
  await askAll('queue', 'queue', queues);
  await askAll('reasons', 'queue', queues);
  for (const queue of queues.slice(0, MOST)) {
    for (const state of defs.JobState.enum) {
      const rows = await all('queueJobs', 'jobs', {names: {queue}, query: {state}});
      (of[state] ??= []).push(...rows.filter((row) => row.id !== undefined));
    }
  }
  await all('running', 'jobs', {query: {count: 1}});
  const jobs = Object.values(of).flatMap((rows) => rows.slice(0, MOST).map((row) => row.id));
  for (const id of jobs) {
    // It may have ended, and is forgotten then.
    const {status} = await ask('job', {names: {id}, wants: null});
    if (status === 200 && hello.payloads) await ask('payload', {names: {id}, wants: null});
  }
  await askAll('schedule', 'schedule', schedules);
  for (const batch of batches.slice(0, MOST)) await all('batch', 'jobs', {names: {batch}});
  for (const gate of gates.slice(0, MOST)) await ask('gates', {query: {gate: `${gate.kind}:${gate.name}`}});
  for (const q of ['', ...[...queues, ...schedules, ...batches, ...jobs].slice(0, MOST)]) await ask('search', {query: {q}});
  return {queues, schedules, bulks, of};
}

// ---- what is changed

async function change({queues, schedules, bulks, of}) {
  const names = {queue: queues[0]};
  const add = async () => {
    const {body} = await ask('addJob', {body: {queue: names.queue, payload: 'a payload \u2713', in: '1h', priority: 3, attempts: '2', key: 'api'}});
    return {id: body.id};
  };
  const job = await add();
  await ask('job', {names: job});
  await ask('rescheduleJob', {names: job, body: {at: '+2h'}});
  await ask('retryJob', {names: job, wants: null});
  await ask('cancelJob', {names: job});
  await ask('runJob', {names: await add()});
  await ask('pauseQueue', {names, body: {reason: 'a look', for: '1h'}});
  await ask('queue', {names});
  await ask('resumeQueue', {names});
  for (const schedule of schedules.slice(0, 1)) {
    await ask('pauseSchedule', {names: {schedule}, body: {reason: 'a look'}});
    await ask('schedule', {names: {schedule}});
    await ask('resumeSchedule', {names: {schedule}});
    await ask('runSchedule', {names: {schedule}, wants: null});
  }
  if (of.dead.length > 0) {
    const [{id, queue}] = of.dead;
    await ask('retryJob', {names: {id}});
    const {body: {reasons: [{reason}]}} = await ask('reasons', {names: {queue}});
    await ask('beginBulk', {body: {verb: 'retry', queue, state: 'dead', reason, to: names.queue, spread: '1h', rate: '1/1s'}});
  }
  const {body: bulk} = await ask('beginBulk', {body: {verb: 'cancel', queue: names.queue, state: 'due', key: 'no such key', why: 'a look'}});
  await ask('abortBulk', {names: {bulk: bulk.bulk}, wants: null});
  await askAll('abortBulk', 'bulk', bulks.filter(({status}) => status === 'active').map((one) => one.bulk));
  if (!good.has('abortBulk')) {
    for (let i = 0; i < 200; i++) await ask('addJob', {body: {queue: names.queue, payload: '', in: '1h', key: 'many'}});
    const {body: slow} = await ask('beginBulk', {body: {verb: 'cancel', queue: names.queue, state: 'due', key: 'many', rate: '1/1h'}});
    await ask('abortBulk', {names: {bulk: slow.bulk}});
  }
  await ask('bulks');
}

// ---- what is refused

async function refuse() {
  for (const [id, operation] of operations) {
    if (id === 'tail') continue;
    await ask(id, {names: {queue: 'q', id: 'x', bulk: 'x', schedule: 'x', batch: 'x'}, token: 'wrong', wants: 401});
    // A thing that is not there: whatever is answered must be described.
    if (operation.path.match(/\{(id|bulk|schedule|batch)\}/)) {
      for (const bad of ['no such thing', 'zzzzzzzzzzzz', '1', 'nosuch', '\u00e9/%']) {
        const {status} = await ask(id, {names: {id: bad, bulk: bad, schedule: bad, batch: bad}, body: {at: 1}, wants: null});
        if (status < 400) fault(id, `${bad} was answered with ${status}`);
      }
    }
  }
  await ask('queueJobs', {names: {queue: 'q'}, query: {state: 'odd'}, wants: 400});
  await ask('addJob', {body: {queue: 'q'}, wants: 400});
  await ask('addJob', {body: [], wants: 400});
}

// ---- what is followed

async function follow(queue) {
  const operation = operations.get('tail');
  const content = operation.responses['200'].content['text/event-stream'];
  const answer = await fetch(address(operation, {}, {}), {headers: {Authorization: `Bearer ${TOKEN}`}, signal: AbortSignal.timeout(DEADLINE_MS)});
  if (answer.status !== 200 || answer.headers.get('content-type') !== 'text/event-stream') fault('tail', `status ${answer.status}`);
  let text = '';
  let events = 0;
  const {body} = await ask('addJob', {body: {queue, payload: 'followed'}});
  // Until its job has ended, or for one beat where no worker serves the queue.
  let isOver = false;
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const blocks = text.split('\n\n');
    text = blocks.pop();
    for (const block of blocks) {
      const name = block.match(/^event: (.*)$/m)?.[1] ?? 'message';
      const data = block.match(/^data: (.*)$/m)?.[1];
      isOver ||= data === undefined && events > 0;
      if (data === undefined) continue;
      const event = JSON.parse(data);
      if (content['x-events'][name]) check(`tail ${name}`, content['x-events'][name], event);
      else fault('tail', `event ${name} is not described`);
      events += event.id === body.id ? 1 : 0;
      isOver ||= event.id === body.id && event.code !== undefined;
    }
    if (isOver) break;
  }
  good.set('tail', events);
}

// ----

for (const [name, schema] of Object.entries(defs)) checkStrict(name, schema);
for (const {responses} of operations.values()) {
  for (const response of Object.values(responses).map(resolved)) {
    for (const {schema, ...more} of Object.values(response.content)) {
      if (schema.$ref) describe(localName(schema), schema);
      for (const event of Object.values(more['x-events'] ?? {})) describe(localName(event), event);
    }
  }
}
const found = await look();
await follow(found.queues[0]);
await change(found);
await refuse();
for (const id of operations.keys()) {
  if (!good.get(id)) fault(id, 'no answer of status 200');
}
const unseen = [...described].filter((field) => !seen.has(field)).sort();
for (const field of unseen) {
  if (!IS_STRICT || !RARE.some((rare) => rare.test(field))) fault(field, 'was in no answer');
}
console.log(`# ${asked} questions, ${described.size} fields, not met: ${unseen.join(' ') || 'none'}`);
console.log(`# largest answer: ${largest.bytes} bytes, ${largest.where}`);
console.log(failed === 0 ? 'ok' : `not ok: ${failed} faults`);
process.exit(failed === 0 ? 0 : 1);
