-- The draft of a call: what it has read, and what it is going to write.
--
-- db(COMMAND, key, ...) takes a Redis command. A command that writes changes the draft; one that
-- reads sees Redis as it will be once the draft is written. When the function has returned,
-- L.register writes the draft with a few variadic commands. So a function that raises an error has
-- changed nothing, and a reply means that all was written.
--
--   * Every value is read before it is changed. So a read meets a foreign type before anything is
--     written.
--   * A write can then fail only if the caller lacks a right. The writes before it are undone:
--     their old values are known. Additions are written first, and removals undo them, so the
--     rights to the removals are checked before the first write. Writes that cannot be undone come
--     last.
--   * L.attempt is for a part of a call that may fail alone: a queue, a job, a gate. If it fails,
--     its changes leave the draft.
--
-- An entry is what the call knows of a key: {key, kind, cells, was, list, is_listed}. cells: field
-- or member -> its value in the draft, false for none; was: the same for Redis; list: the names of
-- the cells that were changed. A string has the one cell ''. The value of a member is its score, a
-- number, in a set true. Where they matter: size (how many names are in Redis), more (how many more
-- the cells make it), is_empty (nothing is in Redis), is_whole (the cells have all that is in
-- Redis), cut (how many first members L.cut removes), coming (how many names L.count_coming
-- announced), first (the first two members and their scores), last (the highest score), expire (ms,
-- or false to persist), erased (fields to delete unread: {names, before}, before: an earlier one),
-- and what draft_rows.lua keeps of a sorted set.

local MOMENT_MS = 1
local FINAL_CHUNK = 7000    -- names in a command that cannot be undone: more than a call removes
local CHUNK = 2000          -- names in any other command: Lua can pass some 8,000 values

local entries, touched      -- key -> entry; the entries that have something to write
local erasures              -- entries with fields to delete unread, some more than once
local gone                  -- keys to delete unread
local counts, hints         -- done after the writes, may fail: counters of R:stats, functions
local mends                 -- functions to call after writes were undone
local steps                 -- writes past the cells, by L.write_together
local known_empty           -- key -> is nothing there in Redis? false: something may be
local journal, n_journal, depth -- of attempts: {table, name, old value, is it a cell?}*

local is_used = true

-- Begin the draft of a call.
function L.begin()
  if is_used then
    entries, touched, erasures, gone, counts, hints, mends, steps = {}, {}, {}, {}, {}, {}, {}, {}
    known_empty = {}
    is_used = false
  end
  L.begin_locks()
  journal, n_journal, depth = {}, 0, 0
end

-- Stands for the tables of an entry that it does not need yet: most never do.
local NONE = {}

local function own_cells(e)
  if e.cells == NONE then
    e.cells, e.was = {}, {}
  end
  return e.cells
end

local function entry_of(key, kind)
  local e = entries[key]
  if not e then
    is_used = true
    e = {key = key, kind = kind, cells = NONE, was = NONE, list = NONE, is_listed = NONE,
         is_empty = known_empty[key]}
    entries[key] = e
  elseif not e.kind then
    e.kind = kind
  elseif e.kind ~= kind then
    error('the call uses ' .. key .. ' as a ' .. e.kind .. ' and as a ' .. kind, 0)
  end
  return e
end

-- ---- reading

local function foreign(key, kind, why)
  local is = redis.call('TYPE', key).ok
  if is == 'none' or is == kind then
    error(why, 0)
  end
  L.fail('ELATER_TYPE', 'key ' .. L.one_line(key) .. ' is a ' .. is ..
         ', laterd needs a ' .. kind ..
         ' there: rename or delete it')
end

-- Read from Redis. Fails with ELATER_TYPE for a key of a foreign type.
local function read(e, command, ...)
  local reply = redis.pcall(command, e.key, ...)
  if type(reply) == 'table' and reply.err then
    if string.find(reply.err, '^WRONGTYPE') then
      foreign(e.key, e.kind, reply)
    end
    error(reply, 0)
  end
  e.is_read = true
  return reply
end

L.read_entry = read

local ONE = {hash = 'HGET', zset = 'ZSCORE', set = 'SISMEMBER', string = 'GET'}
local MANY = {hash = 'HMGET', zset = 'ZMSCORE'}
local SIZE = {hash = 'HLEN', zset = 'ZCARD', set = 'SCARD', string = 'STRLEN'}

local function learn(e, name, value)
  if e.kind == 'zset' then
    value = value and tonumber(value)
  elseif e.kind == 'set' then
    value = value == 1
  end
  own_cells(e)[name], e.was[name] = value, value
  return value
end

local function size_of(e)
  if not e.size then
    e.size = e.is_empty and 0 or read(e, SIZE[e.kind])
    e.is_empty = e.size == 0
  end
  return e.size - (e.cut or 0) + (e.more or 0)
end

local function cell(e, name)
  local value = e.cells[name]
  if value ~= nil then
    return value
  elseif e.is_empty or e.is_whole then
    return false
  elseif e.kind == 'string' then
    return learn(e, name, read(e, 'GET'))
  elseif e.kind == 'set' and not e.size then
    -- Most sets are empty, and are asked for many names: their size may save these reads.
    size_of(e)
    return cell(e, name)
  end
  return learn(e, name, read(e, ONE[e.kind], name))
end

-- Read the cells of these names that are not known yet, with one command if there is one.
local function learn_all(e, names)
  local missing = {}
  for i = 1, #names do
    if e.cells[names[i]] == nil then
      missing[#missing + 1] = names[i]
    end
  end
  if #missing < 2 or e.is_empty or e.is_whole or not MANY[e.kind] then
    for i = 1, #missing do
      cell(e, missing[i])
    end
    return
  end
  for from = 1, #missing, CHUNK do
    local to = math.min(from + CHUNK - 1, #missing)
    local values = read(e, MANY[e.kind], unpack(missing, from, to))
    for i = from, to do
      learn(e, missing[i], values[i - from + 1])
    end
  end
end

-- Has the call changed nothing of this key? Fields to delete unread do not count.
local function is_plain(e)
  return #e.list == 0 and not e.cut
end

-- If nothing is under any of these keys, the draft learns it by one read.
function L.learn_absent(keys)
  local unknown, n = {}, 0
  for i = 1, #keys do
    local key = keys[i]
    if not entries[key] and known_empty[key] == nil then
      n = n + 1
      unknown[n] = key
    end
  end
  if n < 2 then
    return -- reading that key tells as much
  end
  local is_empty = redis.call('EXISTS', unpack(unknown)) == 0
  for i = 1, n do
    known_empty[unknown[i]] = is_empty
  end
  is_used = true
end

-- The same for keys that most namespaces do not have. names: relative to R; this table also keeps
-- their full keys.
function L.know_keys(R, names)
  if names.root ~= R then
    names.root, names.keys = R, {}
    for i = 1, #names do
      names.keys[i] = R .. ':' .. names[i]
    end
  end
  L.learn_absent(names.keys)
end

local SMALL_HASH = 16

-- Read a hash for these names: with HGETALL if it has less than a fourth as many fields, else by
-- the names. Up to SMALL_HASH names its size is not asked for. -> its cells, name -> value, false
-- or nil for none; they follow what the call changes
function L.know(key, names)
  local e = entry_of(key, 'hash')
  local n = #names > SMALL_HASH and size_of(e) or not e.is_empty and #names or 0
  if n == 0 or e.is_whole then
    e.is_whole = true
  elseif 4 * n < #names then
    local all = read(e, 'HGETALL')
    for i = 1, #all, 2 do
      if e.cells[all[i]] == nil then
        learn(e, all[i], all[i + 1])
      end
    end
    e.is_whole = true
  else
    learn_all(e, names)
  end
  return own_cells(e)
end

-- Note the value of a field or member that the caller has learned elsewhere. A value that the draft
-- knows already stays.
function L.learn(key, kind, name, value)
  local e = entry_of(key, kind)
  if e.cells[name] == nil then
    own_cells(e)[name], e.was[name] = value or false, value or false
  end
end

-- -> the highest score that a sorted set has in Redis, nil for none.
function L.last_score(key)
  local e = entry_of(key, 'zset')
  if e.last == nil then
    e.last = not e.is_empty and tonumber(read(e, 'ZRANGE', -1, -1, 'WITHSCORES')[2]) or false
  end
  return e.last or nil
end

-- -> how many members the call has removed from a sorted set. It must not have added any.
function L.gone_from(key)
  local e = entry_of(key, 'zset')
  return (e.cut or 0) - (e.more or 0)
end

-- Does the call know that there is nothing under this key?
function L.is_known_empty(key)
  local e = entries[key]
  if not e then
    return known_empty[key] == true
  end
  return e.is_empty == true and is_plain(e)
end

-- -> how many first members the call has cut from a sorted set; nil if it has changed it otherwise.
function L.cut_of(key)
  local e = entries[key]
  if not e then
    return 0
  end
  return #e.list == 0 and (e.cut or 0) or nil
end

-- A read past the draft, for what the call has not changed. Fails with ELATER_TYPE for a key of a
-- foreign type.
function L.ask(key, kind, command, ...)
  return read(entry_of(key, kind), command, ...)
end

-- HMGET of many fields, few of which exist: only these enter the draft.
function L.read_fields(key, names)
  if L.is_changed(key) then
    return db('HMGET', key, unpack(names))
  end
  local values = L.ask(key, 'hash', 'HMGET', unpack(names))
  for i, name in ipairs(names) do
    if values[i] then
      L.learn(key, 'hash', name, values[i])
    end
  end
  return values
end

-- Has the call changed anything under this key?
function L.is_changed(key)
  return entries[key] ~= nil and not is_plain(entries[key])
end

-- -> the cells of a key: name -> value, false for none, nil if it was not read.
function L.cells_of(key, kind)
  return own_cells(entry_of(key, kind))
end

-- Fail with ELATER_TYPE if one of these keys has a foreign type, before anything is decided. list:
-- {name relative to R, kind}*
function L.need_types(R, list)
  for i = 1, #list, 2 do
    local e = entry_of(R .. ':' .. list[i], list[i + 1])
    if not e.is_read then
      size_of(e)
    end
  end
end

-- n more names are going to be written by L.write_together. -> how many there are before
function L.count_coming(key, kind, n)
  local e = entry_of(key, kind)
  size_of(e)
  e.coming = (e.coming or 0) + n
  return e.size + e.coming - n
end

-- -> {name, value}* of the changed cells that have a value.
local function changed_cells(e)
  local out = {}
  for _, name in ipairs(e.list) do
    local value = e.cells[name]
    if value then
      out[#out + 1] = {name, value}
    end
  end
  return out
end

-- ---- changing

local function remember(t, name)
  if depth > 0 then
    local n = n_journal
    journal[n + 1], journal[n + 2], journal[n + 3], journal[n + 4] = t, name, t[name], false
    n_journal = n + 4
  end
end

local function touch(e)
  if not e.is_touched then
    e.is_touched = true
    touched[#touched + 1] = e
  end
end

-- Change a cell whose old value is known.
local function put(e, name, value)
  local cells = own_cells(e)
  local old = cells[name]
  if depth > 0 then
    local n = n_journal
    journal[n + 1], journal[n + 2], journal[n + 3], journal[n + 4] = e, name, old, true
    n_journal = n + 4
  end
  if not old and value then
    e.more = (e.more or 0) + 1
  elseif old and not value then
    e.more = (e.more or 0) - 1
  end
  cells[name] = value
  if e.heap or e.log then
    L.rank(e, name, old, value)
  end
  if e.list == NONE then
    e.list, e.is_listed = {}, {}
  end
  if not e.is_listed[name] then
    e.is_listed[name] = true
    e.list[#e.list + 1] = name
    touch(e)
  end
end

-- Set a field of a table that is not part of the draft. If the attempt fails, it gets its old value
-- back.
function L.assign(t, name, value)
  remember(t, name)
  t[name], is_used = value, true
end

-- Set a cell. -> 1 if it had no value, else 0
local function replace(e, name, value)
  local old = cell(e, name)
  if old ~= value then
    put(e, name, value)
  end
  return old and 0 or 1
end

local function remove(e, names)
  local n = 0
  if e.is_empty and not e.list[1] then
    return 0
  end
  learn_all(e, names)
  for i = 1, #names do
    if e.cells[names[i]] then
      put(e, names[i], false)
      n = n + 1
    end
  end
  return n
end

-- This name is not in Redis, as the caller knows: an id that was just made need not be looked for.
-- The first name of a key is read all the same, to meet a foreign type.
function L.is_new(key, kind, name)
  local e = entry_of(key, kind)
  if kind ~= 'string' and not e.size and not e.is_typed then
    cell(e, name)
    e.is_typed = true
  end
  if e.cells[name] == nil and not e.is_empty then
    own_cells(e)[name], e.was[name] = false, false
  end
end

-- Delete these fields of a hash unread, since they may be large. This cannot be undone, so it is
-- the last write, and a call may do it for one key only.
function L.erase(key, names)
  local e = entry_of(key, 'hash')
  if #names == 0 or size_of(e) == 0 then
    return
  end
  -- Drop what the draft would write to these fields.
  for i = 1, #e.list > 0 and #names or 0 do
    if e.is_listed[names[i]] then
      put(e, names[i], e.was[names[i]])
    end
  end
  remember(e, 'erased')
  e.erased = {names = names, before = e.erased}
  erasures[#erasures + 1] = e
end

-- Delete a key unread. At first it only gets a moment to live, which can be undone.
function L.drop_key(key)
  is_used = true
  remember(gone, key)
  gone[key] = true
end

-- Delete those of keys[from..to] that exist. Mostly none does, and one EXISTS tells; else the two
-- halves are asked.
function L.drop_keys(keys, from, to)
  if from > to or redis.call('EXISTS', unpack(keys, from, to)) == 0 then
    return
  elseif from == to then
    L.drop_key(keys[from])
    return
  end
  local middle = math.floor((from + to) / 2)
  L.drop_keys(keys, from, middle)
  L.drop_keys(keys, middle + 1, to)
end

-- Write many values with one command, past the cells of the draft. The caller knows their old
-- values, or that they are new, and nothing reads them in this call any more. args: what the
-- command has behind the key; undo(): undoes it.
function L.write_together(command, key, args, undo)
  is_used = true
  local is_removal = not string.find(command, 'ADD$') and not string.find(command, 'SET$')
  steps[#steps + 1] = {command = command, key = key, args = args, undo = undo,
                       is_removal = is_removal}
end

-- Remove these members, the first ones of a sorted set. undo(): puts them back. They are removed by
-- name: Redis 7.0 may load the first half of a torn transaction behind the one that was made in its
-- place, and a removal by rank would then take the members behind them.
function L.cut(key, members, undo)
  local e = entry_of(key, 'zset')
  remember(e, 'cut')
  e.cut = (e.cut or 0) + #members
  L.write_together('ZREM', key, members, undo)
end

-- ---- what follows the writes, and may fail

-- Add to a counter of later_stats.
function L.count(R, what, queue, n)
  L.count_as(R, what .. ':' .. queue, n)
end

-- The same for a counter of this name.
function L.count_as(R, name, n)
  is_used = true
  remember(counts, name)
  counts[name] = (counts[name] or 0) + n
  counts.R = R
end

-- Call fn(...) after the writes. Its errors are ignored.
function L.hint(fn, ...)
  is_used = true
  hints[#hints + 1] = {fn, ...}
end

-- Call fn(key) after the writes, or after they were undone; once for each key.
function L.follow_up(fn, key)
  for _, mend in ipairs(mends) do
    if mend[1] == fn and mend[2] == key then
      return
    end
  end
  L.hint(fn, key)
  mends[#mends + 1] = {fn, key}
end

local function publish(channel, text)
  redis.call('PUBLISH', channel, text)
end

-- A queue may be due earlier: wake its workers. text: its name
function L.wake(R, text)
  for _, hint in ipairs(hints) do
    if hint[1] == publish and hint[3] == text then
      return
    end
  end
  L.hint(publish, R .. ':wake', text)
end

-- Publish a text after the writes.
function L.say(channel, text)
  L.hint(publish, channel, text)
end

-- ---- parts that may fail alone

local function roll_back(mark)
  for i = n_journal - 3, mark + 1, -4 do
    local t, name, old = journal[i], journal[i + 1], journal[i + 2]
    if journal[i + 3] then
      local now = t.cells[name]
      t.more = (t.more or 0) + (old and 1 or 0) - (now and 1 or 0)
      t.cells[name] = old
      if t.heap or t.log then
        L.rank(t, name, now, old)
      end
    else
      t[name] = old
    end
  end
  n_journal = mark
end

local function shorten(list, n)
  for i = #list, n + 1, -1 do
    list[i] = nil
  end
end

-- Like pcall, but if fn raises an error, its changes leave the draft.
function L.attempt(fn, ...)
  local mark, n_hints, n_steps, n_events = n_journal, #hints, #steps, L.events and #L.events
  depth = depth + 1
  local ok, a, b = pcall(fn, ...)
  depth = depth - 1
  if not ok then
    roll_back(mark)
    shorten(hints, n_hints)
    shorten(steps, n_steps)
    shorten(L.events or {}, n_events or 0)
  elseif depth == 0 then
    n_journal = 0
  end
  return ok, a, b
end

-- -> what fn(...) returns; nil, and nothing is changed, if it met a key of a foreign type, which is
-- not ours. Other errors are raised.
function L.unless_foreign(fn, ...)
  local ok, reply = L.attempt(fn, ...)
  if not ok and not (type(reply) == 'table' and
                     string.find(reply.elater or '', '^ELATER_TYPE ')) then
    error(reply, 0)
  end
  return ok and reply or nil
end

-- ---- the commands

local COMMANDS = {}

local function each(names, fn)
  for i = 1, #names do
    fn(names[i])
  end
end

function COMMANDS.HGET(key, name)
  return cell(entry_of(key, 'hash'), name)
end

-- -> the values of these names, as HMGET and ZMSCORE reply them.
local function values_of(e, names)
  local out = {}
  if e.is_empty and not e.list[1] then
    for i = 1, #names do
      out[i] = false
    end
    return out
  end
  learn_all(e, names)
  local cells = e.cells
  for i = 1, #names do
    out[i] = cells[names[i]] or false
  end
  return out
end

function COMMANDS.HMGET(key, ...)
  return values_of(entry_of(key, 'hash'), {...})
end

function COMMANDS.HEXISTS(key, name)
  return cell(entry_of(key, 'hash'), name) and 1 or 0
end

function COMMANDS.HSET(key, name, value, ...)
  local e = entry_of(key, 'hash')
  local n, args = replace(e, name, value), ... and {...} or nil
  for i = 1, args and #args or 0, 2 do
    n = n + replace(e, args[i], args[i + 1])
  end
  return n
end

function COMMANDS.HSETNX(key, name, value)
  local e = entry_of(key, 'hash')
  return cell(e, name) and 0 or replace(e, name, value)
end

-- One name, or several.
local function remove_some(e, name, ...)
  if e.is_empty and not e.list[1] then
    return 0
  elseif ... then
    return remove(e, {name, ...})
  elseif cell(e, name) then
    put(e, name, false)
    return 1
  end
  return 0
end

function COMMANDS.HDEL(key, ...)
  return remove_some(entry_of(key, 'hash'), ...)
end

function COMMANDS.HINCRBY(key, name, by)
  local e = entry_of(key, 'hash')
  local n = (tonumber(cell(e, name) or 0) or 0) + by
  put(e, name, L.int(n))
  return n
end

function COMMANDS.HKEYS(key)
  local e, out = entry_of(key, 'hash'), {}
  for _, name in ipairs(e.is_empty and {} or read(e, 'HKEYS')) do
    out[#out + 1] = not e.is_listed[name] and name or nil
  end
  each(changed_cells(e), function(one) out[#out + 1] = one[1] end)
  return out
end

function COMMANDS.HGETALL(key)
  local e, out = entry_of(key, 'hash'), {}
  local raw = e.is_empty and {} or read(e, 'HGETALL')
  for i = 1, #raw, 2 do
    if not e.is_listed[raw[i]] then
      out[#out + 1], out[#out + 2] = raw[i], raw[i + 1]
    end
  end
  each(changed_cells(e), function(one) out[#out + 1], out[#out + 2] = one[1], one[2] end)
  return out
end

function COMMANDS.HLEN(key)
  return size_of(entry_of(key, 'hash'))
end

function COMMANDS.ZCARD(key)
  return size_of(entry_of(key, 'zset'))
end

function COMMANDS.SCARD(key)
  return size_of(entry_of(key, 'set'))
end

-- Keys that the draft has changed are known; the others are asked for with one EXISTS.
function COMMANDS.EXISTS(...)
  local n, rest = 0, {}
  for _, key in ipairs({...}) do
    local e = entries[key]
    if not L.is_known_empty(key) then
      if e and not is_plain(e) then
        n = n + (e.kind == 'string' and (cell(e, '') and 1 or 0) or size_of(e) > 0 and 1 or 0)
      else
        rest[#rest + 1] = key
      end
    end
  end
  return #rest > 0 and n + redis.call('EXISTS', unpack(rest)) or n
end

function COMMANDS.ZSCORE(key, name)
  return cell(entry_of(key, 'zset'), name)
end

function COMMANDS.ZMSCORE(key, ...)
  return values_of(entry_of(key, 'zset'), {...})
end

-- LT: only if lower than the score that is there. -> how many are new
function COMMANDS.ZADD(key, score, name, third)
  local e = entry_of(key, 'zset')
  if score == 'LT' then
    local old = cell(e, third)
    score, name = tonumber(name), third
    return old and old <= score and 0 or replace(e, name, score)
  end
  return replace(e, name, tonumber(score))
end

function COMMANDS.ZREM(key, ...)
  return remove_some(entry_of(key, 'zset'), ...)
end

-- -> the first member, or the first two, with their scores. They are asked for again and again, so
-- they are read once.
local function first(e, n)
  if not e.first then
    e.first = read(e, 'ZRANGE', 0, 1, 'WITHSCORES')
  end
  return n == 2 and e.first or {e.first[1], e.first[2]}
end

local function told_as(rows, has_scores)
  local names = {}
  for i = 1, has_scores and 0 or #rows, 2 do
    names[#names + 1] = rows[i]
  end
  return has_scores and rows or names
end

-- Ranks from the end (from: -1) only for a key that the call has not changed.
function COMMANDS.ZRANGE(key, from, to, has_scores)
  local e = entry_of(key, 'zset')
  if e.is_empty and is_plain(e) then
    return {}
  elseif is_plain(e) and from == 0 and (to == 0 or to == 1) then
    return told_as(first(e, to + 1), has_scores)
  elseif is_plain(e) then
    return has_scores and read(e, 'ZRANGE', from, to, 'WITHSCORES') or read(e, 'ZRANGE', from, to)
  elseif from == -1 then
    error('ZRANGE from the end of a key that the call has changed', 0)
  end
  return told_as(L.rows(e, '-inf', '+inf', from, to >= 0 and to - from + 1 or nil), has_scores)
end

function COMMANDS.ZRANGEBYSCORE(key, low, high, ...)
  local e, has_scores, skip, count = entry_of(key, 'zset'), false, 0, nil
  if e.is_empty and is_plain(e) then
    return {}
  elseif is_plain(e) then
    return read(e, 'ZRANGEBYSCORE', low, high, ...)
  end
  local args, i = {...}, 1
  while args[i] do
    if args[i] == 'LIMIT' then
      skip, count = args[i + 1], args[i + 2]
      i = i + 2
    else
      has_scores = true
    end
    i = i + 1
  end
  return told_as(L.rows(e, low, high, skip, count), has_scores)
end

function COMMANDS.ZCOUNT(key, low, high)
  local e = entry_of(key, 'zset')
  if is_plain(e) then
    return e.is_empty and 0 or read(e, 'ZCOUNT', low, high)
  end
  return L.count_rows(e, low, high)
end

function COMMANDS.SISMEMBER(key, name)
  return cell(entry_of(key, 'set'), name) and 1 or 0
end

function COMMANDS.SADD(key, name)
  return replace(entry_of(key, 'set'), name, true)
end

function COMMANDS.SREM(key, ...)
  return remove_some(entry_of(key, 'set'), ...)
end

-- -> up to n members: those that stay, at random, then those that the call has added.
local function some(e, command, n)
  local out = {}
  for _, name in ipairs(e.is_empty and {} or read(e, command, n)) do
    out[#out + 1] = not e.is_listed[name] and name or nil
  end
  for _, one in ipairs(changed_cells(e)) do
    out[#out + 1] = #out < n and one[1] or nil
  end
  return out
end

function COMMANDS.SRANDMEMBER(key, n)
  return some(entry_of(key, 'set'), 'SRANDMEMBER', n)
end

function COMMANDS.ZRANDMEMBER(key, n)
  return some(entry_of(key, 'zset'), 'ZRANDMEMBER', n)
end

function COMMANDS.GET(key)
  return cell(entry_of(key, 'string'), '')
end

-- expire_ms: when the key expires; nil: it expires as before
function COMMANDS.SET(key, value, expire_ms)
  local e = entry_of(key, 'string')
  replace(e, '', value)
  if gone[key] then
    remember(gone, key)
    gone[key] = nil
  end
  if expire_ms then
    COMMANDS.PEXPIREAT(key, expire_ms)
  end
end

-- Only for a string.
function COMMANDS.DEL(key)
  return remove(entry_of(key, 'string'), {''})
end

-- Only for a key that the call has read or written.
function COMMANDS.PEXPIREAT(key, ms)
  local e = entries[key]
  remember(e, 'expire')
  e.expire = ms
  touch(e)
end

function COMMANDS.PERSIST(key)
  COMMANDS.PEXPIREAT(key, false)
end

-- The replies of these commands for a key under which nothing is; LIST: an empty list, a new one
-- each time.
local LIST = {}
local NOTHING = {
  ZRANGE = LIST, ZRANGEBYSCORE = LIST, HKEYS = LIST, HGETALL = LIST, HGET = false, ZSCORE = false,
  GET = false, ZCARD = 0, HLEN = 0, SCARD = 0, ZCOUNT = 0, SISMEMBER = 0, HEXISTS = 0, HDEL = 0,
  ZREM = 0, SREM = 0,
}

-- A command that the draft does not know goes to Redis as it is. If the call has changed the key,
-- it is an error.
function db(command, key, ...)
  local fn = COMMANDS[command]
  if known_empty[key] and not entries[key] and NOTHING[command] ~= nil then
    local reply = NOTHING[command]
    return reply == LIST and {} or reply
  elseif fn then
    return fn(key, ...)
  end
  local e = entries[key]
  if e and not is_plain(e) then
    error(command .. ' of a key that the call has changed', 0)
  end
  return redis.call(command, key, ...)
end

-- ---- writing

local ADD = {hash = 'HSET', zset = 'ZADD', set = 'SADD', string = 'SET'}
local REMOVE = {hash = 'HDEL', zset = 'ZREM', set = 'SREM', string = 'DEL'}

-- -> the arguments behind the key that make a command give these cells these values.
local function add_args(e, names, values)
  local args, n = {}, 0
  for i = 1, #names do
    local name = names[i]
    if e.kind == 'hash' then
      args[n + 1], args[n + 2], n = name, values[name], n + 2
    elseif e.kind == 'zset' then
      args[n + 1], args[n + 2], n = L.score(values[name]), name, n + 2
    elseif e.kind == 'set' then
      args[n + 1], n = name, n + 1
    else
      args = e.expire and {values[''], 'PXAT', L.int(e.expire)} or {values[''], 'KEEPTTL'}
    end
  end
  return args
end

local function write(e, is_removal, names)
  if is_removal then
    return redis.pcall(REMOVE[e.kind], e.key, unpack(e.kind ~= 'string' and names or {}))
  end
  return redis.pcall(ADD[e.kind], e.key, unpack(add_args(e, names, e.cells)))
end

-- Undo a write: its names get their old values back.
local function take_back(step)
  local e, lost, kept = step.e, {}, {}
  if step.undo then
    step.undo(step.locks)
  elseif not step.is_final then
    for _, name in ipairs(step.names) do
      if e.was[name] then
        kept[#kept + 1] = name
      else
        lost[#lost + 1] = name
      end
    end
    if #kept > 0 then
      redis.pcall(ADD[e.kind], e.key, unpack(add_args(e, kept, e.was)))
    end
    if #lost > 0 then
      redis.pcall(REMOVE[e.kind], e.key, unpack(e.kind ~= 'string' and lost or {}))
    end
  end
end

local function push(list, e, names, is_final)
  local most = is_final and FINAL_CHUNK or CHUNK
  for from = 1, #names, most do
    local to, some_names = math.min(from + most - 1, #names), names
    if from > 1 or to < #names then
      some_names = {unpack(names, from, to)}
    end
    list[#list + 1] = {e = e, names = some_names, is_final = is_final}
  end
end

-- -> all names that L.erase was given for one key: they go in one command, since it cannot be
-- undone.
local function all_names(erased)
  if not erased.before then
    return erased.names
  end
  local all = {}
  while erased do
    for _, name in ipairs(erased.names) do
      all[#all + 1] = name
    end
    erased = erased.before
  end
  return all
end

-- -> three lists of writes: values to add or change, values to remove, fields to delete unread.
local function plan()
  local adds, removals, finals, is_erased = {}, {}, {}, {}
  for _, e in ipairs(touched) do
    local set, unset = {}, {}
    for _, name in ipairs(e.list) do
      local value = e.cells[name]
      if (value or false) ~= (e.was[name] or false) then
        local list = value and set or unset
        list[#list + 1] = name
      end
    end
    push(adds, e, set)
    push(removals, e, unset)
  end
  L.plan_locks(adds, removals)
  for _, e in ipairs(erasures) do
    if e.erased and not is_erased[e] then
      push(finals, e, all_names(e.erased), true)
      is_erased[e] = true
    end
  end
  return adds, removals, finals
end

-- Check the reply to a write. If it failed, undo all writes before it and raise an error.
local function check(step, reply, done)
  if type(reply) ~= 'table' or not reply.err then
    done[#done + 1] = step
    return
  end
  for i = #done, 1, -1 do
    take_back(done[i])
  end
  for _, mend in ipairs(mends) do
    pcall(unpack(mend))
  end
  if step.e and string.find(reply.err, '^WRONGTYPE') then
    foreign(step.e.key, step.e.kind, reply)
  end
  error(reply, 0)
end

-- Fail with NOPERM if the caller lacks a right to remove that this call needs: what was added could
-- not be undone without it, either.
local function need_rights(removals, finals)
  local asked = {}
  local function ask(command, key)
    local args = {command, key, command ~= 'DEL' and 'm' or nil}
    if not asked[command] and not redis.acl_check_cmd(unpack(args)) then
      L.fail('NOPERM', 'this user may not ' .. command .. ' ' .. L.quote(key))
    end
    asked[command] = true
  end
  for _, list in ipairs({removals, finals}) do
    for _, step in ipairs(list) do
      ask(step.command or REMOVE[step.e.kind], step.e and step.e.key or step.names[1])
    end
  end
  for _, step in ipairs(steps) do
    if step.is_removal then
      ask(step.command, step.key)
    end
  end
end

local function run(list, is_removal, done)
  for _, step in ipairs(list) do
    check(step, step.write and step.write(step) or write(step.e, is_removal, step.names), done)
  end
end

-- Remove the expiry of a key.
local function persist(key, done)
  local old_ms = redis.call('PEXPIRETIME', key)
  check({undo = function()
    if old_ms > 0 then
      redis.pcall('PEXPIREAT', key, L.int(old_ms))
    end
  end}, redis.pcall('PERSIST', key), done)
end

-- Give a key a moment to live; follow() deletes it.
local function let_expire(key, done)
  local step = {undo = function() redis.pcall('PERSIST', key) end}
  check(step, redis.pcall('PEXPIRE', key, MOMENT_MS), done)
end

local function run_steps(is_removal, done)
  for _, step in ipairs(steps) do
    if step.is_removal == is_removal then
      check(step, redis.pcall(step.command, step.key, unpack(step.args)), done)
    end
  end
end

-- Add n to a counter. A new counter needs the name of its queue in R:names, with which tidying
-- removes it: it may have dropped both while the last job of the queue ran.
local function write_count(R, name, n)
  if redis.pcall('HINCRBY', R .. ':stats', name, n) == n then
    local queue = string.match(name, '^done:(.+)$') or string.match(name, '^dead:(.+)$') or
                  string.match(name, '^cancelled:(.+)$') or string.match(name, '^runs:(.+)$')
    if queue then
      redis.pcall('SADD', R .. ':names', queue)
    end
  end
end

-- Do what follows the writes: expiries, keys that have a moment to live, counters, messages. A
-- failure here does no harm.
local function follow()
  for _, e in ipairs(touched) do
    if e.expire and e.kind ~= 'string' or e.expire and e.cells[''] == e.was[''] then
      redis.pcall('PEXPIREAT', e.key, L.int(e.expire))
    end
  end
  for key in pairs(gone) do
    redis.pcall('DEL', key)
  end
  for name, n in pairs(counts) do
    if name ~= 'R' then
      write_count(counts.R, name, n)
    end
  end
  for _, hint in ipairs(hints) do
    pcall(unpack(hint))
  end
end

-- Write the draft of the call.
function L.commit()
  if not is_used then
    return
  end
  local done = {}
  local adds, removals, finals = plan()
  need_rights(removals, finals)
  -- A key must not expire with an earlier lease once it has a holder without one.
  for _, e in ipairs(touched) do
    if e.expire == false then
      persist(e.key, done)
    end
  end
  run(adds, false, done)
  run_steps(false, done)
  run(removals, true, done)
  run_steps(true, done)
  for key in pairs(gone) do
    let_expire(key, done)
  end
  run(finals, true, done)
  follow()
end
