-- Scenarios: what opens, fills, seals, empties and cancels a batch.

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

-- These jobs, and what they would have caused, may end in whichever way.
local function free(...)
  local tags = {...}
  return function(m)
    for _, tag in ipairs(tags) do
      m.fate[tag], m.fate[tag .. '+sms'], m.chain[tag] = 'any', 'any', nil
    end
  end
end

nth.words('batches', 'later_batch new then sms finally mail on_dead keyed keep 1h cb|')
nth.words('batches', 'later_batch open finally sms cb|')
nth.words('batches', 'later_batch b finally sms cb|')
nth.words('batches', 'later_batch_seal open')
nth.words('batches', 'later_batch_seal b')
nth.words('batches', 'later_batch_show b')
nth.words('batches', 'later_batch_jobs b')
nth.words('batches', 'later_add mail batch open new|', added(), false, true)
nth.words('batches', 'later_add mail batch open then sms token t BIG', added('then', 'sms'), false, true)
nth.words('batches', 'later_add mail batch b new|')
nth.words('batches', 'later_add_many mail batch open -- new|', added(), false, true)
nth.words('batches', 'later_v1_import mail 1 batch open new|', added())
nth.words('batches', 'later_cancel $wait', free('wait'))
nth.words('batches', 'later_cancel $door1', free('door1'))
nth.words('batches', 'later_cancel $one', free('one'))
nth.words('batches', 'later_retry $dead', function(m, _, why)
  m.fate.dead = why and m.fate.dead or 'run'
end)
nth.words('batches', 'later_v1_purge mail due 100', free('wait', 'late'), true)
nth.words('batches', 'later_v1_purge gate parked 100', free('door1'), true)
nth.words('batches', 'later_v1_purge aside dead 100', free('dead'), true)
nth.words('batches', 'later_batch_cancel b', free('one', 'two', 'fails', 'fails2', 'lock', 'stop', 'vback', 'vdies', 'door1',
                                                 'wait', 'late'), true)

nth.sync_scenario('batch: in groups', 'batches', {short = {{'mail', 'plain', 'one', 'two'}}, queues = {}})
nth.sync_scenario('batch: in groups, the last one', 'batches', {short = {{'mail', 'last', 'plain'}}, queues = {}})
nth.sync_scenario('batch: in groups, with a gate', 'batches', {short = {{'gate', 'lock'}, {'mail', 'plain'}}, queues = {}})
nth.sync_scenario('batch: in groups, and one is cancelled', 'batches', {short = {{'mail', 'stop', 'one'}}, queues = {}})
nth.sync_scenario('batch: the last one is kept', 'batches', {results = {{'last', 'done', 3600000}}, queues = {}})
nth.sync_scenario('batch: the last one dies', 'batches', {results = {{'last', 'dead', 100}}, queues = {}})
nth.sync_scenario('batch: deaths', 'batches', {results = {{'fails', 'dead', 100}, {'fails2', 'dead', 100}}})
nth.sync_scenario('batch: a child joins its sealed batch', 'batches', {
  results = {{'last', 'done', 0, '', {{'uniq', 'batch', 'last'}}},
             {'one', 'done', 0, '', {{'uniq'}, {'keyed', 'batch', 'open'}}}}})
nth.sync_scenario('batch: no end', 'batches', {results = {{'one', 'retry', 500}, {'two', 'release', 0}, {'stop', 'release', 0}}})
nth.sync_scenario('batch: all of them, and claims', 'batches', {
  results = {{'fails', 'dead', 100}, {'two', 'done'}, {'stop', 'retry', 0}}, short = {{'mail', 'one', 'last'}, {'gate', 'lock'}}})
nth.sync_scenario('batch: expired jobs', 'batches', {queues = {'mail'}})
nth.scenario{name = 'batch: reap', stage = 'batches', call = function(m)
  return {'later_v1_reap', m.name.W1, m.name.V, '1', '5', '100'}
end, after = function(m)
  m.held[m.name.V] = nil
  m.victims = {m.name.V}
end}
nth.scenario{name = 'batch: tidy', stage = 'batches', call = function(m)
  return {'later_v1_tidy', m.name.W1, '1', 'mail', '604800000'}
end, prepare = function()
  nth.must('later_batch', 'over', 'keep', '0s')
  nth.must('later_batch_seal', 'over')
  nth.pass(10)
end}
