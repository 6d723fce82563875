// The shell: which page is open, its data every two seconds, and what surrounds it.
import {Component, html, render} from './dom.js';
import {apiPath, ApiError, download, get, post, setToken, stream, takeToken} from './api.js';
import {Dialog} from './dialog.js';
import {instant, plain, short, span} from './format.js';
import {Link} from './parts.js';
import {nsInLinks, parse} from './route.js';
import add from './add.js';
import batches from './batches.js';
import bulk from './bulk.js';
import dead from './dead.js';
import gates from './gates.js';
import job from './job.js';
import overview from './overview.js';
import queue from './queue.js';
import queues from './queues.js';
import running from './running.js';
import schedules from './schedules.js';
import search from './search.js';
import tail from './tail.js';
import workers from './workers.js';

const EVERY_MS = 2000;
const AT_MOST_MS = 10000;
const PAGES = {__proto__: null, overview, queues, running, dead, gates, workers, schedules, batches, bulk, search, tail, add};
const INSIDE = {__proto__: null, queues: queue, jobs: job, schedules: schedules.one, batches: batches.one};
const KEEP = {refresh: `later-refresh:${location.pathname}`, ns: `later-ns:${location.pathname}`};

// A page is {title(name), load({get, params, name, old}), view({page, data})}; load is left out where
// there is nothing to ask, and `once` says that it asks only at the opening.
function pageOf({path: [section = 'overview', name]}) {
  const page = name !== undefined ? INSIDE[section] : PAGES[section];
  return page ? {page, section, name} : null;
}

class App extends Component {
  constructor() {
    super();
    this.state = {me: null, ns: null, route: parse(location.hash), data: null, error: null, wantsToken: false,
      isOn: sessionStorage.getItem(KEEP.refresh) !== 'off', question: null, notices: [], menu: false};
    this.failures = 0;
  }

  componentDidMount() {
    addEventListener('hashchange', () => this.go());
    document.addEventListener('visibilitychange', () => this.see());
    this.begin();
  }

  // ---- data

  async begin() {
    const turn = (this.begun = (this.begun ?? 0) + 1); // a later token has overtaken an earlier one
    try {
      const me = await get(apiPath([]));
      if (turn !== this.begun) return;
      this.setState({me, wantsToken: false, error: null}, () => this.go(true));
    } catch (e) {
      if (turn === this.begun) this.fail(e, () => this.begin());
    }
  }

  go(isFirst) {
    if (/^#token=/.test(location.hash)) {
      takeToken();
      this.begin();
      return;
    }
    if (this.state.me === null) return;
    const route = parse(location.hash);
    const names = this.state.me.namespaces;
    const wanted = route.params.get('ns') ?? sessionStorage.getItem(KEEP.ns);
    const ns = names.includes(wanted) ? wanted : names[0];
    if (names.length > 1) sessionStorage.setItem(KEEP.ns, ns);
    nsInLinks(names.length > 1 ? ns : null);
    this.failures = 0;
    this.retry = null;
    this.stop();
    this.setState({route, ns, data: null, error: null, menu: false, notices: isFirst ? this.state.notices : []}, () => this.opened(isFirst));
  }

  opened(isFirst) {
    const found = pageOf(this.state.route);
    document.title = `${found ? short(found.page.title(found.name)) : 'Not found'} · later`;
    if (!isFirst) {
      scrollTo(0, 0);
      document.getElementById('main')?.focus({preventScroll: true});
    }
    if (found?.page.load) this.load();
  }

  stop() {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.asking = null;
  }

  async load() {
    const {route, ns, data} = this.state;
    const {page, name} = pageOf(route) ?? {};
    if (!page?.load) return;
    this.stop();
    const asking = (this.asking = new AbortController());
    const ask = (parts, params) => get(apiPath([ns, ...parts], params), asking.signal);
    try {
      const found = await page.load({get: ask, params: route.params, name, old: data});
      if (asking.signal.aborted) return;
      this.failures = 0;
      this.setState({data: found, error: null, loaded: Date.now()});
      if (!page.once) this.later(EVERY_MS, () => this.load());
    } catch (e) {
      if (!asking.signal.aborted) this.fail(e, () => this.load());
    }
  }

  later(ms, what) {
    clearTimeout(this.timer);
    this.retry = what;
    if (this.state.isOn && !document.hidden) this.timer = setTimeout(what, ms);
  }

  // Old data stays, and the next attempts come less and less often.
  fail(e, again) {
    if (e.status === 401) {
      setToken(null);
      this.setState({wantsToken: true, refusedToken: e.message});
      return;
    }
    const error = e instanceof ApiError ? e : new ApiError(0, 'PAGE', `This page failed: ${e.message}`);
    this.failures++;
    this.setState({error});
    this.later(Math.min(AT_MOST_MS, EVERY_MS * 2 ** (this.failures - 1)), again);
  }

  see() {
    if (document.hidden) clearTimeout(this.timer);
    else if (this.state.isOn) this.retry?.();
  }

  turn() {
    const isOn = !this.state.isOn;
    sessionStorage.setItem(KEEP.refresh, isOn ? 'on' : 'off');
    this.setState({isOn}, () => (isOn ? this.retry?.() : clearTimeout(this.timer)));
  }

  // ---- what pages may do

  tools(name) {
    const {me, ns, route, data} = this.state;
    return {
      name, params: route.params, me, now: data?.now_ms ?? Date.now(), canWrite: me.write === true,
      refresh: () => this.load(),
      get: (parts, params) => get(apiPath([ns, ...parts], params)),
      post: (parts, value) => post(apiPath([ns, ...parts]), value),
      stream: (parts, onEvent, signal) => stream(apiPath([ns, ...parts]), onEvent, signal),
      download: (parts, file) => download(apiPath([ns, ...parts]), file).catch((e) => this.notice(e.message, true)),
      ask: (question) => this.setState({question}),
      notice: (text) => this.notice(text, false),
      refused: (text) => this.notice(text, true),
    };
  }

  notice(text, isRefusal) {
    const one = {text, isRefusal, at: Date.now()};
    this.setState(({notices}) => ({notices: [one, ...notices].slice(0, 3)}));
  }

  // ---- what is shown

  render(_, {me, route, wantsToken, refusedToken, error, question}) {
    if (wantsToken) return html`<${TokenForm} text=${refusedToken} onToken=${(t) => { setToken(t); this.begin(); }} />`;
    if (me === null) return html`<main class="alone">${error ? html`<h1>No answer</h1><p>
      ${error.message} Trying again by itself.</p>` : html`<p>Loading…</p>`}</main>`;
    const found = pageOf(route);
    return html`
      <a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); document.getElementById('main').focus(); }}>Skip to the page</a>
      ${this.header(found)}
      ${this.main(found)}
      ${question && html`<${Dialog} question=${question} onClose=${() => this.setState({question: null})} />`}`;
  }

  header(found) {
    const {me, ns, menu} = this.state;
    return html`<header class=${menu ? 'open' : null}>
      <p class="brand"><${Link} to=${[]}>later<//>${me.namespaces.length > 1
        ? html`<select aria-label="Namespace" value=${ns} onChange=${(e) => this.chooseNs(e.currentTarget.value)}>
          ${me.namespaces.map((n) => html`<option key=${n} value=${n}>${plain(n)}</option>`)}</select>`
        : html`<span class="quiet" title="namespace"><bdi>${plain(ns)}</bdi></span>`}</p>
      <button type="button" class="menu" aria-expanded=${menu}
        aria-controls="nav" onClick=${() => this.setState({menu: !menu})}>Menu</button>
      <nav id="nav" aria-label="Pages"><ul>${Object.entries(PAGES).map(([key, page]) => (key !== 'add' || me.write) && html`<li
        key=${key}><${Link}
        to=${key === 'overview' ? [] : [key]} aria-current=${found?.section === key ? 'page' : null}>${page.title()}<//></li>`)}</ul>
        <p class="version quiet">later ${plain(me.version)}${!me.write && html`<br />read only`}</p></nav>
    </header>`;
  }

  chooseNs(ns) {
    sessionStorage.setItem(KEEP.ns, ns);
    nsInLinks(ns);
    location.hash = `#/?ns=${encodeURIComponent(ns)}`;
  }

  main(found) {
    const {data, error, notices, route, ns} = this.state;
    if (!found) return html`<main id="main" tabindex="-1" data-state="ready"><h1>Not found</h1><p>This page has no such address.</p>
      </main>`;
    const {page, name} = found;
    const isReady = !page.load || data !== null;
    return html`<main id="main" tabindex="-1" data-route=${route.path.join('/')}
      data-state=${isReady ? 'ready' : error ? 'failed' : 'loading'}>
      <div class="top"><h1><bdi>${plain(page.title(name))}</bdi></h1>${page.load && !page.once && this.status()}</div>
      <div role="status">${notices.map((n) => html`<p key=${n.at} class=${`notice ${n.isRefusal ? 'refused' : ''}`}><span>${n.text}</span>
        <button type="button" aria-label="Close this notice" onClick=${() => this.setState({notices: notices.filter((o) => o !== n)})}>Close</button></p>`)}</div>
      ${isReady
        ? html`<${Guard} key=${`${ns} ${route.path.join('/')}`}><${page.view} page=${this.tools(name)} data=${data} /><//>`
        : error ? html`<p class="notice refused" role="alert">${error.message} <code>${error.code}</code></p>` : html`<p
          class="empty">Loading…</p>`}
    </main>`;
  }

  status() {
    const {isOn, error, data, loaded} = this.state;
    return html`<p class=${`fresh ${error && data ? 'stale' : ''}`}>
      ${error && data && html`<span role="alert">Old data, from <${Since} ms=${loaded} />: ${error.message} <code>${error.code}</code>
        </span>`}
      <button type="button" aria-pressed=${isOn} onClick=${() => this.turn()}
        title=${isOn ? 'Every 2 seconds while this tab is visible' : null}>${isOn ? 'Refresh is on' : 'Refresh is off'}</button></p>`;
  }
}

// An answer of an unexpected shape spoils its own page and no other.
class Guard extends Component {
  static getDerivedStateFromError(error) {
    return {error};
  }

  render({children}, {error}) {
    return error ? html`<p class="notice refused"
      role="alert">This page cannot show what the server sent: ${plain(error.message)}</p>` : children;
  }
}

// How old the data is. It counts by itself, since no answer comes that would.
class Since extends Component {
  componentDidMount() {
    this.timer = setInterval(() => this.setState({}), 1000);
  }

  componentWillUnmount() {
    clearInterval(this.timer);
  }

  render({ms}) {
    return html`<time title=${instant(ms)}>${span(Math.max(0, Date.now() - ms))} ago</time>`;
  }
}

const TokenForm = ({text, onToken}) => html`<main class="alone">
  <h1>later</h1>
  <form onSubmit=${(e) => { e.preventDefault(); onToken(new FormData(e.currentTarget).get('token').trim()); }}>
    <label for="token">Token</label>
    <input id="token" name="token" type="password" autocomplete="off" required autofocus aria-describedby="token-hint" />
    <small id="token-hint">${text} It stands in the file <code>token_file</code> of the configuration, or in the address that <code>later web</code> printed. It is kept until this tab closes.</small>
    <p class="buttons"><button type="submit" class="main">Open</button></p>
  </form></main>`;

takeToken();
const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
