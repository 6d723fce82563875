-- The sets that hold the jobs of a queue in each state, and reading such a set page by page.
--
-- A page begins behind the score and member that the page before ended with, even if that member is
-- gone or moved. So a member that does not move is read exactly once, whatever is added,
-- removed or moved meanwhile.

local job_sets = module 'core/job_sets'
local pins = use 'broadcast/pins'
local WAITING = {'s', '0', '1', '2', '3', '4', '5', 'raw', '6', '7', '8', '9'}

-- -> {key, is_raw: its members are payloads, target: of pinned jobs}*, in the order in which they
-- are listed; nil for an unknown state. R:running also has the jobs of other queues.
function job_sets.sets_of(R, queue, state)
  if state == 'running' then
    return {{key = R .. ':running'}}
  elseif state == 'parked' or state == 'dead' or state == 'done' then
    return {{key = R .. ':' .. state .. ':' .. queue}}
  elseif state ~= 'due' then
    return nil
  end
  local sets = job_sets.head_sets(R, queue)
  for _, target in ipairs(pins.targets(R, queue)) do
    sets[#sets + 1] = {key = pins.key_of(R, queue, target), target = target}
  end
  return sets
end

-- The same for the waiting jobs of which R:heads tells.
function job_sets.head_sets(R, queue)
  local sets = {}
  for i, name in ipairs(WAITING) do
    local key = name == 's' and ':solo:' .. queue or name == 'raw' and ':due:' .. queue or
                ':q:' .. queue .. ':' .. name
    sets[i] = {key = R .. key, is_raw = name == 'raw'}
  end
  return sets
end

-- How a cursor names a set: by its number, or by its target. Targets come and go between pages.
function job_sets.set_name(sets, s)
  return sets[s].target or int(s)
end

-- -> the number of the set that a cursor names, nil if there is none of this number; whether it is
-- that set, or the one behind a target that has gone
function job_sets.set_number(sets, name)
  local n = whole(name)
  if n then
    return n >= 1 and sets[n] and not sets[n].target and n or nil, true
  elseif not string.find(name, '^[wh]') then
    return nil
  end
  for s, set in ipairs(sets) do
    if set.target and not job_sets.is_before(set.target, name) then
      return s, set.target == name
    end
  end
  return #sets + 1, false
end

-- -> how many members these sets have together.
function job_sets.count_in(sets)
  local n = 0
  for _, set in ipairs(sets) do
    n = n + db('ZCARD', set.key)
  end
  return n
end

-- Does a come before b, byte by byte as Redis sorts members? The result of `<` depends on the
-- server's locale.
function job_sets.is_before(a, b)
  local lo, hi, sub = 0, math.min(#a, #b), string.sub
  if sub(a, 1, hi) == sub(b, 1, hi) then
    return #a < #b
  end
  -- The first lo bytes are the same, the first hi are not.
  while hi - lo > 1 do
    local mid = math.floor((lo + hi) / 2)
    if sub(a, lo + 1, mid) == sub(b, lo + 1, mid) then
      lo = mid
    else
      hi = mid
    end
  end
  return string.byte(a, hi) < string.byte(b, hi)
end

-- -> the rank of the first member behind this score and member, which may be gone; score '': 0.
-- Cost: O(log n), squared if the member is gone.
function job_sets.rank_behind(key, score, member)
  if score == '' then
    return 0
  end
  local rank = redis.call('ZRANK', key, member)
  if rank and redis.call('ZSCORE', key, member) == score then
    return rank + 1
  end
  local lo, hi = redis.call('ZCOUNT', key, '-inf', '(' .. score),
                 redis.call('ZCOUNT', key, '-inf', score)
  while lo < hi do
    local mid = math.floor((lo + hi) / 2)
    if job_sets.is_before(member, redis.call('ZRANGE', key, mid, mid)[1]) then
      hi = mid
    else
      lo = mid + 1
    end
  end
  return lo
end

-- -> {member, score, ...}: up to `count` members, which may be large, from a rank on. It stops
-- after `bytes` of them: it reads twice as many each time, but no more than would fit if each were
-- as large as the largest so far. A larger one may still exceed `bytes`. last: only scores up to
-- it, as text; nil: all.
function job_sets.read_set(key, rank, count, bytes, last)
  local rows, step, largest = {}, 1, 1
  while count > 0 and bytes > 0 do
    local n = math.min(count, step, math.max(math.floor(bytes / largest), 1))
    local some
    if last then
      some = redis.call('ZRANGEBYSCORE', key, '-inf', last, 'WITHSCORES', 'LIMIT', rank, n)
    else
      some = redis.call('ZRANGE', key, rank, rank + n - 1, 'WITHSCORES')
    end
    for i = 1, #some, 2 do
      rows[#rows + 1], rows[#rows + 2] = some[i], some[i + 1]
      largest, bytes = math.max(largest, #some[i]), bytes - #some[i]
    end
    if #some < 2 * n then
      return rows
    end
    rank, count, step = rank + n, count - n, 2 * step
  end
  return rows
end

-- -> when the first raw member will be due that is not due yet, ms, or a time before which none is
-- due. rank: how many members stand before it. known: its head, which holds if no
-- member is due earlier. Members may be large and come with their scores, so they are read only
-- until ctx.peek bytes are used up; then counting finds the time. (A ZCOUNT that finds members
-- makes Redis compare the whole first one, so it is asked for growing spans up to the first that
-- has some.)
function job_sets.next_raw(key, rank, ctx, known)
  local now_ms = ctx.now_ms
  local function has(until_text)
    return redis.call('ZCOUNT', key, '(' .. int(now_ms), until_text) > 0
  end
  if known and known > now_ms and not has('(' .. int(known)) then
    return known
  elseif ctx.peek > 0 then
    local row = redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')
    ctx.peek = ctx.peek - #(row[1] or '')
    return row[2] and to_due(row[2]) or math.huge
  end
  local low, step = now_ms, 1000
  while low < LATEST and not has(int(math.min(now_ms + step, LATEST))) do
    low, step = math.min(now_ms + step, LATEST), 8 * step
  end
  return low + 1
end

-- -> when a raw member is due, as its claim will see it; nil: it will be buried.
function job_sets.raw_due(score, now_ms)
  local n, due = tonumber(score), to_due(score)
  if n < SECONDS_FROM then
    return n > -math.huge and now_ms or nil
  end
  return n > SECONDS_TO and n <= LATEST and due or nil
end

-- A payload in R:big counts as this many bytes: its size is not known, and freeing it takes time.
local LARGE_BYTES = 262144

-- -> how many bytes the record of a job counts, nil or false for none
function job_sets.bytes_of(record)
  return record and string.byte(record) == 43 and LARGE_BYTES or #(record or '')
end

-- Read the records of ids until they have `bytes` bytes. -> records, '' where there is none; at
-- least one, perhaps fewer than ids; how many bytes are left, 0 or less: none.
function job_sets.read_records(R, ids, bytes)
  local records = {}
  for from = 1, #ids, 25 do
    if bytes <= 0 then
      return records, bytes
    end
    local to = math.min(from + 24, #ids)
    for _, record in ipairs(redis.call('HMGET', R .. ':jobs', unpack(ids, from, to))) do
      records[#records + 1] = record or ''
      bytes = bytes - job_sets.bytes_of(record)
    end
  end
  return records, bytes
end
