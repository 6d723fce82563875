// Small pieces that all pages share.
import {Component, html} from './dom.js';
import {ago, bytes, bytesOf, instant, iso, isNumber, number, plain, sentence, span} from './format.js';
import {href} from './route.js';

export const Link = ({to, params, children, ...rest}) => html`<a href=${href(to, params)} ...${rest}>${children}</a>`;

// A word that is too long for a column may break anywhere; others keep together.
const LONG = /\S{25}/;
const long = (s) => (LONG.test(s) ? ' long' : '');

export const Name = ({value}) => html`<bdi class=${`name${long(plain(value))}`}>${plain(value)}</bdi>`;

export const QueueLink = ({name}) => html`<${Link} to=${['queues', name]} class=${`name${long(plain(name))}`}><bdi>${plain(name)}</bdi>
  <//>`;
export const JobLink = ({id}) => html`<${Link} to=${['jobs', id]} class=${String(id).length <= 16 ? 'id whole' : 'id'}><bdi>
  ${plain(id)}</bdi><//>`;
export const GateLink = ({gate}) =>
  html`<${Link} to=${['gates']} params=${{gate}} class=${`name${long(plain(gate))}`}><bdi>${plain(gate)}</bdi><//>`;
// The gate that of[name] says. One whose name is no UTF-8 has no address.
export const GateOf = ({of, name, kind}) => (of[name] === undefined ? html`<${Text} value=${bytesOf(of, name)} most=${80} />`
  : html`<${GateLink} gate=${kind ? `${kind}:${of[name]}` : of[name]} />`);

// "3 min ago", with the instant behind it.
export const When = ({ms, now}) =>
  isNumber(ms) ? html`<time datetime=${iso(ms)} title=${instant(ms)}>${ago(ms, now)}</time>` : '–';

// How long something lasts already.
export const For = ({ms, now}) => html`<time datetime=${iso(ms)} title=${`since ${instant(ms)}`}>for ${span(now - ms)}</time>`;

// How late something is that is due; how long until then, if it is not.
export const Due = ({ms, now}) =>
  isNumber(ms)
    ? html`<time datetime=${iso(ms)} title=${instant(ms)} class=${now - ms > 60000 ? 'bad' : now - ms > 5000 ? 'warn' : null}
      >${now > ms ? `${span(now - ms)} late` : ago(ms, now)}</time>`
    : '–';

// Text of somebody else: cut, with all of it one click away.
export class Text extends Component {
  render({value, most = 160, block = false}, {all}) {
    const s = plain(value);
    if (s.length <= most) return html`<bdi class=${`text${block ? ' block' : ''}${long(s)}`}>${s}</bdi>`;
    return html`<bdi class=${`text${block || all ? ' block' : ''}${long(s)}`}>${all ? s : `${s.slice(0, most)}…`}</bdi> <button
      type="button" class="more" aria-expanded=${Boolean(all)} onClick=${() => this.setState({all: !all})}
      >${all ? 'less' : `all ${bytes(s.length)}`}</button>`;
  }
}

// A sentence of the server about jobs. What looks like the id of one becomes a link.
export function Sentence({text}) {
  const s = sentence(text);
  if (s.length > 1000) return html`<${Text} value=${s} most=${600} />`;
  return html`<span class="text">${s.split(/\b(j(?=[a-z]*[0-9])[0-9a-z]{11})\b/).map((part, i) => (i % 2 === 1 ? html`<${JobLink}
    id=${part} />` : part))}</span>`;
}

// Without a prototype: what comes from outside is looked up here.
const LOUD = {__proto__: null, dead: 'bad', died: 'bad', broken: 'bad', down: 'bad', failed: 'warn', parked: 'warn', paused: 'warn', degraded: 'warn',
  quiet: 'warn', aborted: 'warn', cancelling: 'warn', running: 'on', active: 'on', live: 'ok', done: 'ok', ok: 'ok'};

export const Badge = ({state}) => html`<span class=${`badge ${LOUD[state] ?? ''}`}>${plain(state)}</span>`;

// One number of a column that is about trouble. Zero stays quiet.
export const Trouble = ({n, kind = 'bad'}) => html`<span class=${n > 0 ? kind : 'quiet'}>${number(n)}</span>`;

export const Empty = ({children}) => html`<p class="empty">${children}</p>`;

// columns: {head, cell: (row) => …, num, wide}. The first one names the row. Roles are said again,
// because a narrow screen shows rows as blocks and would lose them.
export const Table = ({label, columns, rows, id, empty = 'Nothing here.', mark}) =>
  rows.length === 0
    ? html`<${Empty}>${empty}<//>`
    : html`<div class="scroll"><table class="rows" role="table" aria-label=${label}>
      <thead role="rowgroup"><tr role="row">${columns.map((c) => html`
        <th role="columnheader" scope="col" class=${c.num ? 'num' : null}>${c.head}</th>`)}</tr></thead>
      <tbody role="rowgroup">${rows.map((row, i) => html`<tr role="row" key=${id ? id(row) : i} class=${mark?.(row)}>
        ${columns.map((c, k) => {
        const cls = `${c.num ? 'num' : ''}${c.wide ? ' wide' : ''}`;
        return k === 0
          ? html`<th role="rowheader" scope="row" class=${cls}>${c.cell(row)}</th>`
          : html`<td role="cell" class=${cls} data-head=${c.head}><span>${c.cell(row)}</span></td>`;
      })}</tr>`)}</tbody>
    </table></div>`;

// facts: [label, content]; those without content are left out.
export const Facts = ({facts}) => html`<dl class="facts">${facts
  .filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false)
  .map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>`;

// Pages go forward by a cursor; back is the browser's.
export const Pager = ({to, params, name, now, next}) =>
  now || next
    ? html`<p class="pager">${now && html`<${Link} to=${to} params=${{...params, [name]: ''}}>First page<//>`}
      ${next && html`<${Link} to=${to} params=${{...params, [name]: next}}>Next page<//>`}</p>`
    : null;

export const Button = ({danger, main, children, ...rest}) =>
  html`<button type="button" class=${danger ? 'danger' : main ? 'main' : null} ...${rest}>${children}</button>`;

export const Bar = ({value, max, label}) =>
  isNumber(value) && max > 0
    ? html`<meter class="bar" min="0" max=${max} value=${Math.min(value, max)} aria-label=${label}></meter>`
    : null;

// What a handler says about its progress. A share is drawn as well.
export function Progress({text}) {
  const s = plain(text);
  const percent = /(\d{1,3}(?:\.\d+)?)\s?%/.exec(s);
  const part = /\b(\d+)\s?(?:\/|of)\s?(\d+)\b/.exec(s);
  const share = percent ? Number(percent[1]) / 100 : part && Number(part[2]) > 0 ? Number(part[1]) / Number(part[2]) : null;
  if (s === '') return html`<span class="quiet">–</span>`;
  return html`${share !== null && share <= 1 && html`<${Bar} value=${share} max=${1} label="progress" /> `}<${Text} value=${s}
    most=${80} />`;
}

export function Paused({paused, now}) {
  if (!paused) return null;
  return html`<span class="paused"><${Badge} state="paused" /> by <bdi>${plain(paused.by)}</bdi>${' '}
    <${For} ms=${paused.since_ms} now=${now} />${isNumber(paused.until_ms) && html`, ends <${When} ms=${paused.until_ms} now=${now} />`}${
    paused.reason && html`: <${Text} value=${paused.reason} />`}</span>`;
}

// Who holds a gate or waits for it.
export function Who({who}) {
  if (who.job !== undefined) return html`job <${JobLink} id=${who.job} />${who.queue && html` of queue <${QueueLink}
    name=${who.queue} />`}${who.host && html` on <bdi>${plain(who.host)}</bdi>`}`;
  if (who.queue !== undefined) return html`queue <${QueueLink} name=${who.queue} />`;
  if (who.program !== undefined) return html`program <bdi>${plain(who.program)}</bdi>${who.host && html` on <bdi>
    ${plain(who.host)}</bdi>`}${isNumber(who.pid) && ` (pid ${who.pid})`}`;
  return html`caller <bdi class="text">${plain(who.caller)}</bdi>`;
}

// JSON as nested lists that fold.
export function Json({value, name, depth = 0}) {
  const label = name !== undefined && html`<span class="key">${plain(name)}</span>: `;
  if (value === null || typeof value !== 'object')
    return html`${label}<span class=${`value ${value === null ? 'null' : typeof value}`}><${Text}
      value=${typeof value === 'string' ? JSON.stringify(value) : String(value)} most=${400} /></span>`;
  const isList = Array.isArray(value);
  const entries = isList ? value.map((v, i) => [i, v]) : Object.entries(value);
  const size = isList ? `[${entries.length}]` : `{${entries.length}}`;
  if (entries.length === 0) return html`${label}<span class="value">${isList ? '[ ]' : '{ }'}</span>`;
  return html`<details class="json" open=${depth < 2 && entries.length <= 50}><summary>${label}<span class="quiet">${size}</span></summary>
    <ul>${entries.slice(0, 500).map(([k, v]) => html`<li key=${k}><${Json} value=${v} name=${k} depth=${depth + 1} /></li>`)}
    ${entries.length > 500 && html`<li class="quiet">${number(entries.length - 500)} more</li>`}</ul></details>`;
}
