// Why a job does not run, or what it does: the sentence, and where to go from it.
import {html} from './dom.js';
import {isNumber, number, plain, sentence, span} from './format.js';
import {Badge, Facts, GateLink, JobLink, Link, QueueLink, Table, Text, When, Who} from './parts.js';

// The ids of jobs in the sentence become links.
function linked(text, ids) {
  if (ids.length === 0) return html`<${Text} value=${text} most=${600} />`;
  const parts = [];
  let rest = text;
  for (;;) {
    const at = ids.map((id) => ({id, i: rest.indexOf(id)})).filter(({i}) => i >= 0).sort((a, b) => a.i - b.i)[0];
    if (!at) return [...parts, rest];
    parts.push(rest.slice(0, at.i), html`<${JobLink} id=${at.id} />`);
    rest = rest.slice(at.i + at.id.length);
  }
}

export function Explain({explain: e, now, withJob}) {
  const holders = e.holders ?? [];
  const workers = e.workers ?? [];
  const ids = [...new Set([...holders.map((h) => h.job), e.unique_owner].filter((id) => typeof id === 'string' && id.length > 6))];
  return html`<div class="explain">
    <p class="lead">${withJob && html`<${JobLink} id=${e.id} /> <${Badge} state=${e.state} /> `}<span class="text">${linked(sentence(e.text), ids)}</span></p>
    ${holders.length > 0 && html`<p>Held by</p><ul>${holders.map((h, i) => html`<li key=${i}><${Who} who=${h} />${isNumber(h.until_ms) && html`, until its lease ends <${When} ms=${h.until_ms} now=${now} />`}</li>`)}</ul>`}
    <${Facts} facts=${[
      ['Gate', e.gate && html`<${GateLink} gate=${e.gate} />`],
      ['Limit', e.limit !== undefined && plain(e.limit)],
      ['Held since', isNumber(e.held_since_ms) && html`<${When} ms=${e.held_since_ms} now=${now} />`],
      ['Jobs before it', isNumber(e.ahead) && number(e.ahead)],
      ['Unserved', isNumber(e.unserved_since_ms) && span(now - e.unserved_since_ms)],
      ['Paused by', e.paused_by && html`<${Text} value=${e.paused_by} />`],
      ['Key taken by', e.unique_owner && html`<${JobLink} id=${e.unique_owner} />`],
      ['Worker', isNumber(e.worker) && html`<${Link} to=${['workers']}>${e.worker}${e.host && ` on ${plain(e.host)}`}${isNumber(e.pid) && `, pid ${e.pid}`}<//>`],
      ['Last beat', isNumber(e.beat_ms) && html`<${When} ms=${e.beat_ms} now=${now} />`],
      ['Queue', withJob ? null : e.queue && html`<${QueueLink} name=${e.queue} />`],
    ]} />
    ${workers.length > 0 && html`<${Table} label="Workers of the queue" rows=${workers} id=${(w) => w.worker} columns=${[
      {head: 'Worker', cell: (w) => html`<${Link} to=${['workers']}>${plain(w.worker)}<//> on <bdi>${plain(w.host)}</bdi> (pid ${plain(w.pid)})`},
      {head: 'Why not there', wide: true, cell: (w) => html`<${Text} value=${w.why} />`},
      {head: 'Places taken', num: true, cell: (w) => `${number(Math.min(w.held, w.places))} of ${number(w.places)}`},
    ]} />`}
  </div>`;
}
