-- Claiming: which jobs of which queues a step gives to its worker (v1/step.lua has the order of them).
--
-- ctx, what one step knows: now_us, now_ms, until_ms (plain jobs may be claimed so early), epoch (a number), epoch_text,
-- held (jobs that the worker runs), max (claims in all), claimed (so far), bytes (of records that may still be read),
-- peek (of raw members that are read for their scores), parked (so far), claims and short (the reply, filled here; short
-- may be nil), solo_due, book (gate.lua), is_more (a look ended at a bound). Of the queues that are named: names, marks,
-- paused, gates, heads (of R:heads, by number).
-- Candidates: {key, id or raw, score, due, turn}, then record, job, tries; why: it is buried.

local LOOK_ROUNDS = 4
local LOOK_WINDOW = 64
local PARKED_MAX = 128      -- jobs that a call parks; those of one look more,
local FEW = 16              -- and then so many that it looks at of each queue
local RAW_ROWS = 16
local RAW_BYTES = 1048576

-- Why a raw member with this score cannot be a job, or nil.
local function bad_score(score)
  if score ~= score or score == math.huge or score == -math.huge then
    return 'its score is not finite'
  elseif score > L.LATEST then
    return 'its score is after the year 5000'
  elseif score >= L.SECONDS_FROM and score <= L.SECONDS_TO then
    return 'its score looks like seconds, milliseconds are needed'
  end
  return nil
end

-- The ids of one priority: appends up to `room` due ones to out, returns the due ms of the first
-- that stays (math.huge for none) and how many there were at all.
local function take_ids(key, room, ctx, out)
  local rows = db('ZRANGE', key, 0, room, 'WITHSCORES')
  local taken = 0
  for i = 1, #rows, 2 do
    local due = L.due(rows[i + 1])
    if due > ctx.now_ms or taken == room then
      return due, #rows
    end
    taken = taken + 1
    out[#out + 1] = {key = key, id = rows[i], score = rows[i + 1], turn = due, due = due}
  end
  return math.huge, #rows
end

-- The raw members the same way, which may be large: only those that are due are read, and no more bytes of them than a call
-- may read. One that can never be due is buried when tidied (v1_tidy). A head is never later than the first one is due.
local function take_raw(R, queue, room, ctx, out)
  local key, known = R .. ':due:' .. queue, db('ZSCORE', R .. ':heads', queue)
  -- What this call has claimed of them were the first ones.
  local left, gone = db('ZCARD', key), L.gone_from(key)
  local most, bytes = math.min(room, RAW_ROWS), math.min(ctx.bytes, RAW_BYTES)
  if left == 0 then
    return math.huge
  elseif most == 0 and (known and known <= ctx.now_ms or redis.call('ZCOUNT', key, '-inf', L.int(ctx.now_ms)) > gone) then
    return ctx.now_ms
  end
  local rows = L.read_members(key, gone, most, bytes, ctx.now_ms)
  for i = 1, #rows, 2 do
    local score, turn = tonumber(rows[i + 1]), L.due(rows[i + 1])
    out[#out + 1] = {key = key, raw = rows[i], score = rows[i + 1], turn = turn,
                     due = score > L.SECONDS_TO and turn or ctx.now_ms, why = bad_score(score)}
    bytes = bytes - #rows[i]
  end
  local taken = #rows / 2
  if taken == left then
    return math.huge
  elseif most > 0 and (taken == most or bytes <= 0) then
    return ctx.now_ms
  end
  return L.next_raw(key, gone + taken, ctx, known)
end

-- Two lists in order of their scores -> the first `room` of both; the rest only lowers the head.
-- Not by due time: a raw member from before 1973 is always due just now, and would stand behind
-- every backlog, with all raw members behind it.
local function merge(a, b, room, head, now_ms)
  local out, i, k = {}, 1, 1
  while #out < room and (a[i] or b[k]) do
    if b[k] == nil or (a[i] and a[i].turn <= b[k].turn) then
      out[#out + 1] = a[i]
      i = i + 1
    else
      out[#out + 1] = b[k]
      k = k + 1
    end
  end
  if a[i] then
    head = math.min(head, a[i].due)
  end
  if b[k] then
    head = math.min(head, now_ms)
  end
  return out, head
end

-- Candidates of a queue in the order of claiming, and the head that is left behind them.
local function gather(R, queue, room, ctx)
  local marks, kept = ctx.marks[queue] or '', ''
  local cands, head = {}, math.huge
  for p = 0, 9 do
    local digit = L.int(p)
    if p == 5 then
      local ids, raws = {}, {}
      local left = room - #cands
      local h1 = take_ids(R .. ':q:' .. queue .. ':5', left, ctx, ids)
      local h2 = take_raw(R, queue, left, ctx, raws)
      local both
      both, head = merge(ids, raws, left, math.min(head, h1, h2), ctx.now_ms)
      for _, c in ipairs(both) do
        cands[#cands + 1] = c
      end
    elseif string.find(marks, digit, 1, true) then
      local h, rows = take_ids(R .. ':q:' .. queue .. ':' .. digit, room - #cands, ctx, cands)
      head = math.min(head, h)
      kept = rows > 0 and kept .. digit or kept
    end
  end
  return cands, head, kept
end

-- The first suspect of a queue; claimed only by a worker that runs nothing else. -> it or nil, the
-- head behind it (not one that is due: only an idle worker can do something about it), the mark.
local function gather_solo(R, queue, room, ctx)
  local key = R .. ':solo:' .. queue
  local rows = db('ZRANGE', key, 0, 1, 'WITHSCORES')
  if #rows == 0 then
    return nil, math.huge, ''
  end
  local due, solo = L.due(rows[2]), nil
  if due <= ctx.now_ms and room > 0 and ctx.held == 0 and ctx.claimed == 0 then
    solo = {key = key, id = rows[1], score = rows[2], due = due}
    due = rows[4] and L.due(rows[4]) or math.huge
  end
  if due <= ctx.now_ms then
    ctx.solo_due = 1
    due = math.huge
  end
  return solo, due, 's'
end

-- The first granted jobs of a queue, up to `most`. One whose rate was shut or deleted since stands before that again.
local function read_granted(R, queue, most, ctx)
  local cands = {}
  local ids = db('ZRANGE', R .. ':granted:' .. queue, 0, most - 1)
  local spots = #ids > 0 and db('HMGET', R .. ':parked', unpack(ids))
  for i, id in ipairs(ids) do
    local spot = L.read_spot(spots[i])
    local closed = L.closed_gate(ctx.book, spot)
    if closed then
      L.take_back(ctx.book, queue, id, closed)
    else
      cands[#cands + 1] = {id = id, is_granted = true, due = spot and spot.due or ctx.now_ms, gates = spot and spot.gates}
    end
  end
  return cands
end

-- The granted jobs of a queue, before all others. A suspect among them is claimed only by a worker that
-- runs nothing else. -> candidates, the one that has to be alone or nil, whether some are left
local function gather_granted(R, queue, room, ctx)
  local granted, ids = read_granted(R, queue, room + 1, ctx), {}
  for i, c in ipairs(granted) do
    ids[i] = c.id
  end
  local tries = #ids > 0 and db('HMGET', R .. ':tries', unpack(ids))
  local cands, is_left = {}, false
  for i, c in ipairs(granted) do
    c.tries_text = tries[i]
    if #cands >= room then
      is_left = true
    elseif L.tries(tries[i]).crashes < L.SOLO_CRASHES then
      cands[#cands + 1] = c
    elseif ctx.held == 0 and ctx.claimed == 0 and #cands == 0 then
      return {c}, c, #ids > 1
    else
      ctx.solo_due = 1
    end
  end
  return cands, nil, is_left
end

-- A payload that no add would take now: its key or record was written by hand, or the limit was lowered,
-- and its worker is not to hold it. The larger of both limits counts, since workers learn of a new one one
-- after the other.
local function too_large(R, queue, c, max_payload)
  local n = c.job.big and redis.pcall('STRLEN', R .. ':big:' .. c.id) or #c.record - c.job.body + 1
  -- A foreign type is told by the fetch.
  if type(n) ~= 'number' or n <= math.max(max_payload, L.BIG) then
    return nil
  end
  local max = math.max(max_payload, L.max_payload(R, queue))
  return n > max and 'the payload has ' .. L.int(n) .. ' bytes, queue ' .. queue .. ' takes ' .. L.int(max) or nil
end

-- The records of the candidates that have an id, and their tries: those of granted ones were read.
local function read_jobs(R, cands)
  local ids, tries = {}, {}
  for _, c in ipairs(cands) do
    ids[#ids + 1] = c.id
    tries[#tries + 1] = c.tries_text
  end
  if #ids == 0 then
    return {}, {}
  end
  return db('HMGET', R .. ':jobs', unpack(ids)),
         cands[1].is_granted and tries or db('HMGET', R .. ':tries', unpack(ids))
end

-- Read the records of the candidates; decides for each: claim it, or bury it (c.why). c.gates: what it has
-- to pass first.
local function examine(R, queue, cands, max_payload, ctx)
  local records, tries = read_jobs(R, cands)
  local k, picked = 0, {}
  for _, c in ipairs(cands) do
    if c.raw then
      c.job = {queue = queue, priority = 5}
      c.tries = L.tries(nil)
      if not c.why and #c.raw > max_payload then
        c.why = 'the payload has ' .. L.int(#c.raw) .. ' bytes, queue ' .. queue .. ' takes ' .. L.int(max_payload)
      end
      ctx.bytes = ctx.bytes - #c.raw
    else
      k = k + 1
      c.record, c.tries_text, c.tries, c.job = records[k], tries[k], L.tries(tries[k]), L.parse(records[k])
      if c.job == nil or c.job.queue ~= queue then
        c.why, c.broken = c.record and L.CORRUPT or 'its record is missing', true
      elseif tries[k] and c.tries.due == nil then
        c.why = 'its tries are corrupt'
      elseif c.job.x and c.tries.starts == 0 and c.due + tonumber(c.job.x) < ctx.now_ms then
        c.why = 'expired: not started within ' .. c.job.x .. ' ms of its due time'
      else
        c.why = too_large(R, queue, c, max_payload)
      end
      ctx.bytes = ctx.bytes - (c.record and #c.record or 0)
    end
    if not c.why and not c.is_granted then
      c.gates, c.why = L.gates_of(c.job, ctx.gates[queue])
    end
    picked[#picked + 1] = c
    if ctx.bytes <= 0 then
      break
    end
  end
  return picked
end

-- The id and the record of a candidate that has none yet, or a broken one.
local function give_record(R, queue, c, number)
  if c.raw then
    c.id = L.id(number)
    c.record = L.insert(R, c.id, c.job, c.raw)
    -- Raw members that are claimed at once never had a head, by which queues become known.
    db('SADD', R .. ':names', queue)
  elseif c.broken then
    c.record = L.mended(R, c.id, queue, c.record or nil)
    db('HSET', R .. ':jobs', c.id, c.record)
  end
end

-- Whether it holds all its gates now; else it stands in line and is not claimed.
local function passes(queue, c, fence, book)
  if c.is_granted then
    L.unpark(book, queue, c.id, true)
    L.spend(book, c.id, c.gates, fence)
  else
    local spot = c.gates and L.pass_gates(book, queue, c.id, c.gates, c.due, fence)
    if spot then
      L.stand_new(book, queue, c.id, spot)
      return false
    end
    L.is_new(book.R .. ':holds', 'hash', c.id)
  end
  local text = L.holding_started(c.gates, c.job)
  if text then
    db('HSET', book.R .. ':holds', c.id, text)
  elseif c.is_granted then
    db('HDEL', book.R .. ':holds', c.id)
  end
  return true
end

-- starts: of L.start_many, where nothing else of the call is about the job
local function start(R, queue, c, fence, ctx, starts)
  c.tries.starts, c.tries.attempts = c.tries.starts + 1, c.tries.attempts + 1
  local text = L.tries_text(c.tries, c.due)
  if starts then
    local n = #starts.ids + 1
    starts.ids[n], starts.texts[n], starts.was[n] = c.id, text, c.tries_text or false
  else
    L.is_new(R .. ':running', 'zset', c.id)
    db('ZADD', R .. ':running', ctx.epoch, c.id)
    db('HSET', R .. ':tries', c.id, text)
  end
  ctx.claimed = ctx.claimed + 1
  local gated = L.is_guarded(ctx.book, c.gates) and 2 or c.gates and 1 or 0
  ctx.claims[#ctx.claims + 1] = {c.id, queue, c.tries.starts, c.tries.attempts, c.tries.crashes, fence, c.due, c.record,
                                 gated}
  if L.events then
    L.event('started', c.id, queue, c.due, c.tries.starts, c.tries.attempts)
  end
end

-- Start, park or bury one. number: for its id, and the next one for its fence; firsts: the candidates that were the first
-- of a set that the call has not changed, set -> list
local function settle(R, queue, c, number, ctx, firsts, starts)
  local list = firsts[c.key or '']
  give_record(R, queue, c, number)
  if list then
    list[#list + 1] = c
  elseif c.key then
    L.learn(c.key, 'zset', c.raw or c.id, tonumber(c.score))
    db('ZREM', c.key, c.raw or c.id)
  end
  if c.why then
    if c.is_granted then
      L.unpark(ctx.book, queue, c.id)
    end
    L.bury(R, queue, c.id, L.outcome('dead', 0, ctx.now_ms, c.tries.starts, c.why, ''), ctx.now_ms)
  elseif passes(queue, c, number + 1, ctx.book) then
    start(R, queue, c, number + 1, ctx, list and starts)
  else
    c.is_parked = true
    if L.events then
      L.event('parked', c.id, queue, c.due)
    end
  end
end

-- These first ones of a set go.
local function cut(key, list)
  if list then
    L.cut(key, #list, function()
      for _, c in ipairs(list) do
        redis.pcall('ZADD', key, c.score, c.raw or c.id)
      end
    end)
  end
end

-- Settle the candidates of a queue, up to `most` claims in the call. -> how many stand before a gate now; candidates that
-- were not needed have is_left
local function settle_all(R, queue, picked, most, ctx)
  local number, parked = L.tick(R, ctx.now_us, 2 * #picked), 0
  local firsts, starts = {}, {ids = {}, texts = {}, was = {}}
  for i, c in ipairs(picked) do
    c.is_left = ctx.claimed >= most
    if c.is_left then
      ctx.bytes = ctx.bytes + #(c.raw or c.record or '')
    else
      if c.key and firsts[c.key] == nil then
        firsts[c.key] = not L.has_changes(c.key) and {}
      end
      settle(R, queue, c, number + 2 * i - 2, ctx, firsts, starts)
      parked = parked + (c.is_parked and 1 or 0)
    end
  end
  for key, list in pairs(firsts) do
    cut(key, list)
  end
  L.start_many(R, starts, ctx)
  return parked
end

-- The marks and the head of a queue as they are now.
local function remember(R, queue, marks, head)
  local was = db('ZSCORE', R .. ':heads', queue)
  L.set_marks(R, queue, marks)
  if head == math.huge then
    db('ZREM', R .. ':heads', queue)
  elseif was ~= head then
    db('ZADD', R .. ':heads', head, queue)
    if not was then
      db('SADD', R .. ':names', queue)
    end
    if not was or head < was then
      -- A raw member nobody was told of: whoever has room should know.
      L.wake(R, queue)
    end
  end
end

-- Claim or bury these candidates, up to `most` claims in the call. -> the head that those leave that were
-- not picked, how many stand before a gate now
local function take(R, queue, cands, max_payload, head, most, ctx)
  local picked = examine(R, queue, cands, max_payload, ctx)
  local parked = settle_all(R, queue, picked, most, ctx)
  -- Those behind a bound stay: by priority, so any of them may be the first due.
  for i, c in ipairs(cands) do
    if i > #picked or c.is_left then
      head = math.min(head, c.raw and ctx.now_ms or c.due)
    end
  end
  return head, parked
end

-- The due jobs of a queue, up to `room`: the plain ones that are first as lists (plain.lua), all others one by one.
-- Those that have to stand before a gate make room for the ones behind them, within bounds. -> head, marks
local function claim_due(R, queue, room, max_payload, ctx)
  local most, head, marks = ctx.claimed + room, L.claim_plain(R, queue, room, ctx), ''
  local window = 0
  if head then
    return head, marks
  end
  for round = 1, LOOK_ROUNDS do
    local cands, parked
    local left = ctx.bytes > 0 and most - ctx.claimed or 0
    if ctx.parked >= PARKED_MAX then
      if round > 1 then
        break
      end
      left = math.min(left, FEW)
    end
    cands, head, marks = gather(R, queue, left > 0 and math.max(left, window) or 0, ctx)
    if #cands == 0 then
      return head, marks
    end
    head, parked = take(R, queue, cands, max_payload, head, most, ctx)
    ctx.parked = ctx.parked + parked
    if parked == 0 then
      return head, marks
    end
    window = LOOK_WINDOW
  end
  -- There may be one behind them that need not wait.
  ctx.is_more = ctx.is_more or head <= ctx.now_ms
  return head, marks
end

-- The one job that must be alone, if there is one and this worker may run it. -> head, marks
local function claim_solo(R, queue, room, max_payload, ctx)
  if not L.has_mark(ctx, queue, 's') then
    return math.huge, ''
  end
  local solo, head, mark = gather_solo(R, queue, room, ctx)
  if solo then
    head = take(R, queue, {solo}, max_payload, head, ctx.claimed + 1, ctx)
    ctx.solo = not solo.why and not solo.is_parked
  end
  return head, mark
end

-- -> head, marks
local function claim_granted(R, queue, room, max_payload, ctx)
  if not L.has_mark(ctx, queue, 'g') then
    return math.huge, ''
  end
  local cands, solo, is_left = gather_granted(R, queue, room, ctx)
  local head = is_left and ctx.now_ms or math.huge
  if #cands > 0 then
    head = take(R, queue, cands, max_payload, head, ctx.claimed + room, ctx)
    ctx.solo = ctx.solo or (solo and not solo.why)
  end
  if db('ZCARD', R .. ':granted:' .. queue) > 0 then
    return head, 'g'
  end
  db('ZREM', R .. ':timers', 'granted:' .. queue)
  return head, ''
end

-- The ways to claim from a queue, in their order.
local WAYS = {claim_solo, claim_granted, claim_due}

-- Claim from one queue, of which R:heads says ctx.head; -> its head for the reply.
local function claim_queue(R, queue, room, max_payload, ctx)
  local paused = L.paused_until(ctx.paused[queue], ctx.now_ms)
  if paused then
    return paused == 0 and -1 or paused
  end
  if ctx.paused[queue] then
    db('HDEL', R .. ':paused', queue)
  end
  local most = ctx.claimed + math.min(room, ctx.max - ctx.claimed)
  local head, marks = math.huge, ''
  for i = 1, #WAYS do
    local left = ctx.bytes > 0 and not ctx.solo and most - ctx.claimed or 0
    local its_head, its_marks = WAYS[i](R, queue, left, max_payload, ctx)
    head, marks = math.min(head, its_head), its_marks .. marks
  end
  remember(R, queue, marks .. (L.has_mark(ctx, queue, 'a') and 'a' or ''), head)
  return head == math.huge and -1 or head
end

-- Queues that stand aside at some gate and have room here stand in line again. errors: as of L.claim_all, filled here
local function rejoin_all(R, queues, ctx, errors)
  local any, rest = false, {}
  for i = 1, #queues do
    local q = queues[i]
    if ctx.marks[q.name] and q.room > 0 and L.has_mark(ctx, q.name, 'a') and
       not L.paused_until(ctx.paused[q.name], ctx.now_ms) then
      any = true
      local ok, left, called, why = pcall(L.rejoin, ctx.book, q.name)
      if ok and left == 0 then
        L.mark_clear(R, q.name, 'a')
      elseif ok then
        rest[q.name] = left + called
      end
      why = not ok and L.error_text(left) or why
      if why then
        errors[#errors + 1], errors[#errors + 2] = q.name, why
      end
    end
  end
  if any then
    L.settle_gates(ctx.book, true)
  end
  for name, all in pairs(rest) do
    -- Where none stayed in line there is no room after all: the next ones would fare no better.
    ctx.is_more = ctx.is_more or db('SCARD', R .. ':aside:' .. name) < all
  end
end

-- What a step has to know of the queues that it names before the gates are settled.
function L.read_queues(R, queues, ctx)
  local names, room, most = {}, ctx.book.room, ctx.max
  for i = 1, #queues do
    local q = queues[i]
    local name, its_room = q.name, q.room
    if room[name] then
      q.is_again = true
    end
    names[i], room[name] = name, its_room < most and its_room or most
  end
  ctx.names, ctx.gates = names, {}
  if #names > 0 then
    ctx.paused, ctx.marks = L.know(R .. ':paused', names), L.know(R .. ':prio', names)
    local texts = L.know(R .. ':queues', names)
    for i = 1, #names do
      local text = texts[names[i]]
      ctx.gates[names[i]] = text and L.queue_gates(text) or nil
    end
  end
end

-- Has a queue this mark?
function L.has_mark(ctx, queue, mark)
  local marks = ctx.marks[queue]
  return marks and string.find(marks, mark, 1, true) ~= nil
end

-- What a part of the call that failed has put into the reply is taken out again.
local function forget_claims(ctx, was)
  for _, list in ipairs({ctx.claims, ctx.short}) do
    for i = #list, was[list] + 1, -1 do
      list[i] = nil
    end
  end
  ctx.claimed, ctx.solo = was.claimed, was.solo
end

-- -> its head; and why the queue could not be claimed from, nil where it could
local function claim_or_leave(R, q, ctx)
  local was = {claimed = ctx.claimed, solo = ctx.solo, [ctx.claims] = #ctx.claims}
  if ctx.short then
    was[ctx.short] = #ctx.short
  end
  local ok, head = L.attempt(claim_queue, R, q.name, q.room, q.max_payload, ctx)
  if not ok then
    forget_claims(ctx, was)
    return -1, L.error_text(head)
  end
  ctx.book.room[q.name] = math.min(q.room, ctx.max) - (ctx.claimed - was.claimed)
  return head
end

-- A worker that runs nothing looks for suspects first: any other claim would shut them out. One that is due later must
-- not put its queue in front.
local function has_due_suspect(R, q, ctx)
  if ctx.held > 0 or q.room == 0 or not ctx.marks[q.name] then
    return false
  elseif L.has_mark(ctx, q.name, 's') and
         db('ZRANGEBYSCORE', R .. ':solo:' .. q.name, '-inf', L.int(ctx.now_ms), 'LIMIT', 0, 1)[1] then
    return true
  end
  local first = L.has_mark(ctx, q.name, 'g') and db('ZRANGE', R .. ':granted:' .. q.name, 0, 0)[1]
  return first and L.tries(db('HGET', R .. ':tries', first)).crashes >= L.SOLO_CRASHES
end

-- Claim from these queues, {name, room, max_payload} each, in their order; those with a due suspect first, where
-- nothing runs. -> head per queue, {queue, error, ...}
function L.claim_all(R, queues, ctx)
  local errors, names = {}, ctx.names
  if #names == 0 then
    return {}, errors
  end
  rejoin_all(R, queues, ctx, errors)
  local heads = L.idle_heads(R, queues, ctx)
  local function claim(i, q)
    L.learn(R .. ':heads', 'zset', q.name, ctx.heads[i] and tonumber(ctx.heads[i]))
    local head, why = claim_or_leave(R, q, ctx)
    heads[i] = head
    if why then
      errors[#errors + 1], errors[#errors + 2] = q.name, why
    end
  end
  for i = 1, #queues do
    -- A foreign type is told by claim.
    local ok, is_first = pcall(has_due_suspect, R, queues[i], ctx)
    if not heads[i] and ok and is_first then
      claim(i, queues[i])
    end
  end
  for i = 1, #queues do
    if not heads[i] then
      claim(i, queues[i])
    end
  end
  -- One that runs alone takes all the room there is.
  local room, left = ctx.book.room, ctx.solo and 0 or ctx.max - ctx.claimed
  for i = 1, left < ctx.max and #names or 0 do
    local name = names[i]
    room[name] = room[name] < left and room[name] or left
  end
  return heads, errors
end
