-- Jobs that ended well, and of which nothing is kept. Most jobs do, and a step ends them by the
-- hundred: so they come as groups {queue, start, n} of ids, and are removed by one command a key.
-- Their payloads must be small: a large one would stay behind in R:big.

-- Most jobs end in the order of their claims. So when n end, all of them are mostly among the n +
-- 64 oldest that the worker holds.
local STILL_RUN = 64

-- Which of these n jobs does this worker hold? Redis tells ids cheaper than scores: so the oldest
-- ids of the worker are read first. -> nil: all of them; else id -> true
function L.held_by(R, epoch_text, ids, n)
  local key, found, concat = R .. ':running', 1, table.concat
  local oldest = n <= 8 and {} or
                 redis.call('ZRANGEBYSCORE', key, epoch_text, epoch_text, 'LIMIT', 0, n + STILL_RUN)
  if n <= #oldest and concat(oldest, ' ', 1, n) == concat(ids, ' ') then
    return nil
  end
  for i = 1, #oldest do
    if oldest[i] == ids[found] then
      found = found + 1
    end
  end
  if found > n then
    return nil
  end
  -- They came in another order, twice, or are not among the oldest.
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

-- mine, as held_by tells it, without the jobs that ended in this call before.
local function but_not(ids, mine, book)
  if #book.ended == 0 then
    return mine
  elseif not mine then
    mine = {}
    for i = 1, #ids do
      mine[ids[i]] = true
    end
  end
  for i = 1, #book.ended do
    mine[book.ended[i]] = nil
  end
  return mine
end

-- Do all of them run with the start number that the worker told? Jobs that were due together have
-- the same text in R:tries.
function L.are_current(groups, tries)
  local at, sub = 0, string.sub
  for _, group in ipairs(groups) do
    local prefix, known = group.start .. ' ', nil
    for i = at + 1, at + group.n do
      local text = tries[i]
      if text ~= known then
        if not text or sub(text, 1, #prefix) ~= prefix then
          return false
        end
        known = text
      end
    end
    at = at + group.n
  end
  return true
end

-- Are they members of more batches than may all end in one call? Each may cause two jobs.
local BATCHES_MAX = 16

local function has_many_batches(holds)
  local n, known, last = 0, {}, nil
  for i = 1, #holds do
    if holds[i] and holds[i] ~= last then
      last = holds[i]
      local name = L.batch_of(last)
      n = n + (name and not known[name] and 1 or 0)
      known[name or ''] = true
    end
  end
  return n > BATCHES_MAX
end

-- -> id -> true of the jobs whose end causes another job, or may: these end one by one, as far as
-- the call may go (L.is_spent); nil: none of them. holds: their texts in R:holds
local function find_followed(ids, holds)
  local followed
  local are_many = holds and has_many_batches(holds)
  for i = 1, holds and #ids or 0 do
    if L.has_next(holds[i]) or are_many and L.batch_of(holds[i]) then
      followed = followed or {}
      followed[ids[i]] = true
    end
  end
  return followed
end

-- Not all of them simply end. Where some job is cancelled or waited for, `other` ends each of them;
-- else only those in `followed`, nil for none. A job that is not held is refused. mine: as held_by
-- tells it; jobs: {ids, tries, holds} of each, holds nil for nothing. -> the same of those that
-- simply end; group.n is then the number of these in the group
local function sort_out(jobs, groups, mine, is_watched, followed, other, refused)
  local ids, tries, holds, last = jobs.ids, jobs.tries, jobs.holds, 0
  local plain = {ids = {}, tries = {}, holds = holds and {}}
  for _, group in ipairs(groups) do
    local from, before, prefix = last + 1, #plain.ids, group.start .. ' '
    last = last + group.n
    for i = from, last do
      local id, answer = ids[i], 'ok'
      if mine and not mine[id] or string.sub(tries[i] or '', 1, #prefix) ~= prefix then
        answer = 'settled'
      elseif is_watched or followed and followed[id] then
        answer = other(id, group)
      else
        local n = #plain.ids + 1
        plain.ids[n], plain.tries[n] = id, tries[i]
        if holds then
          plain.holds[n] = holds[i]
        end
      end
      if answer ~= 'ok' then
        refused[#refused + 1], refused[#refused + 2] = i, answer
      elseif mine then
        mine[id] = nil
      end
    end
    group.n = #plain.ids - before
  end
  return plain
end

-- Tell the batches of these jobs that they are done.
local function end_members(R, jobs, now_ms)
  local names, members = {}, {}
  for i, id in ipairs(jobs.holds and jobs.ids or {}) do
    local name = L.batch_of(jobs.holds[i])
    if name and not members[name] then
      members[name], names[#names + 1] = {id}, name
    elseif name then
      members[name][#members[name] + 1] = id
    end
  end
  for _, name in ipairs(names) do
    L.end_members(R, name, members[name], 'done', now_ms)
  end
end

-- Remove these jobs, {ids, tries, holds}. tries: to take it back
local function end_plain(R, jobs, ctx)
  local ids, tries = jobs.ids, jobs.tries
  ctx.book.together.ended = ids
  L.write_together('ZREM', R .. ':running', ids, function()
    for _, id in ipairs(ids) do
      redis.pcall('ZADD', R .. ':running', ctx.epoch_text, id)
    end
  end)
  L.write_together('HDEL', R .. ':tries', ids, function()
    for i, id in ipairs(ids) do
      redis.pcall('HSET', R .. ':tries', id, tries[i])
    end
  end)
  L.forget_but_tries(R, ids, true)
  L.free_uniques(R, L.let_go(ctx.book, ids, jobs.holds))
  end_members(R, jobs, ctx.now_ms)
end

-- groups: {queue, start (text), n}*; ids: of all groups; other(id, group) ends a job that is
-- cancelled, waited for or followed. -> {number of the id, answer}* of the jobs whose answer is not
-- ok
function L.end_all(R, groups, ids, ctx, other)
  local n, refused = #ids, {}
  if n == 0 then
    return refused
  end
  local mine = but_not(ids, L.held_by(R, ctx.epoch_text, ids, n), ctx.book)
  local jobs = {ids = ids, tries = redis.call('HMGET', R .. ':tries', unpack(ids))}
  local is_watched = db('EXISTS', R .. ':cancel', R .. ':await') > 0
  jobs.holds = L.holds_of(ctx.book, ids)
  local followed = find_followed(ids, jobs.holds)
  if is_watched or followed or mine or not L.are_current(groups, jobs.tries) then
    jobs = sort_out(jobs, groups, mine, is_watched, followed, other, refused)
  end
  if #jobs.ids == 0 then
    return refused
  end
  end_plain(R, jobs, ctx)
  local last = 0
  for _, group in ipairs(groups) do
    local from = last + 1
    last = last + group.n
    if group.n > 0 then
      L.count(R, 'done', group.queue, group.n)
    end
    for i = from, L.events and last or 0 do
      L.event('done', jobs.ids[i], group.queue, nil, group.start, nil, 0, 'ok')
    end
  end
  return refused
end
