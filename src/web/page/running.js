// All jobs that run now, the longest first.
import {html} from './dom.js';
import {JobTable} from './job_table.js';
import {Pager} from './parts.js';

const view = ({page, data}) => html`
  <${JobTable} page=${page} rows=${[...data.jobs].sort((a, b) => (a.since_ms ?? data.now_ms) - (b.since_ms ?? data.now_ms))}
    state="running" withQueue label="Running jobs" empty="No job runs." />
  <${Pager} to=${['running']} params=${{}} name="cursor" now=${page.params.get('cursor')} next=${data.cursor} />`;

export default {
  title: () => 'Running',
  load: ({get, params}) => get(['running'], {cursor: params.get('cursor')}),
  view,
};
