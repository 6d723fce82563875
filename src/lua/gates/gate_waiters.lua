-- The waiters of the gates: who waits, whose turn it is, and what happens when a gate opens. A
-- waiter is a queue, a program (@EPOCH) or a caller (=OWNER).
--
--   R:wait:<gate>          ZSET  waiter -> its lowest ticket
--   R:line:<queue>:<gate>  ZSET  job -> ticket: the parked jobs of a queue at that gate (the key
--                                keeps its name: other versions and stored data use it)
--   R:aside:<queue>        SET   gates that offer the queue nothing now
--   R:parked:<queue>       ZSET  job -> ticket: all its jobs that wait for a gate, or that were
--                                granted one
--   R:parked               HASH  job -> spot; @EPOCH or =OWNER LF gate -> ticket and until when
--   R:granted:<queue>      ZSET  job -> ms: holds all its gates, to be claimed before all others
--   R:timers               ZSET  gate:<gate>, granted:<queue> or wait:<who> LF <gate> (its wait is
--                                over) -> ms: when to look there again; NEVER for a semaphore or a
--                                rate that opens by a call only: so all with waiters are here
--
-- spot: "<ticket> <times passed over> <due> <at>" LF gate LF gate ... at: which of its gates it
-- waits for, 0 when it was granted. Tickets come from the hybrid clock, so they rise; a job keeps
-- its own until it starts. A job takes all its gates together, or none. A job that was passed over
-- PASSED_OVER_MAX times takes them one by one instead, in the order of L.gates_of, and keeps those
-- that it has: so it gets them all in the end. All jobs take gates in the same order, so none waits
-- for another in a circle.
--
-- A queue stands aside at the gates where it has parked jobs when a grant of it was not claimed
-- within GRANT_MS (the grant is taken back), when it was granted as many jobs as the worker
-- of this call has room for, or when no worker has room for it (L.may_grant). Jobs of other queues
-- pass meanwhile: they do not wait for a queue that is full, paused or served by no worker. The
-- workers of the queue are woken, and their next step that names it with room makes it a waiter
-- again. A job that is refused for want of room counts as passed over.

local PASSED_OVER_MAX = 16
local OPEN_MAX = 64         -- gates that a call looks at, offers that it makes, rows
L.PASSED_OVER_MAX, L.OPEN_MAX = PASSED_OVER_MAX, OPEN_MAX -- of a step over rows, too
local TIMERS_MAX = 64
local RETRY_MS = 10000      -- when a gate is looked at again whose keys had a foreign type
local NEVER = L.LATEST

function L.read_spot(text)
  local ticket, over, due, at, rest = string.match(text or '', '^(%d+) (%d+) (%d+) (%d+)\n(.+)$')
  local spot = {ticket = L.whole(ticket), passed_over = L.whole(over), due = L.whole(due),
                at = L.whole(at), gates = {}}
  if not (spot.ticket and spot.passed_over and spot.due and spot.at) then
    return nil
  end
  for id in string.gmatch(rest, '[^\n]+') do
    if not L.KINDS[string.match(id, '^(%a+):.') or ''] then
      return nil
    end
    spot.gates[#spot.gates + 1] = id
  end
  return spot.at <= #spot.gates and spot or nil
end

function L.spot_text(spot)
  return L.int(spot.ticket) .. ' ' .. L.int(spot.passed_over) .. ' ' .. L.int(spot.due) .. ' ' ..
         L.int(spot.at) .. '\n' .. table.concat(spot.gates, '\n')
end

-- Set a timer, or make it earlier. what: a member of R:timers
function L.arm(book, what, at_ms)
  db('ZADD', book.R .. ':timers', 'LT', math.max(at_ms, book.now_ms), what)
end

-- A shut gate has a waiter: set a timer for when it opens by itself.
function L.arm_gate(book, g)
  if L.free_permits(book, g) > 0 or g.is_armed then
    return
  end
  L.assign(g, 'is_armed', true)
  local opens_ms = L.opens(book, g) or g.kind ~= 'lock' and NEVER
  if opens_ms then
    L.arm(book, 'gate:' .. g.id, opens_ms)
  end
end

local function has_waiters(g)
  return not L.is_known_empty(g.waiters) and #db('ZRANGE', g.waiters, 0, 0) > 0
end

-- A waiter has left. Without waiters the gate needs no timer.
function L.disarm(book, g)
  if not has_waiters(g) then
    db('ZREM', book.R .. ':timers', 'gate:' .. g.id)
    L.assign(g, 'is_armed', false)
  end
end

-- -> the key of the parked jobs of the queue at this gate
local function parked_at(book, queue, id)
  return book.R .. ':line:' .. queue .. ':' .. id
end

-- ---- parking

-- A job that has taken some of its gates gives them back, and takes them again when it is its turn.
-- -> whether its spot has changed
local function keep_nothing(book, job, spot)
  local keeps = spot.passed_over > PASSED_OVER_MAX
  if keeps then
    L.let_go(book, {job})
    spot.passed_over = PASSED_OVER_MAX
  end
  return keeps
end

-- A parked job keeps nothing.
local function empty(book, job)
  local spot = L.read_spot(db('HGET', book.R .. ':parked', job))
  if spot and keep_nothing(book, job, spot) then
    db('HSET', book.R .. ':parked', job, L.spot_text(spot))
  end
end

-- A job comes to wait at this gate. Only the first job of a queue may keep gates there: so a queue
-- that is put aside has one job at most that gives some back.
local function make_way(book, queue, id, job, spot)
  local first = db('ZRANGE', parked_at(book, queue, id), 0, 0, 'WITHSCORES')
  local is_behind = first[2] and tonumber(first[2]) < spot.ticket
  if is_behind or db('SISMEMBER', book.R .. ':aside:' .. queue, id) == 1 then
    keep_nothing(book, job, spot)
  end
  if first[2] and not is_behind then
    empty(book, first[1])
  end
end

-- Make the queue a waiter of this gate with this ticket, or its own where that is lower, unless it
-- stands aside there.
local function join_waiters(book, queue, g, ticket)
  if db('SISMEMBER', book.R .. ':aside:' .. queue, g.id) == 0 then
    db('ZADD', g.waiters, 'LT', ticket, queue)
  end
  L.arm_gate(book, g)
end

-- Write that a job waits for its gate number spot.at.
local function write_parked(book, queue, job, spot)
  local id = spot.gates[spot.at]
  db('ZADD', parked_at(book, queue, id), spot.ticket, job)
  db('ZADD', book.R .. ':parked:' .. queue, spot.ticket, job)
  db('HSET', book.R .. ':parked', job, L.spot_text(spot))
  join_waiters(book, queue, L.gate(book, id), spot.ticket)
end

-- Let a job wait for its gate number spot.at. Its ticket may be lower than those of others there.
local function park(book, queue, job, spot)
  make_way(book, queue, spot.gates[spot.at], job, spot)
  write_parked(book, queue, job, spot)
end

-- Park a job that waits for no gate yet. Its ticket is the newest.
function L.park_new(book, queue, job, spot)
  L.is_new(parked_at(book, queue, spot.gates[spot.at]), 'zset', job)
  L.is_new(book.R .. ':parked:' .. queue, 'zset', job)
  L.is_new(book.R .. ':parked', 'hash', job)
  write_parked(book, queue, job, spot)
end

-- The queue has no parked job at this gate any more.
local function stop_waiting(book, queue, g)
  db('ZREM', g.waiters, queue)
  db('SREM', book.R .. ':aside:' .. queue, g.id)
  L.disarm(book, g)
end

-- The first job of the queue waits for this gate no more: the next one has the ticket of the queue.
local function set_ticket(book, queue, g)
  local first = db('ZRANGE', parked_at(book, queue, g.id), 0, 0, 'WITHSCORES')
  if #first == 0 then
    stop_waiting(book, queue, g)
  elseif db('ZSCORE', g.waiters, queue) then
    db('ZADD', g.waiters, first[2], queue)
  end
end

local function step_out(book, queue, job, spot)
  local g = L.gate(book, spot.gates[spot.at])
  db('ZREM', parked_at(book, queue, g.id), job)
  set_ticket(book, queue, g)
end

-- ---- taking

-- Take the gates of a parked job. -> the number of the gate that is shut; nil: it has all of them,
-- and the caller writes its grant
local function advance(book, job, spot)
  if spot.passed_over < PASSED_OVER_MAX then
    for i, id in ipairs(spot.gates) do
      if L.free_permits(book, L.gate(book, id)) <= 0 then
        return i
      end
    end
  end
  local from = spot.passed_over > PASSED_OVER_MAX and spot.at or 1
  for i = from, #spot.gates do
    local g = L.gate(book, spot.gates[i])
    if L.free_permits(book, g) <= 0 then
      if i > from then
        L.hold(book, job, spot.gates, i - 1)
      end
      return i
    end
    L.promise(book, g, job)
  end
  return nil
end

-- A job that has just become due takes all its gates, with this fence. -> nil; or the spot where it
-- has to wait (L.park_new), whose ticket is the fence: a gate is shut or has waiters, or the queue
-- stands aside there.
function L.pass_gates(book, queue, job, gates, due, fence)
  local aside = book.R .. ':aside:' .. queue
  local is_any_aside = not L.is_known_empty(aside)
  for i = 1, #gates do
    local id = gates[i]
    local g = L.gate(book, id)
    if is_any_aside and db('SISMEMBER', aside, id) == 1 or has_waiters(g) or
       L.free_permits(book, g) <= 0 then
      return {ticket = fence, passed_over = 0, due = due, at = i, gates = gates}
    end
  end
  for i = 1, #gates do
    L.take(book, L.gate(book, gates[i]), job, fence)
  end
  return nil
end

-- Must a handler that holds these gates end when its worker loses Redis? (Its job is guarded.)
function L.must_end(book, gates)
  if not gates then
    return false
  end
  for _, id in ipairs(gates) do
    local g = L.gate(book, id)
    if g.kind == 'lock' or (g.kind == 'sem' and g.limit and g.limit.on_lost == 'kill') then
      return true
    end
  end
  return false
end

local function has_permit(g, job)
  if g.kind == 'lock' then
    local row = L.lock_row(g.key)
    return row and row[1] == job
  end
  return db('ZSCORE', g.key, job)
end

-- A worker runs this job, which waits by the data of Redis. It may go on only if nobody else has
-- its locks and permits; its rates were passed when it started. -> whether it may; if not, nothing
-- is changed
function L.regain_gates(book, id, job, state)
  local taken = {}
  local gates = L.gates_of(job, L.queue_gates(db('HGET', book.R .. ':queues', job.queue)))
  for _, gate in ipairs(gates or {}) do
    local g = L.gate(book, gate)
    if g.kind ~= 'rate' then
      if L.free_permits(book, g) <= 0 and not has_permit(g, id) then
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
    db('HSET', book.R .. ':holds', id, text)
  end
  return true
end

-- A job is parked no more: it is cancelled, moved or claimed. keeps: it keeps its gates.
function L.unpark(book, queue, job, keeps)
  local spot = L.read_spot(db('HGET', book.R .. ':parked', job))
  db('ZREM', book.R .. ':parked:' .. queue, job)
  db('HDEL', book.R .. ':parked', job)
  db('ZREM', book.R .. ':granted:' .. queue, job)
  if spot and spot.at > 0 then
    step_out(book, queue, job, spot)
  end
  if not keeps then
    L.let_go(book, {job})
  end
  return spot
end

-- A job that was let in is claimed: remove its spot.
function L.forget_spot(book, queue, job)
  db('ZREM', book.R .. ':parked:' .. queue, job)
  db('HDEL', book.R .. ':parked', job)
end

-- ---- opening

local function put_aside(book, queue, g)
  local first = db('ZRANGE', parked_at(book, queue, g.id), 0, 0)[1]
  if first then
    empty(book, first)
  end
  db('ZREM', g.waiters, queue)
  db('SADD', book.R .. ':aside:' .. queue, g.id)
  L.mark_set(book.R, queue, 'a')
end

-- Wake the workers of queues that have new grants, but for jobs that the call itself has claimed.
local function tell_granted(book)
  local queues = {}
  for queue in pairs(book.granted) do
    queues[#queues + 1] = queue
  end
  table.sort(queues)
  for _, queue in ipairs(queues) do
    if db('EXISTS', book.R .. ':granted:' .. queue) == 1 then
      L.lower_head(book.R, queue, book.now_ms)
    end
  end
  book.granted = {}
end

-- It is the turn of this job. -> false: its queue was put aside
local function offer_to_job(book, g, queue, job)
  local spot = L.read_spot(db('HGET', book.R .. ':parked', job))
  if not spot or spot.gates[spot.at] ~= g.id then
    -- Its spot cannot be read: it is left to `later fsck`.
    db('ZREM', parked_at(book, queue, g.id), job)
    return true
  end
  local word = L.may_grant(book, queue, spot.passed_over >= PASSED_OVER_MAX)
  if word ~= 'yes' then
    if word == 'no' then
      spot.passed_over = spot.passed_over + 1
      db('HSET', book.R .. ':parked', job, L.spot_text(spot))
    end
    put_aside(book, queue, g)
    L.wake(book.R, queue)
    return false
  end
  local shut = advance(book, job, spot)
  db('ZREM', parked_at(book, queue, g.id), job)
  if not shut then
    L.let_in(book, queue, job, spot)
  else
    spot.at, spot.passed_over = shut, spot.passed_over + 1
    park(book, queue, job, spot)
  end
  return true
end

-- Offer permits to the first jobs of the queue that is the first waiter, those before the ticket of
-- the next waiter. -> whether the queue stays a waiter
local function offer_to_queue(book, g, queue, next_ticket)
  if L.paused_until(db('HGET', book.R .. ':paused', queue), book.now_ms) then
    put_aside(book, queue, g)
    return false
  end
  local most = math.min(L.free_permits(book, g), OPEN_MAX - book.offers)
  local jobs, n, key = {}, 0, parked_at(book, queue, g.id)
  local rows = db('ZRANGE', key, 0, most, 'WITHSCORES')
  for i = 1, #rows, 2 do
    jobs[#jobs + 1] = rows[i]
  end
  if jobs[2] then
    db('HMGET', book.R .. ':parked', unpack(jobs))
  end
  while n < most and n < #jobs and L.free_permits(book, g) > 0 and
        (n == 0 or tonumber(rows[2 * n + 2]) < next_ticket) do
    n = n + 1
    book.offers = book.offers + 1
    if not offer_to_job(book, g, queue, jobs[n]) then
      return false
    end
  end
  if not jobs[n + 1] then
    stop_waiting(book, queue, g)
    return false
  end
  db('ZADD', g.waiters, rows[2 * n + 2], queue)
  return true
end

-- Offer the free permits of a gate to its first waiters. Where the call may make no more offers, a
-- timer that is due makes another call go on.
local function open(book, id)
  local g = L.gate(book, id)
  local is_awaited = has_waiters(g)
  while is_awaited do
    if L.free_permits(book, g) <= 0 then
      L.arm_gate(book, g)
      return
    elseif book.offers >= OPEN_MAX then
      L.arm(book, 'gate:' .. id, book.now_ms)
      return
    end
    local first = db('ZRANGE', g.waiters, 0, 1, 'WITHSCORES')
    local who, stays = first[1], false
    if string.match(who, '^[@=]') then
      book.offers = book.offers + 1
      L.offer_to_outsider(book, g, who)
    else
      stays = offer_to_queue(book, g, who, tonumber(first[4] or 'inf'))
    end
    is_awaited = stays or first[3] ~= nil
  end
end

-- A grant of the queue was not claimed: put the queue aside at the gates of this spot where jobs of
-- it are parked.
local function stand_back(book, queue, gates)
  for i, id in ipairs(gates) do
    if db('SISMEMBER', book.R .. ':aside:' .. queue, id) == 0 and
       (i == 1 or db('EXISTS', parked_at(book, queue, id)) == 1) then
      put_aside(book, queue, L.gate(book, id))
    end
  end
end

-- Take a grant back: the job gives its permits back and waits for its first gate again, or for gate
-- number `at`.
function L.take_back(book, queue, job, at)
  local spot = L.read_spot(db('HGET', book.R .. ':parked', job))
  db('ZREM', book.R .. ':granted:' .. queue, job)
  L.let_go(book, {job})
  if spot then
    spot.at, spot.passed_over = at or 1, 0
    if not at then
      stand_back(book, queue, spot.gates)
    end
    park(book, queue, job, spot)
  end
end

-- Take back the grants of a queue that no worker claimed within GRANT_MS.
local function take_back_late(book, queue)
  local key = book.R .. ':granted:' .. queue
  -- A grant from before the clock was set back counts from now.
  local from = '(' .. L.int(book.now_ms)
  for _, job in ipairs(db('ZRANGEBYSCORE', key, from, '+inf', 'LIMIT', 0, OPEN_MAX)) do
    db('ZADD', key, book.now_ms, job)
  end
  local late = L.int(book.now_ms - L.GRANT_MS)
  for _, job in ipairs(db('ZRANGEBYSCORE', key, '-inf', late, 'LIMIT', 0, OPEN_MAX)) do
    L.take_back(book, queue, job)
  end
  local first = db('ZRANGE', key, 0, 0, 'WITHSCORES')
  if first[2] then
    L.arm(book, 'granted:' .. queue, tonumber(first[2]) + L.GRANT_MS)
  end
end

local function rejoin_at(book, queue, aside, id)
  local g = L.read_gate(id) and L.gate(book, id)
  local first = g and db('ZRANGE', parked_at(book, queue, id), 0, 0, 'WITHSCORES') or {}
  db('SREM', aside, id)
  if first[2] then
    db('ZADD', g.waiters, first[2], queue)
    L.touch(book, id)
  end
end

-- A step names the queue with room: make it a waiter again where it stood aside. -> at how many
-- gates it still stands aside, since one call looks at OPEN_MAX or a key is foreign; at how many it
-- waits again; the error of one that failed
function L.rejoin(book, queue)
  local key = book.R .. ':aside:' .. queue
  local ids, joined, why = db('SRANDMEMBER', key, OPEN_MAX), 0, nil
  table.sort(ids)
  for _, id in ipairs(ids) do
    local ok, reason = L.try(rejoin_at, book, queue, key, id)
    if ok then
      joined = joined + 1
    else
      why = L.error_text(reason)
    end
  end
  return db('SCARD', key), joined, why
end

-- A timer is due: look at what it is for.
local function serve_timer(book, what)
  local kind, id = string.match(what, '^(%a+):(.+)$')
  if kind == 'granted' then
    if not L.try(take_back_late, book, id) then
      L.arm(book, what, book.now_ms + RETRY_MS)
    end
  elseif kind == 'gate' and L.read_gate(id) then
    -- A gate that the call has not met may have a key of a foreign type: L.hand_on meets it.
    if book.gates[id] then
      L.assign(book.gates[id], 'is_armed', false)
    end
    L.touch(book, id)
  elseif kind == 'wait' then
    L.try(L.end_wait, book, id)
  end
end

-- Look at the timers that are due, once in a call.
local function serve_timers(book)
  if book.has_served then
    return
  end
  book.has_served = true
  local timers = book.R .. ':timers'
  local now = L.int(book.now_ms)
  for _, what in ipairs(db('ZRANGEBYSCORE', timers, '-inf', now, 'LIMIT', 0, TIMERS_MAX)) do
    db('ZREM', timers, what)
    serve_timer(book, what)
  end
end

-- Hand on the permits of the gates that lost a holder in this call, and of those whose timer is
-- due. A gate with a key of a foreign type is left as it is and looked at later. claims_next: the
-- caller claims in this call, and hands on once more after that.
function L.hand_on(book, claims_next)
  local rounds = 0
  book.claims_next = claims_next
  serve_timers(book)
  L.meet(book, book.touched)
  while #book.touched > 0 do
    local id = table.remove(book.touched)
    book.is_touched[id] = nil
    -- Nobody waits for most gates, and a step may free a thousand: only gates with waiters count.
    local ok, is_awaited = L.try(has_waiters, {waiters = book.R .. ':wait:' .. id})
    if not ok or is_awaited then
      if rounds >= OPEN_MAX then
        L.arm(book, 'gate:' .. id, book.now_ms)
      elseif not L.try(open, book, id) and L.KINDS[string.match(id, '^(%a+):.') or ''] then
        L.arm(book, 'gate:' .. id, book.now_ms + RETRY_MS)
      end
      rounds = rounds + 1
    end
  end
  if not claims_next then
    tell_granted(book)
  end
end

-- When the next timer is due, in ms; -1 without any.
function L.next_timer(R)
  local first = db('ZRANGE', R .. ':timers', 0, 0, 'WITHSCORES')
  local at_ms = tonumber(first[2] or NEVER)
  return at_ms < NEVER and at_ms or -1
end
