-- Claiming: which jobs of which queues a step gives to its worker (v1_step.lua has the order of them).
--
-- ctx, what one step knows: now_us, now_ms, until_ms (plain jobs may be claimed so early), epoch_text, held (jobs that
-- the worker runs), max (claims in all), claimed (so far), bytes (of records that may still be read), claims and short
-- (the reply, filled here; short may be nil), solo_due, book (gate.lua), is_more (a look ended at a bound). Of the queues
-- that are named: names, marks, paused, gates, heads (of R:heads, by number), head (of the one at hand).
-- Candidates: {key, id or raw, due, turn}, then record, job, tries; why: it is buried.

local LOOK_ROUNDS = 4
local LOOK_WINDOW = 64
local RAW_ROWS = 16

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
  local rows = redis.call('ZRANGE', key, 0, room, 'WITHSCORES')
  local taken = 0
  for i = 1, #rows, 2 do
    local due = L.due(rows[i + 1])
    if due > ctx.now_ms or taken == room then
      return due, #rows
    end
    taken = taken + 1
    out[#out + 1] = {key = key, id = rows[i], turn = due, due = due}
  end
  return math.huge, #rows
end

-- The raw members the same way. One that can never be due is buried when tidied (v1_tidy).
local function take_raw(key, room, ctx, out)
  local rows = redis.call('ZRANGE', key, 0, math.min(room, RAW_ROWS), 'WITHSCORES')
  local taken = 0
  for i = 1, #rows, 2 do
    local score, due = tonumber(rows[i + 1]), L.due(rows[i + 1])
    if due > ctx.now_ms or taken == room or taken == RAW_ROWS then
      return due
    end
    taken = taken + 1
    out[#out + 1] = {key = key, raw = rows[i], turn = due,
                     due = score > L.SECONDS_TO and due or ctx.now_ms, why = bad_score(score)}
  end
  return math.huge
end

-- Two lists in order of their scores -> the first `room` of both; the rest only lowers the head.
-- Not by due time: a raw member from before 1973 is always due just now, and would stand behind
-- every backlog, with all raw members behind it.
local function merge(a, b, room, head)
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
    head = math.min(head, b[k].due)
  end
  return out, head
end

-- Candidates of a queue in the order of claiming, and the head that is left behind them.
local function gather(R, queue, room, ctx)
  local marks, kept = ctx.marks[queue], ''
  local cands, head = {}, math.huge
  for p = 0, 9 do
    local digit = L.int(p)
    if p == 5 then
      local ids, raws = {}, {}
      local left = room - #cands
      local h1 = take_ids(R .. ':q:' .. queue .. ':5', left, ctx, ids)
      local h2 = take_raw(R .. ':due:' .. queue, left, ctx, raws)
      local both
      both, head = merge(ids, raws, left, math.min(head, h1, h2))
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
  local rows = redis.call('ZRANGE', key, 0, 1, 'WITHSCORES')
  if #rows == 0 then
    return nil, math.huge, ''
  end
  local due, solo = L.due(rows[2]), nil
  if due <= ctx.now_ms and room > 0 and ctx.held == 0 and ctx.claimed == 0 then
    solo = {key = key, id = rows[1], due = due}
    due = rows[4] and L.due(rows[4]) or math.huge
  end
  if due <= ctx.now_ms then
    ctx.solo_due = 1
    due = math.huge
  end
  return solo, due, 's'
end

-- The first granted jobs of a queue, up to `most`: those that are written, or those that this call has granted.
local function read_granted(R, queue, most, ctx)
  local cands, key, fresh = {}, R .. ':granted:' .. queue, L.fresh_grants(ctx.book, queue)
  if fresh then
    for i = 1, math.min(#fresh, most) do
      cands[i] = {id = fresh[i].id, is_granted = true, fresh = fresh[i], due = fresh[i].spot.due,
                  gates = fresh[i].spot.gates}
    end
    return cands
  end
  local ids = redis.call('ZRANGE', key, 0, most - 1)
  local spots = #ids > 0 and redis.call('HMGET', R .. ':parked', unpack(ids))
  for i, id in ipairs(ids) do
    local spot = L.read_spot(spots[i])
    cands[i] = {key = key, id = id, is_granted = true, due = spot and spot.due or ctx.now_ms,
                gates = spot and spot.gates}
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
  local tries = #ids > 0 and redis.call('HMGET', R .. ':tries', unpack(ids))
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
  return redis.call('HMGET', R .. ':jobs', unpack(ids)),
         cands[1].is_granted and tries or redis.call('HMGET', R .. ':tries', unpack(ids))
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
      c.record, c.tries, c.job = records[k], L.tries(tries[k]), L.parse(records[k])
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
    for _, id in ipairs(c.gates or {}) do
      L.need_gate(ctx.book, queue, id)
    end
    picked[#picked + 1] = c
    if ctx.bytes <= 0 then
      break
    end
  end
  return picked
end

-- The id and the record of a candidate that has none yet, or a broken one.
local function give_record(R, queue, c, number, records)
  if c.raw then
    c.id = L.id(number)
    c.job.big = #c.raw > L.BIG
    c.record = L.header(c.job) .. (c.job.big and '' or c.raw)
    if c.job.big then
      redis.call('SET', R .. ':big:' .. c.id, c.raw)
    end
  elseif c.broken then
    c.record = L.mended(R, c.id, queue, c.record or nil)
  end
  if c.raw or c.broken then
    records[#records + 1] = c.id
    records[#records + 1] = c.record
  end
end

-- Whether it holds all its gates now; else it stands in line and is not claimed. holds: what to remember
-- of it, besides its unique key, until it ends.
local function passes(queue, c, fence, book, holds, spots)
  if c.is_granted then
    if c.fresh then
      L.take_fresh(book, queue, c.fresh)
    else
      L.unpark(book, queue, c.id, true)
    end
    L.spend(book, c.id, c.gates, fence)
  else
    local spot = c.gates and L.pass_gates(book, queue, c.id, c.gates, c.due, fence)
    if spot then
      spots[#spots + 1] = spot
      return false
    end
  end
  local text = L.holding_started(c.gates, c.job)
  c.is_guarded = L.is_guarded(book, c.gates)
  if text then
    holds[#holds + 1] = c.id
    holds[#holds + 1] = text
  elseif c.is_granted then
    redis.call('HDEL', book.R .. ':holds', c.id)
  end
  return true
end

-- All writes of one queue's claims and burials, up to `most` claims in the call. Every type was read or
-- checked before. -> how many stand before a gate now; candidates that were not needed have is_left
local function commit(R, queue, picked, most, ctx)
  local number = L.tick(R, ctx.now_us, 2 * #picked)
  local gone, running, starts, records, holds, spots = {}, {}, {}, {}, {}, {}
  for i, c in ipairs(picked) do
    local fence = number + 2 * i - 1
    c.is_left = ctx.claimed >= most
    if not c.is_left then
      if c.key then
        gone[c.key] = gone[c.key] or {}
        table.insert(gone[c.key], c.raw or c.id)
      end
      give_record(R, queue, c, number + 2 * i - 2, records)
    end
    if c.is_left then
      ctx.bytes = ctx.bytes + #(c.raw or c.record or '')
    elseif not c.why and not passes(queue, c, fence, ctx.book, holds, spots) then
      c.is_parked = true
      if L.events then
        L.event('parked', c.id, queue, c.due)
      end
    elseif not c.why then
      c.tries.starts, c.tries.attempts = c.tries.starts + 1, c.tries.attempts + 1
      running[#running + 1] = ctx.epoch_text
      running[#running + 1] = c.id
      starts[#starts + 1] = c.id
      starts[#starts + 1] = L.tries_text(c.tries, c.due)
      ctx.claimed = ctx.claimed + 1
      ctx.claims[#ctx.claims + 1] = {c.id, queue, c.tries.starts, c.tries.attempts, c.tries.crashes, fence, c.due,
                                     c.record, c.is_guarded and 2 or c.gates and 1 or 0}
      if L.events then
        L.event('started', c.id, queue, c.due, c.tries.starts, c.tries.attempts)
      end
    end
  end
  if #records > 0 then
    redis.call('HSET', R .. ':jobs', unpack(records))
    -- Raw members that are claimed at once never had a head, by which queues become known.
    redis.call('SADD', R .. ':names', queue)
  end
  L.stand_all(ctx.book, queue, spots)
  if #holds > 0 then
    redis.call('HSET', R .. ':holds', unpack(holds))
  end
  if #running > 0 then
    redis.call('HSET', R .. ':tries', unpack(starts))
    redis.call('ZADD', R .. ':running', unpack(running))
  end
  for key, members in pairs(gone) do
    redis.call('ZREM', key, unpack(members))
  end
  for _, c in ipairs(picked) do
    if c.why and not c.is_left then
      if c.fresh then
        L.keep_fresh(ctx.book, queue, c.fresh)
      end
      if c.is_granted then
        L.unpark(ctx.book, queue, c.id)
      end
      L.bury(R, queue, c.id, L.outcome('dead', 0, ctx.now_ms, c.tries.starts, c.why, ''), ctx.now_ms)
    end
  end
  return #spots
end

-- The marks and the head of a queue as they are now.
local function remember(R, queue, marks, head, ctx)
  if marks ~= ctx.marks[queue] then
    if marks == '' then
      redis.call('HDEL', R .. ':prio', queue)
    else
      redis.call('HSET', R .. ':prio', queue, marks)
    end
    ctx.marks[queue] = marks
  end
  local was = ctx.head
  if head == math.huge then
    if was then
      redis.call('ZREM', R .. ':heads', queue)
    end
  elseif not was or tonumber(was) ~= head then
    redis.call('ZADD', R .. ':heads', L.int(head), queue)
    if not was then
      redis.call('SADD', R .. ':names', queue)
    end
    if not was or head < tonumber(was) then
      -- A raw member nobody was told of: whoever has room should know.
      redis.pcall('PUBLISH', R .. ':wake', queue)
    end
  end
end

-- Claim or bury these candidates, up to `most` claims in the call. -> the head that those leave that were
-- not picked, how many stand before a gate now
local function take(R, queue, cands, max_payload, head, most, ctx)
  local picked = examine(R, queue, cands, max_payload, ctx)
  for _, c in ipairs(picked) do
    if c.why then
      L.need(R, 'dead:' .. queue, 'zset')
      break
    end
  end
  local parked = commit(R, queue, picked, most, ctx)
  -- Those behind a bound stay: by priority, so any of them may be the first due.
  for i, c in ipairs(cands) do
    if i > #picked or c.is_left then
      head = math.min(head, c.due)
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
  for _ = 1, LOOK_ROUNDS do
    local cands, parked
    local left = ctx.bytes > 0 and most - ctx.claimed or 0
    cands, head, marks = gather(R, queue, left > 0 and math.max(left, window) or 0, ctx)
    if #cands == 0 then
      return head, marks
    end
    head, parked = take(R, queue, cands, max_payload, head, most, ctx)
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
  if not string.find(ctx.marks[queue], 's', 1, true) then
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
  if not ctx.book.fresh[queue] and not string.find(ctx.marks[queue], 'g', 1, true) then
    return math.huge, ''
  end
  local cands, solo, is_left = gather_granted(R, queue, room, ctx)
  local head = is_left and ctx.now_ms or math.huge
  if #cands > 0 then
    head = take(R, queue, cands, max_payload, head, ctx.claimed + room, ctx)
    ctx.solo = ctx.solo or (solo and not solo.why)
  end
  L.keep_all_fresh(ctx.book, queue)
  -- Without a mark none was written.
  if not string.find(ctx.marks[queue], 'g', 1, true) then
    return head, ''
  elseif redis.call('EXISTS', R .. ':granted:' .. queue) == 1 then
    return head, 'g'
  end
  redis.call('ZREM', R .. ':timers', 'granted:' .. queue)
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
    redis.call('HDEL', R .. ':paused', queue)
  end
  local most = ctx.claimed + math.min(room, ctx.max - ctx.claimed)
  local head, marks = math.huge, string.find(ctx.marks[queue], 'a', 1, true) and 'a' or ''
  for i = 1, #WAYS do
    local left = ctx.bytes > 0 and not ctx.solo and most - ctx.claimed or 0
    local its_head, its_marks = WAYS[i](R, queue, left, max_payload, ctx)
    head, marks = math.min(head, its_head), its_marks .. marks
  end
  remember(R, queue, marks, head, ctx)
  return head == math.huge and -1 or head
end

-- Queues that stand aside at some gate and have room here stand in line again.
local function rejoin_all(R, queues, ctx)
  local any, rest = false, {}
  for i = 1, #queues do
    local q = queues[i]
    local marks = ctx.marks[q.name]
    if marks ~= '' and q.room > 0 and string.find(marks, 'a', 1, true) and
       not L.paused_until(ctx.paused[q.name], ctx.now_ms) then
      any = true
      local left, called = L.rejoin(ctx.book, q.name)
      if left == 0 then
        L.mark_clear(R, q.name, 'a')
        ctx.marks[q.name] = string.gsub(ctx.marks[q.name], 'a', '')
      else
        rest[q.name] = left + called
      end
    end
  end
  if any then
    L.settle_gates(ctx.book, true)
  end
  for name, all in pairs(rest) do
    -- Where none stayed in line there is no room after all: the next ones would fare no better.
    ctx.is_more = ctx.is_more or redis.call('SCARD', R .. ':aside:' .. name) < all
  end
end

-- What a step has to know of the queues that it names before the gates are settled.
function L.read_queues(R, queues, ctx)
  local names, room, most, book = {}, ctx.book.room, ctx.max, ctx.book
  for i = 1, #queues do
    local q = queues[i]
    local name, its_room = q.name, q.room
    if room[name] then
      q.is_again = true
    end
    names[i], room[name] = name, its_room < most and its_room or most
  end
  if #names > 0 then
    book.paused = L.fields_of(R, 'paused', names)
    local marks = L.fields_of(R, 'prio', names)
    for i = 1, #names do
      marks[names[i]] = marks[names[i]] or ''
    end
    book.marks = marks
    ctx.gates = L.fields_of(R, 'queues', names)
    for name, text in pairs(ctx.gates) do
      ctx.gates[name] = L.queue_gates(text)
    end
  end
  ctx.names, ctx.paused, ctx.marks = names, book.paused, book.marks
end

-- Claim from these queues, {name, room, max_payload} each, in their order; those with a due suspect first, where
-- nothing runs. -> head per queue, {queue, error, ...}
function L.claim_all(R, queues, ctx)
  local errors, names = {}, ctx.names
  if #names == 0 then
    return {}, errors
  end
  rejoin_all(R, queues, ctx)
  local heads = L.idle_heads(R, queues, ctx)
  local function claim(i, q)
    local before = ctx.claimed
    ctx.head = ctx.heads[i]
    local ok, head = pcall(claim_queue, R, q.name, q.room, q.max_payload, ctx)
    heads[i] = ok and head or -1
    if not ok then
      errors[#errors + 1] = q.name
      errors[#errors + 1] = L.error_text(head)
    end
    ctx.book.room[q.name] = math.min(q.room, ctx.max) - (ctx.claimed - before)
  end
  -- A worker that runs nothing looks for suspects first: any other claim would shut them out.
  local function has_due_suspect(q)
    local marks = ctx.marks[q.name]
    if ctx.held > 0 or q.room == 0 then
      return false
    end
    -- One that is due later must not put its queue in front, and a foreign type is told by claim.
    if string.find(marks, 's', 1, true) and
       redis.pcall('ZRANGEBYSCORE', R .. ':solo:' .. q.name, '-inf', L.int(ctx.now_ms), 'LIMIT', 0, 1)[1] then
      return true
    end
    local fresh = L.fresh_grants(ctx.book, q.name)
    local first = fresh and fresh[1].id or
                  (string.find(marks, 'g', 1, true) and redis.pcall('ZRANGE', R .. ':granted:' .. q.name, 0, 0)[1])
    return first and L.tries(redis.call('HGET', R .. ':tries', first)).crashes >= L.SOLO_CRASHES
  end
  for i = 1, #queues do
    if not heads[i] and has_due_suspect(queues[i]) then
      claim(i, queues[i])
    end
  end
  for i = 1, #queues do
    if not heads[i] then
      claim(i, queues[i])
    end
  end
  -- One that runs alone takes all the room there is.
  local room, left, has_fresh = ctx.book.room, ctx.solo and 0 or ctx.max - ctx.claimed, next(ctx.book.fresh)
  for i = 1, (left < ctx.max or has_fresh) and #names or 0 do
    local name = names[i]
    if has_fresh then
      L.keep_all_fresh(ctx.book, name)
    end
    room[name] = room[name] < left and room[name] or left
  end
  return heads, errors
end
