-- Plain jobs: priority 5, a small record without options, never started before, no gates. Most jobs are, and a step
-- claims and ends them by the hundred: so they pass here as lists, without a table for each, at a fifth of the cost of
-- claim.lua and of v1_step.lua's apply, which do all others. What is written is the same. A worker that says so is
-- also told of them in short (v1_step.lua), and tells of their ends so.

-- When the n first jobs of a queue are due, which are sorted by it. Redis takes half a microsecond to print a score, and
-- jobs that were added together are due together: while there are few runs of one due time, it is asked how long each is.
-- first, last: scores of the first and of the last. -> runs {due, number of the last one}* of those that are due by
-- until_ms, when the one behind them is (nil where all are)
local RUNS = 8

local function read_runs(key, ids, n, first, last, until_ms)
  local runs, at, score = {}, 1, first
  for k = 1, 2 * RUNS, 2 do
    local due = L.due(score)
    if due > until_ms then
      return runs, due
    end
    local to = score == last and n or math.min(n, at - 1 + redis.call('ZCOUNT', key, score, score))
    runs[k], runs[k + 1], at = due, to, to + 1
    if at > n then
      return runs, nil
    end
    score = redis.call('ZSCORE', key, ids[at])
  end
  for i, rest in ipairs(redis.call('ZMSCORE', key, unpack(ids, at, n))) do
    local due = L.due(rest)
    if due > until_ms then
      return runs, due
    end
    runs[#runs + 1], runs[#runs + 2] = due, at + i - 1
  end
  return runs, nil
end

-- The first jobs that are due by ctx.until_ms, up to `room`. -> ids (perhaps of more), runs, the due ms of the first that
-- stays (math.huge: none)
local function due_ids(key, room, ctx)
  local ids = redis.call('ZRANGE', key, 0, room)
  local n = math.min(#ids, room)
  if n == 0 then
    return ids, {}, math.huge
  end
  local scores = redis.call('ZMSCORE', key, ids[1], ids[n], ids[#ids])
  local runs, head = read_runs(key, ids, n, scores[1], scores[2], ctx.until_ms)
  return ids, runs, head or (#ids > n and L.due(scores[3])) or math.huge
end

-- How many of the first ones are plain, and fit into what the call may read.
local function count_plain(queue, records, tries, ctx)
  local prefix, bytes, n = '-' .. queue .. '\n', ctx.bytes, 0
  local most, find = #prefix + L.BIG, string.find
  for i = 1, #records do
    local record = records[i]
    if tries[i] or not record or #record > most or find(record, prefix, 1, true) ~= 1 or bytes <= 0 then
      break
    end
    n, bytes = i, bytes - #record
  end
  ctx.bytes = bytes
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

-- Those from..to, which are due at one time, into the lists of what is written and told. number: the first fence of all.
local function start_run(lists, queue, ids, records, due, from, to, number)
  local running, tries, short, claims = lists.running, lists.tries, lists.short, lists.claims
  local epoch, text = lists.epoch, '1 1 0 ' .. L.int(due)
  for i = from, to do
    local id, two = ids[i], 2 * i
    running[two - 1], running[two] = epoch, id
    tries[two - 1], tries[two] = id, text
    if short then
      local at = two + i
      short[at], short[at + 1], short[at + 2] = id, due, records[i]
    else
      claims[#claims + 1] = {id, queue, 1, 1, 0, number + two - 2, due, records[i], 0}
    end
  end
  for i = from, L.events and to or 0 do
    L.event('started', ids[i], queue, due, 1, 1)
  end
end

-- Start the first n of them, which are the first n of the queue.
local function start(R, queue, key, ids, runs, records, n, ctx)
  local number = L.tick(R, ctx.now_us, 2 * n) + 1
  local running, tries = {}, {}
  local lists = {running = running, tries = tries, epoch = ctx.epoch_text, claims = ctx.claims,
                 short = ctx.short and {queue, number}}
  local from, k = 1, 1
  while from <= n do
    local to = math.min(runs[k + 1], n)
    start_run(lists, queue, ids, records, runs[k], from, to, number)
    from, k = to + 1, k + 2
  end
  if ctx.short then
    ctx.short[#ctx.short + 1] = lists.short
  end
  ctx.claimed = ctx.claimed + n
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
  local ids, runs, head = due_ids(key, room, ctx)
  local n = runs[#runs] or 0
  if n == 0 then
    return head
  end
  local records = redis.call('HMGET', R .. ':jobs', unpack(ids, 1, n))
  local plain = count_plain(queue, records, redis.call('HMGET', R .. ':tries', unpack(ids, 1, n)), ctx)
  if plain > 0 then
    start(R, queue, key, ids, runs, records, plain, ctx)
  end
  return plain == n and head or nil
end

-- ---- their ends

-- Most end in the order in which they were claimed, and in that a worker holds them: mostly all of them are among so
-- many more of its oldest than end.
local STILL_RUN = 64

-- Which of these n does this worker hold? To be told ids is less than to be told scores: so its oldest are asked for
-- first. -> nil for all; else a table with a true for each id
local function held_by(R, epoch_text, ids, n)
  local key, found = R .. ':running', 1
  local oldest = n <= 8 and {} or redis.call('ZRANGEBYSCORE', key, epoch_text, epoch_text, 'LIMIT', 0, n + STILL_RUN)
  for i = 1, #oldest do
    if oldest[i] == ids[found] then
      found = found + 1
    end
  end
  if found > n then
    return nil
  end
  -- Out of their order, named twice, or not among the oldest.
  local mine, rest = {}, {}
  for _, id in ipairs(oldest) do
    mine[id] = true
  end
  for _, id in ipairs(ids) do
    rest[#rest + 1] = not mine[id] and id or nil
  end
  for i, owner in ipairs(#rest > 0 and redis.call('ZMSCORE', key, unpack(rest)) or {}) do
    mine[rest[i]] = owner == epoch_text
  end
  return mine
end

-- Are all of them at their first start? Those that were due together have the same text.
local function are_first(tries, n)
  local first
  for i = 1, n do
    local line = tries[i]
    if line ~= first then
      if not line or not string.find(line, '^1 ') then
        return false
      end
      first = line
    end
  end
  return true
end

-- Groups of {queue, n, id * n}, from args[at] on -> ids, the groups {queue, n}
local function read_groups(args, at, n_groups)
  local ids, groups, n = {}, {}, 0
  for g = 1, n_groups do
    local last = at + 1 + L.whole(args[at + 1])
    for i = at + 2, last do
      n = n + 1
      ids[n] = args[i]
    end
    groups[g], at = {queue = args[at], n = last - at - 1}, last + 1
  end
  return ids, groups
end

-- Where some are not plain after all: these are done by `other`, if there is one, or refused. mine: as held_by tells;
-- tries: of each. -> the plain ids; n of each group is how many of them are its own
local function sort_out(ids, groups, mine, tries, other, refused)
  local plain, last = {}, 0
  for _, group in ipairs(groups) do
    local from, before = last + 1, #plain
    last = last + group.n
    for i = from, last do
      local id, answer = ids[i], 'ok'
      if (mine and not mine[id]) or not tries[i] or not string.find(tries[i], '^1 ') then
        answer = 'settled'
      elseif other then
        answer = other(id, group.queue)
      else
        plain[#plain + 1] = id
      end
      if answer ~= 'ok' then
        refused[#refused + 1], refused[#refused + 2] = i, answer
      elseif mine then
        mine[id] = nil
      end
    end
    group.n = #plain - before
  end
  return plain
end

-- Jobs that ended well at their first start, and leave nothing: n_groups of them, from args[at] on. other(id, queue) does
-- those that are more than that after all. -> {number of the result, answer}*: those that are not ok
function L.end_plain(R, args, at, n_groups, ctx, other)
  local ids, groups = read_groups(args, at, n_groups)
  local n, refused, plain = #ids, {}, ids
  if n == 0 then
    return refused
  end
  local mine = held_by(R, ctx.epoch_text, ids, n)
  local tries = redis.call('HMGET', R .. ':tries', unpack(ids))
  local is_watched = not (L.absent.cancel and L.absent.await) and
                     redis.call('EXISTS', R .. ':cancel', R .. ':await') > 0
  if is_watched or mine or not are_first(tries, n) then
    plain = sort_out(ids, groups, mine, tries, is_watched and other, refused)
  end
  if #plain == 0 then
    return refused
  end
  redis.call('ZREM', R .. ':running', unpack(plain))
  -- Claimed in short, so they are small: whoever names others here leaves their large payloads behind.
  L.forget(R, plain, true)
  L.let_go(ctx.book, plain, true)
  local last = 0
  for _, group in ipairs(groups) do
    local from = last + 1
    last = last + group.n
    if group.n > 0 then
      L.count(R, 'done', group.queue, group.n)
    end
    for i = from, L.events and last or 0 do
      L.event('done', plain[i], group.queue, nil, 1, nil, 0)
    end
  end
  return refused
end
