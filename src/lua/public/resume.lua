-- later_resume R QUEUE [at T] -> 'resumed' | 'not paused' | 'resuming'
--
-- Let the queue run again, at once or at T (as for `at`).
-- Errors: ELATER_ARGS QUEUE TIME. Cost: O(1).

local clock, instant, commit = use('core/clock', 'core/instant', 'txn/commit')

register('later_resume', {'allow-oom'}, function(R, args)
  local queue = check_queue(args[1])
  if #args ~= 1 and not (#args == 3 and string.lower(args[2]) == 'at') then
    fail('ELATER_ARGS', 'give QUEUE [at T]')
  end
  local was = db('HGET', R .. ':paused', queue)
  if not was then
    return 'not paused'
  end
  if args[3] then
    local at = instant.time(args[3], clock.ms(clock.now_us()), 'at')
    db('HSET', R .. ':paused', queue, (string.gsub(was, '^%d+', int(at), 1)))
    commit.wake(R, queue)
    return 'resuming'
  end
  db('HDEL', R .. ':paused', queue)
  commit.wake(R, queue)
  return 'resumed'
end)
