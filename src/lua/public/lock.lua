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

local TTL_MS = 30000
local TTL_MAX_MS = 7 * 86400000
local RESERVE_MS = 5000

local function check_owner(owner)
  if owner == nil or #owner < 1 or #owner > 128 or string.find(owner, '[%z\1-\32\127]') then
    L.fail('ELATER_ARGS', 'the owner must be 1 to 128 bytes without spaces and control characters')
  end
  return '=' .. owner
end

-- Read options, pairs of name and value, from args[at] on. allowed: name -> function(value) -> the
-- value to keep. -> name -> value
local function options(args, at, allowed)
  local out = {}
  if (#args - at) % 2 == 0 then
    L.fail('ELATER_ARGS', 'option ' .. L.quote(args[#args]) .. ' has no value')
  end
  for i = at, #args, 2 do
    local name = string.lower(args[i])
    if not allowed[name] then
      L.fail('ELATER_OPTION', 'unknown option ' .. L.quote(args[i]))
    elseif out[name] ~= nil then
      L.fail('ELATER_OPTION', 'option ' .. name .. ' is given twice')
    end
    out[name] = allowed[name](args[i + 1])
  end
  return out
end

local function ttl_option(value)
  local ms = L.positive('ttl', value)
  if ms > TTL_MAX_MS then
    L.fail('ELATER_TIME', 'ttl ' .. L.quote(value) .. ' is longer than 7d')
  end
  return ms
end

local function wait_option(value)
  return L.duration(value, 'wait')
end

-- ---- callers (=OWNER) and programs (@EPOCH) as waiters
-- R:parked: "=OWNER LF gate" -> "<ticket> <until ms>"; until 0: as long as its worker lives

local function spot_name(g, who)
  return who .. '\n' .. g.id
end

-- -> ticket, until ms; nil: it does not wait for this gate
local function turn_of(book, g, who)
  local spot = db('HGET', book.R .. ':parked', spot_name(g, who)) or ''
  local ticket, until_ms = string.match(spot, '^(%d+) (%d+)$')
  return L.whole(ticket), L.whole(until_ms) or 0
end

-- Take a caller or program out of the waiters of a gate, if it is one.
function L.leave_waiters(book, g, who)
  local name = spot_name(g, who)
  L.touch(book, g.id)
  db('HDEL', book.R .. ':parked', name)
  db('ZREM', book.R .. ':timers', 'wait:' .. name)
  if db('ZREM', g.waiters, who) == 1 then
    L.disarm(book, g)
  end
end

-- The end of the wait is put into R:timers, since the caller may never ask again. -> how many
-- waiters are before it
function L.join_waiters(book, g, who, until_ms)
  local name = spot_name(g, who)
  local ticket = turn_of(book, g, who) or L.tick(book.R, book.now_us, 1)
  db('HSET', book.R .. ':parked', name, L.int(ticket) .. ' ' .. L.int(until_ms))
  db('ZADD', g.waiters, ticket, who)
  if until_ms > 0 then
    db('ZADD', book.R .. ':timers', until_ms + 1, 'wait:' .. name)
  end
  L.arm_gate(book, g)
  return db('ZCOUNT', g.waiters, '-inf', '(' .. L.int(ticket))
end

-- A timer says that a wait is over: leave the waiters, or set the timer again if the wait was
-- prolonged. name: as in R:parked
function L.end_wait(book, name)
  local who, id = string.match(name, '^([@=][^\n]*)\n(.+)$')
  local g = who and L.read_gate(id) and L.gate(book, id)
  local ticket, until_ms = nil, nil
  if g then
    ticket, until_ms = turn_of(book, g, who)
  end
  if ticket and until_ms > 0 and until_ms < book.now_ms then
    L.leave_waiters(book, g, who)
  elseif ticket and until_ms > 0 then
    L.arm(book, 'wait:' .. name, until_ms + 1)
  end
end

-- It is the turn of a caller or program: reserve its permit for RESERVE_MS (a lock has depth 0
-- until it asks again). If its wait is over, it only leaves the waiters.
function L.offer_to_outsider(book, g, who)
  local _, until_ms = turn_of(book, g, who)
  L.leave_waiters(book, g, who)
  if until_ms ~= 0 and until_ms < book.now_ms then
    return
  end
  L.take(book, g, who, L.tick(book.R, book.now_us, 1), book.now_ms + RESERVE_MS, true)
  L.wake(book.R, who)
end

local function leave_gate(book, epoch)
  local id = db('HGET', book.R .. ':worker:' .. epoch, 'gate')
  if id and L.read_gate(id) then
    local g = L.gate(book, id)
    -- A key R:wait of a foreign type must not keep the permit of a worker that died from others.
    L.unless_foreign(L.leave_waiters, book, g, '@' .. epoch)
    return L.drop(book, g, '@' .. epoch)
  end
end

-- A worker leaves or died. If it is a `later lock` or `later sem`, its R:worker:<epoch> names the
-- one gate that it holds or waits for, which is freed. A key of a foreign type is left alone.
-- -> whether it held the gate
function L.leave_gate(book, epoch)
  return L.unless_foreign(leave_gate, book, epoch)
end

-- ---- holding

-- Does who hold the gate now?
function L.has_lease(book, g, who)
  if g.kind == 'lock' then
    return L.lock_holder(book, g) == who
  end
  local score = db('ZSCORE', g.key, who)
  return score and tonumber(score) > book.now_ms
end

-- Prolong the lease of a holder. until_ms nil: it has no lease and lives with its worker. The lease
-- never gets shorter: the timer that calls the waiters is set to its end. deeper: count one more
-- hold of a lock. -> fence, until ms
function L.prolong(book, g, who, until_ms, deeper)
  if g.kind == 'sem' then
    local was = tonumber(db('ZSCORE', g.key, who))
    until_ms = until_ms and math.max(until_ms, was)
    if until_ms or was < L.LIVES then
      L.take(book, g, who, 0, until_ms)
    end
    return 0, until_ms
  end
  local _, was, fence, depth = L.lock_holder(book, g)
  until_ms = until_ms and math.max(until_ms, was)
  L.change_lock(g, L.int(until_ms or 0), nil, L.int(depth + (deeper and 1 or 0)))
  return fence, until_ms
end

-- Take a permit, or wait for it. ttl_ms nil: no lease, it lives with its worker. wait_ms
-- nil: do not wait. -> the reply of later_lock
function L.enter(book, g, who, ttl_ms, wait_ms)
  local until_ms = ttl_ms and book.now_ms + ttl_ms
  local fence
  if not L.has_lease(book, g, who) and #db('ZRANGE', g.waiters, 0, 0) > 0 then
    -- Leases and waits end without a call. Where no worker makes steps, the next caller hands the
    -- permits on.
    L.touch(book, g.id)
    L.hand_on(book)
  end
  if L.has_lease(book, g, who) then
    fence, until_ms = L.prolong(book, g, who, until_ms, true)
  elseif #db('ZRANGE', g.waiters, 0, 0) == 0 and L.free_permits(book, g) > 0 then
    fence = g.kind == 'lock' and L.tick(book.R, book.now_us, 1) or 0
    L.take(book, g, who, fence, until_ms)
  else
    local before = 0
    if wait_ms then
      before = L.join_waiters(book, g, who, ttl_ms and book.now_ms + wait_ms or 0)
      L.touch(book, g.id)
      L.hand_on(book)
      if L.has_lease(book, g, who) then
        return L.enter(book, g, who, ttl_ms, nil)
      end
    end
    return {0, 0, 0, before, g.kind == 'lock' and L.lock_holder(book, g) or ''}
  end
  return {1, fence, until_ms or 0, 0, g.kind == 'lock' and who or ''}
end

local function acquire(kind, what)
  return function(R, args)
    local name, who = L.check_gate_name(what, args[1]), check_owner(args[2])
    local given = options(args, 3, {ttl = ttl_option, wait = wait_option})
    local book = L.book(R, L.now_us())
    local g = L.gate(book, kind .. ':' .. name)
    if kind == 'sem' then
      L.need_limit(R, kind, name)
    end
    return L.enter(book, g, who, given.ttl or TTL_MS, given.wait)
  end
end

local function give_back(kind, what)
  return function(R, args)
    local name, who = L.check_gate_name(what, args[1]), check_owner(args[2])
    local given = options(args, 3, {token = function(v) return v end})
    local book = L.book(R, L.now_us())
    local g = L.gate(book, kind .. ':' .. name)
    L.leave_waiters(book, g, who)
    if not L.has_lease(book, g, who) then
      return 'not-held'
    end
    if kind == 'lock' then
      local row = L.lock_row(g.key)
      local depth, is_again = L.whole(row[4]) or 1, given.token and row[6] == given.token
      if depth > 1 or is_again then
        if not is_again then
          L.change_lock(g, nil, nil, L.int(depth - 1), given.token or '')
        end
        return 'kept'
      end
    end
    L.drop(book, g, who)
    L.hand_on(book)
    return 'released'
  end
end

L.register('later_lock', {}, acquire('lock', 'lock'))
L.register('later_sem_acquire', {}, acquire('sem', 'semaphore'))
L.register('later_unlock', {'allow-oom'}, give_back('lock', 'lock'))
L.register('later_sem_release', {'allow-oom'}, give_back('sem', 'semaphore'))

L.register('later_renew', {'allow-oom'}, function(R, args)
  local name, who = L.check_gate_name('gate', args[1]), check_owner(args[2])
  local given = options(args, 3, {ttl = ttl_option, kind = string.lower})
  local kind = given.kind or 'lock'
  if kind ~= 'lock' and kind ~= 'sem' then
    L.fail('ELATER_OPTION', 'kind ' .. L.quote(kind) .. ' is neither lock nor sem')
  end
  local book = L.book(R, L.now_us())
  local g = L.gate(book, kind .. ':' .. name)
  if not L.has_lease(book, g, who) then
    L.fail('ELATER_LOST', 'the lease of ' .. L.quote(args[2]) .. ' on ' .. L.quote(g.id) ..
           ' is over: another may hold it now, what it guarded must stop')
  elseif kind == 'lock' and L.lock_row(g.key)[4] == '0' then
    L.fail('ELATER_LOST', 'the lock ' .. L.quote(name) .. ' is kept for ' .. L.quote(args[2]) ..
           ', which has not taken it yet: later_lock takes it')
  end
  return {L.prolong(book, g, who, book.now_ms + (given.ttl or TTL_MS), false)}
end)
