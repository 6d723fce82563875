// A namespace in which every text is an attack: the places that producers, handlers, schedules and
// operators write to, each with all strings.
import {strings} from './strings.mjs';
import {Servers, until} from './servers.mjs';

const GROUP_MAX = 200; // bytes: of a reason and of progress the library keeps no more

const HANDLERS = {
  evil: 'cat >payload.$$ && tr "\\n" " " <payload.$$ >line.$$\nprintf "reason %s\\n" "$(cat line.$$)" >&3\ncat payload.$$ >&2\nrm -f payload.$$ line.$$\nexit 65\n',
  busy: 'printf "progress %s\\n" "$(tr "\\n" " ")" >&3\nexec sleep 600\n',
};

const SETTINGS = `
concurrency: 99
stop_timeout: 0s
defaults: { kill_grace: 100ms, keep: 1h }
`;

// Keys and names of gates have no spaces and no control characters. A slash is as good in a tag.
// eslint-disable-next-line no-control-regex
const compact = (s) => s.replace(/[\s\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]/g, '/');
// eslint-disable-next-line no-control-regex
const oneLine = (s) => s.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ');

// Where few would do as well as all, several of them stand in one text.
export const groups = strings.reduce((list, s) => {
  const last = list.at(-1);
  return last !== undefined && Buffer.byteLength(`${last} ${s}`) <= GROUP_MAX ? [...list.slice(0, -1), `${last} ${s}`] : [...list, s];
}, []);

const root = 'later:{default}';

async function named(s, text, i) {
  const paused = ['by', compact(text).slice(0, 200), 'reason', text];
  await s.call('later_pause', `q${i}`, ...paused);
  await s.add(`q${i}`, text);
  await s.call('later_schedule_set', `s${i}`, 'every', '1h', 'key', compact(strings[i]), text);
  await s.call('later_schedule_pause', `s${i}`, ...paused);
  await s.call('later_batch', `b${i}`, text);
  await s.add('busy', text);
}

async function single(s, text, i) {
  await s.link.call('ZADD', `${root}:due:raw`, Date.now() + 3600000, text);
  await s.link.call('SADD', `${root}:names`, text); // no function takes such a name for a queue
  await s.call('later_lock', compact(text), `1${compact(text)}`.slice(0, 120), 'ttl', '1h');
  await s.call('later_lock', compact(text), `2${compact(text)}`.slice(0, 120), 'ttl', '1h', 'wait', '1h');
  await s.call('later_bulk', 'retry', 'nothing', 'dead', 'by', oneLine(text), 'why', oneLine(text), 'reason', oneLine(text), 'key', compact(text));
  return s.add('evil', 'key', compact(text), 'unique', compact(text), text);
}

// -> {base, token, ids, again(from, to), stop()}
export async function evil() {
  const s = new Servers();
  try {
    await s.redis();
    await s.laterd(HANDLERS, SETTINGS);
    await s.add('nothing', 'in', '1h', '');
    await s.add('raw', 'in', '1h', '');
    const ids = await Promise.all(strings.map((text, i) => single(s, text, i)));
    await Promise.all(groups.map((text, i) => named(s, text, i)));
    const {base, token} = await s.web('--write');
    const counted = async () => (await (await fetch(`${base}api/v1/default/queues/evil`, {headers: {Authorization: `Bearer ${token}`}})).json()).queue.dead;
    await until('the end of all jobs', async () => await counted() === strings.length);
    return {base, token, ids, again: (from, to) => Promise.all(ids.slice(from, to).map((id) => s.call('later_retry', id))), stop: () => s.stop()};
  } catch (e) {
    await s.stop();
    throw e;
  }
}
