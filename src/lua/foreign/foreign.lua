-- Delay queues of other programs: a sorted set whose members become jobs. A member is the payload,
-- or the name of a field of a hash that has it. `later import --zset` moves them at once
-- (calls/adopt.lua), a worker each when it is due (calls/collect.lua).

local foreign = module 'foreign/foreign'
local rights = use 'core/rights'

-- A score is a due time in unit s or ms. -> due ms; nil, why there is none, the due time in ms if
-- the score is in the other unit (nil: it is a time in neither)
function foreign.foreign_due(score, unit, now_ms)
  local n = tonumber(score)
  local ms = unit == 's' and math.floor(n * 1000 + 0.5) or math.ceil(n)
  if ms ~= ms or ms == math.huge or ms == -math.huge then
    return nil, 'its score ' .. score .. ' is not finite'
  elseif ms > LATEST then
    return nil, 'its score ' .. score .. ' is after the year 5000' ..
           (unit == 's' and ': is it in ms?' or ''), unit == 's' and n <= LATEST and n or nil
  elseif unit == 'ms' and ms >= SECONDS_FROM and ms <= SECONDS_TO then
    return nil, 'its score ' .. score .. ' looks like seconds, and the unit is ms', n * 1000
  end
  return ms >= SECONDS_FROM and ms or now_ms
end

local function type_of(key)
  local reply = redis.pcall('TYPE', key)
  if not reply.err then
    return reply.ok
  elseif string.find(reply.err, 'non local key', 1, true) or
         string.find(reply.err, 'same slot', 1, true) then
    fail('ELATER_ARGS', 'its keys are in another slot than this namespace: in a Redis Cluster ' ..
           'they need its hash tag')
  end
  error(reply, 0)
end

-- Fail if these keys are ours, are on another node, or have another type. hash: '' for none.
-- -> is there a set?
function foreign.check_foreign(R, key, hash)
  for _, name in ipairs({key, hash}) do
    if string.sub(name, 1, #R + 1) == R .. ':' then
      fail('ELATER_ARGS', quote(name) .. ' belongs to this namespace')
    end
  end
  local is_set = type_of(key)
  if is_set ~= 'none' and is_set ~= 'zset' then
    fail('ELATER_TYPE', quote(key) .. ' is a ' .. is_set .. ', no sorted set')
  end
  local is = hash ~= '' and type_of(hash) or 'none'
  if is ~= 'none' and is ~= 'hash' then
    fail('ELATER_TYPE', quote(hash) .. ' is a ' .. is .. ', no hash')
  end
  return is_set ~= 'none'
end

-- Ask for the rights to remove members before they are read: without them the removal would fail
-- the call at its end.
function foreign.need_removal(key, hash)
  for _, right in ipairs({{'ZREM', key}, {'HDEL', hash}}) do
    local command, name = right[1], right[2]
    if name ~= '' and not rights.may(command, name, 'm') then
      fail('NOPERM', 'this user may not ' .. command .. ' ' .. quote(name))
    end
  end
end

-- Remove members, and the fields of those that have one. hash: '' for none.
function foreign.remove_foreign(key, members, hash, fields)
  if members[1] then
    db('ZREM', key, unpack(members))
  end
  if hash ~= '' and fields[1] then
    db('HDEL', hash, unpack(fields))
  end
end
