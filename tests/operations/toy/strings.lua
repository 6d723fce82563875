-- The commands of the toy Redis for strings, and for keys of any type.
local keys = require 'toy.keys'

local commands = {}

local function count(list, is_counted)
  local n = 0
  for _, key in ipairs(list) do
    n = n + (is_counted(key) and 1 or 0)
  end
  return n
end

function commands.TYPE(key)
  return {ok = keys.kind(key) or 'none'}
end

function commands.EXISTS(...)
  return count({...}, keys.kind)
end

function commands.DEL(...)
  return count({...}, keys.remove)
end

commands.UNLINK = commands.DEL

-- It is asked for one section: is this server a node of a cluster?
function commands.INFO()
  return '# Cluster\r\ncluster_enabled:0\r\n'
end

-- COPY from to [REPLACE]
function commands.COPY(from, to, option)
  local kind = keys.kind(from)
  if not kind or keys.kind(to) and option ~= 'REPLACE' then
    return 0
  end
  keys.put(to, kind, keys.copy_of(from), keys.expiry(from))
  return 1
end

function commands.KEYS()
  return keys.names()
end

function commands.PEXPIREAT(key, ms)
  return keys.set_expiry(key, tonumber(ms)) and 1 or 0
end

function commands.PERSIST(key)
  local had = keys.expiry(key)
  keys.set_expiry(key, nil)
  return had and 1 or 0
end

function commands.PEXPIRETIME(key)
  return keys.expiry(key) or keys.kind(key) and -1 or -2
end

function commands.GET(key)
  return keys.read(key, 'string') or false
end

function commands.GETRANGE(key, first, last)
  local text, to = keys.read(key, 'string') or '', tonumber(last)
  return string.sub(text, tonumber(first) + 1, to < 0 and to or to + 1)
end

function commands.STRLEN(key)
  return #(keys.read(key, 'string') or '')
end

-- Option -> function(key, its argument) that returns when the key expires, nil for never
local EXPIRY = {
  GET = function() end,
  KEEPTTL = keys.expiry,
  PXAT = function(_, ms) return tonumber(ms) end,
}

-- SET key value [GET | KEEPTTL | PXAT ms]
function commands.SET(key, value, option, ms)
  if option and not EXPIRY[option] then
    error(option)
  end
  local was = option == 'GET' and (keys.read(key, 'string') or false)
  keys.put(key, 'string', value, option and EXPIRY[option](key, ms))
  if option == 'GET' then
    return was
  end
  return {ok = 'OK'}
end

return commands
