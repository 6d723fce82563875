// Charts of the last or the next hour: SVG drawn by attributes, what it shows in words, and a table.
import {Component, html} from './dom.js';
import {clock, isNumber, number} from './format.js';

const HEIGHT = 150;
const EDGE = {left: 52, right: 10, top: 8, bottom: 20};
const TICKS = 4;

const nice = (max) => {
  const base = 10 ** Math.floor(Math.log10(max));
  return [1, 2, 2.5, 5, 10].map((m) => m * base).find((m) => m >= max) ?? max;
};

function linear(max) {
  const step = Math.max(1, nice(Math.max(max, 1) / TICKS));
  const top = step * Math.ceil(Math.max(max, 1) / step);
  const ticks = [];
  for (let v = 0; v <= top; v += step) ticks.push(v);
  return {ticks, share: (v) => v / top};
}

// Times from microseconds to hours share one axis, so it counts in tens.
function logarithmic(min, max) {
  const low = Math.floor(Math.log10(Math.max(min, 1)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(max, 10))));
  const by = Math.ceil((high - low) / TICKS);
  const ticks = [];
  for (let e = low; e <= high; e += by) ticks.push(10 ** e);
  return {ticks, share: (v) => Math.max(0, (Math.log10(Math.max(v, 1)) - low) / (high - low))};
}

const values = (series) => series.flatMap((s) => s.values.filter(isNumber));

function scaleOf({lines, bars, log}) {
  const stacked = (bars[0]?.values ?? []).map((_, i) => bars.reduce((sum, b) => sum + (b.values[i] ?? 0), 0));
  const all = [...values(lines), ...stacked];
  if (log) return logarithmic(Math.min(...all.filter((v) => v > 0), 1e9), Math.max(...all, 10));
  return linear(Math.max(...all, 0));
}

// A gap where a value is not known; a point alone is a short dash.
function linePath(points) {
  let d = '';
  points.forEach((p, i) => {
    if (p === null) return;
    const before = i > 0 && points[i - 1] !== null;
    d += `${before ? 'L' : 'M'}${p[0].toFixed(1)} ${p[1].toFixed(1)}`;
    if (!before && (i + 1 >= points.length || points[i + 1] === null)) d += 'm-2 0h4';
  });
  return d;
}

function words(series, format) {
  return series.map((s) => {
    const known = s.values.filter(isNumber);
    return known.length === 0
      ? `${s.name}: nothing`
      : `${s.name}: ${format(Math.min(...known))} to ${format(Math.max(...known))}, last ${format(known.at(-1))}`;
  }).join('; ');
}

// props: title, times (the start of each bucket), lines and bars ([{name, look, values}]), format, log,
// empty (what to say when there is nothing), total (the bars are counts: tell their sum)
export class Chart extends Component {
  constructor() {
    super();
    this.box = {current: null};
    this.state = {width: 560, at: null};
  }

  componentDidMount() {
    this.seen = new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width > 0 && width !== this.state.width) this.setState({width});
    });
    if (this.box.current) this.seen.observe(this.box.current);
  }

  componentWillUnmount() {
    this.seen.disconnect();
  }

  point(e, n) {
    const from = e.currentTarget.getBoundingClientRect();
    const share = (e.clientX - from.left - EDGE.left) / (from.width - EDGE.left - EDGE.right);
    this.setState({at: share < 0 || share >= 1 ? null : Math.floor(share * n)});
  }

  render({title, note, times, lines = [], bars = [], format = number, log = false, empty = 'Nothing yet.'}, {width, at}) {
    const series = [...bars, ...lines];
    const isEmpty = !values(series).some((v) => v > 0);
    return html`<figure class="chart">
      <figcaption><span class="title">${title}</span>${note && html` <span class="quiet">${note}</span>`}
        <${Legend} series=${series} format=${format} times=${times} at=${at} /></figcaption>
      <div class="plot" ref=${this.box}>${isEmpty
        ? html`<p class="empty">${empty}</p>`
        : html`<${Plot} ...${{title, times, lines, bars, format, log, width, at}} label=${`${title}. ${words(series, format)}.`}
          onPoint=${(e) => this.point(e, times.length)} onLeave=${() => this.setState({at: null})} />`}</div>
      <${ChartTable} ...${{title, times, series, format}} />
    </figure>`;
  }
}

const Legend = ({series, format, times, at}) => html`<span class="legend">${at !== null && html`<span class="at">
  ${clock(times[at])}</span>`}${series.map((s) => {
  const v = at === null ? s.values.findLast(isNumber) : s.values[at];
  return html`<span key=${s.name}><svg class="swatch" width="12" height="10" aria-hidden="true"><path class=${`line ${s.look}`}
    d="M1 5H11" /></svg>${s.name}
    <b class="num">${isNumber(v) ? format(v) : '–'}</b></span>`;
})}</span>`;

function Plot({label, times, lines, bars, format, log, width, at, onPoint, onLeave}) {
  const w = width - EDGE.left - EDGE.right;
  const h = HEIGHT - EDGE.top - EDGE.bottom;
  const n = times.length;
  const scale = scaleOf({lines, bars, log});
  const x = (i) => EDGE.left + (i / n) * w;
  const y = (v) => EDGE.top + h * (1 - Math.min(1, scale.share(v)));
  const every = Math.max(1, Math.ceil(n / Math.max(2, Math.floor(w / 80)) / 5) * 5);
  return html`<svg class="graph" role="img" aria-label=${label} width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`}
    onPointerMove=${onPoint} onPointerLeave=${onLeave}>
    ${scale.ticks.map((v) => html`<g key=${`y${v}`}><path class="grid" d=${`M${EDGE.left} ${y(v).toFixed(1)}H${width - EDGE.right}`} />
      <text class="axis" x=${EDGE.left - 6} y=${(y(v) + 4).toFixed(1)} text-anchor="end">${format(v)}</text></g>`)}
    ${times.map((t, i) => i % every === 0 && i / n < 0.97 && html`<text key=${t} class="axis" x=${x(i).toFixed(1)} y=${HEIGHT - 4}
      text-anchor="middle">${clock(t)}</text>`)}
    ${at !== null && html`<rect class="cursor" x=${x(at).toFixed(1)} y=${EDGE.top} width=${(w / n).toFixed(1)} height=${h} />`}
    ${stack(bars, n).map(({i, look, from, to}) => html`<rect key=${`${look}${i}`} class=${`area ${look}`} x=${(x(i) + 0.5).toFixed(1)}
      y=${y(to).toFixed(1)}
      width=${Math.max(1, w / n - 1).toFixed(1)} height=${Math.max(0.5, y(from) - y(to)).toFixed(1)} />`)}
    ${lines.map((s) => html`<path key=${s.name} class=${`line ${s.look}`}
      d=${linePath(s.values.map((v, i) => (isNumber(v) ? [x(i + 0.5), y(v)] : null)))} />`)}
  </svg>`;
}

function stack(bars, n) {
  const out = [];
  for (let i = 0; i < n; i++) {
    let from = 0;
    for (const {look, values: v} of bars) {
      if (!(v[i] > 0)) continue;
      out.push({i, look, from, to: from + v[i]});
      from += v[i];
    }
  }
  return out;
}

export const ChartTable = ({title, times, series, format, summary = 'Table'}) => html`<details class="behind"><summary>${summary}</summary>
  <div class="box" tabindex="0" role="region" aria-label=${`Table: ${title}`}><table><thead><tr><th scope="col">from</th>
    ${series.map((s) => html`
    <th scope="col" class="num">${s.name}</th>`)}</tr></thead><tbody>${times.map((t, i) => html`<tr key=${t}><th scope="row">
      ${clock(t)}</th>${series.map((s) => html`
    <td class="num">${isNumber(s.values[i]) ? format(s.values[i]) : '–'}</td>`)}</tr>`)}</tbody></table></div></details>`;
