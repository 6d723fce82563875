// The requests. Every address is relative to the folder of the page.

const KEY = `later-token:${location.pathname}`;
const TIMEOUT_MS = 15000;

let token = null;

// The token arrives behind the # and leaves the address at once, so that it is in no history.
export function takeToken() {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (found) {
    setToken(decodeURIComponent(found[1]));
    history.replaceState(null, '', `${location.pathname}${location.search}#/`);
  }
  token = token ?? sessionStorage.getItem(KEY);
}

export function setToken(value) {
  token = value;
  if (value === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, value);
}

export class ApiError extends Error {
  constructor(status, code, text) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

export const apiPath = (parts, params = {}) => {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v !== undefined && v !== null && v !== '') query.set(k, v);
  const tail = query.toString();
  return `api/v1/${parts.map(segment).join('/')}${tail ? `?${tail}` : ''}`;
};

// A browser takes "." and ".." for folders, encoded or not.
function segment(name) {
  if (name === '.' || name === '..') throw new ApiError(404, 'HTTP_404', 'Nothing here is called like this.');
  return encodeURIComponent(name);
}

async function refusal(answer) {
  const body = await answer.json().catch(() => ({}));
  return new ApiError(answer.status, body.error ?? `HTTP_${answer.status}`,
    body.text ?? `The server answered ${answer.status} without a reason.`);
}

async function request(path, options) {
  const headers = {Accept: 'application/json', ...options.headers};
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  let answer;
  try {
    answer = await fetch(path, {...options, headers, cache: 'no-store', redirect: 'error', credentials: 'same-origin'});
  } catch (e) {
    if (options.signal?.aborted && options.signal.reason?.name !== 'TimeoutError') throw e;
    throw new ApiError(0, 'NO_ANSWER', 'The server does not answer.');
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

const within = (signal) =>
  signal ? AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]) : AbortSignal.timeout(TIMEOUT_MS);

async function body(answer) {
  try {
    return await answer.json();
  } catch {
    throw new ApiError(answer.status, 'NO_JSON', 'The answer of the server is not complete, or is no JSON.');
  }
}

export const get = async (path, signal) => body(await request(path, {signal: within(signal)}));

export const post = async (path, value) =>
  body(await request(path, {
    method: 'POST',
    body: JSON.stringify(value),
    headers: {'Content-Type': 'application/json'},
    signal: within(),
  }));

// A payload is saved, never shown as a page of its own.
export async function download(path, name) {
  const answer = await request(path, {headers: {Accept: 'text/plain'}});
  const url = URL.createObjectURL(new Blob([await answer.arrayBuffer()], {type: 'application/octet-stream'}));
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// Server-sent events by fetch, because an EventSource sends no token. Ends when the server closes.
export async function stream(path, onEvent, signal) {
  const answer = await request(path, {headers: {Accept: 'text/event-stream'}, signal});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const parts = (rest + value).replaceAll('\r\n', '\n').split('\n\n');
    rest = parts.pop();
    for (const part of parts) readEvent(part, onEvent);
  }
}

function readEvent(text, onEvent) {
  let kind = 'message';
  const data = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('event:')) kind = line.slice(6).trim();
    else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
  }
  if (data.length === 0) return;
  try {
    onEvent(kind, JSON.parse(data.join('\n')));
  } catch {
    // One event that cannot be read does not end the others.
  }
}
