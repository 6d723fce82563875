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

local pins, rooms, clock = use('broadcast/pins', 'claim/rooms', 'core/clock')

-- -> how many members a sorted set has; 0 for a foreign type
local function card(key)
  local n = redis.pcall('ZCARD', key)
  return type(n) == 'number' and n or 0
end

-- -> when the first job of these sets is due, ms; '' for none. Not R:heads: that is when a step has
-- to look, and so it lacks suspects and keeps the time of a job that was cancelled or moved.
local function first_due(keys)
  local first = math.huge
  for _, key in ipairs(keys) do
    local row = redis.pcall('ZRANGE', key, 0, 0, 'WITHSCORES')
    first = row[2] and math.min(first, to_due(row[2])) or first
  end
  return first < math.huge and int(first) or ''
end

-- The sets of the queue whose jobs any worker may run.
local function own_sets(R, queue)
  local keys = {R .. ':solo:' .. queue}
  for p = 0, 9 do
    keys[#keys + 1] = R .. ':q:' .. queue .. ':' .. int(p)
  end
  return keys
end

register('later_stats', {'no-writes'}, function(R, args)
  local now_ms = clock.ms(clock.now_us())
  local names = args[1] and {check_queue(args[1])} or redis.call('SMEMBERS', R .. ':names')
  table.sort(names)
  local more = math.max(#names - 500, 0)
  local queues, states, running = {}, {}, rooms.running_by_queue(R)
  for i = 1, #names - more do
    local queue = names[i]
    local parked = card(R .. ':parked:' .. queue)
    local waiting, sets = parked + pins.count(R, queue), {R .. ':due:' .. queue}
    for _, key in ipairs(own_sets(R, queue)) do
      local n = card(key)
      waiting, sets[#sets + 1] = waiting + n, n > 0 and key or nil
    end
    local counts = redis.call('HMGET', R .. ':stats', 'done:' .. queue, 'dead:' .. queue,
                              'cancelled:' .. queue)
    for _, value in ipairs({
      queue, waiting, card(R .. ':due:' .. queue), first_due(sets),
      redis.call('HGET', R .. ':paused', queue) or '', card(R .. ':dead:' .. queue),
      card(R .. ':done:' .. queue), counts[1] or '0', counts[2] or '0', counts[3] or '0',
    }) do
      queues[#queues + 1] = value
    end
    states[#states + 1] = running and (running[queue] or 0) or ''
    states[#states + 1] = parked
  end
  return {now_ms, redis.call('HLEN', R .. ':workers'), redis.call('ZCARD', R .. ':running'),
          redis.call('HLEN', R .. ':jobs'), more, queues, redis.call('HGETALL', R .. ':notes'),
          states}
end)
