-- The three kinds of gates behind one interface (gate.lua):
--   free_permits(book, g)  -> how many permits are free
--   opens(book, g)  -> when one becomes free by itself, ms; nil: only by a holder that goes
--   take(book, g, holder, fence, until_ms, is_reserved)   the caller has seen that one is free
--   drop(book, g, holders) -> whether any of them had a permit; frees their permits

L.KINDS = {lock = {}, sem = {}, rate = {}}

-- ---- locks: rows {holder, until ms, fence, depth, since ms, token} of L.lock_row (locks.lua)

-- -> holder, until ms (0: as long as its job or worker), fence, depth; nil: the lock is free
function L.lock_holder(book, g)
  local row = L.lock_row(g.key)
  if not row then
    return nil
  end
  local until_ms = L.whole(row[2]) or 0
  if until_ms > 0 and until_ms <= book.now_ms then
    return nil
  end
  return row[1], until_ms, L.whole(row[3]) or 0, L.whole(row[4]) or 1
end

function L.KINDS.lock.free_permits(book, g)
  return L.lock_holder(book, g) and 0 or 1
end

function L.KINDS.lock.opens(book, g)
  local holder, until_ms = L.lock_holder(book, g)
  return holder and until_ms > 0 and until_ms or nil
end

function L.KINDS.lock.take(book, g, holder, fence, until_ms, is_reserved)
  L.put_lock(g.key, {holder, L.int(until_ms or 0), L.int(fence), is_reserved and '0' or '1',
                     L.int(book.now_ms)})
  L.set_free(g, 0)
end

function L.KINDS.lock.drop(_, g, holders)
  local row = L.lock_row(g.key)
  for _, holder in ipairs(row and holders or {}) do
    if row[1] == holder then
      L.put_lock(g.key, false)
      L.set_free(g, 1)
      return true
    end
  end
  return false
end

-- Change a lock that is held. nil leaves a field as it is; token false: the lock has none.
function L.change_lock(g, until_text, fence_text, depth_text, token)
  local row = L.lock_row(g.key)
  L.put_lock(g.key, {row[1], until_text or row[2], fence_text or row[3], depth_text or row[4],
                     row[5], token == nil and row[6] or token})
end

-- A job starts: if it holds this lock, the lock gets its fence.
function L.refence(g, job, fence)
  local row = L.lock_row(g.key)
  if row and row[1] == job then
    L.change_lock(g, nil, L.int(fence))
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
function L.KINDS.sem.free_permits(book, g)
  if not g.has_dropped then
    L.assign(g, 'has_dropped', true)
    L.hint(drop_ended, g.key, L.int(book.now_ms))
  end
  return g.limit.n - db('ZCOUNT', g.key, '(' .. L.int(book.now_ms), '+inf')
end

function L.KINDS.sem.opens(book, g)
  local lives, ends = '(' .. L.int(book.now_ms), '(' .. L.int(L.LIVES)
  -- Mostly no holder has a lease, and counting costs less than sorting what the call has changed.
  if db('ZCOUNT', g.key, lives, ends) == 0 then
    return nil
  end
  return tonumber(db('ZRANGEBYSCORE', g.key, lives, ends, 'WITHSCORES', 'LIMIT', 0, 1)[2])
end

-- The key expires with the last lease, unless a holder has none: a caller may come once and never
-- again.
local function expire_with_leases(key)
  local last = tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2] or L.LIVES)
  if last < L.LIVES then
    redis.call('PEXPIREAT', key, L.int(last))
  end
end

function L.KINDS.sem.take(book, g, holder, _, until_ms)
  local last, was = L.last_score(g.key), db('ZSCORE', g.key, holder)
  db('ZADD', g.key, until_ms or L.LIVES + book.now_ms, holder)
  if not (was and was > book.now_ms) then
    L.add_free(g, -1)
  end
  if not until_ms and last and last < L.LIVES then
    db('PERSIST', g.key)
  end
  L.after_writes(expire_with_leases, g.key)
end

function L.KINDS.sem.drop(book, g, holders)
  local n = 0
  for _, was in ipairs(db('ZMSCORE', g.key, unpack(holders))) do
    n = n + (was and was > book.now_ms and 1 or 0)
  end
  if db('ZREM', g.key, unpack(holders)) == 0 then
    return false
  end
  L.add_free(g, n)
  L.after_writes(expire_with_leases, g.key)
  return true
end

-- ---- rates: permits that are kept for granted jobs are not free

function L.KINDS.rate.free_permits(book, g)
  return L.RATES[g.limit.algorithm].free_permits(book, g) - db('SCARD', g.granted)
end

-- nil: only when a granted job is claimed or loses its grant.
function L.KINDS.rate.opens(book, g)
  local rate = L.RATES[g.limit.algorithm]
  local is_kept = rate.free_permits(book, g) > 0
  return rate.opens(book, g, is_kept and db('SCARD', g.granted) + 1 or 1)
end

function L.KINDS.rate.take(book, g)
  L.RATES[g.limit.algorithm].take(book, g, 1)
  L.add_free(g, -1)
end

function L.KINDS.rate.drop(_, g, holders)
  local n = db('SREM', g.granted, unpack(holders))
  L.add_free(g, n)
  return n > 0
end
