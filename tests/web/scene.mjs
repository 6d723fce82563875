// A namespace with trouble of every kind, and later-web before it.
//
//     node scene.mjs                  prints BASE_URL and TOKEN, until it is stopped
//     node scene.mjs COMMAND...       runs a command with them, and ends with its status
import {spawn} from 'node:child_process';
import {fileURLToPath} from 'node:url';
import {Servers, until} from './servers.mjs';

const HANDLERS = {
  // Dies of what its job says.
  mail: 'why=$(cat)\necho "connecting to the mail server"\necho "$why" >&2\necho "reason $why" >&3\nexit 65\n',
  render: 'echo "progress 42 of 120 frames" >&3\nexec sleep 600\n',
  deploy: 'echo "progress copying files, 30 %" >&3\nexec sleep 600\n',
  rows: 'read -r line\necho "result imported $line" >&3\n[ "$line" != "row 7" ] || { echo "reason row 7 has no column 3" >&3; exit 65; }\n',
  pulse: 'echo "result beat" >&3\n',
};

const SETTINGS = `
concurrency: 8
stop_timeout: 0s
defaults: { kill_grace: 100ms, keep: 1h }
limits:
  gpu: { semaphore: 2 }
  gateway: { rate: 2/1h }
`;

const REASONS = [
  (i) => `no route to 10.0.0.${i} after ${i * 3} ms`,
  (i) => `mailbox ${4000 + i} is full`,
  (i) => `550 user${i}@example.org unknown`,
];

const BYTES = Buffer.from([0xff, 0xfe]); // no UTF-8

const many = (n, f) => Promise.all(Array.from({length: n}, (_, i) => f(i)));

async function fill(s) {
  const mail = (i, ...options) => s.add('mail', ...options, REASONS[i % REASONS.length](i));
  await Promise.all([
    many(24, (i) => mail(i)),
    many(5, (i) => mail(i, 'in', `${10 + 9 * i}m`, 'key', `customer:${i}`)),
    // One deploys; the others wait for its lock.
    s.add('deploy', 'lock', 'site', '{"version":"2.4.1","hosts":["web1","web2"]}')
      .then(() => many(4, (i) => s.add('deploy', 'lock', 'site', `{"version":"2.4.${i + 2}"}`))),
    many(4, (i) => s.add('render', 'sem', 'gpu', 'timeout', '1h', 'key', `film:${i % 2}`, 'trace', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', `scene ${i}`)),
    many(3, (i) => s.add('pulse', 'rate', 'gateway', `call ${i}`)),
    many(6, (i) => s.add('backup', `disk ${i}`))
      .then(() => s.call('later_pause', 'backup', 'by', 'anna@ops1', 'reason', 'the disk is full, ticket 1482')),
    many(2, (i) => s.add('fax', `nobody serves this ${i}`)),
    s.call('later_batch', 'import-7', 'then', 'mail', 'finally', 'pulse', '{"import":7}')
      .then(() => many(12, (i) => s.add('rows', 'batch', 'import-7', ...(i > 9 ? ['in', '30m'] : []), `row ${i}`)))
      .then(() => s.call('later_batch_seal', 'import-7')),
    s.call('later_schedule_set', 'nightly', 'cron', '30 2 * * *', 'tz', 'Europe/Berlin', 'queue', 'backup', 'all disks'),
    s.call('later_schedule_set', 'pulse', 'every', '1s', ''),
    s.call('later_schedule_set', 'invoices', 'cron', '0 8 1 * *', 'queue', 'mail', 'the invoices')
      .then(() => s.call('later_schedule_pause', 'invoices', 'by', 'tom@ops2', 'reason', 'prices change on the 3rd')),
    many(210, (i) => s.add('report', 'in', '2h', `report ${i}`))
      .then(() => s.call('later_bulk', 'reschedule', 'report', 'due', 'at', '+5h', 'rate', '1/1s', 'by', 'anna@ops1', 'why', 'the database moves')),
  ]);
}

// What a thing may have, and most have not.
async function fillSeldom(s) {
  const lock = (name, owner) => s.run(`lock-${owner}`, s.program('later'), ['--redis', s.url, 'lock', name, '--', 'sleep', '600']);
  lock('press', 'one');
  lock('press', 'two');
  await Promise.all([
    s.add('mail', 'in', '3h', 'expire', '1d', 'keep', '1h', 'unique', BYTES, 'unique_for', '2d', 'key', BYTES, 'on_dead', 'pulse', 'then', 'backup', BYTES),
    s.link.call('ZADD', 'later:{default}:due:report', Date.now() + 7200000, 'by hand'),
    s.call('later_lock', 'door', 'web-7', 'ttl', '10m').then(() => Promise.all([
      s.call('later_lock', 'door', 'web-8', 'ttl', '10m', 'wait', '10m'), s.add('pulse', 'lock', 'door', 'behind a caller')])),
    s.call('later_batch', 'import-6', 'then', 'pulse', 'on_dead', 'mail', 'keep', '1h', BYTES)
      .then(() => many(2, (i) => s.add('pulse', 'batch', 'import-6', `${i}`))).then(() => s.call('later_batch_seal', 'import-6')),
    s.add('pulse', 'then', 'pulse', 'and another'),
    s.add('mail', 'on_dead', 'pulse', 'mailbox 1 is full'),
    s.call('later_schedule_set', 'summer', 'every', '1h', 'queue', 'backup', 'from', '+1d', 'until', '+30d', 'splay', '5m', 'lock', 'site', 'key', BYTES, BYTES),
  ]);
}

// -> {base, token, stop()}
export async function scene() {
  const s = new Servers();
  try {
    await s.redis();
    await s.laterd(HANDLERS, SETTINGS);
    await fill(s);
    await fillSeldom(s);
    const {base, token} = await s.web('--write');
    const headers = {Authorization: `Bearer ${token}`};
    const get = async (what) => (await fetch(`${base}api/v1/default/${what}`, {headers})).json();
    await until('the trouble', async () => {
      const {reasons} = await get('dead');
      const {jobs} = await get('running');
      const {queues} = await get('queues');
      const progress = jobs.filter((j) => j.progress).length;
      return reasons.length >= 4 && progress >= 3 && queues.some((q) => q.parked >= 4);
    });
    return {base, token, stop: () => s.stop()};
  } catch (e) {
    for (const name of ['laterd', 'web']) {
      try {
        console.error(s.log(name).split('\n').slice(-15).join('\n'));
      } catch {
        // It was not started.
      }
    }
    await s.stop();
    throw e;
  }
}

const stopped = () => new Promise((done) => ['SIGINT', 'SIGTERM', 'SIGHUP'].forEach((name) => process.once(name, done)));

async function main(command) {
  const stop = stopped();
  const {base, token, ...s} = await scene();
  try {
    console.log(`BASE_URL=${base} TOKEN=${token}`);
    if (command.length === 0) {
      await stop;
      return;
    }
    const child = spawn(command[0], command.slice(1), {stdio: 'inherit', env: {...process.env, BASE_URL: base, TOKEN: token}});
    stop.then(() => child.kill());
    process.exitCode = await new Promise((done) => child.once('exit', (code) => done(code ?? 1)).once('error', () => done(127)));
  } finally {
    await s.stop();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
