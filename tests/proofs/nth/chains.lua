-- Scenarios: what ends a job that another one follows, and what kills a job that tells of it.

local function added(...)
  local options = {'mail', ...}
  return function(m, reply, why)
    if not why then
      m.fate.new = 'run'
      nth.note_options(m, 'new', options)
      m.tag[reply[1]] = type(reply[1]) == 'string' and 'new' or nil
    end
  end
end

nth.words('chains', 'later_add mail then sms then uniq on_dead keyed new|',
          added('then', 'sms', 'then', 'uniq', 'on_dead', 'keyed'), false, true)
nth.words('chains', 'later_add mail then sms BIG', added('then', 'sms'), false, true)
nth.words('chains', 'later_add_many mail then sms on_dead keyed new|', added('then', 'sms', 'on_dead', 'keyed'), false, true)
nth.words('chains', 'later_v1_import mail 2 then sms,uniq on_dead keyed new|',
          added('then', 'sms', 'then', 'uniq', 'on_dead', 'keyed'))

-- ---- a job ends well

nth.sync_scenario('chain: in groups', 'chains', {short = {{'mail', 'plain', 'three', 'two'}}, queues = {}})
nth.sync_scenario('chain: in groups, and claims', 'chains', {short = {{'mail', 'plain', 'three', 'two'}}})
nth.sync_scenario('chain: in groups, with a gate', 'chains', {short = {{'gate', 'lock'}, {'mail', 'plain'}}, queues = {}})
nth.sync_scenario('chain: in groups, with a unique key', 'chains', {short = {{'uniq', 'uniq'}}, queues = {}})
nth.sync_scenario('chain: in groups, and one is cancelled', 'chains', {short = {{'mail', 'stop', 'two', 'plain'}}, queues = {}})
nth.sync_scenario('chain: in the long form', 'chains', {results = {{'three', 'done'}, {'plain', 'done'}}, queues = {}})
nth.sync_scenario('chain: a result', 'chains', {results = {{'res', 'result', 0, 'res|result'}}, queues = {}})
nth.sync_scenario('chain: a result for nobody', 'chains', {results = {{'plain', 'result', 0, 'result'}}, queues = {}})
nth.sync_scenario('chain: a large result', 'chains', {results = {{'res', 'result', 0, 'BIG'}}})
nth.sync_scenario('chain: a kept job', 'chains', {results = {{'two', 'done', 3600000}}, queues = {}})
nth.sync_scenario('chain: a large payload moves', 'chains', {results = {{'large', 'done'}}, queues = {}})
nth.sync_scenario('chain: a large payload is copied', 'chains', {results = {{'large', 'done', 3600000}}, queues = {}})
nth.sync_scenario('chain: a result instead of a large payload', 'chains', {
  results = {{'large', 'result', 0, 'large|result'}, {'large2', 'result', 3600000, 'large2|result'}}, queues = {}})
nth.sync_scenario('chain: all of them, and claims', 'chains', {
  results = {{'three', 'done'}, {'res', 'result', 0, 'res|result'}, {'large', 'done'}, {'large2', 'done', 3600000},
             {'lock', 'done'}, {'fails', 'dead', 100}, {'fails2', 'dead', 100}, {'stop', 'done'}},
  short = {{'mail', 'plain', 'two'}, {'uniq', 'uniq'}}})

nth.sync_scenario('chain: once more', 'chains', {is_second = true, queues = {},
  results = {{'three', 'done'}, {'res', 'result', 0, 'res|result'}, {'large2', 'done', 3600000}, {'fails2', 'dead', 100}},
  short = {{'mail', 'plain', 'two'}, {'uniq', 'uniq'}}})

-- ---- children

nth.sync_scenario('children: two', 'chains', {
  results = {{'plain', 'done', 0, '', {{'keyed'}, {'sms', 'in', '5m'}}}}, queues = {}})
nth.sync_scenario('children: with all options', 'chains', {results = {{'plain', 'done', 0, '', {
  {'keyed', 'priority', '1', 'key', 'k', 'attempts', '3', 'keep', '1h', 'token', 't', is_big = true},
  {'uniq', 'unique', 'fresh', 'lock', 'window'}}}}, queues = {}})
nth.sync_scenario('children: with a next job and a result', 'chains', {results = {
  {'res', 'result', 0, 'res|result', {{'uniq'}}}, {'large', 'done', 0, '', {{'uniq'}, {'keyed', is_big = true}}}}})
nth.sync_scenario('children: of a kept job', 'chains', {results = {{'two', 'done', 3600000, '', {{'uniq'}}}}, queues = {}})
nth.sync_scenario('children: one is refused', 'chains', {
  results = {{'plain', 'done', 0, '', {{'keyed'}, {'uniq', 'batch', 'nosuch'}}}, {'three', 'done'}}, queues = {}})
nth.sync_scenario('children: once more', 'chains', {is_second = true, queues = {},
  results = {{'plain', 'done', 0, '', {{'keyed'}}}}})

-- ---- it does not

nth.sync_scenario('chain: a death', 'chains', {results = {{'fails', 'dead', 100}}, queues = {}})
nth.sync_scenario('chain: a death with a large payload', 'chains', {results = {{'fails2', 'dead', 100}}, queues = {}})
nth.sync_scenario('chain: deaths, and claims', 'chains', {results = {{'fails', 'dead', 100}, {'fails2', 'dead', 100}}})
nth.sync_scenario('chain: the next job dies at once', 'chains', {results = {{'large3', 'done'}}, prepare = function(m)
  nth.redis('HSET', 'queues', 'uniq', 'lock=user:{key}') -- none of the jobs has a key
  m.killer = 'uniq'
end})
nth.sync_scenario('chain: no end', 'chains', {results = {{'three', 'retry', 500}, {'fails', 'release', 0}, {'stop', 'release', 0},
                                                         {'large', 'retry', 0}, {'lock', 'retry', 0}}})
nth.sync_scenario('chain: expired jobs', 'chains', {queues = {'mail'}})
nth.sync_scenario('chain: expired jobs, without room', 'chains', {queues = {'mail'}, room = 1})
nth.scenario{name = 'chain: reap', stage = 'chains', call = function(m)
  return {'later_v1_reap', m.name.W1, m.name.V, '1', '5', '100'}
end, after = function(m)
  m.held[m.name.V] = nil
  m.victims = {m.name.V}
end}

local now = nth.now

nth.words('chains', 'later_cancel $wait', now('wait', 'gone'))
nth.words('chains', 'later_cancel $wait2', now('wait2', 'gone'))
nth.words('chains', 'later_cancel $door1', now('door1', 'gone'))
nth.words('chains', 'later_cancel $three', now('three', 'any'))
nth.words('chains', 'later_cancel $stop')
nth.words('chains', 'later_retry $dead', now('dead', 'run'))
nth.words('chains', 'later_v1_purge aside dead 100', now('dead', 'any'), true)
