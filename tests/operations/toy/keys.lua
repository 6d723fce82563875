-- The keys of the toy Redis: each has a type, a value and perhaps a time at which it expires. Nothing expires here: the
-- clock of a test does not come so far.
local keys = {}

local all = {} -- key -> {kind, value, expires: ms, nil for never}

function keys.clear()
  all = {}
end

local function copy(value)
  if type(value) ~= 'table' then
    return value
  end
  local out = {}
  for k, v in pairs(value) do
    out[k] = copy(v)
  end
  return out
end

-- -> all keys as they are now, for keys.restore
function keys.copy()
  return copy(all)
end

-- -> a copy of the value of one key
function keys.copy_of(key)
  return copy(all[key].value)
end

function keys.restore(was)
  all = was
end

-- -> its type, nil if there is no such key
function keys.kind(key)
  return all[key] and all[key].kind
end

-- -> all names, sorted
function keys.names()
  local names = {}
  for key in pairs(all) do
    names[#names + 1] = key
  end
  table.sort(names)
  return names
end

-- -> its value, nil if there is no such key. Raises what Redis raises if it has another type.
function keys.read(key, kind)
  local entry = all[key]
  if entry and entry.kind ~= kind then
    error({err = 'WRONGTYPE Operation against a key holding the wrong kind of value'}, 0)
  end
  return entry and entry.value
end

-- The same; a key that is not there begins with this value.
function keys.change(key, kind, value)
  if keys.read(key, kind) == nil then
    all[key] = {kind = kind, value = value}
  end
  return all[key].value
end

-- Write a value in place of what is there, whatever type it has.
function keys.put(key, kind, value, expires)
  all[key] = {kind = kind, value = value, expires = expires}
end

-- -> was it there?
function keys.remove(key)
  local was = all[key]
  all[key] = nil
  return was ~= nil
end

-- ms: when the key expires, nil for never. -> is it there?
function keys.set_expiry(key, ms)
  if all[key] then
    all[key].expires = ms
  end
  return all[key] ~= nil
end

function keys.expiry(key)
  return all[key] and all[key].expires
end

return keys
