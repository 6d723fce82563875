-- later_v1_look R [QUEUE]... -> [too_many, name...]
--
-- For daemons of the version before; newer ones ask later_v2_look. Which queues a step has to name
-- now or soon: those with a mark, a pause, or a head that is due within 2.5 s. A worker with many
-- queues asks this once in a sweep, and EXISTS of their raw sets, and names its other queues only
-- by turns.
-- Without QUEUE: of the whole namespace, and a name may come more than once; too_many: 1 when one
-- kind has more than 1,024 names: then ask by names, up to 1,024 of them. no-writes.
-- Cost: O(log queues + names told), by names O(names).

local SOON_MS = 2500 -- until then there are several sweeps
local MOST = 1024

local function ask_by_name(R, names, until_ms)
  local heads = redis.call('ZMSCORE', R .. ':heads', unpack(names))
  local marks = redis.call('HMGET', R .. ':prio', unpack(names))
  local paused = redis.call('HMGET', R .. ':paused', unpack(names))
  local out = {0}
  for i = 1, #names do
    if marks[i] or paused[i] or heads[i] and tonumber(heads[i]) <= until_ms then
      out[#out + 1] = names[i]
    end
  end
  return out
end

-- -> the fields of a hash below R; nil: too many
local function names_in(R, hash)
  local key = R .. ':' .. hash
  return redis.call('HLEN', key) <= MOST and redis.call('HKEYS', key) or nil
end

local function ask_all(R, until_ms)
  local due = redis.call('ZRANGEBYSCORE', R .. ':heads', '-inf', L.int(until_ms),
                         'LIMIT', 0, MOST + 1)
  local marked, paused = names_in(R, 'prio'), names_in(R, 'paused')
  if #due > MOST or not marked or not paused then
    return {1}
  end
  local out = {0}
  for _, names in ipairs({due, marked, paused}) do
    for i = 1, #names do
      out[#out + 1] = names[i]
    end
  end
  return out
end

L.register('later_v1_look', {'no-writes'}, function(R, names)
  local until_ms = L.ms(L.now_us()) + SOON_MS
  if #names > MOST then
    L.fail('ELATER_ARGS', 'give at most ' .. L.int(MOST) .. ' names')
  end
  return #names > 0 and ask_by_name(R, names, until_ms) or ask_all(R, until_ms)
end)
