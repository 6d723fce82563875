-- later_lock R NAME OWNER [ttl D] [wait D] -> [granted, fence, until_ms, ahead, holder]
-- later_sem_acquire R NAME OWNER [ttl D] [wait D] -> the same; fence is 0
-- later_unlock R NAME OWNER [token T] | later_sem_release R NAME OWNER
--   -> 'released' | 'kept' | 'not-held'
-- later_renew R NAME OWNER [ttl D] [kind lock|sem] -> [fence, until_ms]
--
-- For callers with nothing but a Redis client. A lease lasts for ttl (30s without it, at most 7d)
-- by Redis' clock; then others may take the permit. A holder has to watch the time itself;
-- later_fenced refuses a write with a fence that is not the present holder's.
-- granted: 1 | 0. fence: rises from holder to holder, whatever happened to the lock in between. A
-- holder that asks for its lock again holds it once more (depth) and must unlock as often; each
-- call prolongs the lease.
-- wait: with granted 0 the caller waits for so long. When its turn comes the permit is kept for
-- it for five seconds; asking again takes it. ahead: how many waiters are before it (0 without
-- wait).
-- holder: what has the lock (=OWNER, a job's id, @EPOCH of a program); '' for semaphores.
-- Giving back also takes the caller out of the waiters, and may be repeated. released: the permit
-- is free. kept: the caller still holds the lock, depth times. not-held: another holds it, or
-- nobody; no holder changes. token: for an unlock whose reply was lost; the same token again counts
-- once while the lock is kept. After the last unlock a repetition answers not-held.
-- later_renew: ELATER_LOST when the lease is over and another may hold the permit, or when a
-- kept lock was not taken yet.
-- Errors: ELATER_ARGS GATE OPTION TIME LIMIT LOST TYPE. Cost: O(log n); giving back O(those it lets
-- in).

local locks = module 'public/lock'
local clock, instant, gate, kinds, limits, waiters, adds, change, commit, lock_rows = use(
  'core/clock', 'core/instant', 'gates/gate', 'gates/kinds', 'gates/limits', 'gates/waiters',
  'public/add', 'txn/change', 'txn/commit', 'txn/lock_rows')
local TTL_MS = 30000
local TTL_MAX_MS = 7 * 86400000
local RESERVE_MS = 5000

local function check_owner(owner)
  if owner == nil or #owner < 1 or #owner > 128 or string.find(owner, '[%z\1-\32\127]') then
    fail('ELATER_ARGS', 'the owner must be 1 to 128 bytes without spaces and control characters')
  end
  return '=' .. owner
end

-- Read options, pairs of name and value, from args[at] on. allowed: name -> function(value) -> the
-- value to keep. -> name -> value
local function options(args, at, allowed)
  local out = {}
  if (#args - at) % 2 == 0 then
    fail('ELATER_ARGS', 'option ' .. quote(args[#args]) .. ' has no value')
  end
  for i = at, #args, 2 do
    local name = string.lower(args[i])
    if not allowed[name] then
      fail('ELATER_OPTION', 'unknown option ' .. quote(args[i]))
    elseif out[name] ~= nil then
      fail('ELATER_OPTION', 'option ' .. name .. ' is given twice')
    end
    out[name] = allowed[name](args[i + 1])
  end
  return out
end

local function ttl_option(value)
  local ms = adds.positive('ttl', value)
  if ms > TTL_MAX_MS then
    fail('ELATER_TIME', 'ttl ' .. quote(value) .. ' is longer than 7d')
  end
  return ms
end

local function wait_option(value)
  return instant.duration(value, 'wait')
end

-- ---- callers (=OWNER) and programs (@EPOCH) as waiters
-- R:parked: "=OWNER LF gate" -> "<ticket> <until ms>"; until 0: as long as its worker lives

local function spot_name(g, who)
  return who .. '\n' .. g.id
end

-- -> ticket, until ms; nil: it does not wait for this gate
local function turn_of(ledger, g, who)
  local spot = db('HGET', ledger.R .. ':parked', spot_name(g, who)) or ''
  local ticket, until_ms = string.match(spot, '^(%d+) (%d+)$')
  return whole(ticket), whole(until_ms) or 0
end

-- Take a caller or program out of the waiters of a gate, if it is one.
function locks.leave_waiters(ledger, g, who)
  local name = spot_name(g, who)
  gate.touch(ledger, g.id)
  db('HDEL', ledger.R .. ':parked', name)
  db('ZREM', ledger.R .. ':timers', 'wait:' .. name)
  if db('ZREM', g.waiters, who) == 1 then
    waiters.disarm(ledger, g)
  end
end

-- The end of the wait is put into R:timers, since the caller may never ask again. -> how many
-- waiters are before it
function locks.join_waiters(ledger, g, who, until_ms)
  local name = spot_name(g, who)
  local ticket = turn_of(ledger, g, who) or clock.tick(ledger.R, ledger.now_us, 1)
  db('HSET', ledger.R .. ':parked', name, int(ticket) .. ' ' .. int(until_ms))
  db('ZADD', g.waiters, ticket, who)
  if until_ms > 0 then
    db('ZADD', ledger.R .. ':timers', until_ms + 1, 'wait:' .. name)
  end
  waiters.arm_gate(ledger, g)
  return db('ZCOUNT', g.waiters, '-inf', '(' .. int(ticket))
end

-- A timer says that a wait is over: leave the waiters, or set the timer again if the wait was
-- prolonged. name: as in R:parked
function locks.end_wait(ledger, name)
  local who, id = string.match(name, '^([@=][^\n]*)\n(.+)$')
  local g = who and gate.read(id) and gate.of(ledger, id)
  local ticket, until_ms = nil, nil
  if g then
    ticket, until_ms = turn_of(ledger, g, who)
  end
  if ticket and until_ms > 0 and until_ms < ledger.now_ms then
    locks.leave_waiters(ledger, g, who)
  elseif ticket and until_ms > 0 then
    waiters.arm(ledger, 'wait:' .. name, until_ms + 1)
  end
end

-- It is the turn of a caller or program: reserve its permit for RESERVE_MS (a lock has depth 0
-- until it asks again). If its wait is over, it only leaves the waiters.
function locks.offer_to_outsider(ledger, g, who)
  local _, until_ms = turn_of(ledger, g, who)
  locks.leave_waiters(ledger, g, who)
  if until_ms ~= 0 and until_ms < ledger.now_ms then
    return
  end
  gate.take(ledger, g, who, clock.tick(ledger.R, ledger.now_us, 1), ledger.now_ms + RESERVE_MS,
            true)
  commit.wake(ledger.R, who)
end

local function leave_gate(ledger, epoch)
  local id = db('HGET', ledger.R .. ':worker:' .. epoch, 'gate')
  if id and gate.read(id) then
    local g = gate.of(ledger, id)
    -- A key R:wait of a foreign type must not keep the permit of a worker that died from others.
    change.unless_foreign(locks.leave_waiters, ledger, g, '@' .. epoch)
    return gate.drop(ledger, g, '@' .. epoch)
  end
end

-- A worker leaves or died. If it is a `later lock` or `later sem`, its R:worker:<epoch> names the
-- one gate that it holds or waits for, which is freed. A key of a foreign type is left alone.
-- -> whether it held the gate
function locks.leave_gate(ledger, epoch)
  return change.unless_foreign(leave_gate, ledger, epoch)
end

-- ---- holding

-- Does who hold the gate now?
function locks.has_lease(ledger, g, who)
  if g.kind == 'lock' then
    return kinds.lock_holder(ledger, g) == who
  end
  local score = db('ZSCORE', g.key, who)
  return score and tonumber(score) > ledger.now_ms
end

-- Prolong the lease of a holder. until_ms nil: it has no lease and lives with its worker. The lease
-- never gets shorter: the timer that calls the waiters is set to its end. deeper: count one more
-- hold of a lock. -> fence, until ms
function locks.prolong(ledger, g, who, until_ms, deeper)
  if g.kind == 'sem' then
    local was = tonumber(db('ZSCORE', g.key, who))
    until_ms = until_ms and math.max(until_ms, was)
    if until_ms or was < gate.LIVES then
      gate.take(ledger, g, who, 0, until_ms)
    end
    return 0, until_ms
  end
  local _, was, fence, depth = kinds.lock_holder(ledger, g)
  until_ms = until_ms and math.max(until_ms, was)
  kinds.change_lock(g, int(until_ms or 0), nil, int(depth + (deeper and 1 or 0)))
  return fence, until_ms
end

-- Take a permit, or wait for it. ttl_ms nil: no lease, it lives with its worker. wait_ms
-- nil: do not wait. -> the reply of later_lock
function locks.enter(ledger, g, who, ttl_ms, wait_ms)
  local until_ms = ttl_ms and ledger.now_ms + ttl_ms
  local fence
  if not locks.has_lease(ledger, g, who) and #db('ZRANGE', g.waiters, 0, 0) > 0 then
    -- Leases and waits end without a call. Where no worker makes syncs, the next caller hands the
    -- permits on.
    gate.touch(ledger, g.id)
    waiters.hand_on(ledger)
  end
  if locks.has_lease(ledger, g, who) then
    fence, until_ms = locks.prolong(ledger, g, who, until_ms, true)
  elseif #db('ZRANGE', g.waiters, 0, 0) == 0 and gate.free_permits(ledger, g) > 0 then
    fence = g.kind == 'lock' and clock.tick(ledger.R, ledger.now_us, 1) or 0
    gate.take(ledger, g, who, fence, until_ms)
  else
    local before = 0
    if wait_ms then
      before = locks.join_waiters(ledger, g, who, ttl_ms and ledger.now_ms + wait_ms or 0)
      gate.touch(ledger, g.id)
      waiters.hand_on(ledger)
      if locks.has_lease(ledger, g, who) then
        return locks.enter(ledger, g, who, ttl_ms, nil)
      end
    end
    return {0, 0, 0, before, g.kind == 'lock' and kinds.lock_holder(ledger, g) or ''}
  end
  return {1, fence, until_ms or 0, 0, g.kind == 'lock' and who or ''}
end

local function acquire(kind, what)
  return function(R, args)
    local name, who = limits.check_gate_name(what, args[1]), check_owner(args[2])
    local given = options(args, 3, {ttl = ttl_option, wait = wait_option})
    local ledger = gate.ledger(R, clock.now_us())
    local g = gate.of(ledger, kind .. ':' .. name)
    if kind == 'sem' then
      limits.need_limit(R, kind, name)
    end
    return locks.enter(ledger, g, who, given.ttl or TTL_MS, given.wait)
  end
end

local function give_back(kind, what)
  return function(R, args)
    local name, who = limits.check_gate_name(what, args[1]), check_owner(args[2])
    local given = options(args, 3, {token = function(v) return v end})
    local ledger = gate.ledger(R, clock.now_us())
    local g = gate.of(ledger, kind .. ':' .. name)
    locks.leave_waiters(ledger, g, who)
    if not locks.has_lease(ledger, g, who) then
      return 'not-held'
    end
    if kind == 'lock' then
      local row = lock_rows.lock_row(g.key)
      local depth, is_again = whole(row[4]) or 1, given.token and row[6] == given.token
      if depth > 1 or is_again then
        if not is_again then
          kinds.change_lock(g, nil, nil, int(depth - 1), given.token or '')
        end
        return 'kept'
      end
    end
    gate.drop(ledger, g, who)
    waiters.hand_on(ledger)
    return 'released'
  end
end

register('later_lock', {}, acquire('lock', 'lock'))
register('later_sem_acquire', {}, acquire('sem', 'semaphore'))
register('later_unlock', {'allow-oom'}, give_back('lock', 'lock'))
register('later_sem_release', {'allow-oom'}, give_back('sem', 'semaphore'))

register('later_renew', {'allow-oom'}, function(R, args)
  local name, who = limits.check_gate_name('gate', args[1]), check_owner(args[2])
  local given = options(args, 3, {ttl = ttl_option, kind = string.lower})
  local kind = given.kind or 'lock'
  if kind ~= 'lock' and kind ~= 'sem' then
    fail('ELATER_OPTION', 'kind ' .. quote(kind) .. ' is neither lock nor sem')
  end
  local ledger = gate.ledger(R, clock.now_us())
  local g = gate.of(ledger, kind .. ':' .. name)
  if not locks.has_lease(ledger, g, who) then
    fail('ELATER_LOST', 'the lease of ' .. quote(args[2]) .. ' on ' .. quote(g.id) ..
         ' is over: another may hold it now, what it guarded must stop')
  elseif kind == 'lock' and lock_rows.lock_row(g.key)[4] == '0' then
    fail('ELATER_LOST', 'the lock ' .. quote(name) .. ' is kept for ' .. quote(args[2]) ..
         ', which has not taken it yet: later_lock takes it')
  end
  return {locks.prolong(ledger, g, who, ledger.now_ms + (given.ttl or TTL_MS), false)}
end)
