-- Jobs that ended well, and of which nothing is kept, in a sync that is not made over rows. They
-- come as groups {queue, start, n} of ids. Their payloads must be small: a large one would stay
-- behind in R:big.

local ends = module 'claim/ends'
local membership, events, jobs, holding, uniques, commit = use(
  'batch/membership', 'core/events', 'core/jobs', 'gates/holding', 'gates/uniques', 'txn/commit')

-- Are they members of more batches than may all end in one call? Each may cause two jobs.
local BATCHES_MAX = 16

local function has_many_batches(holds)
  local n, known, last = 0, {}, nil
  for i = 1, #holds do
    if holds[i] and holds[i] ~= last then
      last = holds[i]
      local name = holding.batch_of(last)
      n = n + (name and not known[name] and 1 or 0)
      known[name or ''] = true
    end
  end
  return n > BATCHES_MAX
end

-- -> id -> true of the jobs whose end causes another job, or may: these end one by one, as far as
-- the call may go (txn.is_spent). holds: their texts in R:holds, nil for nothing
local function find_followed(ids, holds)
  local followed = {}
  local are_many = holds and has_many_batches(holds)
  for i = 1, holds and #ids or 0 do
    if holding.has_next(holds[i]) or are_many and holding.batch_of(holds[i]) then
      followed[ids[i]] = true
    end
  end
  return followed
end

-- Tell the batches of these jobs that they are done.
local function end_members(R, ended, now_ms)
  local names, members = {}, {}
  for i, id in ipairs(ended.holds and ended.ids or {}) do
    local name = holding.batch_of(ended.holds[i])
    if name and not members[name] then
      members[name], names[#names + 1] = {id}, name
    elseif name then
      members[name][#members[name] + 1] = id
    end
  end
  for _, name in ipairs(names) do
    membership.end_members(R, name, members[name], 'done', now_ms)
  end
end

-- Remove these jobs, {ids, holds}.
local function end_plain(R, ended, ctx)
  local ids = ended.ids
  db('ZREM', R .. ':running', unpack(ids))
  db('HDEL', R .. ':tries', unpack(ids))
  jobs.forget_but_tries(R, ids, true)
  uniques.free_all(R, holding.let_go(ctx.ledger, ids, ended.holds))
  end_members(R, ended, ctx.now_ms)
end

-- -> id -> true of the jobs that are to be cancelled or waited for
local function find_watched(R, ids)
  local watched = {}
  if db('EXISTS', R .. ':cancel', R .. ':await') == 0 then
    return watched
  end
  local flags = db('HMGET', R .. ':cancel', unpack(ids))
  local waits = db('HMGET', R .. ':await', unpack(ids))
  for i = 1, #ids do
    watched[ids[i]] = flags[i] or waits[i] or nil
  end
  return watched
end

-- Which of them simply end? holds: nil for nothing. -> these, {ids, holds}; group.n is then how
-- many of the group they are
local function sort_out(R, groups, ids, holds, ctx, other, refused)
  local owners, tries = db('ZMSCORE', R .. ':running', unpack(ids)),
                        db('HMGET', R .. ':tries', unpack(ids))
  local watched, followed = find_watched(R, ids), find_followed(ids, holds)
  local plain, is_plain, last = {ids = {}, holds = holds and {}}, {}, 0
  for _, group in ipairs(groups) do
    local from, before, begin = last + 1, #plain.ids, group.start .. ' '
    last = last + group.n
    for i = from, last do
      local id, answer = ids[i], 'ok'
      if is_plain[id] or owners[i] ~= ctx.epoch or not tries[i] or
         string.sub(tries[i], 1, #begin) ~= begin then
        answer = 'settled'
      elseif watched[id] or followed[id] then
        answer = db('ZSCORE', R .. ':running', id) and other(id, group) or 'settled'
      else
        local n = #plain.ids + 1
        plain.ids[n], is_plain[id] = id, true
        if holds then
          plain.holds[n] = holds[i]
        end
      end
      if answer ~= 'ok' then
        refused[#refused + 1], refused[#refused + 2] = i, answer
      end
    end
    group.n = #plain.ids - before
  end
  return plain
end

-- groups: {queue, start (text), n}*; ids: of all groups; other(id, group) ends a job that is
-- cancelled, waited for or followed. -> {number of the id, answer}* of the jobs whose answer is not
-- ok
function ends.end_all(R, groups, ids, ctx, other)
  local refused, last = {}, 0
  if not ids[1] then
    return refused
  end
  local plain = sort_out(R, groups, ids, holding.holds_of(ctx.ledger, ids), ctx, other, refused)
  if not plain.ids[1] then
    return refused
  end
  end_plain(R, plain, ctx)
  for _, group in ipairs(groups) do
    local from = last + 1
    last = last + group.n
    if group.n > 0 then
      commit.count(R, 'done', group.queue, group.n)
    end
    for i = from, events.now and last or 0 do
      events.add('done', plain.ids[i], group.queue, nil, group.start, nil, 0, 'ok')
    end
  end
  return refused
end
