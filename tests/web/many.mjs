// Ten thousand queues, and ten thousand dead jobs that died each of something else: the worst come
// first, and no question asks Redis for much at once.
//
//     node many.mjs
import {Servers, until} from './servers.mjs';

const QUEUES = 10000;
const PAGE = 100;
const CALLS_MAX = 60; // of the library for one question

const FILL = `local R = KEYS[1]
for i = 1, ${QUEUES} do
  local q = string.format('q%05d', i)
  redis.call('SADD', R .. ':names', q)
  redis.call('ZADD', R .. ':index', 0, 'queue:' .. q)
  redis.call('ZADD', R .. ':q:' .. q .. ':5', (tonumber(redis.call('TIME')[1]) + 3600) * 1000, 'j' .. q)
end
-- The last by name are in trouble.
for i = 1, 3 do
  local q = string.format('q%05d', ${QUEUES} + 1 - i)
  redis.call('ZADD', R .. ':q:' .. q .. ':5', (tonumber(redis.call('TIME')[1]) - 1000 * i) * 1000, 'late' .. q)
end
local function letters(n)
  local s = ''
  for _ = 1, 4 do s, n = s .. string.char(97 + n % 26), math.floor(n / 26) end
  return s
end
for i = 1, 10000 do
  local id = string.format('j%011d', i)
  redis.call('ZADD', R .. ':dead:q05000', i, id)
  redis.call('HSET', R .. ':errors', id, 'dead 1 ' .. i .. ' 1 no ' .. letters(i) .. '\\n')
end`;

const faults = [];
const fault = (text) => {
  faults.push(text);
  console.log(`not ok ${text}`);
};

async function main() {
  const s = new Servers();
  try {
    await s.redis();
    const setup = s.run('setup', s.program('later'), ['setup', '--redis', s.url]);
    if (await setup.ended !== 0) throw new Error(s.log('setup'));
    await s.link.call('EVAL', FILL, 1, 'later:{default}');
    const {base, token} = await s.web();
    const calls = async () => {
      const lines = (await s.link.call('INFO', 'commandstats')).split('\n');
      return lines.reduce((n, line) => n + Number(/^cmdstat_fcall(?:_ro)?:calls=(\d+)/.exec(line)?.[1] ?? 0), 0);
    };
    const ask = async (what) => {
      const before = await calls();
      const began = performance.now();
      const answer = await fetch(`${base}api/v1/default/${what}`, {headers: {Authorization: `Bearer ${token}`}});
      const body = await answer.json();
      const n = await calls() - before;
      if (answer.status !== 200) fault(`${what}: ${answer.status}`);
      if (n > CALLS_MAX) fault(`${what} makes ${n} calls`);
      if (!/after=\d{3}/.test(what)) console.log(`# ${what}: ${n} calls, ${Math.round(performance.now() - began)} ms`);
      return body;
    };
    await ask('health'); // it is kept for ten seconds
    // The walk goes on with each question, and each has other words, or it would be answered from the last one.
    let asked = 0;
    const first = await until('the end of the walk', async () => {
      const page = await ask(`queues?after=0&n=${asked++}`);
      return page.more ? null : page;
    });
    if (asked < 2) fault('all queues were looked at by one question');
    const names = first.queues.slice(0, 3).map((q) => q.queue);
    if (names.join() !== 'q09998,q09999,q10000') fault(`the worst are ${names}`);
    if (first.queues[3].queue !== 'q05000') fault(`the one with dead jobs stands behind ${first.queues[3].queue}`);
    const seen = new Set();
    for (let at = 0; at < QUEUES; at += PAGE) for (const q of (await ask(`queues?after=${at}`)).queues) seen.add(q.queue);
    if (seen.size !== QUEUES) fault(`the pages have ${seen.size} queues`);
    for (const what of ['dead', 'queues/q05000/reasons']) {
      const answer = await ask(what);
      if (!answer.more) fault(`${what} does not say that there is more`);
      if (answer.reasons.length !== 200) fault(`${what} has ${answer.reasons.length} reasons`);
    }
    if ((await ask('overview')).dead !== 10000) fault('the overview counts other dead jobs');
  } finally {
    await s.stop();
  }
  console.log(faults.length === 0 ? 'ok' : `${faults.length} faults`);
  process.exitCode = faults.length > 0 ? 1 : 0;
}

await main();
