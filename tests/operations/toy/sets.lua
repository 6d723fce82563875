-- The commands of the toy Redis for sets.
local entries = require 'toy.entries'
local keys = require 'toy.keys'

local commands = {}

local EMPTY = entries.new()

local function read(key)
  return keys.read(key, 'set') or EMPTY
end

function commands.SCARD(key)
  return #read(key).names
end

function commands.SISMEMBER(key, member)
  return read(key).values[member] and 1 or 0
end

function commands.SMEMBERS(key)
  return {unpack(read(key).names)}
end

-- Whichever members: the first ones.
function commands.SRANDMEMBER(key, count)
  local names = read(key).names
  if not count then
    return names[1] or false
  end
  return {unpack(names, 1, math.min(tonumber(count), #names))}
end

function commands.SADD(key, ...)
  local set, n = keys.change(key, 'set', entries.new()), 0
  for _, member in ipairs({...}) do
    n = n + (entries.put(set, member, true) and 1 or 0)
  end
  return n
end

function commands.SREM(key, ...)
  return entries.remove(key, read(key), {...})
end

return commands
