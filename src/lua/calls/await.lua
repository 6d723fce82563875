-- later_v1_await R ID -> [state, code, when_ms, start, text, output]
--
-- For a job that has ended, the reply of later_result. For a job that is waiting, parked or running
-- (whether it failed before or not) all but the state is empty, and its end will be published once
-- on R:ended:<id> (the outcome as jobs.outcome writes it). Subscribe first, then call this. The
-- request is forgotten after an hour: repeat it sooner.

local clock, jobs, uniques = use('core/clock', 'core/jobs', 'gates/uniques')

register('later_v1_await', {'allow-oom'}, function(R, args)
  local id = uniques.check_id(R, args[1])
  local state = jobs.find(R, id)
  if state == 'waiting' or state == 'parked' or state == 'running' then
    if db('HLEN', R .. ':await') > 10000 then
      fail('ELATER_FULL', 'too many jobs are waited for')
    end
    db('HSET', R .. ':await', id, int(clock.ms(clock.now_us()) + 3600000))
    return {state, '', '', '', '', ''}
  end
  local outcome = db('HGET', R .. (state == 'done' and ':results' or ':errors'), id) or ''
  local kind, code, when, start, text, output = jobs.read_outcome(outcome)
  return {kind or state, code or '0', when or '0', start or '0', text or '', output or ''}
end)
