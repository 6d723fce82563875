-- The rows of later_stats: what a queue has, told from its sets and its counters.
--
-- A set of a queue that has a foreign type counts as empty, so that it does not hide other queues.

local queue_rows = module 'core/queue_rows'
local pins = use 'broadcast/pins'

-- What a set counts for.
local WAITING, RAW, PARKED, DEAD, DONE = 1, 2, 3, 4, 5
local COUNTS = {WAITING, DEAD, DONE, RAW, PARKED}

-- The keys of a queue: first the sorted sets that are used most, which count for COUNTS, then those
-- of other waiting jobs, last the targets of pinned jobs.
local function keys_of(R, queue)
  local q = R .. ':q:' .. queue .. ':'
  return {q .. '5', R .. ':dead:' .. queue, R .. ':done:' .. queue, R .. ':due:' .. queue,
          R .. ':parked:' .. queue, q .. '0', q .. '1', q .. '2', q .. '3', q .. '4', q .. '6',
          q .. '7', q .. '8', q .. '9', R .. ':solo:' .. queue, R .. ':pins:' .. queue}
end

-- -> how many members a sorted set has; 0 for a foreign type
local function card(work, key)
  local n = redis.pcall('ZCARD', key)
  work.asked = work.asked + 1
  return type(n) == 'number' and n or 0
end

local function pinned(work, R, queue)
  local n, targets = pins.count(R, queue)
  work.asked = work.asked + targets
  return n
end

-- Read how many jobs a queue has. One command tells how many of its keys exist, and asking ends
-- with the last of these: most queues use few. -> sizes by what they count for; the keys of those
-- with jobs that any worker may run
local function sizes_of(work, R, queue)
  local keys, sizes, some = keys_of(R, queue), {0, 0, 0, 0, 0}, {}
  local left, i = redis.call('EXISTS', unpack(keys)), 1
  work.asked = work.asked + 2
  while left > 0 and i < #keys do
    local what, n = COUNTS[i] or WAITING, card(work, keys[i])
    if n > 0 then
      sizes[what], left = sizes[what] + n, left - 1
      some[#some + 1] = (what == WAITING or what == RAW) and keys[i] or nil
    end
    i = i + 1
  end
  sizes[WAITING] = sizes[WAITING] + sizes[PARKED] + (left > 0 and pinned(work, R, queue) or 0)
  return sizes, some
end

-- -> when the first job of these sets is due, ms; '' for none. Not R:heads: that is when a sync has
-- to look, and so it lacks suspects and keeps the time of a job that was cancelled or moved.
local function first_due(work, keys)
  local first = math.huge
  for i = 1, #keys do
    local row = redis.pcall('ZRANGE', keys[i], 0, 0, 'WITHSCORES')
    first = row[2] and math.min(first, to_due(row[2])) or first
  end
  work.asked = work.asked + #keys
  return first < math.huge and int(first) or ''
end

-- -> the values of R:paused and R:stats for these queues, false where there is none
local function fields_of(R, names)
  local fields = {}
  for i, queue in ipairs(names) do
    fields[3 * i - 2], fields[3 * i - 1], fields[3 * i] = 'done:' .. queue, 'dead:' .. queue,
                                                          'cancelled:' .. queue
  end
  if not names[1] then
    return {}, {}
  end
  return redis.call('HMGET', R .. ':paused', unpack(names)),
         redis.call('HMGET', R .. ':stats', unpack(fields))
end

-- running: queue -> how many of its jobs run; nil: not known. most: it stops behind the row with
-- the command of this number; nil: it does not.
-- -> queues and states as in the reply of later_stats, of at most 500 queues; how many they are
function queue_rows.of(R, names, running, most)
  local queues, states, at, work = {}, {}, 0, {asked = 0}
  local paused, counts = fields_of(R, names)
  for i, queue in ipairs(names) do
    local sizes, keys = sizes_of(work, R, queue)
    queues[at + 1], queues[at + 2], queues[at + 3] = queue, sizes[WAITING], sizes[RAW]
    queues[at + 4], queues[at + 5] = first_due(work, keys), paused[i] or ''
    queues[at + 6], queues[at + 7] = sizes[DEAD], sizes[DONE]
    for k = 1, 3 do
      queues[at + 7 + k] = counts[3 * i - 3 + k] or '0'
    end
    states[2 * i - 1] = running and (running[queue] or 0) or ''
    states[2 * i] = sizes[PARKED]
    at = at + 10
    if work.asked >= (most or math.huge) then
      return queues, states, i
    end
  end
  return queues, states, #names
end
