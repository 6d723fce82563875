-- The commands that db() takes: what they reply, and what they change in the transaction (txn.lua).

local change, ordered, txn = use('txn/change', 'txn/ordered', 'txn/txn')
local entry_of, read, cell, size_of = txn.entry_of, txn.read, txn.cell, txn.size_of
local learn_all, is_plain, changed_cells = txn.learn_all, txn.is_plain, txn.changed_cells
local remember, mark_unsaved, put = change.remember, change.mark_unsaved, change.put
local replace, remove = change.replace, change.remove

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
  put(e, name, int(n))
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

-- Keys that the transaction has changed are known; the others are asked for with one EXISTS.
function COMMANDS.EXISTS(...)
  local n, rest = 0, {}
  for _, key in ipairs({...}) do
    local e = txn.entries[key]
    if not txn.is_known_empty(key) then
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

-- BYLEX LIMIT 0 count, of a set whose scores are all 0
local function range_by_name(e, low, high, count)
  if is_plain(e) then
    return e.is_empty and {} or read(e, 'ZRANGE', low, high, 'BYLEX', 'LIMIT', 0, count)
  end
  return ordered.names(e, low, high, count)
end

-- Ranks from the end (from: -1) only for a key that the call has not changed.
function COMMANDS.ZRANGE(key, from, to, has_scores, ...)
  local e = entry_of(key, 'zset')
  if has_scores == 'BYLEX' then
    return range_by_name(e, from, to, (select(3, ...)))
  elseif e.is_empty and is_plain(e) then
    return {}
  elseif is_plain(e) and from == 0 and (to == 0 or to == 1) then
    return told_as(first(e, to + 1), has_scores)
  elseif is_plain(e) then
    return has_scores and read(e, 'ZRANGE', from, to, 'WITHSCORES') or read(e, 'ZRANGE', from, to)
  elseif from == -1 then
    error('ZRANGE from the end of a key that the call has changed', 0)
  end
  return told_as(ordered.rows(e, '-inf', '+inf', from, to >= 0 and to - from + 1 or nil),
                 has_scores)
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
  return told_as(ordered.rows(e, low, high, skip, count), has_scores)
end

function COMMANDS.ZCOUNT(key, low, high)
  local e = entry_of(key, 'zset')
  if is_plain(e) then
    return e.is_empty and 0 or read(e, 'ZCOUNT', low, high)
  end
  return ordered.count_rows(e, low, high)
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
  if txn.gone[key] then
    remember(txn.gone, key)
    txn.gone[key] = nil
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
  local e = txn.entries[key]
  remember(e, 'expire')
  e.expire = ms
  mark_unsaved(e)
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

-- A command that the transaction does not know goes to Redis as it is. If the call has changed the
-- key, it is an error.
function db(command, key, ...)
  local fn = COMMANDS[command]
  if txn.known_empty[key] and not txn.entries[key] and NOTHING[command] ~= nil then
    local reply = NOTHING[command]
    return reply == LIST and {} or reply
  elseif fn then
    return fn(key, ...)
  end
  local e = txn.entries[key]
  if e and not is_plain(e) then
    error(command .. ' of a key that the call has changed', 0)
  end
  return redis.call(command, key, ...)
end
