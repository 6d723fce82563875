-- Names of gates, and the limits of semaphores and rates.
--
-- R:limits  HASH  name -> "semaphore <n> <keep|kill>" | "rate <algorithm> <n> <per ms> <burst>"
-- A name with {key} in it is a template for all names that fit. The field `{}` lists the templates.

local limits = module 'gates/limits'
local rates = use 'gates/rates'

limits.GATE_NAME_MAX = 256
limits.MAX_LIMITS = 1000         -- definitions in one namespace
limits.MAX_PERMITS = 1000000     -- permits of a semaphore or a rate

-- -> the name; fails with ELATER_GATE unless it may stand in a record header, in a key and on a
-- terminal. what: names it in the error.
function limits.check_gate_name(what, name)
  if name == nil or #name < 1 or #name > limits.GATE_NAME_MAX or
     string.find(name, '[%z\1-\32\127]') then
    fail('ELATER_GATE', what .. ' ' .. quote(name or '') .. ' is no name of a gate: 1 to ' ..
         int(limits.GATE_NAME_MAX) .. ' bytes without spaces and control characters')
  elseif string.byte(name) == 126 then
    fail('ELATER_GATE', what .. ' ' .. quote(name) ..
         ' begins with ~: such names are laterd\'s own')
  end
  return name
end

-- A definition in R:limits -> {kind, n, on_lost} or {kind, n, algorithm, per_us, burst}; nil when
-- it is missing or not ours.
function limits.parse_limit(text)
  local n, on_lost = string.match(text or '', '^semaphore (%d+) (%a+)$')
  if whole(n) then
    return {kind = 'sem', n = whole(n), on_lost = on_lost}
  end
  local algorithm, count, per_ms, burst = string.match(text or '', '^rate (%a+) (%d+) (%d+) (%d+)$')
  count, per_ms, burst = whole(count), whole(per_ms), whole(burst)
  if count and per_ms and burst and rates.RATES[algorithm] and per_ms > 0 then
    return {kind = 'rate', algorithm = algorithm, n = count, per_us = per_ms * 1000, burst = burst}
  end
  return nil
end

-- A limit as limits.parse_limit tells it -> its definition.
function limits.limit_text(limit)
  if limit.kind == 'sem' then
    return 'semaphore ' .. int(limit.n) .. ' ' .. limit.on_lost
  end
  return 'rate ' .. limit.algorithm .. ' ' .. int(limit.n) .. ' ' .. int(limit.per_us / 1000) ..
         ' ' .. int(limit.burst)
end

-- -> the part of a name before {key}, the part behind it; without {key}: the whole name, nil
function limits.split_key(name)
  local from, to = string.find(name, '{key}', 1, true)
  if not from then
    return name, nil
  end
  return string.sub(name, 1, from - 1), string.sub(name, to + 1)
end

-- -> if the name fits the template, the length of the part before {key}; else nil
function limits.fits(template, name)
  local before, behind = limits.split_key(template)
  if behind and #name > #before + #behind and string.sub(name, 1, #before) == before and
     (behind == '' or string.sub(name, -#behind) == behind) then
    return #before
  end
  return nil
end

-- -> the template that a name fits, the one with the longest part before {key}; nil for none.
local function template_of(name, list)
  local best, best_len
  for template in string.gmatch(list or '', '[^\n]+') do
    local len = limits.fits(template, name)
    if len and (not best or len > best_len) then
      best, best_len = template, len
    end
  end
  return best
end

-- -> the limit that holds for a name of this kind, or nil; the name under which it is defined
function limits.limit_of(R, kind, name)
  local row = db('HMGET', R .. ':limits', name, '{}')
  local under = name
  if not row[1] or name == '{}' then
    under = template_of(name, row[2])
    row[1] = under and db('HGET', R .. ':limits', under)
  end
  local limit = limits.parse_limit(row[1])
  return limit and limit.kind == kind and limit or nil, under
end

local WORDS = {sem = 'semaphore', rate = 'rate'}

-- Fail if no such semaphore or rate is defined. One of the other kind is left to those who use it.
function limits.need_limit(R, kind, name)
  if limits.limit_of(R, kind, name) then
    return
  end
  local other = kind == 'sem' and 'rate' or 'sem'
  fail('ELATER_LIMIT', limits.limit_of(R, other, name) and quote(name) .. ' is a ' ..
       WORDS[other] .. ' and no ' .. WORDS[kind] or 'there is no ' .. WORDS[kind] .. ' ' ..
       quote(name) .. ': later_limit_set defines it')
end
