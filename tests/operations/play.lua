-- Plays a shape and writes down what happened: every reply of the library, then every key. Used beside the toy and
-- inside a real server, as worker.lua: both must come to the same text.
local ROOT = 'later:{default}'
local START_US = 4102444860000000 -- in the year 2100: nothing expires on the real server meanwhile
-- How long each call takes. Jobs that are added together are due together: 64 of them are due in one millisecond.
local ADD_US, CALL_US = 1, 1000

-- -> a reply as text
local function text_of(reply)
  if type(reply) == 'number' then
    return string.format('%.17g', reply)
  elseif type(reply) ~= 'table' then
    return tostring(reply)
  end
  local out = {}
  for i, part in ipairs(reply) do
    out[i] = text_of(part)
  end
  return '[' .. table.concat(out, ' ') .. ']'
end

local function sorted(list)
  table.sort(list)
  return list
end

local function sorted_pairs(flat)
  local rows = {}
  for i = 1, #flat, 2 do
    rows[#rows + 1] = flat[i] .. '=' .. flat[i + 1]
  end
  return sorted(rows)
end

local READ = {
  hash = function(redis, key) return sorted_pairs(redis.call('HGETALL', key)) end,
  set = function(redis, key) return sorted(redis.call('SMEMBERS', key)) end,
  string = function(redis, key) return {redis.call('GET', key)} end,
  zset = function(redis, key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
}

-- A key as a line: its name, when it expires, its type, what it holds.
local function line_of(redis, key)
  local kind = redis.call('TYPE', key).ok
  return key .. ' ' .. text_of(redis.call('PEXPIRETIME', key)) .. ' ' .. kind .. ' ' .. text_of(READ[kind](redis, key))
end

-- server: redis, functions (name -> function of the library), now_us (the clock); measure(step, ...): makes the step that
-- the shape is about, and returns what it returns -> the text
return function(shape, new_worker, server, measure)
  local lines = {}
  server.now_us = START_US
  local worker = new_worker(function(name, args)
    server.now_us = server.now_us + (name == 'later_add' and ADD_US or CALL_US)
    local reply = server.functions[name]({ROOT}, args)
    if type(reply) == 'table' and reply.err then
      error(shape.name .. ': ' .. name .. ': ' .. reply.err, 0)
    end
    lines[#lines + 1] = name .. ' ' .. text_of(reply)
    return reply
  end)
  shape.set_up(worker)
  local started = measure(worker.step, shape.ends, shape.room)
  if started ~= shape.starts then
    error(shape.name .. ': the step started ' .. started .. ' jobs, not ' .. shape.starts, 0)
  end
  for _, key in ipairs(sorted(server.redis.call('KEYS', '*'))) do
    lines[#lines + 1] = line_of(server.redis, key)
  end
  return table.concat(lines, '\n')
end
