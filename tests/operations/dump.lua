-- Replies and keys as text, the same beside the toy and inside a real server.
local dump = {}

-- -> a reply as text
function dump.text_of(reply)
  if type(reply) == 'number' then
    return string.format('%.17g', reply)
  elseif type(reply) ~= 'table' then
    return tostring(reply)
  end
  local out = {reply.err}
  for i, part in ipairs(reply) do
    out[i] = dump.text_of(part)
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
  return key .. ' ' .. dump.text_of(redis.call('PEXPIRETIME', key)) .. ' ' .. kind .. ' ' ..
         dump.text_of(READ[kind](redis, key))
end

-- Every key, a line each.
function dump.keys(redis)
  local lines = {}
  for _, key in ipairs(sorted(redis.call('KEYS', '*'))) do
    lines[#lines + 1] = line_of(redis, key)
  end
  return lines
end

return dump
