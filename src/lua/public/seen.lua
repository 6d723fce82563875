-- later_seen R NAME KEY [for D] [error P] [capacity N] -> [0|1]
-- later_seen_del R NAME -> 1 | 0
-- later_seen_list R -> [name, keys, bytes, for_ms, error, capacity, until_ms, early]...
--
-- Has NAME seen KEY? 0: it is new, or forgotten; 1: it was told within D (wrong for P of the keys
-- that are new, never for one that was told). The call tells it KEY. KEY: 1 to 1024 bytes.
-- The first call makes NAME, a Bloom filter (seen/blooms.lua), with its options: for: how long it
-- remembers at least, 1d without it, and twice that at most; error: P, 0.0001 without it, 1e-9 to
-- 0.1; capacity: how many keys within D, 1000000 without it. More keys make it forget earlier, not
-- err more. A later call may leave out options; another value is refused. NAME is free again when
-- all its keys are forgotten. 64 MiB a filter, 1000 filters.
-- later_seen_del: NAME forgets all. later_seen_list: by name. keys: in both generations, bytes: the
-- memory of both, until_ms: when all is forgotten if no key comes, early: how many generations were
-- full.
-- Errors: ELATER_ARGS SEEN KEY OPTION TIME FULL TYPE. Cost: O(log 1/P), a turn of generations takes
-- their memory, 2.6 MB at most with the defaults; later_seen_list: O(filters).

local clock, adds, blooms = use('core/clock', 'public/add', 'seen/blooms')
local KEY_MAX = 1024
local DEFAULTS = {['for'] = '1d', error = '0.0001', capacity = '1000000'}
local CAPACITY_MAX = 100000000

-- ---- options

-- -> P as text, always the same for the same number
local function read_error(text)
  local p = #text <= 32 and string.find(text, '^[%d.]+[eE]?%-?%d*$') and tonumber(text)
  if not p or p < blooms.SEEN_LEAST or p > blooms.SEEN_MOST then
    fail('ELATER_OPTION', 'error ' .. quote(text) .. ' is not a number from 1e-9 to 0.1')
  end
  return string.format('%.6g', p)
end

local function read_capacity(text)
  return check_whole('ELATER_OPTION', 'capacity', text, 1, CAPACITY_MAX)
end

local function read_for(text)
  return adds.positive('for', text)
end

local READERS = {['for'] = read_for, error = read_error, capacity = read_capacity}

-- -> name -> value of the options that were given
local function read_options(args)
  if #args % 2 == 1 then
    fail('ELATER_ARGS', 'give NAME KEY [for D] [error P] [capacity N]')
  end
  local given = {}
  for i = 3, #args, 2 do
    local name = string.lower(args[i])
    if not READERS[name] or given[name] then
      fail('ELATER_OPTION', quote(args[i]) ..
           ' is unknown or given twice (there are: for error capacity)')
    end
    given[name] = READERS[name](args[i + 1])
  end
  return given
end

local UNITS = {{86400000, 'd'}, {3600000, 'h'}, {60000, 'm'}, {1000, 's'}, {1, 'ms'}}

-- A duration as read_for reads it.
local function duration_text(ms)
  for _, unit in ipairs(UNITS) do
    if ms % unit[1] == 0 then
      return int(ms / unit[1]) .. unit[2]
    end
  end
end

-- Fails if an option that was given is not that of the filter.
local function check_same(name, f, given)
  local is = {['for'] = f.for_ms, error = f.error, capacity = f.capacity}
  local function shown(option, value)
    return option == 'for' and duration_text(value) or option == 'error' and value or int(value)
  end
  for option, value in pairs(given) do
    if value ~= is[option] then
      fail('ELATER_SEEN', 'Bloom filter ' .. quote(name) .. ' has ' .. option .. ' ' ..
           shown(option, is[option]) .. ', not ' .. shown(option, value) .. ': leave it out, ' ..
           'take another name, or have it forget all (later_seen_del)')
    end
  end
end

-- ---- the functions

local function check_name(name)
  return check_name_of('ELATER_SEEN', 'Bloom filter', name)
end

local function check_key(key)
  if not key then
    fail('ELATER_ARGS', 'give NAME KEY [for D] [error P] [capacity N]')
  elseif #key < 1 or #key > KEY_MAX then
    fail('ELATER_KEY', 'the key has ' .. int(#key) .. ' bytes, it may have 1 to ' .. int(KEY_MAX))
  end
  return key
end

-- -> the filter as it is now, or a new one
local function filter_of(R, name, given, now_us)
  local f = blooms.at(blooms.read(R, name), now_us)
  if f then
    check_same(name, f, given)
    return f
  end
  return blooms.new(given['for'] or read_for(DEFAULTS['for']), given.error or DEFAULTS.error,
                    given.capacity or whole(DEFAULTS.capacity), now_us)
end

register('later_seen', {}, function(R, args)
  local now_us, name, key = clock.now_us(), check_name(args[1]), check_key(args[2])
  local f = filter_of(R, name, read_options(args), now_us)
  local places = blooms.places(f, name, key)
  local is_seen, n = blooms.ask(R, name, f.since, places)
  if is_seen then
    return {1}
  end
  is_seen = f.before ~= 0 and blooms.ask(R, name, f.before, places)
  if n >= f.capacity and not f.is_changed then
    f, n = blooms.full(f, now_us), 0
  end
  if f.is_changed then
    blooms.put(R, name, f, now_us)
  end
  blooms.add(R, name, f, places, n)
  return {is_seen and 1 or 0}
end)

register('later_seen_del', {'allow-oom'}, function(R, args)
  if #args ~= 1 then
    fail('ELATER_ARGS', 'give NAME')
  end
  return blooms.drop(R, check_name(args[1])) and 1 or 0
end)

register('later_seen_list', {'no-writes'}, function(R)
  local now_us, out = clock.now_us(), {}
  for _, one in ipairs(blooms.all(R, now_us)) do
    local name, f = one[1], one[2]
    if f then
      local n, bytes = blooms.size(R, name, f.since)
      local n_before, bytes_before = blooms.size(R, name, f.before)
      out[#out + 1] = {name, n + n_before, bytes + bytes_before, f.for_ms, f.error, f.capacity,
                       blooms.ends_ms(f), f.early}
    end
  end
  table.sort(out, function(a, b) return a[1] < b[1] end)
  return out
end)
