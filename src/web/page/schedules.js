// What adds jobs again and again.
import {html} from './dom.js';
import {askPause, resume, sendNow} from './ask.js';
import {bytesOf, instant, isNumber, number, plain, span} from './format.js';
import {Button, Empty, Facts, JobLink, Link, Name, Pager, Paused, QueueLink, Table, Text, When} from './parts.js';

const LATE_MS = 60000;

const Next = ({s, now}) => html`<span class=${now - s.next_ms > LATE_MS && !s.paused ? 'bad' : null}><${When} ms=${s.next_ms}
  now=${now} /></span>`;

const Actions = ({page, s}) => html`<span class="buttons"><${Button}
  aria-label=${`Run now: ${s.schedule}`} onClick=${() => sendNow(page, `Run schedule ${s.schedule}`,
  ['schedules', s.schedule, 'run'])}>Run now<//>
  ${s.paused
    ? html`<${Button} aria-label=${`Resume ${s.schedule}`} onClick=${() => resume(page, 'schedule', s.schedule)}>Resume<//>`
    : html`<${Button} aria-label=${`Pause ${s.schedule}`} onClick=${() => askPause(page, 'schedule', s.schedule)}>Pause…<//>`}</span>`;

const columns = (page) => [
  {head: 'Schedule', cell: (s) => html`<${Link} to=${['schedules', s.schedule]}><${Name} value=${s.schedule} /><//>`},
  {head: 'When', cell: (s) => html`<code><${Text} value=${s.when} /></code>${s.tz && html` <span class="quiet">${plain(s.tz)}</span>`}`},
  {head: 'Queue', cell: (s) => html`<${QueueLink} name=${s.queue} />`},
  {head: 'Next', num: true, cell: (s) => html`<${Next} s=${s} now=${page.now} />`},
  {head: 'Last', num: true, cell: (s) => html`<${When} ms=${s.last_ms} now=${page.now} />`},
  {head: 'Last job', cell: (s) => (s.job ? html`<${JobLink} id=${s.job} />` : '–')},
  {head: 'Missed', num: true, cell: (s) => html`<span class=${s.missed > 0 ? 'warn' : 'quiet'}>${number(s.missed)}</span>`},
  {head: 'Paused', wide: true, cell: (s) => (s.paused ? html`<${Paused} paused=${s.paused} now=${page.now} />` : html`<span
    class="quiet">no</span>`)},
  ...(page.canWrite ? [{head: 'Actions', cell: (s) => html`<${Actions} page=${page} s=${s} />`}] : []),
];

const view = ({page, data}) => html`
  <${Table} label="Schedules" columns=${columns(page)} rows=${data.schedules} id=${(s) => s.schedule}
    mark=${(s) => (s.paused ? 'paused' : null)} empty="No schedule." />
  <${Pager} to=${['schedules']} params=${{}} name="after" now=${page.params.get('after')} next=${data.after} />`;

function OneView({page, data}) {
  const s = data.schedule;
  const payload = bytesOf(s, 'payload');
  return html`<section class="card">${s.paused && html`<p class="lead"><${Paused} paused=${s.paused} now=${page.now} /></p>`}
      <${Facts} facts=${[
        ['When', html`<code><${Text} value=${s.when} /></code>`], ['Time zone', s.tz && plain(s.tz)], ['Queue', html`<${QueueLink}
          name=${s.queue} />`],
        ['Next', isNumber(s.next_ms) && html`<${Next} s=${s} now=${page.now} />`], ['Last', isNumber(s.last_ms) && html`<${When}
          ms=${s.last_ms} now=${page.now} />`],
        ['Last job', s.job && html`<${JobLink} id=${s.job} />`], ['Jobs so far', isNumber(s.runs) && number(s.runs)],
        ['Skipped', s.skipped > 0 && number(s.skipped)], ['Missed', s.missed > 0 && html`<span class="warn">${number(s.missed)}</span>`],
        ['Overlap', s.overlap && plain(s.overlap)], ['Catch up', s.catch_up && plain(s.catch_up)],
          ['Catch up within', isNumber(s.catch_up_window_ms) && span(s.catch_up_window_ms)],
        ['Spread over', s.splay_ms > 0 && span(s.splay_ms)], ['From', isNumber(s.from_ms) && html`<${When} ms=${s.from_ms}
          now=${page.now} />`], ['Until', isNumber(s.until_ms) && html`<${When} ms=${s.until_ms} now=${page.now} />`],
        ['Options', s.options && html`<${Text} value=${s.options} />`], ['Defined by', s.origin && html`<${Text} value=${s.origin} />`],
      ]} />
      ${page.canWrite && html`<p><${Actions} page=${page} s=${s} /></p>`}</section>
    <section><h2>Next times</h2>${data.ahead_ms?.length > 0 ? html`<ol class="times">${data.ahead_ms.map((ms) => html`<li key=${ms}>
      <span>${instant(ms).replace(/\.000/, '')}</span> <span class="quiet"><${When} ms=${ms} now=${page.now} /></span>
      </li>`)}</ol>` : html`<${Empty}>None.<//>`}</section>
    ${payload !== undefined && html`<section><h2>Payload</h2><pre class="box" tabindex="0" role="region" aria-label="Payload">
      ${plain(payload)}</pre></section>`}`;
}

export default {
  title: () => 'Schedules',
  load: ({get, params}) => get(['schedules'], {after: params.get('after')}),
  view,
  one: {title: (name) => `Schedule ${name}`, load: ({get, name}) => get(['schedules', name]), view: OneView},
};
