#!/usr/bin/env node
// stream.js: a worker for a queue with `mode: stream` (doc/stream.md). It counts the words of the
// payload. It runs 64 jobs at once and answers each when it ends. To try it out: payloads `fail`,
// `retry`, `dead`, `sleep 5`.
'use strict';
const { setTimeout: sleep } = require('node:timers/promises');

const asked = { fail: ['fail', 'asked to'], retry: ['retry', '1s later please'], dead: ['dead', 'never'] };
const running = new Map(); // id -> its AbortController
const say = (...words) => process.stdout.write(words.join(' ') + '\n');

async function work(job, payload, signal) { // returns the answer: a verb and a text
  const text = payload.toString('latin1'); // one character per byte
  const line = text.replace(/\n+$/, '');
  if (Object.hasOwn(asked, line)) return asked[line];
  const n = Number((/^sleep ([0-9]{1,4})$/.exec(line) || [0, 0])[1]);
  for (let i = 1; i <= n; i++) {
    await sleep(1000, null, { signal });
    say('progress', job.id, i, 'of', n);
  }
  return ['ok', `${(text.match(/[^ \t\n\v\f\r]+/g) || []).length} words in ${payload.length} bytes`];
}

function start(job, payload) {
  const controller = new AbortController();
  running.set(job.id, controller);
  work(job, payload, controller.signal)
    .catch((e) => ['fail', controller.signal.aborted ? 'cancelled' : JSON.stringify(String(e)).slice(0, 1000)])
    .then(([verb, text]) => { running.delete(job.id); say(verb, job.id, text); });
}

let input = Buffer.alloc(0);
process.stdin.on('data', (chunk) => {
  input = Buffer.concat([input, chunk]);
  for (let end; (end = input.indexOf('\n')) >= 0;) {
    const [what, ...words] = input.toString('latin1', 0, end).split(' ');
    const job = Object.fromEntries(words.map((word) => word.split(/=(.*)/s, 2)));
    const body = end + 1, next = what === 'job' ? body + Number(job.len) + 1 : body;
    if (!(input.length >= next)) return; // the rest has not arrived
    if (what === 'job') start(job, Buffer.from(input.subarray(body, next - 1)));
    if (what === 'cancel') running.get(words[0])?.abort();
    input = input.subarray(next);
  }
});
process.stdin.on('end', () => { if (input.length > 0) process.exitCode = 1; });
say('later-stream 1 inflight=64 cancel'); // at the end of input Node runs until the last job is answered
