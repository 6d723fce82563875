// Add one job by hand.
import {Component, html} from './dom.js';
import {send} from './ask.js';
import {Field, SPAN} from './dialog.js';

const whole = (values, name) => (values[name] === undefined ? undefined : Number(values[name]));

function bodyOf(form) {
  const values = Object.fromEntries([...new FormData(form)].map(([k, v]) => [k, k === 'payload' ? v : v.trim()]).filter(([k, v]) => v !== '' || k === 'payload'));
  return {
    queue: values.queue, payload: values.payload, key: values.key, unique: values.unique,
    priority: whole(values, 'priority'), attempts: whole(values, 'attempts'),
    in: values.when === 'in' ? values.in : undefined,
    at: values.when === 'at' && values.at ? new Date(values.at).toISOString() : undefined,
  };
}

class View extends Component {
  constructor() {
    super();
    this.state = {when: 'now', names: []};
  }

  async componentDidMount() {
    const answer = await this.props.page.get(['queues'], {count: 500}).catch(() => ({queues: []}));
    this.setState({names: answer.queues.map((q) => q.queue)});
  }

  async submit(e) {
    const {page} = this.props;
    e.preventDefault();
    const body = bodyOf(e.currentTarget);
    this.setState({busy: true});
    await send(page, `Add to ${body.queue}`, ['jobs'], body).catch((x) => page.refused(html`${x.message} <code>${x.code}</code>`));
    this.setState({busy: false});
  }

  render({page}, {when, names, busy}) {
    if (!page.canWrite) return html`<p class="empty">This server only shows: it was started without <code>write: true</code>.</p>`;
    return html`<form class="add card" onSubmit=${(e) => this.submit(e)}>
      <datalist id="names">${names.map((n) => html`<option key=${n} value=${n}></option>`)}</datalist>
      <${Field} field=${{name: 'queue', label: 'Queue', required: true, list: 'names', value: page.params.get('queue') ?? ''}} />
      <${Field} field=${{name: 'payload', label: 'Payload', type: 'textarea', rows: 8, hint: 'The bytes that the handler gets, as they are.'}} />
      <${Field} field=${{name: 'when', label: 'Due', options: [['now', 'now'], ['in', 'after a time'],
        ['at', 'at a time']], value: 'now', onChange: (e) => this.setState({when: e.currentTarget.value})}} />
      ${when === 'in' && html`<${Field} field=${{...SPAN, name: 'in', label: 'After', required: true}} />`}
      ${when === 'at' && html`<${Field} field=${{name: 'at', label: 'At (your time)', type: 'datetime-local', step: 1, required: true}} />`}
      <details><summary>More</summary>
        <${Field} field=${{name: 'priority', label: 'Priority', type: 'number', min: 0, max: 9, hint: '0 first, 9 last. Empty: 5.'}} />
        <${Field} field=${{name: 'attempts', label: 'Attempts at most', type: 'number', min: 1}} />
        <${Field} field=${{name: 'key', label: 'Key', hint: 'A name to find it by.'}} />
        <${Field} field=${{name: 'unique', label: 'Unique key', hint: 'At most one waiting or running job of the queue may have it.'}} />
      </details>
      <p class="buttons"><button type="submit" class="main" disabled=${busy}>${busy ? 'One moment…' : 'Add the job'}</button></p></form>`;
  }
}

export default {title: () => 'Add a job', view: View};
