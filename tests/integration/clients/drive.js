// Drives clients/javascript/later.js for test_thin_clients.c: drive.js WHAT [ARGUMENT...]
'use strict';
const { createClient } = require('redis');
const { Later, LaterError, Temporary, NotAllowed, Mistake } = require(`${process.env.CLIENTS}/javascript/later.js`);

const { env } = process;
const KINDS = new Map([[Temporary, 'temporary'], [NotAllowed, 'not allowed'], [Mistake, 'mistake'], [LaterError, 'other']]);
const client = createClient({
  socket: { port: Number(env.REDIS_PORT), reconnectStrategy: () => 100 },
  username: env.REDIS_USER || 'manager', password: env.REDISCLI_AUTH,
});
const later = new Later(client, 'default', 1000 * Number(env.TIMEOUT || 30));

const told = (promise) => promise.catch((e) => {
  if (e instanceof LaterError) return `${e.code} ${KINDS.get(e.constructor)}`;
  throw e;
});

function show(outcome) {
  if (outcome === null || typeof outcome === 'string') return console.log(outcome || 'none');
  console.log(outcome.state, outcome.code, outcome.start, outcome.text);
  console.log(outcome.output.toString('hex'));
}

const drive = {
  async bulk() {
    const payloads = [...Array(1000).keys()].map((k) => Buffer.from([k % 256, k >> 8, k % 256, k >> 8]));
    const jobs = await later.addMany('mail', payloads, { in: '1h' }).catch((e) => {
      if (e instanceof LaterError) throw e;
      console.log('lost');
      return [];
    });
    for (const job of jobs) console.log(job.id, job.status);
  },
  async add(n, delay = '1h') {
    for (let i = 0; i < Number(n); i++) {
      const add = later.add('mail', Buffer.from('x'), { in: delay });
      console.log(await told(add.then((job) => `${job.id} ${job.status}`)));
    }
  },
  async wait(job, seconds) {
    show(await told(later.wait(job, Number(seconds))));
  },
  async look() {
    const options = { in: '1h', keep: '1h', token: 't', then: ['first', 'second'] };
    const job = await later.add('mail', 'grüße', options);
    console.log(job.id, job.status, job.dueMs);
    console.log((await later.add('mail', 'grüße', options)).status);
    show(await later.result(job.id));
    show(await later.wait(job.id, 0.3));
    console.log(await later.cancel(job.id));
    console.log(await told(later.cancel(job.id)));
    show(await later.wait(job.id, 30));
    console.log(await told(later.wait('j0000000000a', 30)));
  },
};

const [what, ...args] = process.argv.slice(2);
client.on('error', () => {});
client.connect().then(() => drive[what](...args)).then(() => process.exit(0), (e) => {
  console.error(e);
  process.exit(1);
});
