-- How much run time each tenant of a fair queue had in the last minute, for people:
--   R:fair-used:<queue>:<minute>  HASH  tenant -> ms; ' ': of all
-- It expires after three minutes. Tenants beyond TENANTS are counted in ' ' alone.

local usage = module 'fair/usage'
local TENANTS, TTL_MS = 10000, 180000

local function key_of(R, queue, minute)
  return R .. ':fair-used:' .. queue .. ':' .. int(minute)
end

-- A job of this tenant has run so long. Behind the writes of a call: it may fail.
function usage.count(R, queue, tenant, ran_us, now_us)
  local ms, key = math.floor(ran_us / 1000 + 0.5), key_of(R, queue, math.floor(now_us / 60000000))
  if redis.call('HLEN', key) <= TENANTS or redis.call('HEXISTS', key, tenant) == 1 then
    redis.call('HINCRBY', key, tenant, int(ms))
  end
  redis.call('HINCRBY', key, ' ', int(ms))
  redis.call('PEXPIRE', key, int(TTL_MS))
end

-- -> ms of a tenant within the last minute, ms of all: this minute, and of the one before as much
-- as is left of it
function usage.last_minute(R, queue, tenant, now_ms)
  local minute, left = math.floor(now_ms / 60000), 1 - (now_ms % 60000) / 60000
  local is = redis.call('HMGET', key_of(R, queue, minute), tenant, ' ')
  local was = redis.call('HMGET', key_of(R, queue, minute - 1), tenant, ' ')
  local function ms(i)
    return math.floor((tonumber(is[i] or 0) or 0) + left * (tonumber(was[i] or 0) or 0))
  end
  return ms(1), ms(2)
end
