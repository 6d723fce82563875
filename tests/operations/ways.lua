-- The two ways of a step: over rows where it can, and all in a transaction. Used by aimed.lua and beside.lua, which play the
-- same on a library with both ways and on one in a transaction alone.
local ways = {
  ROOT = 'later:{default}',
  START_US = 4102444860000000 -- in the year 2100
}

local SWITCH = 'return row_step.run(R, q) or '

-- Read a joined library. -> its text, the same without steps over rows
function ways.read(path)
  local file = assert(io.open(path, 'rb'))
  local text = file:read('*a')
  file:close()
  local old, times = string.gsub(text, SWITCH:gsub('%p', '%%%0'), 'return ')
  assert(times == 1, 'the library has no step over rows: ' .. SWITCH)
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

return ways
