-- Redis' time, the hybrid clock, and the ids that it gives out.

-- To read ten digits as a number costs as much as a small command, so the last second is kept.
local known_second, second_us

-- -> us since 1970, an exact integer.
function L.now_us()
  local t = redis.call('TIME')
  if t[1] ~= known_second then
    known_second, second_us = t[1], tonumber(t[1]) * 1000000
  end
  return second_us + tonumber(t[2])
end

function L.ms(us)
  return (us - us % 1000) / 1000
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

-- What a call wrote last into R:clock, of whatever root. To read 16 digits as a number costs as much as a small command,
-- to see that they are still the same nothing.
local known_text, known_number

-- The hybrid clock (Kulkarni et al. 2014, its single-node case): n successive numbers, of which the
-- first is returned. They are above every number given out before, not below the wall clock in us,
-- and above `seen`, the highest the caller knows: so they rise even after Redis lost its last writes.
-- -> the number, what R:clock held before (false for nothing), whether the last call that counted it on left that
function L.advance(R, now_us, n, seen)
  local first = seen and math.max(now_us, seen + 1) or now_us
  local text = L.int(first + n - 1)
  local was = redis.call('SET', R .. ':clock', text, 'GET')
  local is_ours = was == known_text
  local last = is_ours and known_number <= L.CLOCK_MAX and known_number or last_of(was)
  -- Seldom: within a microsecond, or Redis' own clock was set back.
  if last >= first then
    first, is_ours = last + 1, false -- two clocks that are counted on by one may meet
    text = L.int(first + n - 1)
    redis.call('SET', R .. ':clock', text)
  end
  known_text, known_number = text, first + n - 1
  return first, was, is_ours
end

-- The number alone.
function L.tick(R, now_us, n, seen)
  return (L.advance(R, now_us, n, seen))
end

-- A clock number -> job id: 'j' and 11 digits of Crockford's base 32, so that ids sort by age.
-- Numbers of one call stand side by side, so the digits before the last two are mostly known already.
local DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
local known_high, high_text
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
    known_high, high_text = high, 'j' .. spell(high, 9)
  end
  local pair = PAIRS[low]
  if not pair then
    pair = spell(low, 2)
    PAIRS[low] = pair
  end
  return high_text .. pair
end
