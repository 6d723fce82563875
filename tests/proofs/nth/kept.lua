-- Scenarios: jobs that have kept a checkpoint or steps, and calls that keep more, tell of them or drop them.

nth.words('kept', 'later_v1_keep $W1 $done 1 a')
nth.words('kept', 'later_v1_keep $W1 $done 1 new')
nth.words('kept', 'later_v1_keep $W1 $done 1 a other')
nth.words('kept', 'later_v1_keep $W1 $done 1 new output')
nth.words('kept', 'later_v1_keep $W1 $plain 1 new output')
nth.words('kept', 'later_v1_keep $W1 $plain 2 new output')
nth.words('kept', 'later_v1_keep $W1 $told 1 new output')
nth.words('kept', 'later_show $done')
nth.words('kept', "later_v1_export mail due 1 '' '' 100")
nth.words('kept', "later_v1_audit resume '' 100")
nth.words('kept', 'later_cancel $wait', nth.now('wait', 'gone'))
nth.words('kept', 'later_cancel uniq@u', nth.now('uwait', 'gone'))
nth.words('kept', 'later_retry $dead1', nth.now('dead1', 'run'))
nth.words('kept', 'later_retry $dead1 from_start', nth.now('dead1', 'run'))
nth.words('kept', 'later_retry $dead2 +5m from_start', nth.now('dead2', 'run'))
nth.words('kept', 'later_add uniq unique u unique_mode replace new|', function(m, _, why)
  if not why then
    m.fate.uwait = nil
    m.fate.new, m.tag[m.name.uwait] = 'run', 'new'
  end
end)
nth.words('kept', 'later_v1_purge mail dead 100', function(m)
  m.fate.dead1, m.fate.dead2 = 'any', 'any'
end, true)
nth.words('kept', 'later_v1_purge mail due 100', function(m)
  m.fate.wait, m.fate.n1, m.fate.n2 = 'any', 'any', 'any'
end, true)
nth.words('kept', 'later_v1_reap $W1 $V 1 5 100', function(m)
  m.held[m.name.V] = nil
end, true)
nth.words('kept', 'later_v1_import mail 1 checkpoint c new|', function(m, _, why)
  m.fate.new = not why and 'run' or nil
end)

local function import(name, fate)
  nth.scenario{name = name, stage = 'kept', is_atomic = true, call = function()
    local args = {'later_v1_import', 'mail', fate == 'dead' and '3' or '2', 'checkpoint', 'c', 'steps', 'a 1\nob 0\n'}
    if fate == 'dead' then
      args[#args + 1], args[#args + 2] = 'dead', 'dead 65 ' .. string.format('%.0f', nth.now_ms()) .. ' 3 why\nout'
    end
    args[#args + 1] = 'new|'
    return args
  end, after = function(m, _, why)
    m.fate.new = not why and fate or nil
  end}
end
import('import: a job that has kept steps', 'run')
import('import: a dead job that has kept steps', 'dead')

local RESULTS = {{'told', 'checkpoint', 0, 'c2'}, {'plain', 'checkpoint', 0, 'c'}, {'keep', 'done', 3600000},
                 {'retry', 'retry', 500}, {'dies', 'dead', 100}, {'release', 'release', 0}, {'stop', 'retry', 500}}

nth.sync_scenario('sync: a checkpoint', 'kept', {results = {{'plain', 'checkpoint', 0, 'c'}}, queues = {}})
nth.sync_scenario('sync: no checkpoint any more', 'kept', {results = {{'told', 'checkpoint', 0, ''}}, queues = {}})
nth.sync_scenario('sync: a checkpoint beside progress', 'kept',
                  {results = {{'told', 'progress'}, {'done', 'checkpoint', 0, 'c'}}})
nth.sync_scenario('sync: results of jobs that have kept steps', 'kept', {results = RESULTS, queues = {}})
nth.sync_scenario('sync: the same, and claims', 'kept', {results = RESULTS})
nth.sync_scenario('sync: the ends of jobs that have kept steps', 'kept', {short = {{'mail', 'plain', 'done', 'retry', 'told'}},
  queues = {}})
nth.sync_scenario('sync: the same, and claims of such', 'kept', {short = {{'mail', 'plain', 'done'}}, ahead = 0})
nth.sync_scenario('sync: the same twice', 'kept', {short = {{'mail', 'plain', 'done'}}, queues = {}, is_second = true})
nth.sync_scenario('sync: the dead go, and what they have kept', 'kept', {results = {{'dies', 'dead', 1}}, queues = {},
  after = function(m)
  for _, tag in ipairs({'dead1', 'dead2', 'dies'}) do
    m.fate[tag] = 'any'
  end
end})
