-- A toy Redis: what the library gets as `redis`. It has the commands that adds, registrations and syncs use; a command or
-- an option that it does not know fails the call by name, whatever the library makes of the error, so that no false
-- number comes of it. run compares all that it answers and keeps with a real server.
local keys = require 'toy.keys'

local server = {
  now_us = 0,     -- its clock, which the test sets
  functions = {}, -- name -> function(keys, args), as they were registered
  commands = 0,   -- how many were executed
  published = {}, -- by them, until the test forgets it
}

local known, unknown = {}, nil
for _, kind in ipairs({'strings', 'hashes', 'sets', 'zsets'}) do
  for name, execute in pairs(require('toy.' .. kind)) do
    known[name] = execute
  end
end

function known.TIME()
  local us = server.now_us % 1000000
  return {string.format('%.0f', (server.now_us - us) / 1000000), string.format('%.0f', us)}
end

function known.PEXPIRE(key, ms)
  return keys.set_expiry(key, math.floor(server.now_us / 1000) + tonumber(ms)) and 1 or 0
end

function known.PTTL(key)
  local expires = keys.expiry(key)
  return expires and expires - math.floor(server.now_us / 1000) or keys.kind(key) and -1 or -2
end

-- Nobody subscribes; what was published is kept for the test.
function known.PUBLISH(channel, text)
  server.published[#server.published + 1] = channel .. ' ' .. text
  return 0
end

-- An estimate of how many keys there were: no reply tells of it here.
function known.PFADD()
  return 1
end

-- Forget keys and functions.
function server.reset()
  keys.clear()
  server.functions = {}
end

-- Redis gets every argument as text.
local function texts(...)
  local args = {...}
  for i = 1, select('#', ...) do
    if type(args[i]) == 'number' then
      args[i] = string.format('%.17g', args[i])
    elseif type(args[i]) ~= 'string' then
      error('an argument is a ' .. type(args[i]))
    end
  end
  return args
end

local redis = {}

-- The commands that write, but for counters, whose failure does no harm.
local WRITES = {SET = true, DEL = true, UNLINK = true, HSET = true, HDEL = true, SREM = true, ZADD = true, ZREM = true,
                ZREMRANGEBYSCORE = true}
local writes_left

-- From now on write number n fails, as in a Redis that is full; nil: none does. -> did one fail?
function server.fail_write(n)
  local did = writes_left == 0
  writes_left = n
  return did
end

local function count_write(command)
  if writes_left and writes_left > 0 and WRITES[command] then
    writes_left = writes_left - 1
    if writes_left == 0 then
      error({err = "OOM command not allowed when used memory > 'maxmemory'"}, 0)
    end
  end
end

function redis.call(command, ...)
  server.commands = server.commands + 1
  if not known[command] then
    unknown = unknown or command
    error({err = 'ERR the toy does not know ' .. command}, 0)
  end
  count_write(command)
  local ok, reply = pcall(known[command], unpack(texts(...)))
  if not ok then
    server.met_foreign = server.met_foreign or WRITES[command] and type(reply) == 'table' and command .. ' ' .. (...)
    unknown = unknown or type(reply) ~= 'table' and command .. ' (' .. reply .. ')' or nil
    error(reply, 0)
  end
  return reply
end

function redis.pcall(...)
  local ok, reply = pcall(redis.call, ...)
  if ok or type(reply) == 'table' then
    return reply
  end
  return {err = tostring(reply)}
end

function redis.acl_check_cmd()
  return true
end

function redis.register_function(f)
  server.functions[f.function_name] = function(...)
    local reply = f.callback(...)
    if unknown then
      error(f.function_name .. ': tests/operations/toy does not know ' .. unknown, 0)
    end
    return reply
  end
end

server.redis = redis

return server
