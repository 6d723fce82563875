-- The commands of the toy Redis for hashes.
local entries = require 'toy.entries'
local keys = require 'toy.keys'

local commands = {}

local EMPTY = entries.new()

local function read(key)
  return keys.read(key, 'hash') or EMPTY
end

function commands.HGET(key, field)
  return read(key).values[field] or false
end

function commands.HMGET(key, ...)
  local out, values = {}, read(key).values
  for i, field in ipairs({...}) do
    out[i] = values[field] or false
  end
  return out
end

function commands.HEXISTS(key, field)
  return read(key).values[field] and 1 or 0
end

function commands.HLEN(key)
  return #read(key).names
end

function commands.HKEYS(key)
  return {unpack(read(key).names)}
end

function commands.HGETALL(key)
  local out, hash = {}, read(key)
  for _, field in ipairs(hash.names) do
    out[#out + 1], out[#out + 2] = field, hash.values[field]
  end
  return out
end

function commands.HSET(key, ...)
  local hash, given, n = keys.change(key, 'hash', entries.new()), {...}, 0
  for i = 1, #given, 2 do
    n = n + (entries.put(hash, given[i], given[i + 1]) and 1 or 0)
  end
  return n
end

function commands.HSETNX(key, field, value)
  if read(key).values[field] then
    return 0
  end
  return commands.HSET(key, field, value)
end

function commands.HINCRBY(key, field, by)
  local hash = keys.change(key, 'hash', entries.new())
  local value = tonumber(hash.values[field] or '0') + tonumber(by)
  entries.put(hash, field, string.format('%.0f', value))
  return value
end

function commands.HDEL(key, ...)
  return entries.remove(key, read(key), {...})
end

return commands
