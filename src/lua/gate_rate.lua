-- Rate limits: three algorithms behind one face. Times are us of Redis' clock.
--
--   room(book, g) -> starts that would pass now; with 0, the ms when the next one may
--   opens(book, g, n) -> the ms when n may pass, nil for never
--   take(book, g, n)   n pass; the caller has looked
--   seen(book, g) -> free, reset_us: when everything is as it was before the first
--
-- gcra     a token bucket kept as one time, the theoretical arrival time (ITU-T I.371; as in Brandur
--          Leach's throttled and redis-cell): `burst` at once, then one each per / n. Exact, O(1).
-- sliding  a log of all starts in the last `per`: at most n in any such window. Exact, O(log n), n entries.
-- fixed    a counter for each whole `per` since 1970: up to 2 n around a border. O(1).
-- A clock that was set back would shut a gate for as long: what lies further ahead than the algorithm
-- can have put it is taken back to the furthest that it can be.

L.RATES = {gcra = {}, sliding = {}, fixed = {}}

local function expire(g, us)
  redis.call('PEXPIRE', g.key, L.int(math.ceil(us / 1000) + 1000))
end

-- ---- gcra

-- -> the theoretical arrival time, the interval and the tolerance
local function gcra(book, g)
  local step = g.limit.per_us / g.limit.n
  local burst = step * g.limit.burst
  local tat = tonumber(redis.call('GET', g.key) or '0') or 0
  return math.min(math.max(tat, book.now_us), book.now_us + burst), step, burst
end

function L.RATES.gcra.room(book, g)
  if g.limit.n == 0 then
    return 0
  end
  local tat, step, burst = gcra(book, g)
  -- A hair of tolerance: the interval need not be a whole number.
  local free = math.floor((book.now_us + burst - tat) / step + 1e-6)
  return math.max(free, 0), free <= 0 and L.RATES.gcra.opens(book, g, 1) or nil
end

function L.RATES.gcra.opens(book, g, n)
  if n > g.limit.burst or g.limit.n == 0 then
    return nil
  end
  local tat, step, burst = gcra(book, g)
  return math.ceil((tat + n * step - burst) / 1000)
end

function L.RATES.gcra.take(book, g, n)
  local tat, step = gcra(book, g)
  redis.call('SET', g.key, L.int(math.ceil(tat + n * step)))
  expire(g, tat + n * step - book.now_us)
end

function L.RATES.gcra.seen(book, g)
  if g.limit.n == 0 then
    return 0, 0
  end
  local tat, step, burst = gcra(book, g)
  return math.max(math.floor((book.now_us + burst - tat) / step + 1e-6), 0), tat - book.now_us
end

-- ---- sliding

local function trim_log(book, g)
  redis.call('ZREMRANGEBYSCORE', g.key, '-inf', L.int(book.now_us - g.limit.per_us))
  -- Starts ahead of a clock that was set back count as of now.
  for _, number in ipairs(redis.call('ZRANGEBYSCORE', g.key, '(' .. L.int(book.now_us), '+inf')) do
    redis.call('ZADD', g.key, L.int(book.now_us), number)
  end
end

function L.RATES.sliding.room(book, g)
  trim_log(book, g)
  local free = g.limit.n - redis.call('ZCARD', g.key)
  return math.max(free, 0), free <= 0 and L.RATES.sliding.opens(book, g, 1) or nil
end

function L.RATES.sliding.opens(book, g, n)
  local over = redis.call('ZCARD', g.key) + n - g.limit.n
  if n > g.limit.n or over <= 0 then
    return over <= 0 and book.now_ms or nil
  end
  local last = redis.call('ZRANGE', g.key, over - 1, over - 1, 'WITHSCORES')
  return math.ceil((tonumber(last[2]) + g.limit.per_us + 1) / 1000)
end

function L.RATES.sliding.take(book, g, n)
  local number = L.tick(book.R, book.now_us, n)
  for i = 0, n - 1 do
    redis.call('ZADD', g.key, L.int(book.now_us), L.int(number + i))
  end
  expire(g, g.limit.per_us)
end

function L.RATES.sliding.seen(book, g)
  local cut = L.int(book.now_us - g.limit.per_us)
  local last = redis.call('ZREVRANGEBYSCORE', g.key, '+inf', '(' .. cut, 'WITHSCORES', 'LIMIT', 0, 1)
  local used = redis.call('ZCOUNT', g.key, '(' .. cut, '+inf')
  return math.max(g.limit.n - used, 0),
         last[2] and math.min(tonumber(last[2]) - book.now_us, 0) + g.limit.per_us or 0
end

-- ---- fixed

-- -> starts counted in this window (or in a later one, before the clock was set back), the us when it ends
local function counted(book, g)
  local index = math.floor(book.now_us / g.limit.per_us)
  local of, count = string.match(redis.call('GET', g.key) or '', '^(%d+) (%d+)$')
  return (L.whole(of) or -1) >= index and L.whole(count) or 0, (index + 1) * g.limit.per_us, index
end

function L.RATES.fixed.room(book, g)
  local free = g.limit.n - counted(book, g)
  return math.max(free, 0), free <= 0 and L.RATES.fixed.opens(book, g, 1) or nil
end

function L.RATES.fixed.opens(book, g, n)
  local count, ends_us = counted(book, g)
  if n > g.limit.n or count + n <= g.limit.n then
    return n <= g.limit.n and book.now_ms or nil
  end
  return math.ceil(ends_us / 1000)
end

function L.RATES.fixed.take(book, g, n)
  local count, ends_us, index = counted(book, g)
  redis.call('SET', g.key, L.int(index) .. ' ' .. L.int(count + n))
  expire(g, ends_us - book.now_us)
end

function L.RATES.fixed.seen(book, g)
  local count, ends_us = counted(book, g)
  return math.max(g.limit.n - count, 0), count > 0 and ends_us - book.now_us or 0
end
