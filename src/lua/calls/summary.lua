-- later_v1_summary R -> [now_ms, workers, running, jobs, names, parked, paused, unserved,
--   oldest queue, oldest due_ms, queues, states]
--
-- What an overview tells first, at a cost that grows neither with jobs nor with queues.
-- jobs: records, of dead and kept jobs too; raw members have none. names: how many queues have a
-- name. parked: jobs, programs and callers that wait for a gate. paused: queues, of which some may
-- have a pause that is over. unserved: queues with due jobs that nobody serves. '' for a number
-- whose key has a foreign type.
-- oldest: the queue with the job that has been due for longest, and since when; '' for none.
-- queues and states: as in later_stats, of at most 10 queues with a job that has been due for 10 s,
-- those of the longest wait first. running is '' there (later_v1_running tells it).
-- R:heads tells which queues to look at, the first 30. It has neither raw members nor suspects nor
-- pinned jobs that no sync has seen, so queues that have only such jobs are missed. Numbers that
-- would need a look at every queue (dead, raw members) are left out: later_v1_queues has them.
-- no-writes. Cost: O(log n).

local clock, queue_rows = use('core/clock', 'core/queue_rows')
local HEADS, WORST, LATE_MS = 30, 10, 10000
local COMMANDS = 500        -- about so many a call

-- -> the size of a key; '' where it has a foreign type
local function size(command, key)
  local n = redis.pcall(command, key)
  return type(n) == 'number' and n or ''
end

-- -> the rows {due_ms, number} of queues that have a due job, those due first in front
local function due_rows(queues, now_ms)
  local rows = {}
  for i = 1, #queues / 10 do
    local due_ms = whole(queues[10 * i - 6])
    if due_ms and due_ms <= now_ms then
      rows[#rows + 1] = {due_ms, i}
    end
  end
  table.sort(rows, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
  return rows
end

-- -> those of the rows that have been due for LATE_MS, as in the reply
local function late_of(rows, queues, states, now_ms)
  local late, beside = {}, {}
  for k = 1, math.min(#rows, WORST) do
    local due_ms, i = rows[k][1], rows[k][2]
    if due_ms <= now_ms - LATE_MS then
      for v = 10 * i - 9, 10 * i do
        late[#late + 1] = queues[v]
      end
      beside[2 * k - 1], beside[2 * k] = states[2 * i - 1], states[2 * i]
    end
  end
  return late, beside
end

register('later_v1_summary', {'no-writes'}, function(R)
  local now_ms = clock.ms(clock.now_us())
  local heads = redis.pcall('ZRANGEBYSCORE', R .. ':heads', '-inf', int(now_ms), 'LIMIT', 0, HEADS)
  local queues, states = queue_rows.of(R, heads.err and {} or heads, nil, COMMANDS)
  local rows = due_rows(queues, now_ms)
  local first = rows[1]
  return {now_ms, size('HLEN', R .. ':workers'), size('ZCARD', R .. ':running'),
          size('HLEN', R .. ':jobs'), size('SCARD', R .. ':names'), size('HLEN', R .. ':parked'),
          size('HLEN', R .. ':paused'), size('HLEN', R .. ':unserved'),
          first and queues[10 * first[2] - 9] or '', first and int(first[1]) or '',
          late_of(rows, queues, states, now_ms)}
end)
