-- Plain jobs: priority 5, a small record without options, never started before, no gates. Most jobs are, and a step
-- claims and ends them by the hundred: so they pass here as lists, without a table for each, at a fifth of the cost of
-- claim.lua and of v1_step.lua's apply, which do all others. What is written is the same. A worker that says so is
-- also told of them in short (v1_step.lua), and tells of their ends so.

-- When these are due, which are sorted by it, up to the first that is due after until_ms; scores: of the first and the
-- last. Redis takes half a microsecond to print a score, and jobs that were added together are due together: while
-- there are few runs of one due time, it is asked how long each is.
local RUNS = 8

local function dues_of(key, ids, scores, until_ms)
  local dues, at, n, score = {}, 1, #ids, scores[1]
  for _ = 1, RUNS do
    local due = L.due(score)
    if due > until_ms then
      dues[at] = due
      return dues
    end
    local last = score == scores[2] and n or math.min(n, at - 1 + redis.call('ZCOUNT', key, score, score))
    for i = at, last do
      dues[i] = due
    end
    at = last + 1
    if at > n then
      return dues
    end
    score = redis.call('ZSCORE', key, ids[at])
  end
  for i, rest in ipairs(redis.call('ZMSCORE', key, unpack(ids, at))) do
    dues[at + i - 1] = L.due(rest)
  end
  return dues
end

-- The ids of the first jobs that are due by ctx.until_ms, up to `room`, and when they are. -> ids, dues, the due ms of
-- the first that stays (math.huge: none)
local function due_ids(key, room, ctx)
  local ids = redis.call('ZRANGE', key, 0, room)
  local n, head = #ids, math.huge
  if n == 0 then
    return ids, {}, head
  end
  local scores = redis.call('ZMSCORE', key, ids[1], ids[math.min(n, room)], ids[n])
  if n > room then
    head, ids[n], n = L.due(scores[3]), nil, room
  end
  local dues = dues_of(key, ids, scores, ctx.until_ms)
  for i = n, 1, -1 do
    if dues[i] and dues[i] <= ctx.until_ms then
      break
    end
    head, ids[i] = dues[i] or head, nil
  end
  return ids, dues, head
end

-- How many of the first ones are plain, and fit into what the call may read.
local function count_plain(queue, records, tries, ctx)
  local prefix, n = '-' .. queue .. '\n', 0
  local most, find = #prefix + L.BIG, string.find
  for i, record in ipairs(records) do
    if tries[i] or not record or #record > most or find(record, prefix, 1, true) ~= 1 or ctx.bytes <= 0 then
      break
    end
    n = i
    ctx.bytes = ctx.bytes - #record
  end
  return n
end

-- Redis keeps a small hash or sorted set as a list, which is read from its start for each id (up to 512 and 128
-- entries, as it is delivered): for a hundred jobs that is most of what a call costs. One long value makes an index
-- of it, which stays as long as the key does: so one is put in front where such a key comes to hold many.
local MANY, LIST_FIELDS, LIST_MEMBERS = 32, 512, 128
local LONG = '-----------------------------------------------------------------'

-- Many with the n that come, and it may be a list still?
local function becomes_many(has, n, most)
  return has + n >= MANY and has <= most
end

-- Start the first n of them, which are the first n of the queue.
local function start(R, queue, key, ids, dues, records, n, ctx)
  local number, epoch = L.tick(R, ctx.now_us, 2 * n), ctx.epoch_text
  local running, tries, due, text = {}, {}, nil, nil
  local out = ctx.short and {queue, number + 1} or ctx.claims
  local at, step = #out, ctx.short and 3 or 1
  for i = 1, n do
    if dues[i] ~= due then
      due, text = dues[i], '1 1 0 ' .. L.int(dues[i])
    end
    running[2 * i - 1], running[2 * i] = epoch, ids[i]
    tries[2 * i - 1], tries[2 * i] = ids[i], text
    if ctx.short then
      out[at + 1], out[at + 2], out[at + 3] = ids[i], due, records[i]
    else
      out[at + 1] = {ids[i], queue, 1, 1, 0, number + 2 * i - 1, due, records[i], 0}
    end
    at = at + step
  end
  if ctx.short then
    ctx.short[#ctx.short + 1] = out
  end
  ctx.claimed = ctx.claimed + n
  for i = 1, L.events and n or 0 do
    L.event('started', ids[i], queue, dues[i], 1, 1)
  end
  if becomes_many(redis.call('HLEN', R .. ':tries'), n, LIST_FIELDS) then
    redis.call('HSET', R .. ':tries', LONG, LONG, unpack(tries))
    redis.call('HDEL', R .. ':tries', LONG)
  else
    redis.call('HSET', R .. ':tries', unpack(tries))
  end
  if becomes_many(redis.call('ZCARD', R .. ':running'), n, LIST_MEMBERS) then
    redis.call('ZADD', R .. ':running', 0, LONG, unpack(running))
    redis.call('ZREM', R .. ':running', LONG)
  else
    redis.call('ZADD', R .. ':running', unpack(running))
  end
  redis.call('ZREMRANGEBYRANK', key, 0, n - 1)
end

-- Claim the first jobs of a queue, up to `room`, as long as they are plain. -> the head that is left; nil where
-- claim.lua has to go on, because there are others
function L.claim_plain(R, queue, room, ctx)
  if room == 0 or ctx.gates[queue] or string.find(ctx.marks[queue], '%d') or
     redis.call('EXISTS', R .. ':due:' .. queue) == 1 then
    return nil
  end
  local key = R .. ':q:' .. queue .. ':5'
  local ids, dues, head = due_ids(key, room, ctx)
  if #ids == 0 then
    return head
  end
  local records = redis.call('HMGET', R .. ':jobs', unpack(ids))
  local n = count_plain(queue, records, redis.call('HMGET', R .. ':tries', unpack(ids)), ctx)
  if n > 0 then
    start(R, queue, key, ids, dues, records, n, ctx)
  end
  return n == #ids and head or nil
end

-- ---- their ends

-- Whom of these does this worker hold? -> a table with a true for each. To be told ids is less than to be told scores,
-- and those that end are among its oldest: for many, these are asked for first, and scores for the rest.
local function held_by(R, epoch_text, ids)
  local key, mine, rest = R .. ':running', {}, ids
  if #ids > 8 then
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', key, epoch_text, epoch_text, 'LIMIT', 0, 2 * #ids)) do
      mine[id] = true
    end
    rest = {}
    for _, id in ipairs(ids) do
      if not mine[id] then
        rest[#rest + 1] = id
      end
    end
  end
  for i, owner in ipairs(#rest > 0 and redis.call('ZMSCORE', key, unpack(rest)) or {}) do
    mine[rest[i]] = owner == epoch_text
  end
  return mine
end

-- Jobs that ended well at their first start, and leave nothing: groups of {queue, n, id * n}, from args[at] on.
-- other(id, queue) does those that are more than that after all. -> {number of the result, answer}*: those that are
-- not ok
function L.end_plain(R, args, at, groups, ctx, other)
  local ids, refused, n, o = {}, {}, 0, at
  for _ = 1, groups do
    local last = o + 1 + L.whole(args[o + 1])
    for i = o + 2, last do
      n = n + 1
      ids[n] = args[i]
    end
    o = last + 1
  end
  if n == 0 then
    return refused
  end
  local mine = held_by(R, ctx.epoch_text, ids)
  local tries = redis.call('HMGET', R .. ':tries', unpack(ids))
  local is_watched = not (L.absent.cancel and L.absent.await) and
                     redis.call('EXISTS', R .. ':cancel', R .. ':await') > 0
  local plain, ended, counts, first_start, is_followed = {}, 0, {}, nil, L.events
  n, o = 0, at
  for _ = 1, groups do
    local queue, before = args[o], ended
    for _ = 1, L.whole(args[o + 1]) do
      n = n + 1
      local id, answer = ids[n], 'ok'
      -- Those that were due together have the same text.
      if tries[n] and tries[n] ~= first_start and string.find(tries[n], '^1 ') then
        first_start = tries[n]
      end
      if not mine[id] or not tries[n] or tries[n] ~= first_start then
        answer = 'settled'
      elseif is_watched then
        answer = other(id, queue)
      else
        ended = ended + 1
        plain[ended] = id
        if is_followed then
          L.event('done', id, queue, nil, 1, nil, 0)
        end
      end
      if answer == 'ok' then
        mine[id] = nil
      else
        refused[#refused + 1], refused[#refused + 2] = n, answer
      end
    end
    if ended > before then
      counts[queue] = (counts[queue] or 0) + ended - before
    end
    o = o + 2 + L.whole(args[o + 1])
  end
  if #plain > 0 then
    redis.call('ZREM', R .. ':running', unpack(plain))
    -- Claimed in short, so they are small: whoever names others here leaves their large payloads behind.
    L.forget(R, plain, true)
    L.let_go(ctx.book, plain, true)
  end
  for queue, count in pairs(counts) do
    L.count(R, 'done', queue, count)
  end
  return refused
end
