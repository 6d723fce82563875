-- Durations and instants as people write them.

local instant = module 'core/instant'

-- '250ms' '10s' '5m' '2h' '7d' -> ms, at most 100 years. what: names the value in the error.
local UNITS = {ms = 1, s = 1000, m = 60000, h = 3600000, d = 86400000}

function instant.duration(text, what)
  local digits, unit = string.match(text, '^(%d+)(%a*)$')
  if digits == nil or #digits > 15 then
    fail('ELATER_TIME', what .. ' ' .. quote(text) ..
         ' is no duration: write it like 250ms 10s 5m 2h 7d')
  end
  local factor = UNITS[string.lower(unit)]
  if factor == nil then
    fail('ELATER_TIME', what .. ' ' .. quote(text) .. ' needs a unit: ms s m h d')
  end
  local ms = tonumber(digits) * factor
  if ms > 3155760000000 then
    fail('ELATER_TIME', what .. ' ' .. quote(text) .. ' is longer than 100 years')
  end
  return ms
end

-- Days from 1970-01-01 to a civil date (Howard Hinnant, chrono-compatible low-level date
-- algorithms).
function instant.days(y, m, d)
  if m <= 2 then
    y = y - 1
  end
  local era = math.floor(y / 400)
  local yoe = y - era * 400
  local doy = math.floor((153 * (m + (m > 2 and -3 or 9)) + 2) / 5) + d - 1
  local doe = yoe * 365 + math.floor(yoe / 4) - math.floor(yoe / 100) + doy
  return era * 146097 + doe - 719468
end

-- A date and time of RFC 3339, with a zone -> ms since 1970, or nil.
function instant.rfc3339(text)
  local y, mo, d, h, mi, s, rest = string.match(text,
    '^(%d%d%d%d)-(%d%d)-(%d%d)[Tt ](%d%d):(%d%d):(%d%d)(.*)$')
  if y == nil then
    return nil
  end
  y, mo, d, h, mi, s = tonumber(y), tonumber(mo), tonumber(d), tonumber(h), tonumber(mi),
                       tonumber(s)
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
  local seconds = instant.days(y, mo, d) * 86400 + h * 3600 + (mi - offset) * 60 + s
  local ms = fraction and math.floor(tonumber('0.' .. string.sub(fraction, 1, 6)) * 1000) or 0
  return seconds * 1000 + ms
end

-- A time -> ms: integer ms, @SECONDS (with a fraction if wanted), RFC 3339 with a zone, or
-- +DURATION from now. now_ms: nil where a text is read again and again, and so has to name a fixed
-- time. what: names the value in the error.
function instant.instant(text, now_ms, what)
  local ms
  if string.match(text, '^%d+$') then
    ms = tonumber(text)
    if ms >= SECONDS_FROM and ms <= SECONDS_TO then
      fail('ELATER_TIME', what .. ' ' .. quote(text) ..
           ' looks like seconds: times are in ms, or write @' .. string.sub(text, 1, 15))
    end
  elseif string.match(text, '^@%d+$') or string.match(text, '^@%d+%.%d+$') then
    ms = math.floor(tonumber(string.sub(text, 2)) * 1000 + 0.5)
  elseif string.match(text, '^%+') and not now_ms then
    fail('ELATER_TIME', what .. ' ' .. quote(text) .. ' is counted from now, and a file is ' ..
         'read again and again: write it as 2030-01-31T09:00:00Z')
  elseif string.match(text, '^%+') then
    ms = now_ms + instant.duration(string.sub(text, 2), what)
  else
    ms = instant.rfc3339(text)
  end
  if ms == nil then
    fail('ELATER_TIME', what .. ' ' .. quote(text) ..
         ' is no time: integer ms, @SECONDS, 2030-01-31T09:00:00Z or +5m')
  end
  if ms > LATEST then
    fail('ELATER_TIME', what .. ' ' .. quote(text) .. ' is too far away (after the year 5000)')
  end
  return math.max(ms, 0)
end

-- The same -> due ms: a time in the past becomes now.
function instant.time(text, now_ms, what)
  return math.max(instant.instant(text, now_ms, what), now_ms)
end

-- A value of R:paused, "<until ms or 0> <since ms> <who> <reason>" -> until, 0 for no end; nil when
-- the queue is not paused, or not any more.
function instant.paused_until(text, now_ms)
  if not text then
    return nil
  end
  local until_ms = tonumber(string.match(text, '^(%d+) ') or '') or 0
  if until_ms ~= 0 and until_ms <= now_ms then
    return nil
  end
  return until_ms
end
