-- How much run time each tenant of a fair queue had in the last minute, for people:
--   R:fair-used:<queue>:<minute>  HASH  tenant -> ms; ' ': of all
-- It expires two minutes behind that minute. Tenants beyond TENANTS are counted in ' ' alone.

local usage = module 'fair/usage'
local TENANTS, KEPT = 10000, 3 -- minutes
local ALL = ' ' -- no tenant has this name

local function key_of(R, queue, minute)
  return R .. ':fair-used:' .. queue .. ':' .. int(minute)
end

-- What counts for a job that ran so long.
function usage.ms(ran_us)
  return math.floor(ran_us / 1000 + 0.5)
end

-- Jobs of these tenants, tenant -> ms, have run so long. Behind the writes of a call: it may fail.
function usage.count(R, queue, used, now_us)
  local minute = math.floor(now_us / 60000000)
  local key, names, all = key_of(R, queue, minute), {ALL}, 0
  for name, ms in pairs(used) do
    names[#names + 1], all = name, all + ms
  end
  local had, is_full = redis.call('HMGET', key, unpack(names)), redis.call('HLEN', key) > TENANTS
  local words = {ALL, int((tonumber(had[1] or 0) or 0) + all)}
  for i = 2, #names do
    if had[i] or not is_full then
      words[#words + 1] = names[i]
      words[#words + 1] = int((tonumber(had[i] or 0) or 0) + used[names[i]])
    end
  end
  redis.call('HSET', key, unpack(words))
  redis.call('PEXPIREAT', key, int((minute + KEPT) * 60000))
end

-- How much of the minute before the last one is within the last minute.
local function share_of_last(now_ms)
  return 1 - (now_ms % 60000) / 60000
end

local function number(text)
  return tonumber(text or 0) or 0
end

-- -> ms of a tenant within the last minute, ms of all: this minute, and of the one before as much
-- as is left of it
function usage.last_minute(R, queue, tenant, now_ms)
  local minute, left = math.floor(now_ms / 60000), share_of_last(now_ms)
  local is = redis.call('HMGET', key_of(R, queue, minute), tenant, ALL)
  local was = redis.call('HMGET', key_of(R, queue, minute - 1), tenant, ALL)
  local function ms(i)
    return math.floor(number(is[i]) + left * number(was[i]))
  end
  return ms(1), ms(2)
end

-- -> the same for each tenant that had some, tenant -> ms, and for all
function usage.of_all(R, queue, now_ms)
  local minute, used = math.floor(now_ms / 60000), {}
  for back, share in pairs({[0] = 1, [1] = share_of_last(now_ms)}) do
    local rows = redis.call('HGETALL', key_of(R, queue, minute - back))
    for i = 1, #rows, 2 do
      local name, ms = rows[i], share * (tonumber(rows[i + 1]) or 0)
      if ms >= 1 then
        used[name] = (used[name] or 0) + ms - ms % 1
      end
    end
  end
  local all = used[ALL] or 0
  used[ALL] = nil
  return used, all
end
