/*
 * A thin client of laterd over node-redis from 4.5: copy this file, or install the folder.
 *
 *   const client = createClient({ username: 'manager', password });
 *   await client.on('error', console.error).connect();
 *   const later = new Later(client);
 *   const job = await later.add('mail', 'hello', { in: '5m', key: 'user:42' });
 *   console.log(await later.wait(job.id, 600));
 *
 * Options and values are those of doc/protocol.md; the value of one that is given more than once
 * (`then`) is an array. A payload is a Buffer or a string, which is sent as UTF-8; outputs are
 * Buffers. An error reply rejects with a LaterError, a lost connection or no answer in time with
 * another Error.
 */
'use strict';
const { randomUUID } = require('crypto');

const ASK_AGAIN_MS = 30000; // a wait makes sure now and then that the job and the connection are there
const ENDED = ['done', 'dead', 'cancelled'];
const TEMPORARY = ['LOADING', 'BUSY', 'OOM', 'READONLY', 'MASTERDOWN', 'ELATER_FULL', 'TRYAGAIN', 'CLUSTERDOWN'];
const NOT_ALLOWED = ['NOPERM', 'WRONGPASS', 'NOAUTH'];
const BYTES = { returnBuffers: true, typeMapping: { 36: Buffer } }; // of node-redis 4, and since 5

/** An error reply. code: its first word, as 'ELATER_NOJOB'. */
class LaterError extends Error {
  constructor(code, message) {
    super(message);
    this.name = this.constructor.name;
    this.code = code;
  }
}
/** Nothing was done: try again after a while. */
class Temporary extends LaterError {}
/** An operator has to cure it: rights, a password, `later setup`. */
class NotAllowed extends LaterError {}
/** It would fail again: the text says why. Also ELATER_NOJOB, where the job has ended. */
class Mistake extends LaterError {}

function byCode(error) {
  const [, code, text] = /^([A-Z][A-Z0-9_]+) (.*)/s.exec(error.message) || [];
  if (!code) return error; // the connection
  if (TEMPORARY.includes(code)) return new Temporary(code, error.message);
  if (NOT_ALLOWED.includes(code) || text.startsWith('Function not found')) return new NotAllowed(code, error.message);
  return new (code.startsWith('ELATER_') ? Mistake : LaterError)(code, error.message);
}

const pairs = (options) =>
  Object.entries(options).flatMap(([name, value]) => [value].flat().flatMap((one) => [name, String(one)]));
const jobOf = ([id, status, due]) => ({ id: String(id), status: String(status), dueMs: Number(due) });
const outcomeOf = ([state, code, when, start, text, output]) => ({
  state: String(state), code: Number(code), whenMs: Number(when), start: Number(start), text: String(text), output,
});

function outcomeOfMessage(data) {
  const end = data.indexOf('\n');
  const [, ...head] = /^(\S+) (\d+) (\d+) (\d+) (.*)$/s.exec(data.subarray(0, end));
  return outcomeOf([...head, data.subarray(end + 1)]);
}

/** -> what the promise has, in an array; undefined when the time is over. */
function within(ms, promise) {
  let timer;
  const over = new Promise((resolve) => { timer = setTimeout(resolve, ms); });
  return Promise.race([promise.then((value) => [value]), over]).finally(() => clearTimeout(timer));
}

class Later {
  /** client: of createClient, connected. timeoutMs: for an answer. */
  constructor(client, namespace = 'default', timeoutMs = 5000) {
    Object.assign(this, { client, root: `later:{${namespace}}`, timeoutMs });
  }

  /** -> { id, status, dueMs }. If the answer is lost it is asked for once more, with the same token. */
  async add(queue, payload, options = {}) {
    const args = [queue, ...pairs({ token: randomUUID(), ...options }), payload];
    const call = (client) => this.#call(client, 'add', args);
    const again = (e) => { if (e instanceof LaterError) throw e; return this.#onAnother(call); };
    return jobOf(await call(this.client).catch(again));
  }

  /** -> an array: all or none, at most 1,000 and 16 MiB. It has no token, so an answer that is lost is
   * not asked for again: the jobs may have been added. */
  async addMany(queue, payloads, options = {}) {
    return (await this.#call(this.client, 'add_many', [queue, ...pairs(options), '--', ...payloads])).map(jobOf);
  }

  /** -> the outcome { state, code, whenMs, start, text, output } once the job has ended, null if it
   * has not after so many seconds. The id is one that add gave. ELATER_NOJOB: it has ended, and its
   * outcome was not kept (option keep). */
  wait(id, seconds) {
    const until = performance.now() + 1000 * seconds;
    return this.#onAnother(async (listener) => {
      let tell;
      const told = new Promise((resolve) => { tell = resolve; });
      await this.#inTime(listener.subscribe(`${this.root}:ended:${id}`, tell, true));
      for (;;) { // it listens, or has heard nothing for long
        const outcome = outcomeOf(await this.#call(this.client, 'v1_await', [id]));
        if (ENDED.includes(outcome.state)) return outcome;
        const left = until - performance.now();
        if (left <= 0) return null;
        const message = await within(Math.min(left, ASK_AGAIN_MS), told);
        if (message) return outcomeOfMessage(message[0]);
      }
    });
  }

  /** -> the outcome as it is now. state: also waiting, parked, running or failed. */
  async result(id) {
    return outcomeOf(await this.#call(this.client, 'result', [id]));
  }

  /** -> 'cancelled', 'cancelling' (it runs) or 'freed'. */
  async cancel(id) {
    return String(await this.#call(this.client, 'cancel', [id]));
  }

  #call(client, name, args) {
    return this.#inTime(client.sendCommand(['FCALL', `later_${name}`, '1', this.root, ...args], BYTES));
  }

  async #inTime(promise) {
    const value = await within(this.timeoutMs, promise.catch((e) => { throw byCode(e); }));
    if (!value) throw new Error('Redis did not answer in time');
    return value[0];
  }

  /** On a connection of its own: the first one may be lost, or stuck. */
  async #onAnother(use) {
    const client = this.client.duplicate();
    client.on('error', () => {}); // calls reject
    try {
      await this.#inTime(client.connect());
      return await use(client);
    } finally {
      await Promise.resolve((client.destroy || client.disconnect).call(client)).catch(() => {});
    }
  }
}

module.exports = { Later, LaterError, Temporary, NotAllowed, Mistake };
