-- Rate limits: three algorithms behind one interface. Times are us of Redis' clock.
--
--   free_permits(ledger, g)  -> how many jobs may pass now
--   opens(ledger, g, n) -> the ms when n may pass, nil for never
--   take(ledger, g, n)  n pass; the caller has seen that they may
--   outlook(ledger, g)     -> how many may pass; in how many us all is as if nothing had been
--   counted
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

local rates = module 'gates/rates'
local clock, change, commit, txn = use('core/clock', 'txn/change', 'txn/commit', 'txn/txn')

rates.RATES = {gcra = {}, sliding = {}, fixed = {}}

-- -> when a key expires of which nothing counts behind so many us, ms
function rates.rate_expires(now_ms, us)
  return now_ms + math.ceil(us / 1000) + 1000
end

local function keep_for(ledger, g, text, us)
  db('SET', g.key, text, rates.rate_expires(ledger.now_ms, us))
end

-- ---- gcra

-- The key holds "<us> <us to add to it>": their sum would have more digits than a number keeps, and
-- what is rounded off at each claim would be missing from the burst. text: what it holds, false for
-- nothing. limit.n is not 0. -> how far the theoretical arrival time is later than now, the
-- interval, the tolerance, all in us; whether the key must be written anew, since the clock was set
-- back or the limit changed
function rates.read_gcra(limit, text, now_us)
  local interval = limit.per_us / limit.n
  local burst = interval * limit.burst
  local base, behind = string.match(text or '', '^(%d+) (%d%S*)$')
  base, behind = whole(base), tonumber(behind)
  local lead = base and behind and base - now_us + behind or 0
  return math.min(math.max(lead, 0), burst), interval, burst,
         base and (base > now_us or lead > burst)
end

-- -> what the key holds for this lead
function rates.gcra_text(now_us, lead)
  return int(now_us) .. ' ' .. string.format('%.17g', lead)
end

-- -> how many may pass. The interval need not be a whole number, so a little is added before
-- rounding.
function rates.gcra_free(lead, interval, burst)
  return math.max(math.floor((burst - lead) / interval + 1e-6), 0)
end

local function gcra(ledger, g)
  return rates.read_gcra(g.limit, db('GET', g.key), ledger.now_us)
end

local function put_lead(ledger, g, lead)
  keep_for(ledger, g, rates.gcra_text(ledger.now_us, lead), lead)
end

function rates.RATES.gcra.free_permits(ledger, g)
  if g.limit.n == 0 then
    return 0
  end
  local lead, interval, burst, is_less = gcra(ledger, g)
  if is_less then
    put_lead(ledger, g, lead)
  end
  return rates.gcra_free(lead, interval, burst)
end

function rates.RATES.gcra.opens(ledger, g, n)
  if n > g.limit.burst or g.limit.n == 0 then
    return nil
  end
  local lead, interval, burst = gcra(ledger, g)
  return math.ceil((ledger.now_us + math.ceil(lead + n * interval - burst)) / 1000)
end

-- Not called with a limit of 0: a job that got its grant before is refused then
-- (gate.is_closed_rate).
function rates.RATES.gcra.take(ledger, g, n)
  local lead, interval = gcra(ledger, g)
  put_lead(ledger, g, lead + n * interval)
end

function rates.RATES.gcra.outlook(ledger, g)
  if g.limit.n == 0 then
    return 0, 0
  end
  local lead, interval, burst = gcra(ledger, g)
  return rates.gcra_free(lead, interval, burst), lead
end

-- ---- sliding

local TRIM = 100            -- entries later than the clock that a call sets to now

-- Remove the claims that are over. They count for nothing, so this may follow the writes, however
-- many they are.
local function drop_below(key, score)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', score)
end

-- Remove the claims that are over. Claims later than a clock that was set back count as of now.
local function trim_log(ledger, g)
  if g.is_trimmed then
    return
  end
  change.assign(g, 'is_trimmed', true)
  commit.hint(drop_below, g.key, int(ledger.now_us - g.limit.per_us))
  local now = '(' .. int(ledger.now_us)
  for _, number in ipairs(db('ZRANGEBYSCORE', g.key, now, '+inf', 'LIMIT', 0, TRIM)) do
    db('ZADD', g.key, ledger.now_us, number)
  end
end

-- -> how many claims count now.
local function used(ledger, g)
  return db('ZCOUNT', g.key, '(' .. int(ledger.now_us - g.limit.per_us), '+inf')
end

function rates.RATES.sliding.free_permits(ledger, g)
  trim_log(ledger, g)
  return math.max(g.limit.n - used(ledger, g), 0)
end

function rates.RATES.sliding.opens(ledger, g, n)
  local over = used(ledger, g) + n - g.limit.n
  if n > g.limit.n or over <= 0 then
    return over <= 0 and ledger.now_ms or nil
  end
  local last = db('ZRANGEBYSCORE', g.key, '(' .. int(ledger.now_us - g.limit.per_us), '+inf',
                  'WITHSCORES', 'LIMIT', over - 1, 1)
  return math.ceil((tonumber(last[2]) + g.limit.per_us + 1) / 1000)
end

function rates.RATES.sliding.take(ledger, g, n)
  local number = clock.tick(ledger.R, ledger.now_us, n)
  for i = 0, n - 1 do
    change.is_new(g.key, 'zset', int(number + i))
    db('ZADD', g.key, ledger.now_us, int(number + i))
  end
  db('PEXPIREAT', g.key, ledger.now_ms + math.ceil(g.limit.per_us / 1000) + 1000)
end

function rates.RATES.sliding.outlook(ledger, g)
  local n = used(ledger, g)
  local last = txn.is_changed(g.key) and ledger.now_us or txn.last_score(g.key) or 0
  return math.max(g.limit.n - n, 0), n > 0 and math.min(last - ledger.now_us, 0) + g.limit.per_us or
         0
end

-- ---- fixed

-- A clock that was set back may come to the same border again. So what a later window counted
-- stays, to the end of the next window at most, and neither window is used twice. -> claims
-- counted, the us when their window ends, its number, whether the key has a later window
local function counted(ledger, g)
  local index = math.floor(ledger.now_us / g.limit.per_us)
  local of, count = string.match(db('GET', g.key) or '', '^(%d+) (%d+)$')
  of, count = whole(of) or -1, whole(count) or 0
  if of < index then
    of, count = index, 0
  end
  local window = math.min(of, index + 1)
  return count, (window + 1) * g.limit.per_us, window, of > window
end

local function put_count(ledger, g, window, count)
  keep_for(ledger, g, int(window) .. ' ' .. int(count),
           (window + 1) * g.limit.per_us - ledger.now_us)
end

function rates.RATES.fixed.free_permits(ledger, g)
  local count, _, window, is_further = counted(ledger, g)
  if is_further then
    put_count(ledger, g, window, count)
  end
  return math.max(g.limit.n - count, 0)
end

function rates.RATES.fixed.opens(ledger, g, n)
  local count, ends_us = counted(ledger, g)
  if n > g.limit.n or count + n <= g.limit.n then
    return n <= g.limit.n and ledger.now_ms or nil
  end
  return math.ceil(ends_us / 1000)
end

function rates.RATES.fixed.take(ledger, g, n)
  local count, _, window = counted(ledger, g)
  put_count(ledger, g, window, count + n)
end

function rates.RATES.fixed.outlook(ledger, g)
  local count, ends_us = counted(ledger, g)
  return math.max(g.limit.n - count, 0), count > 0 and ends_us - ledger.now_us or 0
end
