-- Plain jobs: priority 5, a small record without options, never started before, no gates. Most jobs are, and a step
-- claims and ends them by the hundred: so they pass here as lists, without a table for each, at a fifth of the cost of
-- claim.lua and of v1/step.lua's apply, which do all others. What is written is the same. A worker that says so is
-- also told of them in short (v1/step.lua), and tells of their ends so.

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

local COMMANDS = {hash = {'HSET', 'HDEL'}, zset = {'ZADD', 'ZREM'}}

-- Write these n. args: as the command has them; new: those of which Redis has none; old: what it has of the others.
local function write_many(key, kind, most, new, args, n, old)
  local add, remove = unpack(COMMANDS[kind])
  if becomes_many(L.make_room(key, kind, n), n, most) then
    -- Of a hash a field with itself for a value, of a sorted set a member with the score 0.
    args = {kind == 'hash' and LONG or 0, LONG, unpack(args)}
    L.write_at_once(remove, key, {LONG}, function() end)
  end
  L.write_at_once(add, key, args, function()
    redis.pcall(remove, key, LONG, unpack(new, 1, math.min(n, #new)))
    if old and #old > 0 then
      redis.pcall(add, key, unpack(old))
    end
  end)
end

-- The first n of a queue stand in it again.
local function put_back(key, ids, runs, n)
  local from, args = 1, {}
  for k = 1, #runs, 2 do
    for i = from, math.min(runs[k + 1], n) do
      args[2 * i - 1], args[2 * i] = L.int(runs[k]), ids[i]
    end
    from = runs[k + 1] + 1
  end
  redis.pcall('ZADD', key, unpack(args))
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
  ctx.claimed, ctx.book.at_once.started = ctx.claimed + n, ctx.book.at_once.started + n
  write_many(R .. ':tries', 'hash', LIST_FIELDS, ids, tries, n)
  write_many(R .. ':running', 'zset', LIST_MEMBERS, ids, running, n)
  L.cut(key, n, function() put_back(key, ids, runs, n) end)
end

-- Start these: ids, texts: their tries as they will be; was: as they are, false for none.
function L.start_many(R, starts, ctx)
  local ids, n = starts.ids, #starts.ids
  local running, tries, old, new = {}, {}, {}, {}
  if n == 0 then
    return
  end
  for i = 1, n do
    running[2 * i - 1], running[2 * i] = ctx.epoch_text, ids[i]
    tries[2 * i - 1], tries[2 * i] = ids[i], starts.texts[i]
    if starts.was[i] then
      old[#old + 1], old[#old + 2] = ids[i], starts.was[i]
    else
      new[#new + 1] = ids[i]
    end
  end
  ctx.book.at_once.started = ctx.book.at_once.started + n
  write_many(R .. ':tries', 'hash', LIST_FIELDS, new, tries, n, old)
  write_many(R .. ':running', 'zset', LIST_MEMBERS, ids, running, n)
end

-- Claim the first jobs of a queue, up to `room`, as long as they are plain. -> the head that is left; nil where
-- claim.lua has to go on, because there are others
function L.claim_plain(R, queue, room, ctx)
  local key = R .. ':q:' .. queue .. ':5'
  if room == 0 or ctx.gates[queue] or string.find(ctx.marks[queue] or '', '%d') or L.is_changed(key) or
     redis.call('EXISTS', R .. ':due:' .. queue) == 1 then
    return nil
  end
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

-- The same without those that ended already in this call.
local function but_not(ids, mine, book)
  if #book.ended + book.at_once.ended == 0 then
    return mine
  elseif not mine then
    mine = {}
    for i = 1, #ids do
      mine[ids[i]] = true
    end
  end
  for _, list in ipairs({book.ended, unpack(book.at_once.lists)}) do
    for i = 1, #list do
      mine[list[i]] = nil
    end
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
-- tries: of each. -> the plain ids, and the
-- tries of each; n of each group is how many of them are its own
local function sort_out(ids, groups, mine, tries, other, refused)
  local plain, plain_tries, last = {}, {}, 0
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
        plain[#plain + 1], plain_tries[#plain + 1] = id, tries[i]
      end
      if answer ~= 'ok' then
        refused[#refused + 1], refused[#refused + 2] = i, answer
      elseif mine then
        mine[id] = nil
      end
    end
    group.n = #plain - before
  end
  return plain, plain_tries
end

-- These jobs of ctx, which end well and leave nothing behind, go. tries: of each, as in R:tries; are_small: as in L.forget
function L.end_at_once(R, ids, tries, are_small, ctx)
  local at_once = ctx.book.at_once
  at_once.lists[#at_once.lists + 1], at_once.ended = ids, at_once.ended + #ids
  L.write_at_once('ZREM', R .. ':running', ids, function()
    for _, id in ipairs(ids) do
      redis.pcall('ZADD', R .. ':running', ctx.epoch_text, id)
    end
  end)
  L.write_at_once('HDEL', R .. ':tries', ids, function()
    for i, id in ipairs(ids) do
      redis.pcall('HSET', R .. ':tries', id, tries[i])
    end
  end)
  L.forget_but_tries(R, ids, are_small)
  L.let_go(ctx.book, ids, true)
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
  mine = but_not(ids, mine, ctx.book)
  local is_watched = db('EXISTS', R .. ':cancel', R .. ':await') > 0
  if is_watched or mine or not are_first(tries, n) then
    plain, tries = sort_out(ids, groups, mine, tries, is_watched and other, refused)
  end
  if #plain == 0 then
    return refused
  end
  -- Claimed in short, so they are small: whoever names others here leaves their large payloads behind.
  L.end_at_once(R, plain, tries, true, ctx)
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
