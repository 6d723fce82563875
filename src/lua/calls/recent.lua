-- later_v1_recent R WHO ID... -> 'noted'
-- later_v1_recents R WHO -> [id...], the one that was added last first
--
-- The jobs that somebody added last with `later`, which keeps WHO as USER@HOST. recent puts ids in
-- front, the last one first, also one that is there already. At most 100 ids a call. A list has 100
-- ids and goes 30 days after its last add; a namespace has 1,000 of them, the youngest.
-- Nothing depends on them: an error while recent writes is ignored.
-- recents: no-writes. Errors: ELATER_ARGS NOJOB TYPE. Cost: O(IDs * 100).
--
--   R:recent:<who>  LIST  ids
--   R:recents       ZSET  who -> when the list goes, ms

local clock, rights, commit = use('core/clock', 'core/rights', 'txn/commit')
local IDS_MAX, LISTS_MAX = 100, 1000
local KEEP_MS = 2592000000
local WHO_MAX = 320         -- bytes
local DROPPED = 10          -- lists a call

local function key_of(R, who)
  if not who or #who < 1 or #who > WHO_MAX or string.find(who, '[%z\1-\32\127]') then
    fail('ELATER_ARGS', 'give WHO: 1 to ' .. int(WHO_MAX) ..
         ' bytes without spaces and control characters')
  end
  return R .. ':recent:' .. who
end

-- Drop lists whose time is over, and the oldest if there are too many.
local function drop_old(R, now_ms)
  local lists = R .. ':recents'
  local over = redis.call('ZCARD', lists) - LISTS_MAX
  local old = redis.call('ZRANGEBYSCORE', lists, '-inf', over > 0 and '+inf' or int(now_ms),
                         'LIMIT', 0, over > 0 and math.min(over, DROPPED) or DROPPED)
  for _, who in ipairs(old) do
    redis.call('DEL', R .. ':recent:' .. who)
    redis.call('ZREM', lists, who)
  end
end

-- What keeps the list short comes before what makes it longer: a caller may lack a right. One
-- without this right fills no log of refusals.
local function write(R, key, who, ids, now_ms)
  if not rights.may('LPUSH', key, ids[1]) then
    return
  end
  for _, id in ipairs(ids) do
    redis.call('LREM', key, 0, id)
  end
  redis.call('LTRIM', key, 0, IDS_MAX - 1)
  redis.call('ZADD', R .. ':recents', int(now_ms + KEEP_MS), who)
  drop_old(R, now_ms)
  redis.call('LPUSH', key, unpack(ids))
  redis.call('PEXPIRE', key, int(KEEP_MS))
  redis.call('LTRIM', key, 0, IDS_MAX - 1)
end

register('later_v1_recent', {}, function(R, args)
  local key, ids, is_known = key_of(R, args[1]), {}, {}
  if #args < 2 or #args > IDS_MAX + 1 then
    fail('ELATER_ARGS', 'give WHO and 1 to ' .. int(IDS_MAX) .. ' ids')
  end
  for i = #args, 2, -1 do
    if not is_id(args[i]) then
      fail('ELATER_NOJOB', quote(args[i]) .. ' is no job id (j and 11 characters)')
    end
    if not is_known[args[i]] then
      table.insert(ids, 1, args[i])
      is_known[args[i]] = true
    end
  end
  commit.hint(write, R, key, args[1], ids, clock.ms(clock.now_us()))
  return 'noted'
end)

register('later_v1_recents', {'no-writes'}, function(R, args)
  return redis.call('LRANGE', key_of(R, args[1]), 0, IDS_MAX - 1)
end)
