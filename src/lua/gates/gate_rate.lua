-- Rate limits: three algorithms behind one interface. Times are us of Redis' clock.
--
--   free_permits(book, g)  -> how many jobs may pass now
--   opens(book, g, n) -> the ms when n may pass, nil for never
--   take(book, g, n)  n pass; the caller has seen that they may
--   outlook(book, g)     -> how many may pass; in how many us all is as if nothing had been counted
--
--   gcra     A token bucket that is kept as one time, the theoretical arrival time (ITU-T I.371; as
--            in Brandur Leach's throttled and redis-cell): `burst` jobs at once, then one each
--            per / n. Exact, O(1).
--   sliding  A log of all claims in the last `per`: at most n in any window of that length. Exact,
--            O(log n), n entries.
--   fixed    A counter for each whole `per` since 1970: up to 2 n jobs around a border. O(1).
--
-- When the clock was set back, a stored time is later than it and would shut the gate for that
-- long. So a time that is later than the algorithm can have put it is moved back to the latest
-- that is possible, and free_permits writes that: else each later call would find it as late.

L.RATES = {gcra = {}, sliding = {}, fixed = {}}

-- -> when a key expires of which nothing counts behind so many us, ms
function L.rate_expires(now_ms, us)
  return now_ms + math.ceil(us / 1000) + 1000
end

local function keep_for(book, g, text, us)
  db('SET', g.key, text, L.rate_expires(book.now_ms, us))
end

-- ---- gcra

-- The key holds "<us> <us to add to it>": their sum would have more digits than a number keeps, and
-- what is rounded off at each claim would be missing from the burst. text: what it holds, false for
-- nothing. limit.n is not 0. -> how far the theoretical arrival time is later than now, the
-- interval, the tolerance, all in us; whether the key must be written anew, since the clock was set
-- back or the limit changed
function L.read_gcra(limit, text, now_us)
  local interval = limit.per_us / limit.n
  local burst = interval * limit.burst
  local base, behind = string.match(text or '', '^(%d+) (%d%S*)$')
  base, behind = L.whole(base), tonumber(behind)
  local lead = base and behind and base - now_us + behind or 0
  return math.min(math.max(lead, 0), burst), interval, burst,
         base and (base > now_us or lead > burst)
end

-- -> what the key holds for this lead
function L.gcra_text(now_us, lead)
  return L.int(now_us) .. ' ' .. string.format('%.17g', lead)
end

-- -> how many may pass. The interval need not be a whole number, so a little is added before
-- rounding.
function L.gcra_free(lead, interval, burst)
  return math.max(math.floor((burst - lead) / interval + 1e-6), 0)
end

local function gcra(book, g)
  return L.read_gcra(g.limit, db('GET', g.key), book.now_us)
end

local function put_lead(book, g, lead)
  keep_for(book, g, L.gcra_text(book.now_us, lead), lead)
end

function L.RATES.gcra.free_permits(book, g)
  if g.limit.n == 0 then
    return 0
  end
  local lead, interval, burst, is_less = gcra(book, g)
  if is_less then
    put_lead(book, g, lead)
  end
  return L.gcra_free(lead, interval, burst)
end

function L.RATES.gcra.opens(book, g, n)
  if n > g.limit.burst or g.limit.n == 0 then
    return nil
  end
  local lead, interval, burst = gcra(book, g)
  return math.ceil((book.now_us + math.ceil(lead + n * interval - burst)) / 1000)
end

-- Not called with a limit of 0: a job that got its grant before is refused then
-- (L.is_closed_rate).
function L.RATES.gcra.take(book, g, n)
  local lead, interval = gcra(book, g)
  put_lead(book, g, lead + n * interval)
end

function L.RATES.gcra.outlook(book, g)
  if g.limit.n == 0 then
    return 0, 0
  end
  local lead, interval, burst = gcra(book, g)
  return L.gcra_free(lead, interval, burst), lead
end

-- ---- sliding

local TRIM = 100            -- entries later than the clock that a call sets to now

-- Remove the claims that are over. They count for nothing, so this may follow the writes, however
-- many they are.
local function drop_below(key, score)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', score)
end

-- Remove the claims that are over. Claims later than a clock that was set back count as of now.
local function trim_log(book, g)
  if g.is_trimmed then
    return
  end
  L.assign(g, 'is_trimmed', true)
  L.hint(drop_below, g.key, L.int(book.now_us - g.limit.per_us))
  local now = '(' .. L.int(book.now_us)
  for _, number in ipairs(db('ZRANGEBYSCORE', g.key, now, '+inf', 'LIMIT', 0, TRIM)) do
    db('ZADD', g.key, book.now_us, number)
  end
end

-- -> how many claims count now.
local function used(book, g)
  return db('ZCOUNT', g.key, '(' .. L.int(book.now_us - g.limit.per_us), '+inf')
end

function L.RATES.sliding.free_permits(book, g)
  trim_log(book, g)
  return math.max(g.limit.n - used(book, g), 0)
end

function L.RATES.sliding.opens(book, g, n)
  local over = used(book, g) + n - g.limit.n
  if n > g.limit.n or over <= 0 then
    return over <= 0 and book.now_ms or nil
  end
  local last = db('ZRANGEBYSCORE', g.key, '(' .. L.int(book.now_us - g.limit.per_us), '+inf',
                  'WITHSCORES', 'LIMIT', over - 1, 1)
  return math.ceil((tonumber(last[2]) + g.limit.per_us + 1) / 1000)
end

function L.RATES.sliding.take(book, g, n)
  local number = L.tick(book.R, book.now_us, n)
  for i = 0, n - 1 do
    L.is_new(g.key, 'zset', L.int(number + i))
    db('ZADD', g.key, book.now_us, L.int(number + i))
  end
  db('PEXPIREAT', g.key, book.now_ms + math.ceil(g.limit.per_us / 1000) + 1000)
end

function L.RATES.sliding.outlook(book, g)
  local n = used(book, g)
  local last = L.is_changed(g.key) and book.now_us or L.last_score(g.key) or 0
  return math.max(g.limit.n - n, 0), n > 0 and math.min(last - book.now_us, 0) + g.limit.per_us or 0
end

-- ---- fixed

-- A clock that was set back may come to the same border again. So what a later window counted
-- stays, to the end of the next window at most, and neither window is used twice. -> claims
-- counted, the us when their window ends, its number, whether the key has a later window
local function counted(book, g)
  local index = math.floor(book.now_us / g.limit.per_us)
  local of, count = string.match(db('GET', g.key) or '', '^(%d+) (%d+)$')
  of, count = L.whole(of) or -1, L.whole(count) or 0
  if of < index then
    of, count = index, 0
  end
  local window = math.min(of, index + 1)
  return count, (window + 1) * g.limit.per_us, window, of > window
end

local function put_count(book, g, window, count)
  keep_for(book, g, L.int(window) .. ' ' .. L.int(count),
           (window + 1) * g.limit.per_us - book.now_us)
end

function L.RATES.fixed.free_permits(book, g)
  local count, _, window, is_further = counted(book, g)
  if is_further then
    put_count(book, g, window, count)
  end
  return math.max(g.limit.n - count, 0)
end

function L.RATES.fixed.opens(book, g, n)
  local count, ends_us = counted(book, g)
  if n > g.limit.n or count + n <= g.limit.n then
    return n <= g.limit.n and book.now_ms or nil
  end
  return math.ceil(ends_us / 1000)
end

function L.RATES.fixed.take(book, g, n)
  local count, _, window = counted(book, g)
  put_count(book, g, window, count + n)
end

function L.RATES.fixed.outlook(book, g)
  local count, ends_us = counted(book, g)
  return math.max(g.limit.n - count, 0), count > 0 and ends_us - book.now_us or 0
end
