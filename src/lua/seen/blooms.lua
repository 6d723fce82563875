-- The Bloom filters of public/seen.lua: each remembers keys in two generations.
--
--   R:seen                 HASH    name -> `for_ms error capacity bits hashes since before early`
--   R:seen:<name>:<since>  STRING  a generation: how many keys it has, u32, then its bits
--
-- A generation takes keys for D (for_ms), then the next one begins. The last two are asked. So a
-- key is remembered for D after it was told last, and for 2 D at most. A generation that has
-- `capacity` keys ends early: then the filter remembers for less than D, and its error holds.
-- since, before: when the last generation and the one before it began, us; 0: there is none. They
-- name the strings, so no two are the same. early: how many generations ended early, since the
-- filter was made.
--
-- Either generation may be wrong about a key, so each is laid out for half the error. bits and
-- hashes are kept, because another server could compute them with another last digit.
--
-- The places of a key come from three numbers of its SHA-1. Kirsch and Mitzenmacher (Less Hashing,
-- Same Performance, 2006) show that two numbers do as well as one for each place. In a small filter
-- two keys could share both; the third number makes that unlikely (Dillinger and Manolios, Bloom
-- Filters in Probabilistic Verification, 2004: triple hashing).

local blooms = module 'seen/blooms'
local clock, change, commit = use('core/clock', 'txn/change', 'txn/commit')
local LN2 = 0.6931471805599453
local COUNT_BITS = 32
local BITS_MIN, BITS_MAX = 8192, 268435456 -- of a generation: 1 KiB, 32 MiB
local HASHES_MAX = 31
local NAMES_MAX = 1000
local MOMENT_MS = '1'
local FIRST = 4             -- bits of a key that are read first

blooms.SEEN_LEAST, blooms.SEEN_MOST = 1e-9, 0.1 -- error

-- Entries that were read lately: each call of a filter reads the same text until its next turn.
local ENTRIES, entries, n_entries = 64, {}, 0

-- A new filter. error: as text, checked. Fails with ELATER_OPTION if it needs too much memory.
function blooms.new(for_ms, error_text, capacity, now_us)
  local ln = math.log(2 / tonumber(error_text))
  local bits_each = ln / (LN2 * LN2)
  local bits = math.max(math.ceil(capacity * bits_each), BITS_MIN)
  if bits > BITS_MAX then
    fail('ELATER_OPTION', 'capacity ' .. int(capacity) .. ' is too large at error ' .. error_text ..
         ': at most ' .. int(math.floor(BITS_MAX / bits_each)) ..
         ' keys fit into the 64 MiB of a filter')
  end
  return {for_ms = for_ms, error = error_text, capacity = capacity, bits = bits,
          hashes = math.floor(ln / LN2 + 0.5), since = now_us, before = 0, early = 0,
          is_changed = true}
end

local function parse(text)
  local for_ms, error_text, capacity, bits, hashes, since, before, early =
    string.match(text, '^(%d+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  local f = {for_ms = whole(for_ms), error = error_text, capacity = whole(capacity),
             bits = whole(bits), hashes = whole(hashes), since = whole(since),
             before = whole(before), early = whole(early)}
  if not f.for_ms or not f.capacity or not f.bits or not f.hashes or not f.since or not f.before or
     not f.early or f.for_ms < 1 or f.for_ms > LATEST or f.capacity < 1 or f.since > CLOCK_MAX or
     f.bits < BITS_MIN or f.bits > BITS_MAX or f.hashes < 1 or f.hashes > HASHES_MAX then
    return nil
  end
  return f
end

-- Read past the transaction, which would cost as much as all that most calls do.
local function read(R, key, kind, command, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) == 'table' and reply.err then
    need_kinds(R, string.sub(key, #R + 2), kind)
    error(reply, 0)
  end
  return reply
end

-- An entry of R:seen -> the filter as it was written; nil for false and for garbage. Do not change
-- it.
function blooms.parse(text)
  if not text then
    return nil
  end
  local f = entries[text]
  if not f then
    f = parse(text)
    if n_entries == ENTRIES then
      entries, n_entries = {}, 0
    end
    entries[text], n_entries = f, n_entries + (f and 1 or 0)
  end
  return f
end

-- The same of the filter with this name.
function blooms.read(R, name)
  return blooms.parse(read(R, R .. ':seen', 'hash', 'HGET', name))
end

local function text_of(f)
  return int(f.for_ms) .. ' ' .. f.error .. ' ' .. int(f.capacity) .. ' ' .. int(f.bits) .. ' ' ..
         int(f.hashes) .. ' ' .. int(f.since) .. ' ' .. int(f.before) .. ' ' .. int(f.early)
end

-- The filter with a new generation. gone: the one that it forgets, 0 for none; is_changed: it
-- differs from its entry.
local function turned(f, since, early)
  return {for_ms = f.for_ms, error = f.error, capacity = f.capacity, bits = f.bits,
          hashes = f.hashes, since = since, before = f.since, early = f.early + early,
          gone = f.before, is_changed = true}
end

-- -> the filter as it is now; nil if it has forgotten all. After its clock was set back by more
-- than D it begins a generation, else it would not forget for a long time.
function blooms.at(f, now_us)
  local lasts_us = f and f.for_ms * 1000
  if not f or now_us >= f.since + 2 * lasts_us then
    return nil
  elseif f.since > now_us + lasts_us then
    return turned(f, now_us, 0)
  end
  return now_us >= f.since + lasts_us and turned(f, f.since + lasts_us, 0) or f
end

-- -> the filter with a new generation, since the last one is full
function blooms.full(f, now_us)
  return turned(f, math.max(now_us, f.since + 1), 1)
end

function blooms.key(R, name, since)
  return R .. ':seen:' .. name .. ':' .. int(since)
end

-- When a generation is forgotten, ms.
local function ends_ms(f, since)
  return math.floor(since / 1000) + 2 * f.for_ms + 1
end

-- When all that the filter has is forgotten if no key comes, ms.
function blooms.ends_ms(f)
  return ends_ms(f, f.since)
end

-- -> where the bits of a key are in each generation, as text
function blooms.places(f, name, key)
  local hex, bits, places = redis.sha1hex(name .. ' ' .. key), f.bits, {}
  local x = tonumber(string.sub(hex, 1, 12), 16) % bits
  local y = tonumber(string.sub(hex, 13, 24), 16) % bits
  local z = tonumber(string.sub(hex, 25, 36), 16) % bits
  for i = 1, f.hashes do
    places[i] = int(COUNT_BITS + x)
    x, y = (x + y) % bits, (y + z) % bits
  end
  return places
end

-- The arguments of a BITFIELD that reads the number of keys and the places from..to.
local function reads_of(places, from, to)
  local args, n = {'GET', 'u32', '0'}, 3
  for i = from, to do
    args[n + 1], args[n + 2], args[n + 3] = 'GET', 'u1', places[i]
    n = n + 3
  end
  return args
end

-- -> whether all these bits are set; how many keys the generation has
local function ask(R, key, reads)
  local reply = read(R, key, 'string', 'BITFIELD', unpack(reads))
  for i = 2, #reply do
    if reply[i] == 0 then
      return false, reply[1]
    end
  end
  return true, reply[1]
end

-- -> whether this generation has a key with these places; how many keys it has. A few bits tell of
-- most keys that it does not have them.
function blooms.ask(R, name, since, places)
  local key = blooms.key(R, name, since)
  places.first = places.first or reads_of(places, 1, math.min(FIRST, #places))
  local has_all, n = ask(R, key, places.first)
  if not has_all or #places <= FIRST then
    return has_all, n
  end
  places.others = places.others or reads_of(places, FIRST + 1, #places)
  return ask(R, key, places.others)
end

-- The last generation is empty: take the memory for all its bits at once, and have it expire.
-- BITFIELD extends a string for INCRBY 0 as well, and changes no bit.
local function begin(f, key, args)
  args[#args + 1], args[#args + 2], args[#args + 3], args[#args + 4] = 'INCRBY', 'u1',
    int(COUNT_BITS + f.bits - 1), '0'
  local is_there = db('EXISTS', key) == 1
  change.write_together('BITFIELD', key, args, function()
    if not is_there then
      redis.pcall('DEL', key)
    end
  end)
  change.write_together('PEXPIREAT', key, {int(ends_ms(f, f.since))}, function() end)
end

-- Put a key with these places into the last generation, which has n keys. Where it goes on, this is
-- the only write of the call and needs no transaction: nothing has to take it back.
function blooms.add(R, name, f, places, n)
  local key, args, at = blooms.key(R, name, f.since), {'SET', 'u32', '0', int(n + 1)}, 4
  for i = 1, #places do
    args[at + 1], args[at + 2], args[at + 3], args[at + 4] = 'SET', 'u1', places[i], '1'
    at = at + 4
  end
  if n == 0 then
    begin(f, key, args)
  else
    redis.call('BITFIELD', key, unpack(args))
  end
end

-- -> {name, filter as it is now, nil if it has forgotten all}*
function blooms.all(R, now_us)
  local known_names, out, cursor = {}, {}, '0'
  repeat
    local page = read(R, R .. ':seen', 'hash', 'HSCAN', cursor, 'COUNT', NAMES_MAX)
    for i = 1, #page[2], 2 do
      local name = page[2][i]
      if not known_names[name] then
        known_names[name] = true
        out[#out + 1] = {name, blooms.at(blooms.parse(page[2][i + 1]), now_us)}
      end
    end
    cursor = page[1]
  until cursor == '0'
  return out
end

-- Remove the filters that have forgotten all. -> whether there is room for one more
local function make_room(R, now_us)
  local key = R .. ':seen'
  if db('HLEN', key) < NAMES_MAX then
    return true
  end
  local old = {}
  for _, one in ipairs(blooms.all(R, now_us)) do
    old[#old + 1] = not one[2] and one[1] or nil
  end
  if not old[1] then
    return false
  end
  db('HDEL', key, unpack(old))
  return true
end

local function unlink(key)
  redis.call('UNLINK', key)
end

-- Drop a generation; 0: there is none. As change.drop_key does, but if that is taken back, the
-- string expires when it would have.
local function drop(R, name, f, since)
  if since ~= 0 then
    local key = blooms.key(R, name, since)
    need_kinds(R, string.sub(key, #R + 2), 'string')
    change.write_together('PEXPIRE', key, {MOMENT_MS}, function()
      redis.pcall('PEXPIREAT', key, int(ends_ms(f, since)))
    end)
    commit.hint(unlink, key)
  end
end

-- Write the entry of a filter that is new or has turned, and drop what it forgets. Fails with
-- ELATER_FULL.
function blooms.put(R, name, f, now_us)
  local key = R .. ':seen'
  if not db('HGET', key, name) and not make_room(R, now_us) then
    fail('ELATER_FULL', 'there are ' .. int(NAMES_MAX) .. ' Bloom filters already: ' ..
         'later_seen_del removes one')
  end
  local ends = blooms.ends_ms(f)
  local left_ms = redis.call('PTTL', key)
  db('HSET', key, name, text_of(f))
  if left_ms < ends - clock.ms(now_us) then
    db('PEXPIREAT', key, ends)
  end
  drop(R, name, f, f.gone or 0)
end

-- -> how many keys a generation has, how many bytes
function blooms.size(R, name, since)
  if since == 0 then
    return 0, 0
  end
  local key = blooms.key(R, name, since)
  local a, b, c, d = string.byte(read(R, key, 'string', 'GETRANGE', '0', '3'), 1, 4)
  local n = d and ((a * 256 + b) * 256 + c) * 256 + d or 0
  return n, redis.call('STRLEN', key)
end

-- Remove a filter. -> whether it was there
function blooms.drop(R, name)
  local f = blooms.read(R, name)
  for _, since in ipairs(f and {f.since, f.before} or {}) do
    drop(R, name, f, since)
  end
  return db('HDEL', R .. ':seen', name) == 1
end
