// BullMQ: one queue, addBulk of a thousand jobs, one worker with 100 jobs at once; jobs that are
// done are removed. schedules: n job schedulers, one job each second. flow: a report whose children are imports, each with `span` rows.
const { FlowProducer, Queue, Worker } = require('bullmq');
const IORedis = require('ioredis');
const { mode, n, span, plan, now, handler, answer, results } = require('./common.js');

const connection = { host: '127.0.0.1', port: Number(process.env.REDIS_PORT), maxRetriesPerRequest: null };
const CONCURRENCY = 100;
const PER_CALL = 1000;

async function add(queue, dues) {
  for (let i = 0; i < n; i += PER_CALL) {
    const at = Date.now();
    await queue.addBulk(dues.slice(i, i + PER_CALL).map(due => ({
      name: 'noop',
      data: { due, pad: 'x'.repeat(100) },
      opts: { removeOnComplete: true, attempts: 3, ...(due ? { timestamp: at, delay: Math.max(0, due - at) } : {}) },
    })));
  }
}

async function flow() {
  const opts = { removeOnComplete: true, attempts: 3 };
  const part = name => ({ name, queueName: 'bench', data: { pad: 'x'.repeat(100) }, opts });
  const worker = new Worker('bench', async () => {}, { connection, concurrency: CONCURRENCY });
  await worker.waitUntilReady();
  const from = now();
  worker.on('completed', job => { if (job.name === 'report') answer({ seconds: (now() - from) / 1000 }); });
  await new FlowProducer({ connection }).add({
    ...part('report'),
    children: Array.from({ length: n / span }, () => ({
      ...part('import'), children: Array.from({ length: span }, () => part('row')),
    })),
  });
}

// The id of a job ends with the time for which it is.
async function schedules() {
  const queue = new Queue('bench', { connection });
  const late_ms = [];
  new Worker('bench', async job => {
    late_ms.push(now() - Number(job.id.split(':').pop()));
    if (late_ms.length === n * span) answer({ late_ms });
  }, { connection, concurrency: CONCURRENCY });
  for (let i = 0; i < n; i++) {
    await queue.upsertJobScheduler(`s${i}`, { every: 1000 }, { name: 'noop', opts: { removeOnComplete: true } });
  }
}

async function usedMemory(redis) {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))[1]);
}

async function main() {
  if (mode === 'flow') return flow();
  if (mode === 'schedules') return schedules();
  const redis = new IORedis(connection);
  const queue = new Queue('bench', { connection });
  await queue.waitUntilReady();
  const before = await usedMemory(redis);
  const from = now();
  if (mode !== 'idle') await add(queue, plan());
  const seconds = (now() - from) / 1000;
  if (mode === 'mem') return answer({ bytes_per_job: (await usedMemory(redis) - before) / n });
  if (mode === 'add') return answer({ seconds });
  const seen = handler();
  let confirmed = 0;
  const worker = new Worker('bench', job => seen.run(job.data.due), { connection, concurrency: CONCURRENCY });
  worker.on('completed', () => { if (++confirmed === n) results(seen, now()); });
}

main().catch(e => { console.error(e); process.exit(1); });
