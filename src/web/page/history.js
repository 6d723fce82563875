// The two charts of what was counted: lateness and rates.
import {html} from './dom.js';
import {Chart} from './charts.js';
import {span} from './format.js';

const micros = (us) => (us < 1000 ? `${Math.round(us)} µs` : span(us / 1000));

// children: a chart that stands before them.
export function History({history, children}) {
  const buckets = history?.buckets ?? [];
  const times = buckets.map((_, i) => history.from_ms + i * history.by_ms);
  const column = (name) => buckets.map((b) => b[name]);
  return html`<div class="charts">${children}
    <${Chart} title="Lateness" note="from due to start" times=${times} format=${micros} log empty="No job started in the last hour."
      lines=${[{name: 'p50', look: 'a', values: column('late_p50_us')}, {name: 'p99', look: 'b', values: column('late_p99_us')}]} />
    <${Chart} title="Jobs per minute" times=${times} empty="Nothing happened in the last hour."
      bars=${[{name: 'done', look: 'a', values: column('done')}, {name: 'failed', look: 'b', values: column('failed')}, {name: 'dead', look: 'c', values: column('dead')}]}
      lines=${[{name: 'added', look: 'd', values: column('added')}]} />
  </div>`;
}
