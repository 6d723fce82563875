// Numbers, times and foreign text, as people read them.

const grouped = new Intl.NumberFormat('en-US');
const clockFormat = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit', hourCycle: 'h23'});

export const isNumber = (n) => typeof n === 'number' && Number.isFinite(n);

// A number that is not known is absent.
export const number = (n) => (isNumber(n) ? grouped.format(n) : '–');

// Counts stop somewhere. `more` says that this one did.
export const count = (n, more) => (more ? '>\u00a0' : '') + number(n);

export const plural = (n, word, more) => `${count(n, more)} ${word}${n === 1 && !more ? '' : 's'}`;

const digits = (n) => (n < 10 ? n.toFixed(1).replace(/\.0$/, '') : String(Math.round(n)));

// A length of time. Two units at most: "2 h 5 min".
export function span(ms) {
  if (!isNumber(ms)) return '–';
  const s = Math.abs(ms) / 1000;
  if (s < 1) return `${digits(Math.abs(ms))} ms`;
  if (s < 60) return `${digits(s)} s`;
  if (s < 3600) return two(s / 60, 60, 2, 'min', 's');
  if (s < 86400) return two(s / 3600, 60, 10, 'h', 'min');
  return two(s / 86400, 24, 10, 'd', 'h');
}

function two(whole, parts, below, unit, smaller) {
  const big = Math.floor(whole);
  const small = Math.floor((whole - big) * parts);
  return big < below && small > 0 ? `${big} ${unit} ${small} ${smaller}` : `${big} ${unit}`;
}

export function ago(ms, now) {
  const late = now - ms;
  if (Math.abs(late) < 1000) return 'now';
  return late > 0 ? `${span(late)} ago` : `in ${span(late)}`;
}

export const clock = (ms) => clockFormat.format(new Date(ms));

// The instant itself, in the time zone of the one who looks.
export function instant(ms) {
  const d = new Date(ms);
  if (Number.isNaN(d.getTime())) return String(ms);
  const p = (n, w = 2) => String(n).padStart(w, '0');
  const off = -d.getTimezoneOffset();
  const zone = `${off < 0 ? '-' : '+'}${p(Math.floor(Math.abs(off) / 60))}:${p(Math.abs(off) % 60)}`;
  return `${d.getFullYear()}-${p(d.getMonth() + 1)}-${p(d.getDate())} ${p(d.getHours())}:${p(d.getMinutes())}:` +
    `${p(d.getSeconds())}.${p(d.getMilliseconds(), 3)} ${zone}`;
}

export const iso = (ms) => {
  const d = new Date(ms);
  return Number.isNaN(d.getTime()) ? undefined : d.toISOString();
};

export function bytes(n) {
  if (!isNumber(n)) return '–';
  if (n < 1024) return plural(n, 'byte');
  const units = ['KiB', 'MiB', 'GiB'];
  let k = 0;
  for (n /= 1024; n >= 1024 && k < 2; k++) n /= 1024;
  return `${digits(n)} ${units[k]}`;
}

// Control characters, and those that turn the direction of a line, become visible: a name cannot
// make the text around it look like something else.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const code = (c) => {
  const n = c.charCodeAt(0);
  return n < 256 ? `\\x${n.toString(16).padStart(2, '0')}` : `\\u${n.toString(16).padStart(4, '0')}`;
};

// Any value of the API as text that can be shown.
export function plain(value) {
  if (value === undefined || value === null) return '';
  const s = typeof value === 'string' ? value : typeof value === 'object' ? JSON.stringify(value) : String(value);
  return s.replace(HIDDEN, code);
}

export const short = (value, most = 80) => {
  const s = plain(value);
  return s.length > most ? `${s.slice(0, most)}…` : s;
};

export const sentence = (s) => {
  const t = plain(s).trim();
  return t === '' ? '' : t[0].toUpperCase() + t.slice(1) + (/[.!?]$/.test(t) ? '' : '.');
};

// What bytes are called `name`, or `name_base64` where they are no UTF-8.
export const bytesOf = (object, name) =>
  object[name] !== undefined ? object[name]
    : object[`${name}_base64`] !== undefined ? `base64:${object[`${name}_base64`]}` : undefined;
