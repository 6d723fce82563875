-- What is due of a queue, in a sync over rows: the jobs of each priority that its flags tell of,
-- the first priority first (claim/waiting.lua has the order).
--
-- sets: of a queue, a list of {key, digit (nil for priority 5, which has no flag), is_kept: a
-- retried job waits in it from now on}; cut: key -> how many of its first members were handled in
-- this sync.

local row_due = module 'rows/due'
local waiting = use 'claim/waiting'

-- When the first jobs of a set are due. Redis takes half a microsecond to print a score, and jobs
-- that were added together are due together: while there are few runs of one due time, it is asked
-- how long each run is.
local RUNS = 8

-- The due times of ids[1..n], which are sorted by them, into dues, from number `at` on. first,
-- last: the scores of the first and of the last; runs: how many may be asked for (none where the
-- call has cut some of the set: they would be counted). -> how many are due by until_ms, when the
-- next one is
local function read_dues(key, ids, n, first, last, dues, at, until_ms, runs)
  local i, score = 1, first
  for _ = 1, runs do
    local due = to_due(score)
    if due > until_ms then
      return i - 1, due
    end
    local to = score == last and n or
               math.min(n, i - 1 + redis.call('ZCOUNT', key, score, score))
    for k = at + i, at + to do
      dues[k] = due
    end
    i = to + 1
    if i > n then
      return n, nil
    end
    score = redis.call('ZSCORE', key, ids[i])
  end
  for k, rest in ipairs(redis.call('ZMSCORE', key, unpack(ids, i, n))) do
    local due = to_due(rest)
    if due > until_ms then
      return i + k - 2, due
    end
    dues[at + i + k - 1] = due
  end
  return n, nil
end

-- The first ids of a set of which the call has changed nothing but that it has cut its first
-- members.
local function take_first(key, cut, room, b, until_ms)
  local ids = redis.call('ZRANGE', key, cut, cut + room)
  local n = math.min(#ids, room)
  if n == 0 then
    return ids[1] and to_due(redis.call('ZSCORE', key, ids[1])) or math.huge, #ids
  end
  local scores = redis.call('ZMSCORE', key, ids[1], ids[n], ids[#ids])
  local taken, head = read_dues(key, ids, n, scores[1], scores[2], b.dues, b.n, until_ms,
                                cut == 0 and RUNS or 0)
  if b.n == 0 then
    b.ids = ids
  else
    for i = 1, taken do
      b.ids[b.n + i] = ids[i]
    end
  end
  waiting.add_rows(b, key, taken)
  return head or #ids > n and to_due(scores[3]) or math.huge, #ids
end

-- -> the sets of a queue
function row_due.due_sets(s, queue)
  local begin, flags, sets = s.R .. ':q:' .. queue .. ':', s.flags[queue], {}
  if not flags then
    return {{key = begin .. '5'}}
  end
  local late = s.late and s.late[queue]
  for p = 0, 9 do
    local digit = int(p)
    if p == 5 then
      sets[#sets + 1] = {key = begin .. '5'}
    elseif string.find(flags, digit, 1, true) then
      sets[#sets + 1] = {key = begin .. digit, digit = digit,
                         is_kept = late and late.digits[digit]}
    end
  end
  return sets
end

-- -> a chunk of up to `room` rows that are due; the head behind them; the flags that are still true
function row_due.gather_due(sets, cut, queue, room, until_ms)
  local b, head, kept = waiting.new_chunk(queue), math.huge, ''
  for i = 1, #sets do
    local set = sets[i]
    local key = set.key
    local its_head, rows = take_first(key, cut[key] or 0, room - b.n, b, until_ms)
    head = math.min(head, its_head)
    if set.digit and (rows > 0 or set.is_kept) then
      kept = kept .. set.digit
    end
  end
  return b, head, kept
end

-- The first n rows of the chunk leave their sets: append {key, ids, dues, from, to} to taken.
function row_due.leave_sets(cut, b, n, taken)
  local from, sets = 1, b.sets
  for k = 1, #sets, 2 do
    local key, to = sets[k], math.min(sets[k + 1], n)
    if from <= to then
      taken[#taken + 1] = {key = key, ids = b.ids, dues = b.dues, from = from, to = to}
      cut[key] = (cut[key] or 0) + to - from + 1
    end
    from = to + 1
  end
end
