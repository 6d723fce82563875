-- The lines before the gates: who waits, whose turn it is, and what happens when a gate opens.
--
--   R:wait:<gate>          ZSET  queue, @EPOCH or =OWNER -> lowest ticket: who stands in line
--   R:line:<queue>:<gate>  ZSET  job -> ticket: the jobs of a queue in line there
--   R:aside:<queue>        SET   gates at whose line the queue is not called now
--   R:parked:<queue>       ZSET  job -> ticket: all its jobs that wait for a gate or were granted one
--   R:parked               HASH  job -> spot; @EPOCH or =OWNER LF gate -> ticket and until when
--   R:granted:<queue>      ZSET  job -> ms: holds all its gates, to be claimed before all others
--   R:timers               ZSET  gate:<gate> or granted:<queue> -> ms: when to look there again
--
-- spot: "<ticket> <passes> <due> <at>" LF gate LF gate ... at: which of its gates it waits for, 0 when
-- it was granted. Tickets come from the hybrid clock, so they rise; a job keeps its own until it starts.
-- All gates of a job are taken together or none. One that was passed over for PASSES times takes them
-- one by one instead, in the order of their ids, and keeps what it has: so it comes to its turn, and
-- since all take them in one order none waits for the other in a circle.
-- A grant that no worker claims within GRANT_MS goes back, and its queue stands aside at that gate until
-- a step names it with room: nobody else waits for a queue that is full, paused or served by nobody.

local PASSES = 16
local OPEN_MAX = 64
local GRANT_MS = 1000
local TIMERS_MAX = 64

function L.read_spot(text)
  local ticket, passes, due, at, rest = string.match(text or '', '^(%d+) (%d+) (%d+) (%d+)\n(.+)$')
  local spot = {ticket = L.whole(ticket), passes = L.whole(passes), due = L.whole(due), at = L.whole(at), gates = {}}
  if not (spot.ticket and spot.passes and spot.due and spot.at) then
    return nil
  end
  for id in string.gmatch(rest, '[^\n]+') do
    spot.gates[#spot.gates + 1] = id
  end
  return spot.at <= #spot.gates and spot or nil
end

local function spot_text(spot)
  return L.int(spot.ticket) .. ' ' .. L.int(spot.passes) .. ' ' .. L.int(spot.due) .. ' ' .. L.int(spot.at) .. '\n' ..
         table.concat(spot.gates, '\n')
end

-- Look there again at this time, or earlier.
function L.arm(book, what, at_ms)
  redis.call('ZADD', book.R .. ':timers', 'LT', L.int(math.max(at_ms, book.now_ms)), what)
  book.is_timed = true
end

-- After one left the line: with nobody in it, it matters to nobody when the gate opens.
function L.disarm(book, g)
  g.is_lined = redis.call('EXISTS', g.line) == 1
  if not g.is_lined then
    redis.call('ZREM', book.R .. ':timers', 'gate:' .. g.id)
  end
end

local function line_key(book, queue, id)
  return book.R .. ':line:' .. queue .. ':' .. id
end

-- ---- standing in line

-- The queue is called at this gate from now on, not behind this ticket, unless it stands aside there. When
-- the gate opens by itself, somebody looks.
local function call_at(book, queue, g, ticket)
  if redis.call('SISMEMBER', book.R .. ':aside:' .. queue, g.id) == 0 then
    redis.call('ZADD', g.line, 'LT', ticket, queue)
    g.is_lined = true
  end
  local free, opens_ms = L.room(book, g)
  if free <= 0 and opens_ms then
    L.arm(book, 'gate:' .. g.id, opens_ms)
  end
end

-- Stand before gate `spot.at`.
local function stand(book, queue, job, spot)
  local id = spot.gates[spot.at]
  redis.call('ZADD', line_key(book, queue, id), L.int(spot.ticket), job)
  redis.call('ZADD', book.R .. ':parked:' .. queue, L.int(spot.ticket), job)
  redis.call('HSET', book.R .. ':parked', job, spot_text(spot))
  call_at(book, queue, L.gate(book, id), L.int(spot.ticket))
end

-- The place of a queue in the line of a gate, after its first job there has gone.
local function restand(book, queue, g)
  local first = redis.call('ZRANGE', line_key(book, queue, g.id), 0, 0, 'WITHSCORES')
  g.is_lined = nil
  if #first == 0 then
    redis.call('ZREM', g.line, queue)
    redis.call('SREM', book.R .. ':aside:' .. queue, g.id)
    L.disarm(book, g)
  elseif redis.call('ZSCORE', g.line, queue) then
    redis.call('ZADD', g.line, first[2], queue)
  end
end

local function step_out(book, queue, job, spot)
  local g = L.gate(book, spot.gates[spot.at])
  redis.call('ZREM', line_key(book, queue, g.id), job)
  restand(book, queue, g)
end

-- Does anybody stand in line there who would be called?
local function has_line(g)
  if g.is_lined == nil then
    g.is_lined = redis.call('EXISTS', g.line) == 1
  end
  return g.is_lined
end

-- ---- taking

-- What a job that has passed these gates holds: nothing of a rate. -> text for R:holds, or nil
function L.holding(gates, last)
  local held = {}
  for i = 1, last or #gates do
    if not string.find(gates[i], '^rate:') then
      held[#held + 1] = gates[i]
    end
  end
  return #held > 0 and table.concat(held, '\n') or nil
end

local function hold(book, job, gates, last)
  local text = L.holding(gates, last)
  if text then
    redis.call('HSET', book.R .. ':holds', job, text)
  end
end

-- Take what can be taken now. -> the index of the gate that is shut, or nil: it holds all of them.
local function advance(book, job, spot)
  if spot.passes < PASSES then
    for i, id in ipairs(spot.gates) do
      if L.room(book, L.gate(book, id)) <= 0 then
        return i
      end
    end
  end
  local from = spot.passes > PASSES and spot.at or 1
  for i = from, #spot.gates do
    local g = L.gate(book, spot.gates[i])
    if L.room(book, g) <= 0 then
      return i
    end
    L.take(book, g, job, L.tick(book.R, book.now_us, 1))
    hold(book, job, spot.gates, i)
  end
  return nil
end

-- A job that has just become due: -> nil when it holds all its gates now, with this fence; else the spot
-- where it has to stand (L.stand_all), with the fence for its ticket.
function L.pass_gates(book, job, gates, due, fence)
  local shut
  for i, id in ipairs(gates) do
    local g = L.gate(book, id)
    if has_line(g) or L.room(book, g) <= 0 then
      shut = i
      break
    end
  end
  if not shut then
    for _, id in ipairs(gates) do
      L.take(book, L.gate(book, id), job, fence)
    end
    return nil
  end
  -- Those behind it have to stand there too.
  L.gate(book, gates[shut]).is_lined = true
  return {job = job, ticket = fence, passes = 0, due = due, at = shut, gates = gates}
end

-- These spots of jobs of one queue, in the order of their tickets, in one command a gate: most jobs that
-- have to stand come many at once.
function L.stand_all(book, queue, spots)
  if #spots == 0 then
    return
  end
  local lines, tickets, texts = {}, {}, {}
  for _, spot in ipairs(spots) do
    local id = spot.gates[spot.at]
    lines[id] = lines[id] or {}
    table.insert(lines[id], L.int(spot.ticket))
    table.insert(lines[id], spot.job)
    tickets[#tickets + 1] = L.int(spot.ticket)
    tickets[#tickets + 1] = spot.job
    texts[#texts + 1] = spot.job
    texts[#texts + 1] = spot_text(spot)
  end
  redis.call('ZADD', book.R .. ':parked:' .. queue, unpack(tickets))
  redis.call('HSET', book.R .. ':parked', unpack(texts))
  for _, spot in ipairs(spots) do
    local id = spot.gates[spot.at]
    if lines[id] then
      redis.call('ZADD', line_key(book, queue, id), unpack(lines[id]))
      call_at(book, queue, L.gate(book, id), lines[id][1])
      lines[id] = nil
    end
  end
end

-- Must a handler that holds these gates end when its worker loses Redis?
function L.is_guarded(book, gates)
  for _, id in ipairs(gates or {}) do
    local g = L.gate(book, id)
    if g.kind == 'lock' or (g.kind == 'sem' and g.limit and g.limit.on_lost == 'kill') then
      return true
    end
  end
  return false
end

-- A granted job starts: its locks have the fence that its handler is told.
function L.tell_fence(book, job, gates, fence)
  for _, id in ipairs(gates or {}) do
    local g = L.gate(book, id)
    if g.kind == 'lock' and redis.call('HGET', g.key, 'holder') == job then
      redis.call('HSET', g.key, 'fence', L.int(fence))
    end
  end
end

-- What a job that starts holds to its end: its gates and its unique key. -> text for R:holds, or nil
function L.holding_started(gates, job)
  local text = gates and L.holding(gates)
  if job.u then
    text = (text and text .. '\n' or '') .. 'uniq:' .. (job.f or '0') .. ':' .. job.queue .. ':' .. job.u
  end
  return text
end

local function has_place(g, job)
  if g.kind == 'lock' then
    return redis.call('HGET', g.key, 'holder') == job
  end
  return redis.call('ZSCORE', g.key, job)
end

-- A job that a worker runs, and that waits by Redis' data: it may go on only if nobody else has its locks
-- and places; a rate it passed when it was started. Nothing is changed when it may not.
function L.regain_gates(book, id, job, state)
  local taken = {}
  local gates = L.gates_of(job, L.queue_gates(redis.call('HGET', book.R .. ':queues', job.queue)))
  for _, gate in ipairs(gates or {}) do
    local g = L.gate(book, gate)
    if g.kind ~= 'rate' then
      if L.room(book, g) <= 0 and not has_place(g, id) then
        return false
      end
      taken[#taken + 1] = g
    end
  end
  if state == 'parked' then
    L.unpark(book, job.queue, id)
  end
  for _, g in ipairs(taken) do
    L.take(book, g, id, L.tick(book.R, book.now_us, 1))
  end
  local text = L.holding_started(gates, job)
  if text then
    redis.call('HSET', book.R .. ':holds', id, text)
  end
  return true
end

-- A parked job leaves, whatever it holds: cancelled, moved, or claimed.
function L.unpark(book, queue, job, keeps)
  local spot = L.read_spot(redis.call('HGET', book.R .. ':parked', job))
  redis.call('ZREM', book.R .. ':parked:' .. queue, job)
  redis.call('HDEL', book.R .. ':parked', job)
  redis.call('ZREM', book.R .. ':granted:' .. queue, job)
  if spot and spot.at > 0 then
    step_out(book, queue, job, spot)
  end
  if not keeps then
    L.let_go(book, {job}, false)
  end
  return spot
end

-- ---- opening

local function put_aside(book, queue, g)
  redis.call('ZREM', g.line, queue)
  redis.call('SADD', book.R .. ':aside:' .. queue, g.id)
  L.mark_set(book.R, queue, 'a')
  g.is_lined = nil
end

-- The job holds all its gates: to be claimed before all others of its queue.
local function grant(book, queue, job, spot)
  spot.at = 0
  redis.call('HSET', book.R .. ':parked', job, spot_text(spot))
  redis.call('ZADD', book.R .. ':granted:' .. queue, L.int(book.now_ms), job)
  L.mark_set(book.R, queue, 'g')
  L.arm(book, 'granted:' .. queue, book.now_ms + GRANT_MS)
  book.granted[queue] = true
end

-- Queues were granted something: it is due now, whoever has room should know. What the call itself has
-- claimed since then need not be told.
local function tell_granted(book)
  local queues = {}
  for queue in pairs(book.granted) do
    queues[#queues + 1] = queue
  end
  table.sort(queues)
  for _, queue in ipairs(queues) do
    if redis.call('EXISTS', book.R .. ':granted:' .. queue) == 1 then
      L.lower_head(book.R, queue, book.now_ms)
    end
  end
  book.granted = {}
end

-- The first job of the queue that is first in line.
local function call_queue(book, g, queue)
  if L.paused_until(redis.call('HGET', book.R .. ':paused', queue), book.now_ms) then
    put_aside(book, queue, g)
    return
  end
  local job = redis.call('ZRANGE', line_key(book, queue, g.id), 0, 0)[1]
  local spot = job and L.read_spot(redis.call('HGET', book.R .. ':parked', job))
  if not spot or spot.gates[spot.at] ~= g.id then
    -- Nobody there, or no spot that could be read: that one is for `later fsck`.
    if job then
      redis.call('ZREM', line_key(book, queue, g.id), job)
    end
    restand(book, queue, g)
    return
  end
  local shut = advance(book, job, spot)
  step_out(book, queue, job, spot)
  if not shut then
    grant(book, queue, job, spot)
    return
  end
  spot.at, spot.passes = shut, spot.passes + 1
  stand(book, queue, job, spot)
end

-- Hand the free places of a gate to those who stand first in its line.
local function open(book, id)
  local g = L.gate(book, id)
  for _ = 1, OPEN_MAX do
    local who = redis.call('ZRANGE', g.line, 0, 0)[1]
    if not who then
      return
    end
    local free, opens_ms = L.room(book, g)
    if free <= 0 then
      if opens_ms then
        L.arm(book, 'gate:' .. id, opens_ms)
      end
      return
    end
    if string.match(who, '^[@=]') then
      L.call_outsider(book, g, who)
    else
      call_queue(book, g, who)
    end
  end
  L.arm(book, 'gate:' .. id, book.now_ms)
end

-- Grants that nobody claimed in time go back to their places in line.
local function take_back(book, queue)
  local key = book.R .. ':granted:' .. queue
  local jobs = redis.call('ZRANGEBYSCORE', key, '-inf', L.int(book.now_ms - GRANT_MS), 'LIMIT', 0, OPEN_MAX)
  for _, job in ipairs(jobs) do
    local spot = L.read_spot(redis.call('HGET', book.R .. ':parked', job))
    redis.call('ZREM', key, job)
    L.let_go(book, {job}, false)
    if spot then
      spot.at, spot.passes = 1, 0
      put_aside(book, queue, L.gate(book, spot.gates[1]))
      stand(book, queue, job, spot)
    end
  end
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  if first[2] then
    L.arm(book, 'granted:' .. queue, tonumber(first[2]) + GRANT_MS)
  end
end

-- A step names the queue with room: it stands in line again where it stood aside.
function L.rejoin(book, queue)
  local key = book.R .. ':aside:' .. queue
  local ids = redis.call('SRANDMEMBER', key, OPEN_MAX)
  table.sort(ids)
  for _, id in ipairs(ids) do
    local g = L.gate(book, id)
    local first = redis.call('ZRANGE', line_key(book, queue, id), 0, 0, 'WITHSCORES')
    redis.call('SREM', key, id)
    if first[2] then
      redis.call('ZADD', g.line, first[2], queue)
      L.touch(book, id)
    end
  end
  return redis.call('EXISTS', key) == 1
end

-- Hand on what was given back in this call, then look at the gates whose time has come. One gate whose
-- key has a foreign type stays as it is and does not keep the others. claims_next: the caller claims in
-- this call, and settles once more after that.
function L.settle_gates(book, claims_next)
  local timers = book.R .. ':timers'
  local rounds = 0
  local due = redis.call('ZRANGEBYSCORE', timers, '-inf', L.int(book.now_ms), 'LIMIT', 0, TIMERS_MAX)
  for _, what in ipairs(due) do
    redis.call('ZREM', timers, what)
    local kind, id = string.match(what, '^(%a+):(.+)$')
    if kind == 'granted' then
      pcall(take_back, book, id)
    elseif kind == 'gate' then
      L.touch(book, id)
    end
  end
  while #book.touched > 0 and rounds < OPEN_MAX do
    local id = table.remove(book.touched)
    book.is_touched[id] = nil
    pcall(open, book, id)
    rounds = rounds + 1
  end
  for _, id in ipairs(book.touched) do
    L.arm(book, 'gate:' .. id, book.now_ms)
  end
  book.touched, book.is_touched = {}, {}
  L.flush_takes(book)
  if not claims_next then
    tell_granted(book)
  end
end

-- When the next timer is due, in ms; -1 without any.
function L.next_timer(R)
  local first = redis.call('ZRANGE', R .. ':timers', 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2]) or -1
end
