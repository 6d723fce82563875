// All queues, the worst first. Those in which nothing happens are folded away.
import {Component, html} from './dom.js';
import {plural} from './format.js';
import {Pager} from './parts.js';
import {isIdle, QueueTable} from './queue_table.js';

class View extends Component {
  render({page, data}, {find = ''}) {
    const rows = data.queues.filter((q) => q.queue.includes(find));
    const idle = rows.filter(isIdle);
    return html`
      <p class="filter"><label for="find">Name contains</label><input id="find" type="search" autocomplete="off" spellcheck=${false}
        value=${find} onInput=${(e) => this.setState({find: e.currentTarget.value})} />
        ${data.after && html`<span class="quiet">of the ${plural(data.queues.length, 'queue')} of this part</span>`}</p>
      <${QueueTable} rows=${rows.filter((q) => !isIdle(q))} now=${page.now} />
      ${idle.length > 0 && html`<details class="idle"><summary>${plural(idle.length, 'idle queue')}</summary>
        <${QueueTable} rows=${idle} now=${page.now} label="Idle queues" /></details>`}
      ${data.more && html`<p class="quiet">Not all queues have been looked at yet.</p>`}
      <${Pager} to=${['queues']} params=${{}} name="after" now=${page.params.get('after')} next=${data.after} />`;
  }
}

export default {
  title: () => 'Queues',
  load: ({get, params}) => get(['queues'], {after: params.get('after')}),
  view: View,
};
