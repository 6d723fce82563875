-- Scenarios: a fair queue, as it is and on its way.

-- These jobs are there if the call succeeded: fate `any`, where it may end them.
local function become(fate, ...)
  local tags = {...}
  return function(m, _, why)
    for _, tag in ipairs(tags) do
      if fate == 'any' or not why then
        m.fate[tag] = fate
      end
    end
  end
end

nth.words('fair', 'later_add mail key acme new|', become('run', 'new'), false, true)
nth.words('fair', 'later_add_many mail key b in 5m -- n1| n2|', become('run', 'n1', 'n2'), false, true)
nth.words('fair', 'later_v1_import mail 2 key b new|', become('run', 'new'), false, true)
nth.words('fair', 'later_cancel $f1', become('any', 'f1'))
nth.words('fair', 'later_reschedule $f1 in 5m')
nth.words('fair', 'later_explain $f1')
nth.words('fair', 'later_v1_tenants mail 20')
nth.words('fair', 'later_v1_metrics 0')
nth.words('fair', 'later_v1_purge mail due 100',
          become('any', 'f1', 'f2', 'f3', 'f4', 'first', 'locked', 'none', 'soon', 'raw'), true)
nth.words('fair', 'later_v1_declare $W1 0 1 mail \'\'')
nth.words('fair', "later_v1_repair jobs '' 100", nil, true)
nth.words('fair', 'later_v1_reap $W1 $V 1 5 100', function(m) m.held[m.name.V] = nil end, true)
local STAGES = {'fair', 'turns'}
for i = 1, 2 do
  local stage = STAGES[i]
  local name = stage == 'turns' and ', over rows' or ''
  nth.sync_scenario('sync: a fair queue' .. name, stage, {queues = {'mail'}, room = 3})
  nth.sync_scenario('sync: a fair queue, all that is due' .. name, stage, {queues = {'mail'}, room = 20})
  nth.sync_scenario('sync: results of a fair queue' .. name, stage, {queues = {'mail'},
    results = {{'r1', 'retry', 60000}, {'r2', 'done', 60000}}})
  nth.sync_scenario('sync: ends of a fair queue' .. name, stage, {queues = {'mail'}, room = 2,
    short = {{'mail', 'r1', 'r2'}}})
end
nth.sync_scenario('sync: a queue becomes fair', 'unfair', {queues = {'mail'}, room = 3})
nth.sync_scenario('sync: a queue is fair no more', 'fair_no_more', {queues = {'mail'}, room = 3})
