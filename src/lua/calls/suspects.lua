-- later_v1_suspects R -> [now_ms, [id, queue, due_ms, crashes, due suspects of its queue]...]
--
-- The suspects that wait: of each queue the first one that is due, which stands before the others.
-- A worker that has kept one waiting for ten seconds claims nothing for a while, to become idle
-- (sched/sched_solo.c). The longest due one comes first; at most 100 queues. A suspect that a gate
-- has just let in is not among them. no-writes. Cost: O(queues with flags).

local clock, jobs = use('core/clock', 'core/jobs')
local SUSPECTS = 100

-- -> the row of a queue; nil: no suspect of it is due, or its key is foreign
local function suspect_row(R, queue, now_ms)
  local key = R .. ':solo:' .. queue
  local first = redis.pcall('ZRANGE', key, 0, 0, 'WITHSCORES')
  local due_ms = first[2] and to_due(first[2])
  if not due_ms or due_ms > now_ms then
    return nil
  end
  return {first[1], queue, due_ms, jobs.tries(redis.call('HGET', R .. ':tries', first[1])).crashes,
          redis.call('ZCOUNT', key, '-inf', int(now_ms))}
end

register('later_v1_suspects', {'no-writes'}, function(R)
  local now_ms = clock.ms(clock.now_us())
  need_kinds(R, 'prio', 'hash', 'tries', 'hash')
  local rows, flags = {}, redis.call('HGETALL', R .. ':prio')
  for i = 1, #flags, 2 do
    if string.find(flags[i + 1], 's', 1, true) then
      rows[#rows + 1] = suspect_row(R, flags[i], now_ms)
    end
  end
  table.sort(rows, function(a, b) return a[3] < b[3] or a[3] == b[3] and a[2] < b[2] end)
  return {now_ms, unpack(rows, 1, math.min(#rows, SUSPECTS))}
end)
