// Which pages there are, by what the API has. Each names what must be seen on it.

export async function discover(base, token) {
  const get = async (p) => {
    const answer = await fetch(new URL(`api/v1/${p}`, base), {headers: token ? {Authorization: `Bearer ${token}`} : {}});
    if (!answer.ok) throw new Error(`${p}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const first = (list, what, test = () => true) => {
    const found = list.find(test);
    if (found === undefined) throw new Error(`no data: the namespace has no ${what}, so its page cannot be judged`);
    return found;
  };
  const {namespaces, write} = await get('');
  const ns = encodeURIComponent(namespaces[0]);
  const e = encodeURIComponent;
  const queues = (await get(`${ns}/queues`)).queues;
  const mixed = first(queues, 'queue with waiting and dead jobs', (q) => q.waiting > 0 && q.dead > 0).queue;
  const waits = first(queues, 'queue with parked jobs', (q) => q.parked > 0).queue;
  const dead = first((await get(`${ns}/queues/${e(mixed)}/jobs?state=dead`)).jobs, 'dead job').id;
  const parked = first((await get(`${ns}/queues/${e(waits)}/jobs?state=parked`)).jobs, 'parked job').id;
  const running = first((await get(`${ns}/running`)).jobs, 'running job').id;
  const gate = first((await get(`${ns}/gates`)).gates, 'gate with a holder', (g) => g.holders.length > 0);
  const schedule = first((await get(`${ns}/schedules`)).schedules, 'schedule').schedule;
  const batch = first((await get(`${ns}/batches`)).batches, 'batch').batch;
  const row = '.rows tbody tr';
  // Late queues, and since when a job runs, are told after ten seconds.
  return [
    {name: 'queues', hash: '#/queues', data: [row]},
    {name: 'queue', hash: `#/queues/${e(mixed)}?state=dead`, data: [row, '.facts dd', '.chart']},
    {name: 'queue-parked', hash: `#/queues/${e(waits)}?state=parked`, data: [row, '.explain .lead']},
    {name: 'running', hash: '#/running', data: ['.rows meter + span', row], comesLater: true},
    {name: 'dead', hash: '#/dead', data: [row, '.spark .area']},
    {name: 'dead-queue', hash: `#/dead?queue=${e(mixed)}`, data: [row]},
    {name: 'job', hash: `#/jobs/${e(dead)}`, data: ['.timeline li', '.explain .lead', '.box']},
    {name: 'job-parked', hash: `#/jobs/${e(parked)}`, data: ['.explain .lead', '.timeline li']},
    {name: 'job-running', hash: `#/jobs/${e(running)}`, data: ['.timeline li.on', '.explain .lead'], comesLater: true},
    {name: 'gates', hash: '#/gates', data: [row, '.rows li']},
    {name: 'gate', hash: `#/gates?gate=${e(`${gate.kind}:${gate.name}`)}`, data: [row]},
    {name: 'workers', hash: '#/workers', data: [row]},
    {name: 'schedules', hash: '#/schedules', data: [row]},
    {name: 'schedule', hash: `#/schedules/${e(schedule)}`, data: ['.times li', '.facts dd']},
    {name: 'batches', hash: '#/batches', data: [row]},
    {name: 'batch', hash: `#/batches/${e(batch)}`, data: ['.facts dd', '.lead']},
    {name: 'bulk', hash: '#/bulk', data: [row]},
    {name: 'search', hash: `#/search?q=${e(mixed)}`, data: [row]},
    {name: 'tail', hash: '#/tail', data: ['.tail tbody tr'], comesLater: true},
    {name: 'overview', hash: '#/', data: [row, '.health h2', '.figures dd', 'svg.graph .line'], comesLater: true},
    ...(write ? [{name: 'add', hash: '#/add', data: ['form label', 'form button']}] : []),
  ];
}
