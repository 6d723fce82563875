-- later_find R PREFIX [kind K] [limit N] -> [kind, name, ...]
--
-- The names that begin with PREFIX, byte for byte; '': all. kind: batch lock queue rate schedule
-- sem topic, or gate for lock, rate and sem. They are sorted by kind, then by name; of each kind at
-- most N are told (100; up to 1000, and up to 10000 where K is one kind).
-- A queue has a name once it is used or served; a lock, if a queue declares it; a semaphore or
-- rate, if it has a limit; a topic, if a queue subscribes to it (user.* is a name of its own). A
-- new name may be missing, and one that is gone may be there, until workers have tidied.
-- no-writes. Errors: ELATER_ARGS OPTION TYPE. Cost: O(log n + names told).

local KINDS = {'batch', 'lock', 'queue', 'rate', 'schedule', 'sem', 'topic'}
local GATES = {lock = true, rate = true, sem = true}
local PREFIX_MAX = 256
local LIMIT, SOME_MAX, LIMIT_MAX = 100, 1000, 10000

-- -> is_wanted(kind)
local function read_kind(word)
  local is_known = word == 'gate'
  for _, kind in ipairs(KINDS) do
    is_known = is_known or kind == word
  end
  if not is_known then
    fail('ELATER_OPTION', 'kind ' .. quote(word) .. ' is none of ' .. table.concat(KINDS, ' ') ..
         ' gate')
  end
  return function(kind)
    return kind == word or word == 'gate' and GATES[kind]
  end
end

-- -> is_wanted(kind), at most so many of a kind
local function read_options(args)
  local seen, is_wanted, limit, kind = {}, function() return true end, LIMIT, nil
  for i = 2, #args, 2 do
    local name = string.lower(args[i])
    if name ~= 'kind' and name ~= 'limit' then
      fail('ELATER_OPTION', 'unknown option ' .. quote(args[i]) .. ' (kind limit)')
    elseif not args[i + 1] then
      fail('ELATER_ARGS', 'option ' .. name .. ' has no value')
    elseif seen[name] then
      fail('ELATER_OPTION', 'option ' .. name .. ' is given twice')
    elseif name == 'kind' then
      kind = string.lower(args[i + 1])
      is_wanted = read_kind(kind)
    else
      limit = check_whole('ELATER_OPTION', 'limit', args[i + 1], 1, LIMIT_MAX)
    end
    seen[name] = true
  end
  if limit > SOME_MAX and (not kind or kind == 'gate') then
    fail('ELATER_OPTION', 'a limit above ' .. int(SOME_MAX) .. ' goes with one kind,' ..
         ' not with several: give kind')
  end
  return is_wanted, limit
end

-- The least text that is behind all that begin with this one, which is not only bytes 255.
local function behind(prefix)
  local n = #prefix
  while string.byte(prefix, n) == 255 do
    n = n - 1
  end
  return string.sub(prefix, 1, n - 1) .. string.char(string.byte(prefix, n) + 1)
end

register('later_find', {'no-writes'}, function(R, args)
  local prefix = args[1]
  if not prefix or #prefix > PREFIX_MAX then
    fail('ELATER_ARGS', 'give PREFIX [kind K] [limit N]; PREFIX has at most ' .. int(PREFIX_MAX) ..
         ' bytes, and is empty for all names')
  end
  local is_wanted, limit = read_options(args)
  local reply = {}
  for _, kind in ipairs(KINDS) do
    local from = kind .. ':' .. prefix
    local members = is_wanted(kind) and
                    redis.call('ZRANGE', R .. ':index', '[' .. from, '(' .. behind(from), 'BYLEX',
                               'LIMIT', 0, limit) or {}
    for _, member in ipairs(members) do
      reply[#reply + 1], reply[#reply + 2] = kind, string.sub(member, #kind + 2)
    end
  end
  return reply
end)
