-- later_retry R ID [T] -> [id, 'retried', due_ms]
--
-- Run a dead job again, at once or at T, which is as for `at`. Its attempts and crashes are counted
-- from 0 again. Its start number goes on rising, so that a late result of an earlier start is
-- refused.
-- Errors: ELATER_ARGS NOJOB STATE TIME TYPE UNIQUE (another job has its unique key). Cost:
-- O(log n).

local membership, clock, events, instant, jobs, uniques = use(
  'batch/membership', 'core/clock', 'core/events', 'core/instant', 'core/jobs', 'gates/uniques')

register('later_retry', {'allow-oom'}, function(R, args)
  local id = uniques.check_id(R, args[1])
  local state, job, tries = jobs.find(R, id)
  if state ~= 'dead' then
    fail('ELATER_STATE', 'job ' .. id .. ' is ' .. state .. ', only a dead one can be retried' ..
         (state == 'waiting' and ' (later_run_now makes it due at once)' or ''))
  end
  local now_ms = clock.ms(clock.now_us())
  local due = args[2] and instant.time(args[2], now_ms, 'time') or now_ms
  uniques.retake(R, id, job)
  tries.attempts, tries.crashes = 0, 0
  db('ZREM', R .. ':dead:' .. job.queue, id)
  db('HSET', R .. ':tries', id, jobs.tries_text(tries, due))
  jobs.enqueue(R, id, job, tries, due)
  membership.revive_member(R, job.b, id)
  if events.now then
    events.add('retried', id, job.queue, due, tries.starts)
  end
  return {id, 'retried', due}
end)
