// BullMQ without its groups, which are not free: what the jobs of quiet tenants wait beside a backlog of n jobs.
//   alone, tenants: a queue and a worker for each tenant, in one process that runs PLACES jobs at once, first come first served
//   priority: one queue; a job's priority is how many jobs of its tenant waited when it was added
//   one: one queue, as it is
// TENANTS quiet tenants have a job every EVERY seconds each; jobs take MS milliseconds.
const { Queue, Worker } = require('bullmq');
const IORedis = require('ioredis');
const { mode, n, span, now, answer } = require('./common.js');

const number = name => Number(process.env[name]);
const [TENANTS, EVERY_MS, MS, PLACES] = [number('TENANTS'), number('EVERY') * 1000, number('MS'), number('PLACES')];
const QUIET = Math.floor(TENANTS * span * 1000 / EVERY_MS);
const PER_CALL = 1000;
const connection = new IORedis({ host: '127.0.0.1', port: number('REDIS_PORT'), maxRetriesPerRequest: null });
connection.setMaxListeners(0);
const isSplit = mode === 'alone' || mode === 'tenants';

// Tenant 0 has the backlog.
const queues = Array.from({ length: isSplit ? TENANTS + 1 : 1 }, (_, i) => new Queue(`t${i}`, { connection }));
const queueOf = tenant => queues[isSplit ? tenant : 0];

let free = PLACES;
const waiting = [];
const sleep = ms => new Promise(done => setTimeout(done, ms));
const seen = { late_ms: [], begun: 0, from: 0 };

async function take() {
  if (free > 0) free--;
  else await new Promise(done => waiting.push(done));
}

function give() {
  if (waiting.length) waiting.shift()();
  else free++;
}

async function run(job) {
  await take();
  const at = now();
  if (job.data.due) seen.late_ms.push(at - job.data.due);
  else if (at >= seen.from && at < seen.from + span * 1000) seen.begun++;
  await sleep(MS);
  give();
}

const part = (due, opts) => ({
  name: 'noop', data: { due, pad: 'x'.repeat(100) }, opts: { removeOnComplete: true, attempts: 3, ...opts },
});
const priority = ahead => (mode === 'priority' ? { priority: ahead + 1 } : {});

async function addBacklog() {
  for (let i = 0; i < n; i += PER_CALL) {
    const some = Array.from({ length: Math.min(PER_CALL, n - i) }, (_, k) => part(0, priority(i + k)));
    await queueOf(0).addBulk(some);
  }
}

// Evenly over the time from seen.from on.
async function addQuiet() {
  const of = new Map();
  for (let i = 0; i < QUIET; i++) {
    const due = Math.floor(seen.from + i * EVERY_MS / TENANTS);
    const queue = queueOf(1 + i % TENANTS);
    if (!of.has(queue)) of.set(queue, []);
    of.get(queue).push(due);
  }
  await Promise.all([...of].map(([queue, dues]) => {
    const at = Date.now();
    return queue.addBulk(dues.map(due => part(due, { timestamp: at, delay: Math.max(0, due - at), ...priority(0) })));
  }));
}

async function main() {
  await Promise.all(queues.map(queue => queue.waitUntilReady()));
  if (mode !== 'alone') await addBacklog();
  const workers = queues.map(queue => new Worker(queue.name, run, { connection, concurrency: PLACES, autorun: false }));
  await Promise.all(workers.map(worker => worker.waitUntilReady()));
  seen.from = Math.ceil(now()) + 3000 + 2 * QUIET;
  await addQuiet();
  workers.forEach(worker => worker.run());
  const to = seen.from + span * 1000;
  // Those that still wait behind a backlog have not started when we give up; all others soon have.
  await sleep(to - now());
  const until = now() + (isSplit ? 30000 : 0);
  while (seen.late_ms.length < QUIET && now() < until) await sleep(100);
  answer({ late_ms: seen.late_ms, quiet: QUIET, begun: seen.begun });
}

main().catch(e => { console.error(e); process.exit(1); });
