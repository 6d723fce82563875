// What happens, as it happens. The stream is open only while this page is looked at.
import {Component, html} from './dom.js';
import {bytesOf, clock, isNumber, number, plain, span} from './format.js';
import {Badge, Button, JobLink, QueueLink, Table, Text} from './parts.js';

const MOST = 300;
const AGAIN_MS = [1000, 2000, 5000, 10000];
const SHOW_MS = 200;

const seconds = (ms) => `${clock(ms)}:${String(new Date(ms).getSeconds()).padStart(2, '0')}.${String(ms % 1000).padStart(3, '0')}`;

const lateBy = (e) => (e.event === 'started' && isNumber(e.due_ms) && e.time_ms - e.due_ms >= 1000 ? `${span(e.time_ms - e.due_ms)} late` : '');

const COLUMNS = [
  {head: 'Time', cell: (e) => html`<span class="whole">${isNumber(e.time_ms) ? seconds(e.time_ms) : '–'}</span>`},
  {head: 'Event', cell: (e) => html`<${Badge} state=${e.event} />`},
  {head: 'Queue', cell: (e) => (e.queue ? html`<${QueueLink} name=${e.queue} />` : '–')},
  {head: 'Job', cell: (e) => (e.id ? html`<${JobLink} id=${e.id} />` : '–')},
  {head: 'More', wide: true, cell: (e) => html`${e.attempt > 0 && `attempt ${number(e.attempt)} `}${e.code > 0 && html`<code>
    ${number(e.code)}</code> `}${lateBy(e)} <${Text} value=${e.text === 'ok' ? '' : bytesOf(e, 'text')} most=${120} />`},
];

class View extends Component {
  constructor() {
    super();
    this.state = {events: [], queue: '', event: '', isHeld: false, left: 0, trouble: 'Waiting for the first event.', n: 0};
    this.fresh = [];
    this.failures = 0;
    this.onSee = () => this.watch();
  }

  componentDidMount() {
    document.addEventListener('visibilitychange', this.onSee);
    this.watch();
  }

  componentWillUnmount() {
    document.removeEventListener('visibilitychange', this.onSee);
    this.isGone = true;
    this.stop();
  }

  stop() {
    clearTimeout(this.timer);
    clearTimeout(this.showing);
    this.showing = null;
    this.open?.abort();
    this.open = null;
  }

  async watch() {
    this.stop();
    if (document.hidden || this.state.isHeld || this.isGone) return;
    const open = (this.open = new AbortController());
    let why = 'The server ended the stream.';
    try {
      await this.props.page.stream(['tail'], (kind, e) => this.take(kind, e), open.signal);
    } catch (e) {
      why = e.message;
    }
    if (open.signal.aborted) return;
    const ms = AGAIN_MS[Math.min(this.failures++, AGAIN_MS.length - 1)];
    this.setState({trouble: `${why} Trying again in ${span(ms)}; events between are missing.`});
    this.timer = setTimeout(() => this.watch(), ms);
  }

  // Many events a second are shown together.
  take(kind, e) {
    this.failures = 0;
    if (kind === 'left') this.setState(({left}) => ({left: left + (Number(e.n) || 0)}));
    else if (e && typeof e === 'object') this.fresh.push({...e, key: this.count = (this.count ?? 0) + 1});
    if (this.fresh.length > MOST) this.fresh.splice(0, this.fresh.length - MOST);
    this.showing ??= setTimeout(() => this.show(), SHOW_MS);
  }

  show() {
    this.showing = null;
    const fresh = this.fresh.reverse();
    this.fresh = [];
    this.setState(({events, n}) => ({events: [...fresh, ...events].slice(0, MOST), n: n + fresh.length, trouble: null}));
  }

  render(_, {events, queue, event, isHeld, left, trouble, n}) {
    const kinds = [...new Set([...events.map((e) => plain(e.event)), event])].filter((k) => k !== '').sort();
    const rows = events.filter((e) => (queue === '' || plain(e.queue).includes(queue)) && (event === '' || e.event === event));
    return html`
      <p class="filter"><label for="tail-queue">Queue contains</label><input id="tail-queue" type="search" autocomplete="off"
        spellcheck=${false} value=${queue} onInput=${(e) => this.setState({queue: e.currentTarget.value})} />
        <label for="tail-event">Event</label><select id="tail-event"
          value=${event} onChange=${(e) => this.setState({event: e.currentTarget.value})}><option value="">all</option>
          ${kinds.map((k) => html`<option key=${k} value=${k}>${k}</option>`)}</select>
        <${Button} aria-pressed=${isHeld} onClick=${() => this.setState({isHeld: !isHeld}, () => this.watch())}>
          ${isHeld ? 'Go on' : 'Hold'}<//>
        <span class="quiet">${number(n)} events${left > 0 && html`, <span class="warn">
          ${number(left)} left out, too many at once</span>`}</span></p>
      ${isHeld ? html`<p class="quiet" role="status">Held. Events that happen now are not shown later.</p>` : trouble && html`<p
        class="quiet" role="status">${trouble}</p>`}
      ${rows.length > 0 && html`<div class="box tail" tabindex="0" role="region" aria-label="Events, the newest first"><${Table}
        label="Events" columns=${COLUMNS} rows=${rows} id=${(e) => e.key} /></div>`}`;
  }
}

export default {title: () => 'Live tail', view: View};
