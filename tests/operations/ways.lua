-- What the programs that play on the toy share. The two ways of a sync: over rows where it can, and all in a transaction:
-- aimed.lua and beside.lua play the same on a library with both ways and on one in a transaction alone.
local dump = require 'dump'
local keys = require 'toy.keys'
local server = require 'toy.server'

local ways = {
  ROOT = 'later:{default}',
  START_US = 4102444860000000 -- in the year 2100
}

local SWITCH = 'return row_sync.run(R, q) or '

-- Read a joined library. -> its text, the same without syncs over rows
function ways.read(path)
  local file = assert(io.open(path, 'rb'))
  local text = file:read('*a')
  file:close()
  local old, times = string.gsub(text, SWITCH:gsub('%p', '%%%0'), 'return ')
  assert(times == 1, 'the library has no sync over rows: ' .. SWITCH)
  return text, old
end

-- Print what is new in either of two texts, line by line.
function ways.print_diff(left, right)
  for _, side in ipairs({{'<', left, right}, {'>', right, left}}) do
    local known = {}
    for line in string.gmatch(side[3], '[^\n]+') do
      known[line] = true
    end
    for line in string.gmatch(side[2], '[^\n]+') do
      if not known[line] then
        print(side[1] .. ' ' .. string.sub(line, 1, 2000))
      end
    end
  end
end

-- Numbers become texts, as Redis gives them to a function.
function ways.words(args)
  for i = 1, #args do
    args[i] = tostring(args[i])
  end
  return args
end

-- Call a function a little later than the last one. -> its reply
function ways.call(name, args)
  server.now_us = server.now_us + 7
  local reply = server.functions[name]({ways.ROOT}, args)
  if server.met_foreign then
    error('a write met a foreign type, which a read before it has to find: ' .. server.met_foreign, 0)
  end
  return reply
end

function ways.all_keys()
  return table.concat(dump.keys(server.redis), '\n')
end

-- Try the sync with each of its writes failing in turn, at most that many: a failed one has to leave every key as it was.
function ways.tear(args, writes)
  local before = ways.all_keys()
  for n = 1, writes do
    local was = keys.copy()
    server.fail_write(n)
    local reply = server.functions.later_v1_sync({ways.ROOT}, args)
    local has_failed, after = server.fail_write(nil), ways.all_keys()
    keys.restore(was)
    if not has_failed then
      return
    elseif reply.err and after ~= before then
      ways.print_diff(before, after)
      error('write ' .. n .. ' failed and left something (< before, > behind it)', 0)
    end
  end
end

return ways
