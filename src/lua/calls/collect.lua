-- later_v1_collect R EPOCH N {QUEUE KEY HASH UNIT NEXT PASSED}*N
--   -> [now_us, [next, again, passed, added, buried, why]...]
--
-- A worker collects the members of foreign queues (foreign/foreign.lua) that are due: each leaves
-- its set and its hash in the call that makes it a job of QUEUE. KEY HASH UNIT: as of
-- later_v1_adopt; with a HASH the member becomes the key of the job. A member without a field waits
-- for it: its producer may be about to write it. After ten seconds, and at once if it can be no job
-- for another reason, a member is put among the dead of QUEUE. It is left where it is if its score
-- is a time to come in the other unit, or if QUEUE has no room for more dead jobs.
-- next: when the next member is due, ms, '-' if none waits; an earlier one may come at any time.
-- NEXT: what the last reply said. again: when to look again for fields that were missing, '-': none
-- was. passed: how many members were passed over, if more may be due behind them: ask again at
-- once, with PASSED; else '-'. PASSED: 0 in a new round, which passes over a thousand.
-- why: '', or what is wrong with this queue, as the note bad-adoption:QUEUE has it.
-- At most 64 queues; 128 members and 1 MiB together. Not allow-oom: members wait where they are.
-- Errors: ELATER_ARGS WORKER QUEUE. Cost: O(log n) a queue, and as later_add for each member.
--
--   R:bodyless:<queue>  ZSET  member without a field -> when it was seen first, ms

local beats, imports, tidy, syncs, clock, job_sets, foreign, wanted, adds, change, commit = use(
  'calls/beat', 'calls/import', 'calls/tidy', 'claim/syncs', 'core/clock', 'core/job_sets',
  'foreign/foreign', 'gates/wanted', 'public/add', 'txn/change', 'txn/commit')
local QUEUES_MAX, ROWS, BYTES = 64, 128, 1048576
local PASSED_MAX = 1000
local FIELD_MS = 10000                -- how long a member waits for its field
local LEAST_MS, MOST_MS = 10, 1000    -- such a member is looked at again after this
local FORGET_MS, EXPIRE_MS = 60000, 3600000 -- of R:bodyless

local function bad_args()
  fail('ELATER_ARGS', 'give EPOCH N {QUEUE KEY HASH UNIT NEXT PASSED}*N, up to 64')
end

local function read_item(args, at)
  local item = {queue = check_queue(args[at]), key = args[at + 1], hash = args[at + 2],
                unit = args[at + 3], next = whole(args[at + 4]), passed = whole(args[at + 5])}
  if item.key == '' or item.unit ~= 's' and item.unit ~= 'ms' or not item.passed or
     not item.next and args[at + 4] ~= '-' then
    bad_args()
  end
  return item
end

local function read_items(args)
  local n, items = whole(args[2]), {}
  if not n or n > QUEUES_MAX or #args ~= 2 + 6 * n then
    bad_args()
  end
  for i = 1, n do
    items[i] = read_item(args, 6 * i - 3)
  end
  return items
end

-- A time in ms -> the score of it.
local function score_of(unit, ms)
  return unit == 's' and string.format('%.3f', ms / 1000) or int(ms)
end

local function check_job(R, item, job, payload)
  if #payload > LEAST_LIMIT then
    adds.check_payload(R, item.queue, payload)
  end
  adds.check_gates(R, job, item.of_queue)
end

-- Why the queue cannot take this job; nil: it can.
local function unfit(R, item, job, payload)
  local ok, why = change.try(check_job, R, item, job, payload)
  local text = not ok and type(why) == 'table' and why.elater
  if not ok and not text then
    error(why, 0)
  end
  return text and string.match(text, '^%S+ (.*)$') or nil
end

-- The member as the key of its job. -> why it is none
local function put_key(job, member)
  if #member < 1 or #member > 256 or string.find(member, '[%z\1-\32\127]') then
    return 'its member is no key: 1 to 256 bytes without spaces and control characters'
  end
  job.K, job.has_options = member, true
end

-- For how long does a member wait for its field? time_ms: of its score
local function waits_ms(item, member, time_ms, now_ms)
  local seen = db('ZSCORE', item.bodyless, member)
  if not seen or seen > now_ms then -- Redis' clock may have been set back
    seen = now_ms
    db('ZADD', item.bodyless, now_ms, member)
    db('PEXPIREAT', item.bodyless, now_ms + EXPIRE_MS)
  end
  return now_ms - math.max(math.min(time_ms, now_ms), seen)
end

-- Fill row in with what the hash has. -> in how many ms to look again, if its field may come; nil,
-- why it can be no job
local function take_body(item, row, due, now_ms)
  local why, body = put_key(row.job, row.member), db('HGET', item.hash, row.member)
  if body then
    row.has_field, row.payload = true, body
    return nil, why
  elseif why or not due then
    return nil, why
  end
  local age = waits_ms(item, row.member, tonumber(row.score) * (item.unit == 's' and 1000 or 1),
                       now_ms)
  if age < FIELD_MS then
    return math.min(math.max(age, LEAST_MS), MOST_MS)
  end
  return nil, 'it has no field in ' .. quote(item.hash) .. ' after 10 s'
end

-- Why a member that can be no job stays where it is; nil: it may go. other_ms: of
-- foreign.foreign_due
local function keeps(R, item, why, other_ms, now_ms)
  if other_ms and other_ms > now_ms then
    return why
  end
  item.dead = item.dead or db('ZCARD', R .. ':dead:' .. item.queue)
  if item.dead >= DEAD_MAX then
    return 'queue ' .. item.queue .. ' has no room for more dead jobs, and ' .. why
  end
  item.dead = item.dead + 1
end

-- -> {job, member, score, payload, has_field, why (it can be no job)}; nil, in how many ms to look
-- again; nil, nil: it stays
local function judge(R, item, member, score, now_ms)
  local due, bad_score, other_ms = foreign.foreign_due(score, item.unit, now_ms)
  local row = {job = {queue = item.queue, priority = 5, due = math.min(due or now_ms, now_ms),
                      origin = 'adopted from ' .. item.key},
               member = member, score = score, payload = member}
  local again, why = nil, nil
  if item.hash ~= '' then
    again, why = take_body(item, row, due, now_ms)
  end
  if again then
    return nil, again
  end
  row.why = bad_score or why or unfit(R, item, row.job, row.payload)
  local stays = row.why and keeps(R, item, row.why, other_ms, now_ms)
  if stays then
    item.why = item.why or stays
    return nil
  end
  return row
end

-- Judge what was read, into the lists of item. -> how many members were handled, how many stay
local function judge_all(R, item, rows, ctx)
  local stay = 0
  for i = 1, #rows, 2 do
    local row, again = judge(R, item, rows[i], rows[i + 1], ctx.now_ms)
    ctx.bytes = ctx.bytes - #rows[i] - (row and row.has_field and #row.payload or 0)
    if row then
      item.rows[#item.rows + 1] = row
    else
      item.again, stay = math.min(item.again, again or math.huge), stay + 1
    end
    if ctx.bytes <= 0 then
      return (i + 1) / 2, stay
    end
  end
  return #rows / 2, stay
end

-- Members that are due, behind those that were passed over. -> may there be more?
local function take_due(R, item, last, ctx)
  local rows = job_sets.read_set(item.key, item.passed, ctx.rows, ctx.bytes, last)
  local n, stay = judge_all(R, item, rows, ctx)
  ctx.rows, item.passed = ctx.rows - n, item.passed + stay
  return (ctx.rows <= 0 or ctx.bytes <= 0) and item.passed < PASSED_MAX
end

-- Members that can never be due.
local function take_never(R, item, ctx)
  local n = redis.call('ZCOUNT', item.key, '(' .. score_of(item.unit, LATEST), '+inf')
  if n > 0 then
    local rows = job_sets.read_set(item.key, redis.call('ZCARD', item.key) - n,
                                   math.min(n, ctx.rows), ctx.bytes)
    ctx.rows = ctx.rows - judge_all(R, item, rows, ctx)
  end
end

-- -> when the first member is due that is not due yet, ms; '-' for none. It may be large, so it is
-- read only if one may be due before the next that is known.
local function next_due(item, last, now_ms)
  if item.next and item.next > now_ms and
     redis.call('ZCOUNT', item.key, '(' .. last, '(' .. score_of(item.unit, item.next)) == 0 then
    return item.next
  end
  local row = redis.call('ZRANGEBYSCORE', item.key, '(' .. last, '+inf', 'WITHSCORES',
                         'LIMIT', 0, 1)
  local due = row[2] and foreign.foreign_due(row[2], item.unit, now_ms)
  return due and math.max(due, now_ms + 1) or '-'
end

-- These members wait for no field any more. What its producer has removed is forgotten later.
local function forget_bodyless(item, members, now_ms)
  if db('EXISTS', item.bodyless) == 0 then
    return
  end
  if members[1] then
    db('ZREM', item.bodyless, unpack(members))
  end
  local old = db('ZRANGEBYSCORE', item.bodyless, '-inf', int(now_ms - FORGET_MS), 'LIMIT', 0, ROWS)
  if old[1] then
    db('ZREM', item.bodyless, unpack(old))
  end
end

-- Write the rows of an item. -> how many are jobs, how many are dead
local function write(R, item, ctx)
  local jobs, payloads, members, fields = {}, {}, {}, {}
  for i, row in ipairs(item.rows) do
    members[i] = row.member
    fields[#fields + 1] = row.has_field and row.member or nil
    if row.why then
      adds.bury_new(R, row.job, row.payload, row.why, ctx.now_us)
    else
      jobs[#jobs + 1], payloads[#payloads + 1] = row.job, row.payload
    end
  end
  if jobs[1] then
    imports.write_many(R, item.queue, jobs, payloads, ctx.now_us)
    commit.count(R, 'adopted', item.queue, #jobs)
  end
  foreign.remove_foreign(item.key, members, item.hash, fields)
  if item.hash ~= '' then
    forget_bodyless(item, members, ctx.now_ms)
  end
  return #jobs, #members - #jobs
end

local function note(R, item, why, now_ms)
  tidy.note(R, string.sub('bad-adoption:' .. item.queue .. ' ' .. why, 1, tidy.NOTE_BYTES), now_ms)
end

-- -> its row of the reply
local function collect(R, item, ctx)
  if ctx.rows <= 0 or ctx.bytes <= 0 then
    return {item.next or '-', '-', item.passed, 0, 0, ''}
  end
  foreign.check_foreign(R, item.key, item.hash)
  item.rows, item.again, item.bodyless = {}, math.huge, R .. ':bodyless:' .. item.queue
  item.of_queue = wanted.queue_gates(db('HGET', R .. ':queues', item.queue))
  local last, is_more = score_of(item.unit, ctx.now_ms), false
  if redis.call('ZCOUNT', item.key, '-inf', last) > item.passed then
    is_more = take_due(R, item, last, ctx)
  end
  take_never(R, item, ctx)
  local added, buried = 0, 0
  if item.rows[1] then
    foreign.need_removal(item.key, item.hash)
    added, buried = write(R, item, ctx)
  elseif item.again < math.huge then
    forget_bodyless(item, {}, ctx.now_ms)
  end
  if item.why then
    note(R, item, item.why, ctx.now_ms)
  end
  return {next_due(item, last, ctx.now_ms),
          item.again < math.huge and ctx.now_ms + item.again or '-',
          is_more and item.passed or '-', added, buried, item.why or ''}
end

-- What is wrong with a queue, for people.
local function explain(e)
  local text = syncs.error_text(e)
  if string.find(text, "can't access at least one of the keys", 1, true) or
         string.find(text, 'o permissions to access ', 1, true) then -- Redis 7.0, its successors
    return "this worker's user has no right to its keys (ACL)"
  end
  return (string.gsub(text, '^ELATER.%u+ ', ''))
end

register('later_v1_collect', {}, function(R, args)
  local items = read_items(args)
  local status = beats.worker(R, args[1])
  if status ~= 'ok' then
    fail('ELATER_WORKER', 'worker ' .. quote(args[1]) .. ' is ' .. status)
  end
  local now_us = clock.now_us()
  local ctx = {now_us = now_us, now_ms = clock.ms(now_us), rows = ROWS, bytes = BYTES}
  local out = {now_us}
  for i, item in ipairs(items) do
    local ok, row = change.try(collect, R, item, ctx)
    if not ok then
      local why = explain(row)
      note(R, item, why, ctx.now_ms)
      row = {'-', '-', '-', 0, 0, why}
    end
    out[i + 1] = row
  end
  return out
end)
