-- The transaction of a call: what it has read, and what it is going to write.
--
-- db(COMMAND, key, ...) takes a Redis command. A command that writes changes the transaction; one
-- that reads sees Redis as it will be once the transaction is written. When the function has
-- returned, register writes the transaction with a few variadic commands. So a function that raises
-- an error has changed nothing, and a reply means that all was written.
--
--   * Every value is read before it is changed. So a read meets a foreign type before anything is
--     written.
--   * A write can then fail only if the caller lacks a right. The writes before it are undone:
--     their old values are known. Additions are written first, and removals undo them, so the
--     rights to the removals are checked before the first write. Writes that cannot be undone come
--     last.
--   * change.try is for a part of a call that may fail alone: a queue, a job, a gate. If it fails,
--     its changes leave the transaction.
--
-- An entry is what the call knows of a key: {key, kind, cells, was, list, is_listed}. cells: field
-- or member -> its value in the transaction, false for none; was: the same for Redis; list: the
-- names of the cells that were changed. A string has the one cell ''. The value of a member is its
-- score, a number, in a set true. Where they matter: size (how many names are in Redis), more (how
-- many more the cells make it), is_empty (nothing is in Redis), is_whole (the cells have all that
-- is in Redis), first (the first two members and their scores), last (the highest score), expire
-- (ms, or false to persist), erased (fields to delete unread: {names, before}, before: an earlier
-- one), and what ordered.lua keeps of a sorted set.
--
-- This file has the entries and how they are read, change.lua how they are changed,
-- commands.lua the commands of db(), commit.lua how the transaction is written.

local txn = module 'txn/txn'
local change, lock_rows = use('txn/change', 'txn/lock_rows')

-- What the files of the transaction share, besides the functions at their ends:
--   entries      key -> entry
--   known_empty  key -> is nothing there in Redis? false: something may be
--   unsaved      the entries that have something to write
--   erasures     entries with fields to delete unread, some more than once
--   gone         keys to delete unread -> small or large
--   commands     writes past the cells, by change.write_together
--   moved        key -> the key whose value it has once these are made
--   caused       queue -> how many jobs that are due now the call adds to it (core/chains.lua)
--   bytes        how many bytes the call has moved, as far as txn.spend was told
--   counts, hints  done after the writes, may fail: counters of R:stats, functions
--   mends        functions to call after writes were undone
--   is_used      may any of these, the locks or the journal hold anything? A plain add uses none
txn.is_used = true

local entries, known_empty -- as in transaction: this file reads them all the time

txn.CHUNK = 2000          -- names in a command: Lua can pass some 8,000 values

-- Begin the transaction of a call.
function txn.begin()
  if txn.is_used then
    entries, known_empty = {}, {}
    txn.entries, txn.known_empty, txn.unsaved, txn.erasures = entries, known_empty, {}, {}
    txn.gone, txn.commands, txn.counts, txn.hints, txn.mends = {}, {}, {}, {}, {}
    txn.moved, txn.caused, txn.bytes = {}, {}, 0
    lock_rows.begin_locks()
    change.begin_journal()
    txn.is_used = false
  end
end

-- A call that may end many jobs counts the bytes that it moves, and leaves the rest to the next
-- call when it has moved so many: a copy of large payloads takes longer than all else that it does.
local CALL_BYTES = 1048576
txn.CALL_BYTES = CALL_BYTES -- of a sync over rows, too

function txn.spend(bytes)
  txn.bytes, txn.is_used = txn.bytes + bytes, true
end

function txn.is_spent()
  return txn.bytes >= CALL_BYTES
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
    txn.is_used = true
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
  fail('ELATER_TYPE', 'key ' .. one_line(key) .. ' is a ' .. is .. ', laterd needs a ' .. kind ..
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

txn.read_entry = read

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
  return e.size + (e.more or 0)
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
  for from = 1, #missing, txn.CHUNK do
    local to = math.min(from + txn.CHUNK - 1, #missing)
    local values = read(e, MANY[e.kind], unpack(missing, from, to))
    for i = from, to do
      learn(e, missing[i], values[i - from + 1])
    end
  end
end

-- Has the call changed nothing of this key? Fields to delete unread do not count.
local function is_plain(e)
  return #e.list == 0
end

-- If nothing is under any of these keys, the transaction learns it by one read.
function txn.learn_absent(keys)
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
  txn.is_used = true
end

-- The same for keys that most namespaces do not have. names: relative to R; this table also keeps
-- their full keys.
function txn.know_keys(R, names)
  if names.root ~= R then
    names.root, names.keys = R, {}
    for i = 1, #names do
      names.keys[i] = R .. ':' .. names[i]
    end
  end
  txn.learn_absent(names.keys)
end

local SMALL_HASH = 16

-- Read a hash for these names: with HGETALL if it has less than a fourth as many fields, else by
-- the names. Up to SMALL_HASH names its size is not asked for. -> its cells, name -> value, false
-- or nil for none; they follow what the call changes
function txn.know(key, names)
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

-- -> the highest score that a sorted set has in Redis, nil for none.
function txn.last_score(key)
  local e = entry_of(key, 'zset')
  if e.last == nil then
    e.last = not e.is_empty and tonumber(read(e, 'ZRANGE', -1, -1, 'WITHSCORES')[2]) or false
  end
  return e.last or nil
end

-- -> how many members the call has removed from a sorted set. It must not have added any.
function txn.gone_from(key)
  local e = entry_of(key, 'zset')
  return 0 - (e.more or 0) -- not -0, which prints as such
end

-- Does the call know that there is nothing under this key?
function txn.is_known_empty(key)
  local e = entries[key]
  if not e then
    return known_empty[key] == true
  end
  return e.is_empty == true and is_plain(e)
end

-- A read past the transaction, for what the call has not changed. Fails with ELATER_TYPE for a key
-- of a foreign type.
function txn.ask(key, kind, command, ...)
  return read(entry_of(key, kind), command, ...)
end

-- HMGET of many fields, few of which exist: only these enter the transaction.
function txn.read_fields(key, names)
  if txn.is_changed(key) then
    return db('HMGET', key, unpack(names))
  end
  local e = entry_of(key, 'hash')
  local values = read(e, 'HMGET', unpack(names))
  for i, name in ipairs(names) do
    if values[i] and e.cells[name] == nil then
      learn(e, name, values[i])
    end
  end
  return values
end

-- Has the call changed anything under this key?
function txn.is_changed(key)
  return entries[key] ~= nil and not is_plain(entries[key])
end

-- -> the cells of a key: name -> value, false for none, nil if it was not read.
function txn.cells_of(key, kind)
  return own_cells(entry_of(key, kind))
end

-- Fail with ELATER_TYPE if one of these keys has a foreign type, before anything is decided. list:
-- {name relative to R, kind}*
function txn.need_types(R, list)
  for i = 1, #list, 2 do
    local e = entry_of(R .. ':' .. list[i], list[i + 1])
    if not e.is_read then
      size_of(e)
    end
  end
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

txn.NONE, txn.own_cells, txn.entry_of, txn.foreign = NONE, own_cells, entry_of, foreign
txn.read, txn.size_of, txn.cell, txn.learn_all = read, size_of, cell, learn_all
txn.is_plain, txn.changed_cells = is_plain, changed_cells
