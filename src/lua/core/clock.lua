-- Redis' time, the hybrid clock, and the job ids that are made from its numbers.

local clock = module 'core/clock'

-- Reading ten digits as a number costs as much as a small command, so the last second is kept.
local known_second, second_us

-- The minute of the last time that was read, whole minutes since 1970.
clock.minute = 0

-- -> us since 1970, an exact integer.
function clock.now_us()
  local t = redis.call('TIME')
  if t[1] ~= known_second then
    local second = tonumber(t[1])
    known_second, second_us, clock.minute = t[1], second * 1000000, (second - second % 60) / 60
  end
  return second_us + tonumber(t[2])
end

-- -> the second of the last time that was read, in ms.
function clock.last_ms()
  return (second_us or 0) / 1000
end

function clock.ms(us)
  return (us - us % 1000) / 1000
end

-- The text of R:clock -> the last number that was given out; 0 for none or for garbage.
local function last_of(text)
  local last = text and tonumber(text) or 0
  return last > 0 and last <= CLOCK_MAX and last % 1 == 0 and last or 0
end

-- -> the last number that was given out, 0 for none.
function clock.last(R)
  return last_of(redis.call('GET', R .. ':clock'))
end

-- The highest clock number that a caller says it knows -> the number; nil if it is no number. 0 if
-- the clock cannot have given it out: a garbage score that a worker once met must not keep it out.
function clock.read_seen(text)
  local seen = whole(text)
  return seen and (seen <= CLOCK_MAX and seen or 0)
end

-- The last text that a call wrote into the R:clock of any root, and its number. Reading 16 digits
-- as a number costs as much as a small command; seeing that they are the same costs nothing.
local known_text, known_number

function clock.last_number(text)
  if text and text == known_text and known_number <= CLOCK_MAX then
    return known_number
  end
  return last_of(text)
end

-- This number is the last one that was given out. -> its text
function clock.told_number(number)
  known_number, known_text = number, int(number)
  return known_text
end

-- The hybrid clock (Kulkarni et al. 2014, the single-node case): take n successive numbers. -> the
-- first one. They are above every number given out before, not below the wall clock in us, and
-- above `seen`, the highest number that the caller knows. So they rise even after Redis lost its
-- last writes.
function clock.tick(R, now_us, n, seen)
  local last = clock.last_number(db('GET', R .. ':clock'))
  local first = math.max(now_us, last + 1, seen and seen + 1 or 0)
  db('SET', R .. ':clock', clock.told_number(first + n - 1))
  return first
end

-- Take the next number and write it directly: one command instead of two. -> the number; what
-- R:clock held before, false for nothing
function clock.tick_at_once(R, now_us)
  local number, text = now_us, int(now_us)
  local was = redis.call('SET', R .. ':clock', text, 'GET')
  local last = clock.last_number(was)
  -- Rare: two calls in one microsecond, or Redis' own clock was set back.
  if last >= number then
    number = last + 1
    text = int(number)
    local reply = redis.pcall('SET', R .. ':clock', text)
    if reply.err then
      redis.pcall('SET', R .. ':clock', was)
      error(reply, 0)
    end
  end
  known_text, known_number = text, number
  return number, was
end

-- A clock number -> job id: 'j' and 11 digits of Crockford's base 32, so that ids sort by age. The
-- numbers of a call are successive, so the digits before the last two are mostly known already.
local DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
local known_high, high_text
local PAIRS = {} -- the last two digits, by their number

local function spell(number, n)
  local out = {}
  for i = n, 1, -1 do
    local d = number % 32
    out[i] = string.sub(DIGITS, d + 1, d + 1)
    number = (number - d) / 32
  end
  return table.concat(out)
end

function clock.id(number)
  local low = number % 1024
  local high = (number - low) / 1024
  if high ~= known_high then
    known_high, high_text = high, 'j' .. spell(high, 9)
  end
  local pair = PAIRS[low]
  if not pair then
    pair = spell(low, 2)
    PAIRS[low] = pair
  end
  return high_text .. pair
end

-- A job id -> the number that it was made from.
function clock.number(id)
  local number = 0
  for i = 2, #id do
    local digit = string.find(DIGITS, string.sub(id, i, i), 1, true)
    number = number * 32 + (digit or 1) - 1
  end
  return number
end

-- A job id -> when it was made, in ms.
function clock.made_ms(id)
  return clock.ms(clock.number(id))
end
