-- The writes of a sync over rows: planned in one order, checked for rights, made, and undone if one
-- fails. Additions come first, since removals undo them; the records of ended jobs, which were not
-- read, are deleted last.
--
-- A write is as redis.call takes it, {command, key, ...}. UNDO has what takes it back. For that a
-- removal has values, those of what is removed: a list, or one text for all; an addition has names
-- and values of what it replaces, nil for nothing.

local writes = module 'rows/writes'
local rights, row_sync, row_tenants, series, commit = use(
  'core/rights', 'rows/sync', 'rows/tenants', 'series/series', 'txn/commit')
local LOCK_FIELDS = {'holder', 'until', 'fence', 'depth', 'since'}
writes.LOCK_FIELDS = LOCK_FIELDS

-- Write names[first], names[first + 1], ... with their values again.
local function put_back(command, key, names, first, values)
  for i = first, #names do
    local value = type(values) == 'table' and values[i - first + 1] or values
    if command == 'ZADD' then
      redis.pcall(command, key, value, names[i])
    else
      redis.pcall(command, key, names[i], value)
    end
  end
end

-- Take an addition back, of which the first name stands at write[first].
local function take_back(remover, write, first)
  local names = {}
  for i = first, #write, 2 do
    names[#names + 1] = write[i]
  end
  redis.pcall(remover, write[2], unpack(names))
  if write.names then
    put_back(write[1], write[2], write.names, 1, write.values)
  end
end

local UNDO = {}

function UNDO.ZADD(write)
  take_back('ZREM', write, 4)
end

function UNDO.HSET(write)
  take_back('HDEL', write, 3)
end

function UNDO.ZREM(write)
  put_back('ZADD', write[2], write, 3, write.values)
end

function UNDO.HDEL(write)
  put_back('HSET', write[2], write, 3, write.values)
end

function UNDO.SET(write)
  if write.values then
    redis.pcall('SET', write[2], write.values, 'KEEPTTL')
  else
    redis.pcall('DEL', write[2])
  end
end

-- Locks, or unique keys.
function UNDO.DEL(write)
  for i = 1, #write - 1 do
    if write.owners then
      redis.pcall('SET', write[i + 1], write.owners[i])
    else
      put_back('HSET', write[i + 1], LOCK_FIELDS, 1, write.rows[i])
    end
  end
end

-- ---- planning

-- Plan an addition, {names, values, command, key, ...}.
function writes.add_write(s, write)
  s.adds[#s.adds + 1] = write
end

-- Plan a removal, {values, command, key, ...}.
function writes.remove_write(s, write)
  s.removals[#s.removals + 1] = write
end

-- The members `ids` leave a set; scores: as values of a removal
function writes.remove_members(s, key, ids, scores)
  writes.remove_write(s, {values = scores, 'ZREM', key, unpack(ids)})
end

-- The fields `ids` leave a hash; values: as those of a removal
function writes.remove_fields(s, key, ids, values)
  writes.remove_write(s, {values = values, 'HDEL', key, unpack(ids)})
end

-- What is there of these fields of a hash. -> {key, ids, values}
function writes.read_there(key, ids)
  local there = {key = key, ids = {}, values = {}}
  for i, value in ipairs(redis.call('HMGET', key, unpack(ids))) do
    if value then
      local n = #there.ids + 1
      there.ids[n], there.values[n] = ids[i], value
    end
  end
  return there
end

-- Plan to remove that.
function writes.remove_there(s, there)
  if there.ids[1] then
    writes.remove_fields(s, there.key, there.ids, there.values)
  end
end

-- These ids are not in the set. The read tells of a foreign type, too.
function writes.need_absent(key, ids)
  for _, score in ipairs(redis.call('ZMSCORE', key, unpack(ids))) do
    if score then
      row_sync.odd()
    end
  end
end

-- These ids, which are not there, come into a set; scores: a list of texts
function writes.add_members(s, key, ids, scores)
  local write = {'ZADD', key}
  for i = 1, #ids do
    write[2 * i + 1], write[2 * i + 2] = scores[i], ids[i]
  end
  writes.add_write(s, write)
end

-- ---- writing

-- Make the writes of both lists. -> how many of each were made, the error of the one behind them
local function write(lists)
  local done, call = {0, 0}, redis.call
  local ok, why = pcall(function()
    for k = 1, 2 do
      local list = lists[k]
      for i = 1, #list do
        call(unpack(list[i]))
        done[k] = i
      end
    end
  end)
  return done, not ok and why or nil
end

local function undo(list, done)
  for i = done, 1, -1 do
    UNDO[list[i][1]](list[i])
  end
end

local function follow_results(s)
  for name, n in pairs(s.counts) do
    commit.write_count(s.R, name, n)
  end
  for _, queue in ipairs(s.woken) do
    redis.pcall('PUBLISH', s.R .. ':wake', queue)
  end
end

local function follow_rare(s)
  if s.fair then
    row_tenants.count_used(s)
  end
  if s.answers then -- there were results
    follow_results(s)
  end
end

-- What follows the writes, and may fail: counters of what ended or failed, and of keys; unique keys
-- that are free later; workers are woken.
local function follow(s)
  for _, group in ipairs(s.q.ends) do
    if group.n > 0 then
      commit.write_count(s.R, 'done:' .. group.queue, group.n)
    end
  end
  for queue, keys in pairs(s.keys or {}) do
    pcall(series.count_keys, s.R, queue, keys)
  end
  for key, until_ms in pairs(s.expiries or {}) do
    redis.pcall('PEXPIREAT', key, int(until_ms))
  end
  if s.is_rare then
    follow_rare(s)
  end
end

function writes.write_all(s)
  local adds, removals = s.adds, s.removals
  local lists = {adds, removals}
  removals[#removals + 1] = s.last
  if not rights.may_all(lists) then
    row_sync.odd() -- the transaction tells which right is missing
  end
  local done, why = write(lists)
  if why then
    undo(removals, done[2])
    undo(adds, done[1])
    error({failed = why}, 0)
  end
  follow(s)
end
