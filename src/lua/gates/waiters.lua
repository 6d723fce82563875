-- The waiters of the gates: who waits, whose turn it is, and what happens when a gate opens. A
-- waiter is a queue, a program (@EPOCH) or a caller (=OWNER). A sync over rows parks jobs and lets
-- them in by itself (rows/waiters.lua), where nothing is odd.
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
-- PASSED_OVER_MAX times takes them one by one instead, in the order of wanted.gates_of, and keeps
-- those that it has: so it gets them all in the end. All jobs take gates in the same order, so none
-- waits for another in a circle.
--
-- A queue stands aside at the gates where it has parked jobs when a grant of it was not claimed
-- within GRANT_MS (the grant is taken back), when it was granted as many jobs as the worker
-- of this call has room for, or when no worker has room for it (grants.may_grant). Jobs of other
-- queues pass meanwhile: they do not wait for a queue that is full, paused or served by no worker.
-- The workers of the queue are woken, and their next sync that names it with room makes it a waiter
-- again. A job that is refused for want of room counts as passed over.

local waiters = module 'gates/waiters'
local syncs, clock, instant, jobs, gate, grants, holding, kinds, wanted, locks, change, commit,
      lock_rows, txn = use(
  'claim/syncs', 'core/clock', 'core/instant', 'core/jobs', 'gates/gate', 'gates/grants',
  'gates/holding', 'gates/kinds', 'gates/wanted', 'public/lock', 'txn/change', 'txn/commit',
  'txn/lock_rows', 'txn/txn')
local PASSED_OVER_MAX = 16
local OPEN_MAX = 64         -- gates that a call looks at, offers that it makes, rows
waiters.PASSED_OVER_MAX, waiters.OPEN_MAX = PASSED_OVER_MAX, OPEN_MAX -- of a sync over rows, too
local TIMERS_MAX = 64
local RETRY_MS = 10000      -- when a gate is looked at again whose keys had a foreign type
local NEVER = LATEST

function waiters.read_spot(text)
  local ticket, over, due, at, rest = string.match(text or '', '^(%d+) (%d+) (%d+) (%d+)\n(.+)$')
  local spot = {ticket = whole(ticket), passed_over = whole(over), due = whole(due), at = whole(at),
                gates = {}}
  if not (spot.ticket and spot.passed_over and spot.due and spot.at) then
    return nil
  end
  for id in string.gmatch(rest, '[^\n]+') do
    if not kinds.KINDS[string.match(id, '^(%a+):.') or ''] then
      return nil
    end
    spot.gates[#spot.gates + 1] = id
  end
  return spot.at <= #spot.gates and spot or nil
end

function waiters.spot_text(spot)
  return int(spot.ticket) .. ' ' .. int(spot.passed_over) .. ' ' .. int(spot.due) .. ' ' ..
         int(spot.at) .. '\n' .. table.concat(spot.gates, '\n')
end

-- Set a timer, or make it earlier. what: a member of R:timers
function waiters.arm(ledger, what, at_ms)
  db('ZADD', ledger.R .. ':timers', 'LT', math.max(at_ms, ledger.now_ms), what)
end

-- A shut gate has a waiter: set a timer for when it opens by itself.
function waiters.arm_gate(ledger, g)
  if gate.free_permits(ledger, g) > 0 or g.is_armed then
    return
  end
  change.assign(g, 'is_armed', true)
  local opens_ms = gate.opens(ledger, g) or g.kind ~= 'lock' and NEVER
  if opens_ms then
    waiters.arm(ledger, 'gate:' .. g.id, opens_ms)
  end
end

local function has_waiters(g)
  return not txn.is_known_empty(g.waiters) and #db('ZRANGE', g.waiters, 0, 0) > 0
end

-- A waiter has left. Without waiters the gate needs no timer.
function waiters.disarm(ledger, g)
  if not has_waiters(g) then
    db('ZREM', ledger.R .. ':timers', 'gate:' .. g.id)
    change.assign(g, 'is_armed', false)
  end
end

-- -> the key of the parked jobs of the queue at this gate
local function parked_at(ledger, queue, id)
  return ledger.R .. ':line:' .. queue .. ':' .. id
end

-- ---- parking

-- A job that has taken some of its gates gives them back, and takes them again when it is its turn.
-- -> whether its spot has changed
local function keep_nothing(ledger, job, spot)
  local keeps = spot.passed_over > PASSED_OVER_MAX
  if keeps then
    holding.let_go(ledger, {job})
    spot.passed_over = PASSED_OVER_MAX
  end
  return keeps
end

-- A parked job keeps nothing.
local function empty(ledger, job)
  local spot = waiters.read_spot(db('HGET', ledger.R .. ':parked', job))
  if spot and keep_nothing(ledger, job, spot) then
    db('HSET', ledger.R .. ':parked', job, waiters.spot_text(spot))
  end
end

-- A job comes to wait at this gate. Only the first job of a queue may keep gates there: so a queue
-- that is put aside has one job at most that gives some back.
local function make_way(ledger, queue, id, job, spot)
  local first = db('ZRANGE', parked_at(ledger, queue, id), 0, 0, 'WITHSCORES')
  local is_behind = first[2] and tonumber(first[2]) < spot.ticket
  if is_behind or db('SISMEMBER', ledger.R .. ':aside:' .. queue, id) == 1 then
    keep_nothing(ledger, job, spot)
  end
  if first[2] and not is_behind then
    empty(ledger, first[1])
  end
end

-- Make the queue a waiter of this gate with this ticket, or its own where that is lower, unless it
-- stands aside there.
local function join_waiters(ledger, queue, g, ticket)
  if db('SISMEMBER', ledger.R .. ':aside:' .. queue, g.id) == 0 then
    db('ZADD', g.waiters, 'LT', ticket, queue)
  end
  waiters.arm_gate(ledger, g)
end

-- Write that a job waits for its gate number spot.at.
local function write_parked(ledger, queue, job, spot)
  local id = spot.gates[spot.at]
  db('ZADD', parked_at(ledger, queue, id), spot.ticket, job)
  db('ZADD', ledger.R .. ':parked:' .. queue, spot.ticket, job)
  db('HSET', ledger.R .. ':parked', job, waiters.spot_text(spot))
  join_waiters(ledger, queue, gate.of(ledger, id), spot.ticket)
end

-- Let a job wait for its gate number spot.at. Its ticket may be lower than those of others there.
local function park(ledger, queue, job, spot)
  make_way(ledger, queue, spot.gates[spot.at], job, spot)
  write_parked(ledger, queue, job, spot)
end

-- Park a job that waits for no gate yet. Its ticket is the newest.
function waiters.park_new(ledger, queue, job, spot)
  change.is_new(parked_at(ledger, queue, spot.gates[spot.at]), 'zset', job)
  change.is_new(ledger.R .. ':parked:' .. queue, 'zset', job)
  change.is_new(ledger.R .. ':parked', 'hash', job)
  write_parked(ledger, queue, job, spot)
end

-- The queue has no parked job at this gate any more.
local function stop_waiting(ledger, queue, g)
  db('ZREM', g.waiters, queue)
  db('SREM', ledger.R .. ':aside:' .. queue, g.id)
  waiters.disarm(ledger, g)
end

-- The first job of the queue waits for this gate no more: the next one has the ticket of the queue.
local function set_ticket(ledger, queue, g)
  local first = db('ZRANGE', parked_at(ledger, queue, g.id), 0, 0, 'WITHSCORES')
  if #first == 0 then
    stop_waiting(ledger, queue, g)
  elseif db('ZSCORE', g.waiters, queue) then
    db('ZADD', g.waiters, first[2], queue)
  end
end

local function step_out(ledger, queue, job, spot)
  local g = gate.of(ledger, spot.gates[spot.at])
  db('ZREM', parked_at(ledger, queue, g.id), job)
  set_ticket(ledger, queue, g)
end

-- ---- taking

-- Take the gates of a parked job. -> the number of the gate that is shut; nil: it has all of them,
-- and the caller writes its grant
local function advance(ledger, job, spot)
  if spot.passed_over < PASSED_OVER_MAX then
    for i, id in ipairs(spot.gates) do
      if gate.free_permits(ledger, gate.of(ledger, id)) <= 0 then
        return i
      end
    end
  end
  local from = spot.passed_over > PASSED_OVER_MAX and spot.at or 1
  for i = from, #spot.gates do
    local g = gate.of(ledger, spot.gates[i])
    if gate.free_permits(ledger, g) <= 0 then
      if i > from then
        grants.hold(ledger, job, spot.gates, i - 1)
      end
      return i
    end
    gate.promise(ledger, g, job)
  end
  return nil
end

-- A job that has just become due takes all its gates, with this fence. -> nil; or the spot where it
-- has to wait (waiters.park_new), whose ticket is the fence: a gate is shut or has waiters, or the
-- queue stands aside there.
function waiters.pass_gates(ledger, queue, job, gates, due, fence)
  local aside = ledger.R .. ':aside:' .. queue
  local is_any_aside = not txn.is_known_empty(aside)
  for i = 1, #gates do
    local id = gates[i]
    local g = gate.of(ledger, id)
    if is_any_aside and db('SISMEMBER', aside, id) == 1 or has_waiters(g) or
       gate.free_permits(ledger, g) <= 0 then
      return {ticket = fence, passed_over = 0, due = due, at = i, gates = gates}
    end
  end
  for i = 1, #gates do
    gate.take(ledger, gate.of(ledger, gates[i]), job, fence)
  end
  return nil
end

-- Must a handler that holds these gates end when its worker loses Redis? (Its job is guarded.)
function waiters.must_end(ledger, gates)
  if not gates then
    return false
  end
  for _, id in ipairs(gates) do
    local g = gate.of(ledger, id)
    if g.kind == 'lock' or (g.kind == 'sem' and g.limit and g.limit.on_lost == 'kill') then
      return true
    end
  end
  return false
end

local function has_permit(g, job)
  if g.kind == 'lock' then
    local row = lock_rows.lock_row(g.key)
    return row and row[1] == job
  end
  return db('ZSCORE', g.key, job)
end

-- A worker runs this job, which waits by the data of Redis. It may go on only if nobody else has
-- its locks and permits; its rates were passed when it started. -> whether it may; if not, nothing
-- is changed
function waiters.regain_gates(ledger, id, job, state)
  local taken = {}
  local gates = wanted.gates_of(job, wanted.queue_gates(db('HGET', ledger.R .. ':queues',
                                                           job.queue)))
  for _, gate_id in ipairs(gates or {}) do
    local g = gate.of(ledger, gate_id)
    if g.kind ~= 'rate' then
      if gate.free_permits(ledger, g) <= 0 and not has_permit(g, id) then
        return false
      end
      taken[#taken + 1] = g
    end
  end
  if state == 'parked' then
    waiters.unpark(ledger, job.queue, id)
  end
  for _, g in ipairs(taken) do
    gate.take(ledger, g, id, clock.tick(ledger.R, ledger.now_us, 1))
  end
  local text = holding.holding_started(gates, job)
  if text then
    db('HSET', ledger.R .. ':holds', id, text)
  end
  return true
end

-- A job is parked no more: it is cancelled, moved or claimed. keeps: it keeps its gates.
function waiters.unpark(ledger, queue, job, keeps)
  local spot = waiters.read_spot(db('HGET', ledger.R .. ':parked', job))
  db('ZREM', ledger.R .. ':parked:' .. queue, job)
  db('HDEL', ledger.R .. ':parked', job)
  db('ZREM', ledger.R .. ':granted:' .. queue, job)
  if spot and spot.at > 0 then
    step_out(ledger, queue, job, spot)
  end
  if not keeps then
    holding.let_go(ledger, {job})
  end
  return spot
end

-- A job that was let in is claimed: remove its spot.
function waiters.forget_spot(ledger, queue, job)
  db('ZREM', ledger.R .. ':parked:' .. queue, job)
  db('HDEL', ledger.R .. ':parked', job)
end

-- ---- opening

local function put_aside(ledger, queue, g)
  local first = db('ZRANGE', parked_at(ledger, queue, g.id), 0, 0)[1]
  if first then
    empty(ledger, first)
  end
  db('ZREM', g.waiters, queue)
  db('SADD', ledger.R .. ':aside:' .. queue, g.id)
  jobs.flag_set(ledger.R, queue, 'a')
end

-- Wake the workers of queues that have new grants, but for jobs that the call itself has claimed.
local function tell_granted(ledger)
  local queues = {}
  for queue in pairs(ledger.granted) do
    queues[#queues + 1] = queue
  end
  table.sort(queues)
  for _, queue in ipairs(queues) do
    if db('EXISTS', ledger.R .. ':granted:' .. queue) == 1 then
      jobs.lower_head(ledger.R, queue, ledger.now_ms)
    end
  end
  ledger.granted = {}
end

-- It is the turn of this job. -> false: its queue was put aside
local function offer_to_job(ledger, g, queue, job)
  local spot = waiters.read_spot(db('HGET', ledger.R .. ':parked', job))
  if not spot or spot.gates[spot.at] ~= g.id then
    -- Its spot cannot be read: it is left to `later fsck`.
    db('ZREM', parked_at(ledger, queue, g.id), job)
    return true
  end
  local word = grants.may_grant(ledger, queue, spot.passed_over >= PASSED_OVER_MAX)
  if word ~= 'yes' then
    if word == 'no' then
      spot.passed_over = spot.passed_over + 1
      db('HSET', ledger.R .. ':parked', job, waiters.spot_text(spot))
    end
    put_aside(ledger, queue, g)
    commit.wake(ledger.R, queue)
    return false
  end
  local shut = advance(ledger, job, spot)
  db('ZREM', parked_at(ledger, queue, g.id), job)
  if not shut then
    grants.let_in(ledger, queue, job, spot)
  else
    spot.at, spot.passed_over = shut, spot.passed_over + 1
    park(ledger, queue, job, spot)
  end
  return true
end

-- Offer permits to the first jobs of the queue that is the first waiter, those before the ticket of
-- the next waiter. -> whether the queue stays a waiter
local function offer_to_queue(ledger, g, queue, next_ticket)
  if instant.paused_until(db('HGET', ledger.R .. ':paused', queue), ledger.now_ms) then
    put_aside(ledger, queue, g)
    return false
  end
  local most = math.min(gate.free_permits(ledger, g), OPEN_MAX - ledger.offers)
  local ids, n, key = {}, 0, parked_at(ledger, queue, g.id)
  local rows = db('ZRANGE', key, 0, most, 'WITHSCORES')
  for i = 1, #rows, 2 do
    ids[#ids + 1] = rows[i]
  end
  if ids[2] then
    db('HMGET', ledger.R .. ':parked', unpack(ids))
  end
  while n < most and n < #ids and gate.free_permits(ledger, g) > 0 and
        (n == 0 or tonumber(rows[2 * n + 2]) < next_ticket) do
    n = n + 1
    ledger.offers = ledger.offers + 1
    if not offer_to_job(ledger, g, queue, ids[n]) then
      return false
    end
  end
  if not ids[n + 1] then
    stop_waiting(ledger, queue, g)
    return false
  end
  db('ZADD', g.waiters, rows[2 * n + 2], queue)
  return true
end

-- Offer the free permits of a gate to its first waiters. Where the call may make no more offers, a
-- timer that is due makes another call go on.
local function open(ledger, id)
  local g = gate.of(ledger, id)
  local is_awaited = has_waiters(g)
  while is_awaited do
    if gate.free_permits(ledger, g) <= 0 then
      waiters.arm_gate(ledger, g)
      return
    elseif ledger.offers >= OPEN_MAX then
      waiters.arm(ledger, 'gate:' .. id, ledger.now_ms)
      return
    end
    local first = db('ZRANGE', g.waiters, 0, 1, 'WITHSCORES')
    local who, stays = first[1], false
    if string.match(who, '^[@=]') then
      ledger.offers = ledger.offers + 1
      locks.offer_to_outsider(ledger, g, who)
    else
      stays = offer_to_queue(ledger, g, who, tonumber(first[4] or 'inf'))
    end
    is_awaited = stays or first[3] ~= nil
  end
end

-- A grant of the queue was not claimed: put the queue aside at the gates of this spot where jobs of
-- it are parked.
local function stand_back(ledger, queue, gates)
  for i, id in ipairs(gates) do
    if db('SISMEMBER', ledger.R .. ':aside:' .. queue, id) == 0 and
       (i == 1 or db('EXISTS', parked_at(ledger, queue, id)) == 1) then
      put_aside(ledger, queue, gate.of(ledger, id))
    end
  end
end

-- Take a grant back: the job gives its permits back and waits for its first gate again, or for gate
-- number `at`.
function waiters.take_back(ledger, queue, job, at)
  local spot = waiters.read_spot(db('HGET', ledger.R .. ':parked', job))
  db('ZREM', ledger.R .. ':granted:' .. queue, job)
  holding.let_go(ledger, {job})
  if spot then
    spot.at, spot.passed_over = at or 1, 0
    if not at then
      stand_back(ledger, queue, spot.gates)
    end
    park(ledger, queue, job, spot)
  end
end

-- Take back the grants of a queue that no worker claimed within GRANT_MS.
local function take_back_late(ledger, queue)
  local key = ledger.R .. ':granted:' .. queue
  -- A grant from before the clock was set back counts from now.
  local from = '(' .. int(ledger.now_ms)
  for _, job in ipairs(db('ZRANGEBYSCORE', key, from, '+inf', 'LIMIT', 0, OPEN_MAX)) do
    db('ZADD', key, ledger.now_ms, job)
  end
  local late = int(ledger.now_ms - grants.GRANT_MS)
  for _, job in ipairs(db('ZRANGEBYSCORE', key, '-inf', late, 'LIMIT', 0, OPEN_MAX)) do
    waiters.take_back(ledger, queue, job)
  end
  local first = db('ZRANGE', key, 0, 0, 'WITHSCORES')
  if first[2] then
    waiters.arm(ledger, 'granted:' .. queue, tonumber(first[2]) + grants.GRANT_MS)
  end
end

local function rejoin_at(ledger, queue, aside, id)
  local g = gate.read(id) and gate.of(ledger, id)
  local first = g and db('ZRANGE', parked_at(ledger, queue, id), 0, 0, 'WITHSCORES') or {}
  db('SREM', aside, id)
  if first[2] then
    db('ZADD', g.waiters, first[2], queue)
    gate.touch(ledger, id)
  end
end

-- A sync names the queue with room: make it a waiter again where it stood aside. -> at how many
-- gates it still stands aside, since one call looks at OPEN_MAX or a key is foreign; at how many it
-- waits again; the error of one that failed
function waiters.rejoin(ledger, queue)
  local key = ledger.R .. ':aside:' .. queue
  local ids, joined, why = db('SRANDMEMBER', key, OPEN_MAX), 0, nil
  table.sort(ids)
  for _, id in ipairs(ids) do
    local ok, reason = change.try(rejoin_at, ledger, queue, key, id)
    if ok then
      joined = joined + 1
    else
      why = syncs.error_text(reason)
    end
  end
  return db('SCARD', key), joined, why
end

-- A timer is due: look at what it is for.
local function serve_timer(ledger, what)
  local kind, id = string.match(what, '^(%a+):(.+)$')
  if kind == 'granted' then
    if not change.try(take_back_late, ledger, id) then
      waiters.arm(ledger, what, ledger.now_ms + RETRY_MS)
    end
  elseif kind == 'gate' and gate.read(id) then
    -- A gate that the call has not met may have a key of a foreign type: waiters.hand_on meets it.
    if ledger.gates[id] then
      change.assign(ledger.gates[id], 'is_armed', false)
    end
    gate.touch(ledger, id)
  elseif kind == 'wait' then
    change.try(locks.end_wait, ledger, id)
  end
end

-- Look at the timers that are due, once in a call.
local function serve_timers(ledger)
  if ledger.has_served then
    return
  end
  ledger.has_served = true
  local timers = ledger.R .. ':timers'
  local now = int(ledger.now_ms)
  for _, what in ipairs(db('ZRANGEBYSCORE', timers, '-inf', now, 'LIMIT', 0, TIMERS_MAX)) do
    db('ZREM', timers, what)
    serve_timer(ledger, what)
  end
end

-- Hand on the permits of the gates that lost a holder in this call, and of those whose timer is
-- due. A gate with a key of a foreign type is left as it is and looked at later. claims_next: the
-- caller claims in this call, and hands on once more after that.
function waiters.hand_on(ledger, claims_next)
  local rounds = 0
  ledger.claims_next = claims_next
  serve_timers(ledger)
  gate.load(ledger, ledger.touched)
  while #ledger.touched > 0 do
    local id = table.remove(ledger.touched)
    ledger.is_touched[id] = nil
    -- Nobody waits for most gates, and a sync may free a thousand: only gates with waiters count.
    local ok, is_awaited = change.try(has_waiters, {waiters = ledger.R .. ':wait:' .. id})
    if not ok or is_awaited then
      if rounds >= OPEN_MAX then
        waiters.arm(ledger, 'gate:' .. id, ledger.now_ms)
      elseif not change.try(open, ledger, id) and kinds.KINDS[string.match(id, '^(%a+):.') or
                                                              ''] then
        waiters.arm(ledger, 'gate:' .. id, ledger.now_ms + RETRY_MS)
      end
      rounds = rounds + 1
    end
  end
  if not claims_next then
    tell_granted(ledger)
  end
end

-- When the next timer is due, in ms; -1 without any.
function waiters.next_timer(R)
  local first = db('ZRANGE', R .. ':timers', 0, 0, 'WITHSCORES')
  local at_ms = tonumber(first[2] or NEVER)
  return at_ms < NEVER and at_ms or -1
end
