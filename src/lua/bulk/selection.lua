-- Which jobs a bulk means, and the way through their sets.
--
-- What a bulk means is fixed when it is made, though the sets change under it:
--   * A job whose id is newer than the bulk does not belong to it. Raw members, which have no id,
--     never do.
--   * Nor does one that died, was parked or was done after the bulk was made. So a job that the
--     bulk retries and that dies again is not met again.
--   * A waiting job that is to be moved is passed over if it has failed since, and if it is due
--     when the bulk would have it due: it may be one that the bulk has moved.
--
-- The way goes from the first set to the last, in each by score and id, and goes on behind the last
-- job that was met, even if that is gone (core/job_sets.lua).

local selection = module 'bulk/selection'
local reasons, clock, job_sets, jobs, txn = use(
  'bulk/reason', 'core/clock', 'core/job_sets', 'core/jobs', 'txn/txn')
local CHUNK = 25
local MEMBER_MAX = 64

-- The last score of a member that is meant, in a set that is scored by when its members came.
local function last_score(bulk)
  return bulk.state == 'dead' and bulk.created_ms or
         bulk.state == 'parked' and clock.number(bulk.newest) or math.huge
end

-- -> how many members the sets have that may be meant
function selection.count(R, bulk)
  local n, last = 0, last_score(bulk)
  for _, set in ipairs(job_sets.sets_of(R, bulk.queue, bulk.state)) do
    if not set.is_raw then
      n = n + (last < math.huge and db('ZCOUNT', set.key, '-inf', int(last)) or
               db('ZCARD', set.key))
    end
  end
  return n
end

-- -> is this member meant, as far as the set tells?
local function is_meant(bulk, member, score)
  return is_id(member) and not job_sets.is_before(bulk.newest, member) and
         not (bulk.verb == 'reschedule' and bulk.state == 'due' and tonumber(score) == bulk.at_ms)
end

-- Read what is needed of these ids at once, into the transaction. -> the outcomes of their last
-- attempts, where they are needed
local function read_ahead(R, bulk, set, ids, ctx)
  local bytes, needs_outcomes = 0, ctx.needs_outcomes
  for _, record in ipairs(db('HMGET', R .. ':jobs', unpack(ids))) do
    bytes = bytes + job_sets.bytes_of(record)
  end
  db('HMGET', R .. ':tries', unpack(ids))
  db('ZMSCORE', R .. ':running', unpack(ids))
  db('ZMSCORE', set.key, unpack(ids))
  local outcomes = needs_outcomes and
                   db('HMGET', R .. (bulk.state == 'done' and ':results' or ':errors'),
                      unpack(ids)) or {}
  for i = 1, needs_outcomes and #ids or 0 do
    bytes = bytes + #(outcomes[i] or '')
  end
  ctx.bytes = ctx.bytes - bytes
  return outcomes
end

-- Has it ended, or failed, since the bulk was made?
local function is_later(bulk, when)
  return when and tonumber(when) > bulk.created_ms and
         (bulk.state == 'done' or bulk.verb == 'reschedule')
end

-- -> id -> {record, is_wanted: the filters leave it} for those of these ids that are meant
local function choose(R, bulk, set, ids, ctx)
  local out = {}
  local outcomes = ids[1] and read_ahead(R, bulk, set, ids, ctx) or {}
  for i, id in ipairs(ids) do
    local _, _, when, _, reason = jobs.read_outcome(outcomes[i] or '')
    if not is_later(bulk, when) then
      local record = db('HGET', R .. ':jobs', id) or nil
      local job = bulk.key and jobs.parse(record)
      local is_wanted = (not bulk.key or job and job.K == bulk.key) and
                        (not ctx.has_reason or ctx.has_reason(reason))
      out[id] = {is_wanted = is_wanted, record = record}
    end
  end
  return out
end

-- This member was met. One that is no id may be large: then what is kept sorts behind it, and
-- before all ids that do.
local function note_met(bulk, member, score)
  bulk.score = score
  bulk.member = #member <= MEMBER_MAX and member or string.sub(member, 1, MEMBER_MAX) .. '\255'
end

-- Take the rows of a page one by one. -> was it taken whole; if not, is what is behind not meant?
local function take_page(R, bulk, set, rows, ctx, take)
  local ids, last = {}, last_score(bulk)
  for i = 1, #rows, 2 do
    if tonumber(rows[i + 1]) <= last and is_meant(bulk, rows[i], rows[i + 1]) then
      ids[#ids + 1] = rows[i]
    end
  end
  local chosen = choose(R, bulk, set, ids, ctx)
  for i = 1, #rows, 2 do
    local id, score = rows[i], rows[i + 1]
    local one = chosen[id]
    if tonumber(score) > last then
      return false, true
    elseif one and one.is_wanted and (ctx.changes <= 0 or txn.is_spent() and ctx.has_taken) then
      return false, false
    end
    note_met(bulk, id, score)
    ctx.reads = ctx.reads - 1
    bulk.seen = bulk.seen + (one and 1 or 0)
    if one and one.is_wanted then
      ctx.changes, ctx.has_taken = ctx.changes - 1, true
      take(id, set, one.record)
    end
  end
  return true
end

-- -> was the set met to its end?
local function walk_set(R, bulk, set, ctx, take)
  db('ZCARD', set.key) -- a key of a foreign type is met here
  local rank = job_sets.rank_behind(set.key, bulk.score or '', bulk.member or '')
  while ctx.reads > 0 and ctx.bytes > 0 do
    local n = math.min(CHUNK, ctx.reads)
    local rows = redis.call('ZRANGE', set.key, rank, int(rank + n - 1), 'WITHSCORES')
    local is_whole, is_over = take_page(R, bulk, set, rows, ctx, take)
    if not is_whole then
      return is_over
    elseif #rows < 2 * n then
      return true
    end
    rank = rank + n
  end
  return false
end

-- Go on from where the bulk is: take(id, set, record) for each job that is meant, at most
-- ctx.changes of them, and ctx.reads members in all, until the call has moved as much as it may.
-- -> has it met all?
function selection.walk(R, bulk, ctx, take)
  local sets = job_sets.sets_of(R, bulk.queue, bulk.state)
  local from, is_same = job_sets.set_number(sets, bulk.set)
  if not is_same then
    bulk.score, bulk.member = nil, nil
  end
  ctx.bytes = txn.CALL_BYTES
  ctx.has_reason = bulk.reason and reasons.matcher(bulk.reason)
  ctx.needs_outcomes = bulk.reason or bulk.state == 'done' or bulk.verb == 'reschedule'
  for s = from or 1, #sets do
    bulk.set = job_sets.set_name(sets, s)
    if not sets[s].is_raw and not walk_set(R, bulk, sets[s], ctx, take) then
      return false
    end
    bulk.score, bulk.member = nil, nil
  end
  return true
end
