-- The parts that every function of the library stands on: namespace, time, clock, records, errors.
--
-- Built by scripts/join-lua into one library named `laterd` (the #!lua line is put in front there).
-- At load time Redis gives this chunk no string, table or cjson: they may be used inside functions
-- only. Everything shared hangs on the one local L: the locals of any other file end with it.
--
-- Rules that every function keeps:
--   * one declared key, the root R = later:{NS}; every other key is R .. ':' .. something;
--   * all checks and reads come before the first write, so an error changes nothing (later_add takes
--     back what it wrote instead); what is published is a hint, by pcall: a channel that the caller may
--     not use must not end a call half way;
--   * TIME is read once; all times are integers in ms unless a name ends in _us;
--   * a number becomes text by L.int only: tostring and `..` keep 14 digits of it.
local L = {}

L.PROTOCOL = 1
L.MAX_PAYLOAD = 1048576     -- bytes, where R:config says nothing else
L.BIG = 16384               -- a larger payload lives in R:big:<id>
L.MAX_QUEUES = 10000        -- names in one namespace
L.SOLO_CRASHES = 2          -- from so many crashes a job is started alone in its worker
L.SECONDS_FROM = 1e8        -- a "ms" time between these two was meant as seconds
L.SECONDS_TO = 1e11
L.LATEST = 1e14             -- the year 5138
L.TOKEN_TTL_S = 86400
L.CLOCK_MAX = 4503599627370496 -- numbers above are garbage: soon after, two in a row would be one
L.CORRUPT = 'its record is corrupt (what is left of it is its payload)'

-- Raise a coded refusal; the wrapper of L.register turns it into the error reply.
function L.fail(code, text)
  error({elater = code .. ' ' .. text})
end

-- Integer -> decimal text, exact up to 2^53. Small ones are kept from call to call. Of times, which have the same first
-- digits for a second or minutes, the rest is put together by threes: to print them costs as much as a small command.
local SMALL, THREES, LIMIT = {[0] = '0'}, {}, 1000 -- [0]: of -0, too
local MILLIONS, millions_text, n_millions = 64, {}, 0

local function first_digits(millions)
  local text = millions_text[millions]
  if not text then
    if n_millions == MILLIONS then
      millions_text, n_millions = {}, 0
    end
    text = string.format('%.0f', millions)
    millions_text[millions], n_millions = text, n_millions + 1
  end
  return text
end

local function three(n)
  local text = THREES[n]
  if not text then
    text = string.format('%03d', n)
    THREES[n] = text
  end
  return text
end

function L.int(x)
  local text = SMALL[x]
  if text then
    return text
  elseif x >= 1e9 and x < 9007199254740992 and x % 1 == 0 then
    local rest = x % 1000000
    local last = rest % LIMIT
    return first_digits((x - rest) / 1000000) .. three((rest - last) / LIMIT) .. three(last)
  end
  text = string.format('%.0f', x)
  if x >= 0 and x < LIMIT and x % 1 == 0 then
    SMALL[x] = text
  end
  return text
end

-- Text of a whole number below 2^53 -> the number, else nil. tonumber alone takes nan, inf, 0x10,
-- 1e3 and -1 as well, which would fail, or worse pass, in the middle of the writes.
function L.whole(text)
  if type(text) ~= 'string' or #text > 16 or not string.find(text, '^%d+$') then
    return nil
  end
  local n = tonumber(text)
  return n < 9007199254740992 and n or nil
end

-- Any score -> the ms when it is due, a whole number from 0 to L.LATEST. Raw writers may have
-- scores with a fraction; a head that keeps it never equals what is stored of it.
function L.due(score)
  local n = tonumber(score)
  if n >= 0 and n <= L.LATEST and n % 1 == 0 then
    return n
  end
  return math.min(math.max(math.ceil(n), 0), L.LATEST)
end

-- Any bytes -> short printable text for an error message.
function L.quote(s)
  s = string.sub(s, 1, 64)
  return "'" .. string.gsub(s, '[^\32-\126]', '?') .. "'"
end

-- Text for one line of a record: control bytes out, bounded.
function L.line(s)
  return (string.gsub(string.sub(s, 1, 512), '[%z\1-\31\127]', ' '))
end

-- Most calls name the same root as the one before, and queues that were named before: those were checked.
local known_root
local known_queues, n_known = {}, 0

-- What a call knows not to be there, and has not written yet: it need not be looked for. Only a step fills it.
local NOTHING = {}
L.absent = NOTHING

-- Who follows the events of which root (v1_tail.lua), and those of this call, false where nobody does. By a hint that
-- nobody hears, nothing may be lost: L.event is called only while L.events is there.
L.tails = {}
L.events = false

-- Register `name` with `flags`; fn(R, args) is called with the checked root. Coded refusals become
-- error replies, a foreign type that a read met ELATER_TYPE; other errors of Redis go on as they are.
function L.register(name, flags, fn)
  redis.register_function{
    function_name = name,
    flags = flags,
    callback = function(keys, args)
      -- 64 characters, as many as the programs take.
      if #keys ~= 1 or (keys[1] ~= known_root and
                        (#keys[1] > 72 or not string.match(keys[1], '^later:{[%w][%w_.-]*}$'))) then
        return {err = "ELATER_ROOT give one key, the namespace's root, as 1 'later:{default}'"}
      end
      known_root = keys[1]
      L.absent = NOTHING
      L.events = L.tails[known_root] and L.watch(known_root) or false
      local ok, reply = pcall(fn, keys[1], args)
      if ok then
        if L.events then
          pcall(L.publish, known_root, L.events)
        end
        return reply
      end
      if type(reply) == 'table' and reply.elater then
        return {err = reply.elater}
      end
      -- What redis.call raised is text in one version of Redis and a table in another.
      local text = L.line(tostring(type(reply) == 'table' and reply.err or reply))
      if string.match(text, '^WRONGTYPE ') then
        text = 'ELATER_TYPE a key of ' .. keys[1] .. ' has a foreign type: rename or delete it (' .. text .. ')'
      elseif not string.match(text, '^%u+ ') then
        text = 'ELATER_BUG ' .. text
      end
      return {err = text}
    end
  }
end

-- Refuse by name when a key that is about to be written holds a foreign type.
-- Takes name, type pairs (names relative to R).
function L.need(R, ...)
  local want = {...}
  for i = 1, #want, 2 do
    local is = redis.call('TYPE', R .. ':' .. want[i]).ok
    if is ~= 'none' and is ~= want[i + 1] then
      L.fail('ELATER_TYPE', 'key ' .. R .. ':' .. L.line(want[i]) .. ' is a ' .. is ..
             ', laterd needs a ' .. want[i + 1] .. ' there: rename or delete it')
    end
  end
end

-- A list {name, type}* of what is needed in every call -> its keys. They are put together for one root after the other.
local function keys_of(R, list)
  if list.root ~= R then
    list.root, list.keys = R, {}
    for i = 1, #list, 2 do
      list.keys[#list.keys + 1] = R .. ':' .. list[i]
    end
  end
  return list.keys
end

-- Is any of such a list there? Most namespaces have none of some.
function L.has_any(R, list)
  return redis.call('EXISTS', unpack(keys_of(R, list))) > 0
end

-- The same as L.need for such a list, by commands that answer with a number: TYPE answers with a table, which is half of
-- what it costs. Workers have the rights for them. empty: told for each name whether nothing is there
local SIZE = {hash = 'HLEN', zset = 'ZCARD', set = 'SCARD', string = 'STRLEN'}

function L.need_all(R, list, empty)
  for i, key in ipairs(keys_of(R, list)) do
    local size = redis.pcall(SIZE[list[2 * i]], key)
    if type(size) ~= 'number' then
      L.need(R, unpack(list))
    end
    if empty then
      empty[list[2 * i - 1]] = size == 0
    end
  end
end

-- -> us since 1970, an exact integer.
function L.now_us()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

function L.ms(us)
  return math.floor(us / 1000)
end

-- What R:clock holds -> the last number that was given out, 0 where there is none, or garbage.
local function last_of(text)
  local last = text and tonumber(text) or 0
  return last > 0 and last <= L.CLOCK_MAX and last % 1 == 0 and last or 0
end

function L.last(R)
  return last_of(redis.call('GET', R .. ':clock'))
end

-- The highest number that a caller says it knows; nil for what is no number, 0 for one that the clock
-- cannot have given out: a garbage score that it once met must not keep a worker out.
function L.seen(text)
  local seen = L.whole(text)
  return seen and (seen <= L.CLOCK_MAX and seen or 0)
end

-- The hybrid clock (Kulkarni et al. 2014, its single-node case): n successive numbers, of which the
-- first is returned. They are above every number given out before, not below the wall clock in us,
-- and above `seen`, the highest the caller knows: so they rise even after Redis lost its last writes.
-- -> the number, what R:clock held before (false for nothing)
function L.advance(R, now_us, n, seen)
  local first = seen and math.max(now_us, seen + 1) or now_us
  local text = L.int(first)
  local was = redis.call('SET', R .. ':clock', n == 1 and text or L.int(first + n - 1), 'GET')
  -- Mostly: of as many digits, and less. To read so many as a number costs as much as a small command.
  if was and #was == #text and was < text and string.find(was, '^%d+$') then
    return first, was
  end
  local last = last_of(was)
  -- Seldom: within a microsecond, or Redis' own clock was set back.
  if last >= first then
    first = last + 1
    redis.call('SET', R .. ':clock', L.int(first + n - 1))
  end
  return first, was
end

-- The number alone.
function L.tick(R, now_us, n, seen)
  return (L.advance(R, now_us, n, seen))
end

-- A clock number -> job id: 'j' and 11 digits of Crockford's base 32, so that ids sort by age.
-- Numbers of one call stand side by side, so the digits before the last two are mostly known already.
local DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
local known_high, known_text
local PAIRS = {} -- the last two, by their number

local function spell(number, n)
  local out = {}
  for i = n, 1, -1 do
    local d = number % 32
    out[i] = string.sub(DIGITS, d + 1, d + 1)
    number = (number - d) / 32
  end
  return table.concat(out)
end

function L.id(number)
  local low = number % 1024
  local high = (number - low) / 1024
  if high ~= known_high then
    known_high, known_text = high, 'j' .. spell(high, 9)
  end
  local pair = PAIRS[low]
  if not pair then
    pair = spell(low, 2)
    PAIRS[low] = pair
  end
  return known_text .. pair
end

-- An id, or QUEUE@UNIQUE -> the id.
function L.check_id(R, id)
  if id == nil then
    L.fail('ELATER_ARGS', 'a job id is missing')
  end
  local queue, key = string.match(id, '^([^@]*)@(.+)$')
  if queue then
    local owner = L.unique_owner(R, L.check_queue(queue), key)
    if not owner then
      L.fail('ELATER_NOJOB', 'no job has the unique key ' .. L.quote(key) .. ' in queue ' .. queue)
    end
    return owner
  end
  if not string.match(id, '^j[0-9a-z]+$') or #id ~= 12 then
    L.fail('ELATER_NOJOB', L.quote(id) .. ' is no job id (j and 11 characters)')
  end
  return id
end

function L.check_queue(queue)
  if known_queues[queue] then
    return queue
  elseif queue == nil or queue == '' then
    L.fail('ELATER_QUEUE', 'the queue is missing')
  end
  if #queue > 64 or not string.match(queue, '^%w[%w_-]*$') then
    L.fail('ELATER_QUEUE', L.quote(queue) .. ' is no queue name (letters, digits, _ and -, at most 64,' ..
           ' a letter or digit first)')
  end
  if n_known == L.MAX_QUEUES then
    known_queues, n_known = {}, 0
  end
  known_queues[queue], n_known = true, n_known + 1
  return queue
end

-- '250ms' '10s' '5m' '2h' '7d' -> ms, at most 100 years.
local UNITS = {ms = 1, s = 1000, m = 60000, h = 3600000, d = 86400000}

function L.duration(text, what)
  local digits, unit = string.match(text, '^(%d+)(%a*)$')
  if digits == nil or #digits > 15 then
    L.fail('ELATER_TIME', what .. ' ' .. L.quote(text) .. ' is no duration: write it like 250ms 10s 5m 2h 7d')
  end
  local factor = UNITS[string.lower(unit)]
  if factor == nil then
    L.fail('ELATER_TIME', what .. ' ' .. L.quote(text) .. ' needs a unit: ms s m h d')
  end
  local ms = tonumber(digits) * factor
  if ms > 3155760000000 then
    L.fail('ELATER_TIME', what .. ' ' .. L.quote(text) .. ' is longer than 100 years')
  end
  return ms
end

-- Days from 1970-01-01 to a civil date (Howard Hinnant, chrono-compatible low-level date algorithms).
function L.days(y, m, d)
  if m <= 2 then
    y = y - 1
  end
  local era = math.floor(y / 400)
  local yoe = y - era * 400
  local doy = math.floor((153 * (m + (m > 2 and -3 or 9)) + 2) / 5) + d - 1
  local doe = yoe * 365 + math.floor(yoe / 4) - math.floor(yoe / 100) + doy
  return era * 146097 + doe - 719468
end

function L.rfc3339(text)
  local y, mo, d, h, mi, s, rest = string.match(text,
    '^(%d%d%d%d)-(%d%d)-(%d%d)[Tt ](%d%d):(%d%d):(%d%d)(.*)$')
  if y == nil then
    return nil
  end
  y, mo, d, h, mi, s = tonumber(y), tonumber(mo), tonumber(d), tonumber(h), tonumber(mi), tonumber(s)
  local fraction, zone = string.match(rest, '^%.(%d+)(.*)$')
  zone = zone or rest
  local leap = (y % 4 == 0 and y % 100 ~= 0) or y % 400 == 0
  local month_days = {31, leap and 29 or 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
  if mo < 1 or mo > 12 or d < 1 or d > month_days[mo] or h > 23 or mi > 59 or s > 60 then
    return nil
  end
  local offset
  if zone == 'Z' or zone == 'z' then
    offset = 0
  else
    local sign, oh, om = string.match(zone, '^([+-])(%d%d):(%d%d)$')
    if sign == nil or tonumber(oh) > 23 or tonumber(om) > 59 then
      return nil
    end
    offset = (tonumber(oh) * 60 + tonumber(om)) * (sign == '-' and -1 or 1)
  end
  local seconds = L.days(y, mo, d) * 86400 + h * 3600 + (mi - offset) * 60 + s
  local ms = fraction and math.floor(tonumber('0.' .. string.sub(fraction, 1, 6)) * 1000) or 0
  return seconds * 1000 + ms
end

-- A time -> due ms: integer ms, @SECONDS (with a fraction if wanted), RFC 3339 with a zone, or
-- +DURATION from now. A past one is due now.
function L.time(text, now_ms, what)
  local ms
  if string.match(text, '^%d+$') then
    ms = tonumber(text)
    if ms >= L.SECONDS_FROM and ms <= L.SECONDS_TO then
      L.fail('ELATER_TIME', what .. ' ' .. L.quote(text) .. ' looks like seconds: times are in ms, or write @' ..
             string.sub(text, 1, 15))
    end
  elseif string.match(text, '^@%d+$') or string.match(text, '^@%d+%.%d+$') then
    ms = math.floor(tonumber(string.sub(text, 2)) * 1000 + 0.5)
  elseif string.match(text, '^%+') then
    ms = now_ms + L.duration(string.sub(text, 2), what)
  else
    ms = L.rfc3339(text)
  end
  if ms == nil then
    L.fail('ELATER_TIME', what .. ' ' .. L.quote(text) ..
           ' is no time: integer ms, @SECONDS, 2030-01-31T09:00:00Z or +5m')
  end
  if ms > L.LATEST then
    L.fail('ELATER_TIME', what .. ' ' .. L.quote(text) .. ' is too far away (after the year 5000)')
  end
  return math.max(ms, now_ms)
end

-- The job record: one header line, LF, payload bytes untouched.
--   <flag><queue>[ <priority>][ <name>=<value>]... LF payload
-- flag: '-' payload here, '+' payload in R:big:<id>. Names: a attempts, t timeout ms, x expire ms, k keep
-- ms, K key, T trace; l lock, s semaphore, r rate; u unique key, f until when it stays taken, ms.
-- Short because a million of them wait in memory.
local NAMES = {'a', 't', 'x', 'k', 'K', 'T', 'l', 's', 'r', 'u', 'f'}

function L.header(job)
  if not job.has_options and job.priority == 5 then
    return (job.big and '+' or '-') .. job.queue .. '\n'
  end
  local h = {(job.big and '+' or '-') .. job.queue}
  if job.priority ~= 5 then
    h[2] = L.int(job.priority)
  end
  for i = 1, #NAMES do
    local name = NAMES[i]
    local value = job[name]
    if value then
      h[#h + 1] = name .. '=' .. (type(value) == 'number' and L.int(value) or value)
    end
  end
  return table.concat(h, ' ') .. '\n'
end

local NUMBERS = {a = true, t = true, x = true, k = true, f = true}

-- -> {queue, priority, big, body (offset of the payload), and the named ones as text}, or nil when
-- the record is missing or not ours. Numbers are checked here, for all who reckon with them.
function L.parse(record)
  if not record then
    return nil
  end
  local flag, queue, at, next = string.match(record, '^([-+])(%w[%w_-]*)()([ \n])')
  if flag == nil or #queue > 64 then
    return nil
  end
  local priority, behind, then_next = string.match(record, '^ (%d)()([ \n])', at)
  if priority then
    at, next = behind, then_next
  elseif next == ' ' and not string.find(record, '^ %a=', at) then
    return nil
  end
  local job = {queue = queue, priority = tonumber(priority or 5), big = flag == '+', body = at + 1}
  if next == '\n' then
    return job
  end
  local lf = string.find(record, '\n', at, true)
  if lf == nil or lf > 2048 then
    return nil
  end
  job.body = lf + 1
  for name, value in string.gmatch(string.sub(record, at, lf - 1), ' (%a)=(%S+)') do
    if NUMBERS[name] and not L.whole(value) then
      return nil
    end
    job[name] = value
  end
  return job
end

-- The largest payload that an add to this queue takes.
function L.max_payload(R, queue)
  local set = redis.call('HMGET', R .. ':config', 'max_payload:' .. queue, 'max_payload')
  return L.whole(set[1] or set[2]) or L.MAX_PAYLOAD
end

-- R:tries: "starts attempts crashes due", all integers; {0,0,0} for a job never started.
function L.tries(text)
  local s, a, c, due
  if text then
    s, a, c, due = string.match(text, '^(%d+) (%d+) (%d+) (%d+)$')
  end
  -- 15 digits are below 2^53.
  if not s or #s > 15 or #a > 15 or #c > 15 or #due > 15 then
    return {starts = 0, attempts = 0, crashes = 0}
  end
  return {starts = tonumber(s), attempts = tonumber(a), crashes = tonumber(c), due = tonumber(due)}
end

function L.tries_text(t, due)
  return L.int(t.starts) .. ' ' .. L.int(t.attempts) .. ' ' .. L.int(t.crashes) .. ' ' .. L.int(due)
end

-- How an attempt or a job ended, for R:errors and R:results:
--   "<state> <code> <when ms> <start> <text>" LF output bytes
-- state: failed, dead, done, cancelled. code: exit status (128 + n for signal n), 0 where none.
function L.outcome(state, code, now_ms, start, text, tail)
  return state .. ' ' .. L.int(L.whole(code) or 0) .. ' ' .. L.int(now_ms) .. ' ' .. L.int(start) .. ' ' ..
         L.line(text) .. '\n' .. (tail or '')
end

-- What L.outcome wrote -> state, code, when ms, start, text, output, all as text; nil when it is not ours.
function L.read_outcome(outcome)
  return string.match(outcome, '^(%a+) (%d+) (%d+) (%d+) ([^\n]*)\n(.*)$')
end

-- Where a waiting job stands: the suspects of a queue have a set of their own.
function L.waiting_key(R, job, tries)
  if tries.crashes >= L.SOLO_CRASHES then
    return R .. ':solo:' .. job.queue
  end
  return R .. ':q:' .. job.queue .. ':' .. L.int(job.priority)
end

-- Refuse when one of the sets where this job may have to wait holds a foreign type.
function L.need_waiting(R, job)
  L.need(R, 'q:' .. job.queue .. ':' .. L.int(job.priority), 'zset', 'solo:' .. job.queue, 'zset')
end

-- The sets of a queue beside priority 5, which is always looked at: a string of digits, 's' (suspects),
-- 'g' (granted jobs) and 'a' (gates where it stands aside).
function L.mark_set(R, queue, mark)
  local marks = redis.call('HGET', R .. ':prio', queue) or ''
  if not string.find(marks, mark, 1, true) then
    redis.call('HSET', R .. ':prio', queue, marks .. mark)
  end
end

function L.mark_clear(R, queue, mark)
  local marks = redis.call('HGET', R .. ':prio', queue) or ''
  local rest = string.gsub(marks, mark, '')
  if rest == '' then
    redis.call('HDEL', R .. ':prio', queue)
  elseif rest ~= marks then
    redis.call('HSET', R .. ':prio', queue, rest)
  end
end

-- A queue may have become due earlier: tell the workers, but only then. head: what R:heads says of it, false for
-- nothing; nil: not read yet
function L.lower_head(R, queue, due, head)
  if head == nil then
    head = redis.call('ZSCORE', R .. ':heads', queue)
  end
  if head and tonumber(head) <= due then
    return
  end
  redis.call('ZADD', R .. ':heads', L.int(due), queue)
  if not head then
    redis.call('SADD', R .. ':names', queue)
  end
  redis.pcall('PUBLISH', R .. ':wake', queue)
end

-- Put a job with a record into the waiting set of its queue. head: as in L.lower_head
function L.enqueue(R, id, job, tries, due, head)
  redis.call('ZADD', L.waiting_key(R, job, tries), L.int(due), id)
  if tries.crashes >= L.SOLO_CRASHES then
    L.mark_set(R, job.queue, 's')
  elseif job.priority ~= 5 then
    L.mark_set(R, job.queue, L.int(job.priority))
  end
  L.lower_head(R, job.queue, due, head)
end

-- Forget ids altogether. are_small: none has a large payload, as far as the caller knows for certain.
function L.forget(R, ids, are_small)
  if #ids == 0 then
    return
  end
  redis.call('HDEL', R .. ':jobs', unpack(ids))
  redis.call('HDEL', R .. ':tries', unpack(ids))
  for _, name in ipairs({'errors', 'results', 'cancel', 'progress'}) do
    -- Most jobs have none, nor has any other at most times.
    if not L.absent[name] and redis.call('EXISTS', R .. ':' .. name) == 1 then
      redis.call('HDEL', R .. ':' .. name, unpack(ids))
    end
  end
  if are_small then
    return
  end
  local big, prefix = {}, R .. ':big:'
  for i = 1, #ids do
    big[i] = prefix .. ids[i]
  end
  redis.call('DEL', unpack(big))
end

-- Forget the first `rows` ids of a set that sorts by the time they go, those before `before`; -> how many.
function L.trim(R, key, before, rows)
  local ids = redis.call('ZRANGEBYSCORE', key, '-inf', L.int(before), 'LIMIT', 0, rows)
  if #ids > 0 then
    redis.call('ZREM', key, unpack(ids))
    L.forget(R, ids)
  end
  return #ids
end

-- Add to a counter of later_stats. Never fails: what was counted is written already.
function L.count(R, what, queue, n)
  redis.pcall('HINCRBY', R .. ':stats', what .. ':' .. queue, n)
end

-- Somebody waits for the end of this job (later wait): tell them, once.
function L.announce(R, id, outcome)
  if redis.call('HDEL', R .. ':await', id) == 1 then
    redis.pcall('PUBLISH', R .. ':ended:' .. id, outcome)
  end
end

-- Bury: the record stays, the reason beside it; the oldest go when there are more than max.
function L.bury(R, queue, id, outcome, now_ms, max)
  local key = R .. ':dead:' .. queue
  redis.call('ZADD', key, L.int(now_ms), id)
  redis.call('SADD', R .. ':names', queue)
  redis.call('HSET', R .. ':errors', id, outcome)
  redis.call('HDEL', R .. ':cancel', id)
  redis.call('HDEL', R .. ':progress', id)
  L.end_unique(R, id, L.parse(redis.call('HGET', R .. ':jobs', id)))
  L.count(R, 'dead', queue, 1)
  L.announce(R, id, outcome)
  if L.events then
    L.event_end(id, queue, outcome)
  end
  local over = redis.call('ZCARD', key) - (max or 10000)
  if over > 0 then
    local old = redis.call('ZRANGE', key, 0, math.min(over, 100) - 1)
    redis.call('ZREM', key, unpack(old))
    L.forget(R, old)
  end
end

-- End a job that is wanted no more: forgotten, or kept for `keep` ms with its outcome. Each that is kept
-- takes up to two along whose time is over: however many end, no more are held than end in that time.
function L.finish(R, job, id, outcome, now_ms, keep)
  L.announce(R, id, outcome)
  if L.events then
    L.event_end(id, job and job.queue or '-', outcome)
  end
  L.end_unique(R, id, job)
  if keep > 0 then
    redis.call('ZADD', R .. ':done:' .. job.queue, L.int(now_ms + keep), id)
    redis.call('SADD', R .. ':names', job.queue)
    redis.call('HSET', R .. ':results', id, outcome)
    redis.call('HDEL', R .. ':errors', id)
    redis.call('HDEL', R .. ':cancel', id)
    redis.call('HDEL', R .. ':progress', id)
    L.trim(R, R .. ':done:' .. job.queue, now_ms, 2)
  else
    L.forget(R, {id})
  end
end

-- End a running job that was to be cancelled and did not finish by itself.
function L.end_cancelled(R, job, id, outcome, now_ms)
  L.need(R, 'done:' .. job.queue, 'zset')
  redis.call('ZREM', R .. ':running', id)
  L.finish(R, job, id, outcome, now_ms, tonumber(job.k or '0'))
  L.count(R, 'cancelled', job.queue, 1)
end

-- The record of a job whose own is missing or corrupt: what there is of a payload, in a key of its own
-- before what stands in the record, and never an empty one: a retry must not run with nothing.
function L.mended(R, id, queue, record)
  local big = not record or redis.call('TYPE', R .. ':big:' .. id).ok == 'string'
  return L.header({queue = queue, priority = 5, big = big}) .. (big and '' or record)
end

-- A running job whose record is missing or corrupt cannot run again: what is left of it is buried as
-- its payload, in the queue that it names or, failing that, in `queue` (nil: nobody knows, it goes).
function L.bury_broken(R, id, record, queue, now_ms)
  queue = string.match(record or '', '^[-+](%w[%w_-]*)[ \n]') or queue
  if queue == nil or #queue > 64 then
    redis.call('ZREM', R .. ':running', id)
    L.forget(R, {id})
    return
  end
  L.need(R, 'dead:' .. queue, 'zset')
  redis.call('ZREM', R .. ':running', id)
  redis.call('HSET', R .. ':jobs', id, L.mended(R, id, queue, record))
  L.bury(R, queue, id, L.outcome('dead', 0, now_ms, 0, record and L.CORRUPT or 'its record is missing', ''), now_ms)
end

-- -> state, job, tries, score. state: waiting parked running dead done, or nil when there is no such job.
-- score: due ms, ticket, epoch, died ms, forgotten-at ms.
function L.locate(R, id)
  local record = redis.call('HGET', R .. ':jobs', id)
  local tries = L.tries(redis.call('HGET', R .. ':tries', id))
  local epoch = redis.call('ZSCORE', R .. ':running', id)
  local job = L.parse(record)
  if job then
    job.record = record
  end
  if epoch then
    return 'running', job, tries, tonumber(epoch)
  end
  if job == nil then
    return nil
  end
  local due = redis.call('ZSCORE', L.waiting_key(R, job, tries), id)
  if due then
    return 'waiting', job, tries, tonumber(due)
  end
  local ticket = redis.call('ZSCORE', R .. ':parked:' .. job.queue, id)
  if ticket then
    return 'parked', job, tries, tonumber(ticket)
  end
  local died = redis.call('ZSCORE', R .. ':dead:' .. job.queue, id)
  if died then
    return 'dead', job, tries, tonumber(died)
  end
  local until_ms = redis.call('ZSCORE', R .. ':done:' .. job.queue, id)
  if until_ms then
    return 'done', job, tries, tonumber(until_ms)
  end
  return nil
end

-- The same for a function that needs the job.
function L.find(R, id)
  local state, job, tries, score = L.locate(R, id)
  if state == nil or job == nil then
    L.fail('ELATER_NOJOB', 'there is no job ' .. id .. ' (done, cancelled, or never here)')
  end
  return state, job, tries, score
end

-- Paused: "<until ms or 0> <since ms> <who> <reason>" -> until, or nil when not (any more) paused.
function L.paused_until(text, now_ms)
  if not text then
    return nil
  end
  local until_ms = tonumber(string.match(text, '^(%d+) ') or '') or 0
  if until_ms ~= 0 and until_ms <= now_ms then
    return nil
  end
  return until_ms
end
