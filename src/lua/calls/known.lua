-- later_v1_known R QUEUE -> [known, served]
--
-- known: 1 if the queue has a name, jobs or a live worker that serves it, else 0. served: 1 if a
-- live worker serves it.
-- no-writes. Errors: ELATER_ARGS QUEUE TYPE. Cost: O(workers).

local tidy = use 'calls/tidy'

register('later_v1_known', {'no-writes'}, function(R, args)
  local queue = check_queue(args[1])
  local is_served = tidy.served(R)(queue)
  local is_known = is_served or db('SISMEMBER', R .. ':names', queue) == 1 or
                   tidy.has_jobs(R, queue)
  return {is_known and 1 or 0, is_served and 1 or 0}
end)
