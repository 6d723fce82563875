-- later_result R ID -> [state, code, when_ms, start, text, output]
--
-- State and outcome of a job, for programs. state: waiting parked running failed dead done
-- cancelled. failed: it waits for its next attempt. The rest is empty for a running job, and for a
-- waiting or parked one that never failed.
-- code: exit status of the handler, 128 + n for signal n. output: `result` lines or the last
-- output.
-- Errors: ELATER_ARGS NOJOB. no-writes. Cost: O(log n).

local jobs, uniques = use('core/jobs', 'gates/uniques')

register('later_result', {'no-writes'}, function(R, args)
  local id = uniques.check_id(R, args[1])
  local state = jobs.find(R, id)
  local outcome = redis.call('HGET', R .. (state == 'done' and ':results' or ':errors'), id)
  if not outcome or state == 'running' then
    return {state, '', '', '', '', ''}
  end
  local kind, code, when, start, text, output = jobs.read_outcome(outcome)
  if kind == nil then
    return {state, '', '', '', '', ''}
  end
  -- A dead job that was retried keeps the outcome `dead` beside it, and is not dead any more.
  return {(state == 'waiting' or state == 'parked') and 'failed' or kind, code, when, start, text,
          output}
end)
