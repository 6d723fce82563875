// What the JavaScript drivers share: the command line, the due times, the answer.
//   node DRIVER.js MODE N SECONDS   SECONDS: the time over which the jobs of `late` are spread
const { execFile } = require('child_process');

const [mode, n, span] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4] || 10)];
const LEAD_MS = { late: 3000, herd: 4000, mem: 3600e3 };

// When job i is due, in Unix milliseconds; 0: at once.
function plan() {
  const from = Date.now() + (LEAD_MS[mode] || 0);
  if (mode === 'late') return Array.from({ length: n }, () => Math.floor(from + Math.random() * span * 1000));
  if (mode === 'herd') return new Array(n).fill(from);
  if (mode === 'mem') return Array.from({ length: n }, (_, i) => from + i);
  return new Array(n).fill(0);
}

// A clock with fractions of a millisecond, which Date.now() does not have.
const now = () => performance.timeOrigin + performance.now();

// What the handlers do and note.
function handler() {
  const seen = { first: 0, started: 0, ended: 0, late_ms: [] };
  seen.run = async due => {
    const at = now();
    if (!seen.started++) seen.first = at;
    if (due) seen.late_ms.push(Math.round((at - due) * 1000) / 1000);
    if (mode === 'exec') await new Promise(done => execFile('/bin/true', done));
    seen.ended++;
  };
  return seen;
}

function answer(facts) {
  process.stdout.write(JSON.stringify({ n, ...facts }) + '\n', () => process.exit(0));
}

function results(seen, end, more = {}) {
  answer({ seconds: (end - seen.first) / 1000, late_ms: seen.late_ms, ...more });
}

module.exports = { span, mode, n, plan, now, handler, answer, results };
