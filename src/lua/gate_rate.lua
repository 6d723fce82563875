-- Rate limits: three algorithms behind one face. Times are us of Redis' clock.
--
--   room(book, g, n) -> starts that would pass now; when those are fewer than n, the ms when n may, or nil:
--                       never under this limit
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

function L.RATES.gcra.room(book, g, n)
  if g.limit.n == 0 then
    return 0
  end
  local tat, step, burst = gcra(book, g)
  -- A hair of tolerance: the interval need not be a whole number.
  local free = math.floor((book.now_us + burst - tat) / step + 1e-6)
  if free >= n then
    return free
  end
  return free, n <= g.limit.burst and math.ceil((tat + n * step - burst) / 1000) or nil
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
  redis.call('ZREMRANGEBYSCORE', g.key, '(' .. L.int(book.now_us), '+inf')
end

function L.RATES.sliding.room(book, g, n)
  trim_log(book, g)
  local free = g.limit.n - redis.call('ZCARD', g.key)
  if free >= n or n > g.limit.n then
    return free
  end
  -- So many of the oldest have to leave the window first.
  local last = redis.call('ZRANGE', g.key, n - free - 1, n - free - 1, 'WITHSCORES')
  return free, last[2] and math.ceil((tonumber(last[2]) + g.limit.per_us + 1) / 1000) or nil
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
  local last = redis.call('ZREVRANGEBYSCORE', g.key, L.int(book.now_us), '(' .. cut, 'WITHSCORES', 'LIMIT', 0, 1)
  local used = redis.call('ZCOUNT', g.key, '(' .. cut, L.int(book.now_us))
  return math.max(g.limit.n - used, 0), last[2] and tonumber(last[2]) + g.limit.per_us - book.now_us or 0
end

-- ---- fixed

-- -> starts counted in this window, the us when it ends
local function fixed_window(book, g)
  local index = math.floor(book.now_us / g.limit.per_us)
  local of, count = string.match(redis.call('GET', g.key) or '', '^(%d+) (%d+)$')
  return L.whole(of) == index and L.whole(count) or 0, (index + 1) * g.limit.per_us, index
end

function L.RATES.fixed.room(book, g, n)
  local count, ends_us = fixed_window(book, g)
  local free = g.limit.n - count
  if free >= n or n > g.limit.n then
    return free
  end
  return free, math.ceil(ends_us / 1000)
end

function L.RATES.fixed.take(book, g, n)
  local count, ends_us, index = fixed_window(book, g)
  redis.call('SET', g.key, L.int(index) .. ' ' .. L.int(count + n))
  expire(g, ends_us - book.now_us)
end

function L.RATES.fixed.seen(book, g)
  local count, ends_us = fixed_window(book, g)
  return math.max(g.limit.n - count, 0), count > 0 and ends_us - book.now_us or 0
end
