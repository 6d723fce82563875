// Why a job does not run, or what it does: the sentence, and where to go from it.
import {html} from './dom.js';
import {bytesOf, isNumber, number, plain, span} from './format.js';
import {Badge, Facts, GateOf, JobLink, Link, Sentence, Table, Text, When, Who} from './parts.js';


export function Explain({explain: e, now, withJob}) {
  const holders = e.holders ?? [];
  const workers = e.workers ?? [];
  return html`<div class="explain">
    <p class="lead">${withJob && html`<${JobLink} id=${e.id} /> <${Badge} state=${e.state} /> `}<span class="text"><${Sentence}
      text=${e.text} /></span></p>
    ${holders.length > 0 && html`<p>Held by</p><ul>${holders.map((h, i) => html`<li key=${i}><${Who} who=${h} />
      ${isNumber(h.until_ms) && html`, until its lease ends <${When} ms=${h.until_ms} now=${now} />`}</li>`)}</ul>`}
    <${Facts} facts=${[
      ['Gate', bytesOf(e, 'gate') && html`<${GateOf} of=${e} name="gate" />`],
      ['Limit', e.limit !== undefined && plain(e.limit)],
      ['Held since', isNumber(e.held_since_ms) && html`<${When} ms=${e.held_since_ms} now=${now} />`],
      ['Jobs before it', e.ahead > 0 && number(e.ahead)],
      ['Unserved', isNumber(e.unserved_since_ms) && span(now - e.unserved_since_ms)],
      ['Paused by', e.paused_by && html`<${Text} value=${e.paused_by} />`],
      ['Key taken by', e.unique_owner && html`<${JobLink} id=${e.unique_owner} />`],
      ['Worker', isNumber(e.worker) && html`<${Link} to=${['workers']}>
        ${e.worker}${e.host && ` on ${plain(e.host)}`}${isNumber(e.pid) && `, pid ${e.pid}`}<//>`],
      ['Last beat', isNumber(e.beat_ms) && html`<${When} ms=${e.beat_ms} now=${now} />`],
    ]} />
    ${workers.length > 0 && html`<${Table} label="Workers of the queue" rows=${workers} id=${(w) => w.worker} columns=${[
      {head: 'Worker', cell: (w) => html`<${Link} to=${['workers']}>${plain(w.worker)}<//> on <bdi>
        ${plain(w.host)}</bdi> (pid ${plain(w.pid)})`},
      {head: 'Why not there', wide: true, cell: (w) => html`<${Text} value=${w.why} />`},
      {head: 'Places taken', num: true, cell: (w) => `${number(Math.min(w.held, w.places))} of ${number(w.places)}`},
    ]} />`}
  </div>`;
}
