-- Names with values, in the order in which they came: what a hash or a set of the toy Redis has. Redis keeps small ones
-- in this order, too.
local keys = require 'toy.keys'

local entries = {}

-- -> {names, values: name -> value}
function entries.new()
  return {names = {}, values = {}}
end

-- -> was the name new?
function entries.put(e, name, value)
  local is_new = e.values[name] == nil
  if is_new then
    e.names[#e.names + 1] = name
  end
  e.values[name] = value
  return is_new
end

local function remove(e, name)
  if e.values[name] == nil then
    return false
  end
  e.values[name] = nil
  for i, other in ipairs(e.names) do
    if other == name then
      table.remove(e.names, i)
      break
    end
  end
  return true
end

-- Remove names from e, what is at this key; without names the key is gone. -> how many were there
function entries.remove(key, e, names)
  local n = 0
  for _, name in ipairs(names) do
    n = n + (remove(e, name) and 1 or 0)
  end
  if #e.names == 0 then
    keys.remove(key)
  end
  return n
end

return entries
