-- Which jobs of a queue are due: the rows that a sync looks at, in the order in which it claims
-- them. (Who waits before a gate: gates/waiters.lua.)
--
-- Rows are columns, one list for each thing that is known of all of them. A chunk:
--   queue, n
--   ids      the job's id (perhaps of more jobs than n); false for a raw member, which has none yet
--   dues     when it is due, ms
--   sets     in which sorted sets they stand, as segments: {key, number of the last row}*
--   raws     a raw member's bytes, scores: its score, whys: why it cannot be a job, by number
--   is_pinned  they pass no gates (broadcast/pins.lua)
--   has_caused  the death of one of them has added a job to this very queue
-- judge.lua adds records, tries, jobs, gates and whys; starting.lua writes.

local waiting = module 'claim/waiting'
local clock, job_sets, jobs, adds, at_once, commit, txn = use(
  'core/clock', 'core/job_sets', 'core/jobs', 'public/add', 'public/add_at_once', 'txn/commit',
  'txn/txn')
local RAW_ROWS = 16
local RAW_BYTES = 1048576

function waiting.new_chunk(queue)
  return {queue = queue, n = 0, ids = {}, dues = {}, sets = {}, raws = {}, scores = {}, whys = {}}
end

-- The next n rows stand in this set.
function waiting.add_rows(b, key, n)
  local sets = b.sets
  b.n = b.n + n
  if sets[#sets - 1] == key then
    sets[#sets] = b.n
  elseif n > 0 then
    sets[#sets + 1], sets[#sets + 2] = key, b.n
  end
end

-- Append up to `room` ids of a set that are due by until_ms. -> when the first one that stays is
-- due (math.huge for none), how many there were at all
function waiting.take_ids(key, room, b, until_ms)
  local rows = db('ZRANGE', key, 0, room, 'WITHSCORES')
  for i = 1, #rows, 2 do
    local due = to_due(rows[i + 1])
    if due > until_ms or i > 2 * room then
      return due, #rows
    end
    waiting.add_rows(b, key, 1)
    b.ids[b.n], b.dues[b.n] = rows[i], due
  end
  return math.huge, #rows
end

-- ---- raw members

-- Why a raw member with this score cannot be a job, or nil.
local function bad_score(score)
  if score ~= score or score == math.huge or score == -math.huge then
    return 'its score is not finite'
  elseif score > LATEST then
    return 'its score is after the year 5000'
  elseif score >= SECONDS_FROM and score <= SECONDS_TO then
    return 'its score looks like seconds, milliseconds are needed'
  end
  return nil
end

local function add_raw(b, key, member, score_text, now_ms)
  local score = tonumber(score_text)
  local i = b.n + 1
  waiting.add_rows(b, key, 1)
  b.ids[i], b.raws[i], b.scores[i] = false, member, score_text
  b.dues[i] = score > SECONDS_TO and to_due(score_text) or now_ms
  b.whys[i] = bad_score(score)
end

-- Append the raw members that are due, up to `room`. They may be large: only those that are due are
-- read, and no more bytes of them than a call may read. One that can never be due is buried when
-- tidied (calls/tidy.lua). -> the head that is left, never later than the first one is due
local function take_raw(R, b, room, ctx)
  local key, known = R .. ':due:' .. b.queue, db('ZSCORE', R .. ':heads', b.queue)
  -- What this call has claimed of them were the first ones.
  local left, gone = db('ZCARD', key), txn.gone_from(key)
  local most, bytes = math.min(room, RAW_ROWS), math.min(ctx.bytes, RAW_BYTES)
  if left == 0 then
    return math.huge
  elseif most == 0 and (known and known <= ctx.now_ms or redis.call('ZCOUNT', key, '-inf',
                                                                    int(ctx.now_ms)) > gone) then
    return ctx.now_ms
  end
  local rows = job_sets.read_set(key, gone, most, bytes, int(ctx.now_ms))
  for i = 1, #rows, 2 do
    add_raw(b, key, rows[i], rows[i + 1], ctx.now_ms)
    bytes = bytes - #rows[i]
  end
  local taken = #rows / 2
  if taken == left then
    return math.huge
  elseif most > 0 and (taken == most or bytes <= 0) then
    return ctx.now_ms
  end
  -- Its members are read once in a call, however often it looks.
  local rank, next_raw = gone + taken, ctx.next_raw
  if not next_raw or next_raw.key ~= key or next_raw.rank ~= rank then
    next_raw = {key = key, rank = rank, due = job_sets.next_raw(key, rank, ctx, known)}
    ctx.next_raw = next_raw
  end
  return next_raw.due
end

-- Make the first due raw members of a fair queue jobs, which have the tenant '', or bury them.
function waiting.adopt_raw(R, queue, ctx)
  local key, b = R .. ':due:' .. queue, waiting.new_chunk(queue)
  if db('EXISTS', key) == 0 then
    return
  end
  take_raw(R, b, RAW_ROWS, ctx)
  for i = 1, b.n do
    local raw, job = b.raws[i], {queue = queue, priority = 5}
    db('ZREM', key, raw)
    if b.whys[i] then
      adds.bury_new(R, job, raw, b.whys[i], ctx.now_us)
    else
      local id = clock.id(clock.tick(R, ctx.now_us, 1))
      adds.insert(R, id, job, raw)
      jobs.enqueue(R, id, job, at_once.NEW, b.dues[i], true)
      commit.count(R, 'added', queue, 1)
    end
  end
  ctx.is_more = ctx.is_more or b.n == RAW_ROWS
end

local function append(b, from, i)
  local n = b.n + 1
  waiting.add_rows(b, from.sets[1], 1)
  b.ids[n], b.dues[n] = from.ids[i], from.dues[i]
  b.raws[n], b.scores[n], b.whys[n] = from.raws[i], from.scores[i], from.whys[i]
end

-- Append two chunks in order of their scores, up to `room` rows of both; the rest lowers the head.
-- Not by due time: a raw member from before 1973 is always due just now, and would stand behind
-- every backlog, with all raw members behind it.
local function merge(b, ids, raws, room, head, now_ms)
  local i, k, last = 1, 1, b.n + room
  while b.n < last and (i <= ids.n or k <= raws.n) do
    if k > raws.n or i <= ids.n and ids.dues[i] <= to_due(raws.scores[k]) then
      append(b, ids, i)
      i = i + 1
    else
      append(b, raws, k)
      k = k + 1
    end
  end
  head = i <= ids.n and math.min(head, ids.dues[i]) or head
  return k <= raws.n and math.min(head, now_ms) or head
end

-- Priority 5: its jobs, and the raw members between them. until_ms: as of take_ids
local function take_fives(R, b, room, ctx, until_ms)
  local key = R .. ':q:' .. b.queue .. ':5'
  if db('EXISTS', R .. ':due:' .. b.queue) == 0 then
    return (waiting.take_ids(key, room, b, until_ms))
  end
  local ids, raws = waiting.new_chunk(b.queue), waiting.new_chunk(b.queue)
  local head = waiting.take_ids(key, room, ids, ctx.now_ms)
  head = math.min(head, take_raw(R, raws, room, ctx))
  return merge(b, ids, raws, room, head, ctx.now_ms)
end

-- -> the rows of a queue in the order of claiming, up to `room`; the head that is left behind them;
-- the flags that are still true. Where nothing else can come between, jobs without gates may be
-- claimed before they are due (ctx.until_ms); judge.lua leaves the others.
function waiting.gather(R, queue, room, ctx)
  local flags, kept = ctx.flags[queue] or '', ''
  local b, head, until_ms = waiting.new_chunk(queue), math.huge, ctx.now_ms
  if not ctx.gates[queue] and not string.find(flags, '%d') then
    until_ms = ctx.until_ms
  end
  for p = 0, 9 do
    local digit = int(p)
    if p == 5 then
      head = math.min(head, take_fives(R, b, room - b.n, ctx, until_ms))
    elseif string.find(flags, digit, 1, true) then
      local key = R .. ':q:' .. queue .. ':' .. digit
      local its_head, rows = waiting.take_ids(key, room - b.n, b, ctx.now_ms)
      head = math.min(head, its_head)
      kept = rows > 0 and kept .. digit or kept
    end
  end
  return b, head, kept
end

-- ---- suspects

-- The first suspect of a queue; claimed only by a worker that runs nothing else. -> a chunk of it
-- or nil; the head behind it (not one that is due: only an idle worker can do something about it)
function waiting.gather_solo(R, queue, room, ctx)
  local key = R .. ':solo:' .. queue
  local rows = db('ZRANGE', key, 0, 1, 'WITHSCORES')
  if #rows == 0 then
    return nil, math.huge, ''
  end
  local due, b = to_due(rows[2]), nil
  if due <= ctx.now_ms and room > 0 and ctx.held == 0 and ctx.claimed == 0 then
    b = waiting.new_chunk(queue)
    waiting.add_rows(b, key, 1)
    b.ids[1], b.dues[1] = rows[1], due
    due = rows[4] and to_due(rows[4]) or math.huge
  end
  if due <= ctx.now_ms then
    ctx.solo_due = 1
    due = math.huge
  end
  return b, due, 's'
end
