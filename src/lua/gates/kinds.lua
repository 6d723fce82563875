-- The three kinds of gates behind one interface (gate.lua):
--   free_permits(ledger, g)  -> how many permits are free
--   opens(ledger, g)  -> when one becomes free by itself, ms; nil: only by a holder that goes
--   take(ledger, g, holder, fence, until_ms, is_reserved)   the caller has seen that one is free
--   drop(ledger, g, holders) -> whether any of them had a permit; frees their permits
--
-- A kind is spelled out, besides here, where a job asks for it (wanted.lua, public/add.lua,
-- rows/judge.lua: what misses it there passes the gate unasked), where it is defined (limits.lua,
-- public/limit.lua, calls/declare.lua), where it is held or only counted (gate.lua, holding.lua,
-- waiters.lua), in rows/gates.lua (an unknown kind is odd there; what else rows know of
-- it: rows/{waiters,plan,starts,queue}.lua), and where gates are told (public/show.lua,
-- public/find.lua, public/explain_gate.lua, calls/gates.lua, calls/health.lua, audit/gates.lua).
-- Schedules and callers name gates, too: public/schedule.lua, public/lock.lua.

local kinds = module 'gates/kinds'
local gate, rates, change, commit, lock_rows, txn = use(
  'gates/gate', 'gates/rates', 'txn/change', 'txn/commit', 'txn/lock_rows', 'txn/txn')

kinds.KINDS = {lock = {}, sem = {}, rate = {}}

-- ---- locks: rows {holder, until ms, fence, depth, since ms, token} of lock_rows.lock_row
-- (txn/lock_rows.lua)

-- -> holder, until ms (0: as long as its job or worker), fence, depth; nil: the lock is free
function kinds.lock_holder(ledger, g)
  local row = lock_rows.lock_row(g.key)
  if not row then
    return nil
  end
  local until_ms = whole(row[2]) or 0
  if until_ms > 0 and until_ms <= ledger.now_ms then
    return nil
  end
  return row[1], until_ms, whole(row[3]) or 0, whole(row[4]) or 1
end

function kinds.KINDS.lock.free_permits(ledger, g)
  return kinds.lock_holder(ledger, g) and 0 or 1
end

function kinds.KINDS.lock.opens(ledger, g)
  local holder, until_ms = kinds.lock_holder(ledger, g)
  return holder and until_ms > 0 and until_ms or nil
end

function kinds.KINDS.lock.take(ledger, g, holder, fence, until_ms, is_reserved)
  lock_rows.put_lock(g.key, {holder, int(until_ms or 0), int(fence), is_reserved and '0' or '1',
                             int(ledger.now_ms)})
  gate.set_free(g, 0)
end

function kinds.KINDS.lock.drop(_, g, holders)
  local row = lock_rows.lock_row(g.key)
  for _, holder in ipairs(row and holders or {}) do
    if row[1] == holder then
      lock_rows.put_lock(g.key, false)
      gate.set_free(g, 1)
      return true
    end
  end
  return false
end

-- Change a lock that is held. nil leaves a field as it is; token false: the lock has none.
function kinds.change_lock(g, until_text, fence_text, depth_text, token)
  local row = lock_rows.lock_row(g.key)
  lock_rows.put_lock(g.key, {row[1], until_text or row[2], fence_text or row[3], depth_text or
                             row[4], row[5], token == nil and row[6] or token})
end

-- A job starts: if it holds this lock, the lock gets its fence.
function kinds.refence(g, job, fence)
  local row = lock_rows.lock_row(g.key)
  if row and row[1] == job then
    kinds.change_lock(g, nil, int(fence))
  end
end

-- ---- semaphores

-- Remove the holders whose lease is over. They count for nothing, so this may follow the writes,
-- however many they are.
local function drop_ended(key, now_text)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now_text)
end

-- The limit may have become lower than the number of holders: then no permit is free until enough
-- of them have gone.
function kinds.KINDS.sem.free_permits(ledger, g)
  if not g.has_dropped then
    change.assign(g, 'has_dropped', true)
    commit.hint(drop_ended, g.key, int(ledger.now_ms))
  end
  return g.limit.n - db('ZCOUNT', g.key, '(' .. int(ledger.now_ms), '+inf')
end

function kinds.KINDS.sem.opens(ledger, g)
  local lives, ends = '(' .. int(ledger.now_ms), '(' .. int(gate.LIVES)
  -- Mostly no holder has a lease, and counting costs less than sorting what the call has changed.
  if db('ZCOUNT', g.key, lives, ends) == 0 then
    return nil
  end
  return tonumber(db('ZRANGEBYSCORE', g.key, lives, ends, 'WITHSCORES', 'LIMIT', 0, 1)[2])
end

-- The key expires with the last lease, unless a holder has none: a caller may come once and never
-- again.
local function expire_with_leases(key)
  local last = tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2] or gate.LIVES)
  if last < gate.LIVES then
    redis.call('PEXPIREAT', key, int(last))
  end
end

function kinds.KINDS.sem.take(ledger, g, holder, _, until_ms)
  local last, was = txn.last_score(g.key), db('ZSCORE', g.key, holder)
  db('ZADD', g.key, until_ms or gate.LIVES + ledger.now_ms, holder)
  if not (was and was > ledger.now_ms) then
    gate.add_free(g, -1)
  end
  if not until_ms and last and last < gate.LIVES then
    db('PERSIST', g.key)
  end
  commit.after_writes(expire_with_leases, g.key)
end

function kinds.KINDS.sem.drop(ledger, g, holders)
  local n = 0
  for _, was in ipairs(db('ZMSCORE', g.key, unpack(holders))) do
    n = n + (was and was > ledger.now_ms and 1 or 0)
  end
  if db('ZREM', g.key, unpack(holders)) == 0 then
    return false
  end
  gate.add_free(g, n)
  commit.after_writes(expire_with_leases, g.key)
  return true
end

-- ---- rates: permits that are kept for granted jobs are not free

function kinds.KINDS.rate.free_permits(ledger, g)
  return rates.RATES[g.limit.algorithm].free_permits(ledger, g) - db('SCARD', g.granted)
end

-- nil: only when a granted job is claimed or loses its grant.
function kinds.KINDS.rate.opens(ledger, g)
  local rate = rates.RATES[g.limit.algorithm]
  local is_kept = rate.free_permits(ledger, g) > 0
  return rate.opens(ledger, g, is_kept and db('SCARD', g.granted) + 1 or 1)
end

function kinds.KINDS.rate.take(ledger, g)
  rates.RATES[g.limit.algorithm].take(ledger, g, 1)
  gate.add_free(g, -1)
end

function kinds.KINDS.rate.drop(_, g, holders)
  local n = db('SREM', g.granted, unpack(holders))
  gate.add_free(g, n)
  return n > 0
end
