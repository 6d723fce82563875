// Calls to Redis over its socket: any bytes go in, which no command line takes.
import net from 'node:net';

const bulk = (v) => {
  const bytes = Buffer.isBuffer(v) ? v : Buffer.from(String(v));
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]);
};

// [value, end], or null where the answer is not whole. An error is a value here.
function read(b, at) {
  const end = b.indexOf('\r\n', at);
  if (end < 0) return null;
  const kind = String.fromCharCode(b[at]);
  const text = b.toString('utf8', at + 1, end);
  if (kind === '+') return [text, end + 2];
  if (kind === '-') return [new Error(text), end + 2];
  if (kind === ':') return [Number(text), end + 2];
  if (kind === '$') {
    const n = Number(text);
    if (n < 0) return [null, end + 2];
    return b.length < end + 4 + n ? null : [b.toString('utf8', end + 2, end + 2 + n), end + 4 + n];
  }
  const list = [];
  let next = end + 2;
  for (let i = 0; i < Number(text); i++) {
    const one = read(b, next);
    if (one === null) return null;
    list.push(one[0]);
    next = one[1];
  }
  return [list, next];
}

export async function dial(socket) {
  const link = net.connect(socket);
  await new Promise((done, failed) => link.once('connect', done).once('error', failed));
  const waiting = [];
  let rest = Buffer.alloc(0);
  link.on('data', (piece) => {
    rest = Buffer.concat([rest, piece]);
    for (let one; rest.length > 0 && (one = read(rest, 0)) !== null;) {
      rest = rest.subarray(one[1]);
      const {done, failed} = waiting.shift();
      if (one[0] instanceof Error) failed(one[0]);
      else done(one[0]);
    }
  });
  link.on('close', () => waiting.splice(0).forEach(({failed}) => failed(new Error('Redis has gone'))));
  const call = (...words) => new Promise((done, failed) => {
    waiting.push({done, failed});
    link.write(Buffer.concat([Buffer.from(`*${words.length}\r\n`), ...words.map(bulk)]));
  });
  return {call, close: () => link.destroy()};
}
