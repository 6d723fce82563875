// graphile-worker with its batched settings (a local queue, completions in batches), which its
// manual calls the fastest.
const { run, makeWorkerUtils, Logger } = require('graphile-worker');
const { Pool } = require('pg');
const { mode, n, plan, now, handler, answer, results } = require('./common.js');

const PER_CALL = 1000;
const serial = Number((mode.match(/^serial(\d+)$/) || [])[1] || 0); // this many serial queues; 0: none
const preset = {
  worker: {
    concurrentJobs: 24,
    localQueue: { size: 500 },
    // One queue is quicker when each end is told at once, a hundred when ends are told together.
    completeJobBatchDelay: serial === 1 ? -1 : 0,
    failJobBatchDelay: 0,
    // It looks for more when its local queue is empty, mostly before the last ends have unlocked their serial
    // queues. Then it finds nothing, and waits this long: the end of a job does not wake it.
    pollInterval: serial ? 1 : 2000,
  },
};
const ADD = `select graphile_worker.add_jobs(array(
  select row('noop', json_build_object('due', due, 'pad', $2::text), case when $3 > 0 then 's' || (i % $3) end,
             case when due = 0 then now() else to_timestamp(due / 1000.0) end,
             null, null, null, null)::graphile_worker.job_spec
  from unnest($1::float8[]) with ordinality as t(due, i)))`;

// The jobs of a serial queue that began while another of it ran. 0.17 has them: its local queue takes many jobs
// of one queue at once (graphile/worker, issue 621). Since 0.18 it takes one.
const beside = { running: new Map(), n: 0 };

async function besideCounted(queue, work) {
  const running = beside.running.get(queue) || 0;
  if (running > 0) beside.n++;
  beside.running.set(queue, running + 1);
  await work();
  beside.running.set(queue, beside.running.get(queue) - 1);
}

async function emptied(pool) {
  for (;;) {
    const left = await pool.query('select 1 from graphile_worker._private_jobs limit 1');
    if (left.rowCount === 0) return now();
    await new Promise(done => setTimeout(done, 2));
  }
}

async function main() {
  const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
  const utils = await makeWorkerUtils({ pgPool: pool, logger: new Logger(() => () => {}) });
  await utils.migrate();
  const dues = mode === 'idle' ? [] : plan();
  const from = now();
  for (let i = 0; i < dues.length; i += PER_CALL) {
    await pool.query(ADD, [dues.slice(i, i + PER_CALL), 'x'.repeat(100), serial]);
  }
  if (mode === 'add') return answer({ seconds: (now() - from) / 1000 });
  const seen = handler();
  let over;
  const all = new Promise(done => { over = done; });
  const noop = async (payload, { job }) => {
    const work = () => seen.run(payload.due);
    await (serial ? besideCounted(job.job_queue_id, work) : work());
    if (seen.ended === n) over();
  };
  await run({
    pgPool: pool, taskList: { noop }, noHandleSignals: true, preset, logger: new Logger(() => () => {}),
  });
  await all;
  results(seen, await emptied(pool), serial ? { beside: beside.n } : {});
}

main().catch(e => { console.error(e); process.exit(1); });
