// A redis-server, a laterd and a later-web of their own, in a folder that goes with them.
import {spawn} from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {dial} from './redis.mjs';

const DEADLINE_MS = 30000;
const BUILD = process.env.LATER_BUILD_DIR ?? fileURLToPath(new URL('../..', import.meta.url));
const SERVER = process.env.LATER_SERVER ?? 'redis-server';

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Wait until test() gives something. What is thrown meanwhile is told when the time is over.
export async function until(what, test) {
  const end = Date.now() + DEADLINE_MS;
  let why = '';
  while (Date.now() < end) {
    try {
      const found = await test();
      if (found) return found;
    } catch (e) {
      why = `: ${e.message}`;
    }
    await pause(20);
  }
  throw new Error(`${what} did not come within ${DEADLINE_MS / 1000} s${why}`);
}

const freePort = () => new Promise((done) => {
  const s = net.createServer().listen(0, '127.0.0.1', () => {
    const {port} = s.address();
    s.close(() => done(port));
  });
});

export class Servers {
  constructor() {
    this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'later-web.'));
    fs.chmodSync(this.dir, 0o755);
    this.socket = path.join(this.dir, 'redis.sock');
    this.url = `unix:${this.socket}`;
    this.children = [];
  }

  run(name, program, args) {
    const log = fs.openSync(path.join(this.dir, `${name}.log`), 'w');
    const child = spawn(program, args, {stdio: ['ignore', log, log]});
    fs.closeSync(log);
    child.ended = new Promise((done) => child.once('exit', done).once('error', done));
    child.ended.then(() => { child.isOver = true; });
    this.children.push(child);
    return child;
  }

  log(name) {
    return fs.readFileSync(path.join(this.dir, `${name}.log`), 'utf8');
  }

  program(name) {
    return path.join(BUILD, name);
  }

  async redis() {
    this.run('redis', SERVER, ['--port', '0', '--unixsocket', this.socket, '--save', '', '--appendonly', 'yes', '--appendfsync', 'no', '--dir', this.dir]);
    this.link = await until('redis-server', () => dial(this.socket));
    await until('redis-server', async () => await this.link.call('PING') === 'PONG');
  }

  // handlers: name -> the text of a shell script. queues: YAML of the settings.
  async laterd(handlers, settings) {
    const folder = path.join(this.dir, 'handlers');
    fs.mkdirSync(folder);
    for (const [name, text] of Object.entries(handlers)) fs.writeFileSync(path.join(folder, name), `#!/bin/sh\n${text}`, {mode: 0o755});
    const file = path.join(this.dir, 'laterd.yaml');
    fs.writeFileSync(file, `redis: ${this.url}\nstate_dir: ${this.dir}/state\nhandlers_dir: ${folder}\n${settings}`);
    const child = this.run('laterd', this.program('laterd'), ['--config', file]);
    await until('laterd', () => child.isOver || this.log('laterd').includes('event=registered'));
  }

  // -> {base, token}
  async web(...options) {
    const address = `127.0.0.1:${await freePort()}`;
    this.run('web', this.program('later-web'), ['--redis', this.url, '--listen', address, ...options]);
    const [, base, token] = await until('later-web', () => /(http:\S+\/)#token=(\w+)/.exec(this.log('web')));
    return {base, token};
  }

  // A function of the library. More of them may be on their way at once.
  call(name, ...args) {
    return this.link.call('FCALL', name, 1, 'later:{default}', ...args);
  }

  add(queue, ...args) {
    return this.call('later_add', queue, ...args).then(([id]) => id);
  }

  // The last one first, so that laterd can hand back what it holds.
  async stop() {
    for (const child of this.children.reverse()) {
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS);
      await child.ended;
      clearTimeout(late);
    }
    this.link?.close();
    fs.rmSync(this.dir, {recursive: true, force: true});
  }
}
