// The questions of all writing buttons, and how the answer is told.
import {html} from './dom.js';
import {SPAN} from './dialog.js';
import {count, isNumber, plain, plural, short} from './format.js';
import {JobLink, Link, When} from './parts.js';

const told = (answer, now) => Object.entries(answer)
  .filter(([k, v]) => !['now_ms', 'status', 'id', 'bulk', 'queue', 'schedule'].includes(k) && (typeof v !== 'object' || v === null))
  .map(([k, v]) => (k.endsWith('_ms') && isNumber(v)
    ? html`, ${k.slice(0, -3).replaceAll('_', ' ')} <${When} ms=${v} now=${now} />`
    : html`, ${k.replaceAll('_', ' ')} ${short(v)}`));

// What the server answered, as one line with links.
const Answer = ({what, answer}) => html`${what}: <b>${plain(answer.status ?? 'done')}</b>${answer.id !== undefined && html` <${JobLink}
  id=${answer.id} />`}${
  answer.bulk !== undefined && html` <${Link} to=${['bulk']}>bulk <bdi>${plain(answer.bulk)}</bdi><//>`}${told(answer, answer.now_ms)}.`;

// Send it, tell it, and show what has changed.
export async function send(page, what, path, body) {
  const answer = await page.post(path, body);
  page.notice(html`<${Answer} what=${what} answer=${answer} />`);
  page.refresh();
  return answer;
}

// At once, without a question: it can be taken back, or does no harm.
export const sendNow = (page, what, path, body = {}) =>
  send(page, what, path, body).catch((e) => page.refused(html`${what}: ${e.message} <code>${e.code}</code>`));

export const askPause = (page, kind, name) =>
  page.ask({
    title: html`Pause ${kind} <bdi>${plain(name)}</bdi>?`,
    text: kind === 'queue' ? 'Jobs that run are finished. No other job of the queue starts until somebody resumes it.' : 'No job is added for it until somebody resumes it.',
    confirm: `Pause the ${kind}`,
    fields: [
      {name: 'reason', label: 'Reason', hint: 'Shown to everybody who asks why nothing runs.'},
      ...(kind === 'queue' ? [{...SPAN, name: 'for', label: 'For how long', hint: `${SPAN.hint} Empty: until somebody resumes it.`}] : []),
    ],
    run: (values) => send(page, `Pause ${kind} ${short(name)}`, [`${kind}s`, name, 'pause'], values),
  });

export const resume = (page, kind, name) => sendNow(page, `Resume ${kind} ${short(name)}`, [`${kind}s`, name, 'resume']);

export const askCancel = (page, job) =>
  page.ask({
    title: html`Cancel job <bdi>${plain(job.id)}</bdi>?`,
    text: job.state === 'running'
      ? html`One job of queue <bdi>${plain(job.queue)}</bdi> that runs now: its process is ended. It is not tried again.`
      : html`One job of queue <bdi>${plain(job.queue)}</bdi>: it will not run.`,
    confirm: 'Cancel the job',
    danger: true,
    run: () => send(page, `Cancel ${job.id}`, ['jobs', job.id, 'cancel'], {}),
  });

export const askReschedule = (page, job) =>
  page.ask({
    title: html`When is job <bdi>${plain(job.id)}</bdi> due?`,
    confirm: 'Move the job',
    fields: [{name: 'at', label: 'Due at (your time)', type: 'datetime-local', step: 1, required: true}],
    run: (values) => send(page, `Reschedule ${job.id}`, ['jobs', job.id, 'reschedule'], {at: new Date(values.at).toISOString()}),
  });

const STATES = {__proto__: null, due: 'waiting', parked: 'parked', running: 'running', dead: 'dead', done: 'done'};

const VERBS = {
  retry: {
    title: 'Retry', confirm: 'Retry them', text: 'They wait again and count their attempts from 0.',
    fields: ['rate', 'spread', 'to'],
  },
  cancel: {title: 'Cancel', confirm: 'Cancel them', text: 'They will not run. Processes of running jobs are ended.', danger: true, fields: ['rate']},
  reschedule: {title: 'Move', confirm: 'Move them', text: 'They become due evenly over a time that begins now.', fields: ['spread', 'rate'], required: 'spread'},
  purge: {title: 'Remove', confirm: 'Remove them for good', text: 'Nobody can bring them back.', danger: true, fields: []},
};

const BULK_FIELDS = {
  rate: {name: 'rate', label: 'At most per second', type: 'number', min: 1, hint: 'Empty: as fast as it goes.'},
  spread: {...SPAN, name: 'spread', label: 'Make them due evenly over'},
  to: {name: 'to', label: 'Into another queue', hint: 'Empty: the queue they come from.'},
};

// what: {verb, queue, state, reason, key, count, more}
export function askBulk(page, what) {
  const v = VERBS[what.verb];
  const many = isNumber(what.count) ? `${count(what.count, what.more)} ${STATES[what.state]} ${what.count === 1 ? 'job' : 'jobs'}` : `all ${STATES[what.state]} jobs`;
  page.ask({
    title: html`${v.title} ${many} of queue <bdi>${plain(what.queue)}</bdi>?`,
    text: html`${what.reason !== undefined && html`Only those with the reason “<bdi>
      ${short(what.reason, 300)}</bdi>”. `}${v.text} Jobs that come later are not touched.`,
    confirm: v.confirm,
    danger: v.danger,
    fields: [
      ...v.fields.map((name) => ({...BULK_FIELDS[name], required: v.required === name})),
      ...(what.reason === undefined && what.verb !== 'purge' ? [{name: 'key', label: 'Only those with this key', hint: 'Empty: all of them. * stands for any text.'}] : []),
    ],
    run: (values) => send(page, `${v.title} ${many} of queue ${short(what.queue)}`, ['bulks'], {
      verb: what.verb, queue: what.queue, state: what.state, reason: what.reason, ...values,
      rate: values.rate && `${values.rate}/s`,
    }),
  });
}

export const bulkWords = (b) => `${plain(b.verb)} ${plural(b.total, `${STATES[b.state] ?? plain(b.state)} job`)}`;
export {STATES, VERBS};
