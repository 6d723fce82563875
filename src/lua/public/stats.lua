-- later_stats R [QUEUE] -> [now_ms, workers, running, jobs, more, queues, notes, states]
--
-- queues: a flat array of 10 values a queue: name, waiting, raw, due_ms of the first ('' none),
-- paused ('' or "<until> <since> <who> <reason>"), dead, done kept, and since the namespace began:
-- done, dead, cancelled. At most 500 queues, sorted; more: how many were left out.
-- notes: a flat array of kind:name, last seen ms (for example stray keys and unserved queues).
-- states: a flat array of 2 values a queue, in the order of queues: running ('' while more than
-- 1,000 jobs run in the namespace, or their records have more than 4 MiB), and how many of the
-- waiting ones are parked.
-- Cost: linear in queues, and the records of up to 1,000 running jobs are read. no-writes. A set of
-- a queue that has a foreign type counts as empty, so that it does not hide all other queues.

local rooms, clock, queue_rows = use('claim/rooms', 'core/clock', 'core/queue_rows')

register('later_stats', {'no-writes'}, function(R, args)
  local now_ms = clock.ms(clock.now_us())
  local names = args[1] and {check_queue(args[1])} or redis.call('SMEMBERS', R .. ':names')
  table.sort(names)
  local more = math.max(#names - 500, 0)
  local queues, states = queue_rows.of(R, {unpack(names, 1, #names - more)},
                                       rooms.running_by_queue(R))
  return {now_ms, redis.call('HLEN', R .. ':workers'), redis.call('ZCARD', R .. ':running'),
          redis.call('HLEN', R .. ':jobs'), more, queues, redis.call('HGETALL', R .. ':notes'),
          states}
end)
