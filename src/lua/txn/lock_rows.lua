-- Locks in the transaction of a call (txn.lua): hashes that are read and written whole.
--
-- A row: {holder, until ms, fence, depth, since ms, token}, texts as Redis has them, token false
-- for none. A row is never changed: a change of the lock puts another row. The key expires with its
-- lease.

local lock_rows = module 'txn/lock_rows'
local change, txn = use('txn/change', 'txn/txn')
local FIELDS = {'holder', 'until', 'fence', 'depth', 'since', 'token'}
local CHUNK = 2000          -- keys in one DEL

local locks, changed = {}, {} -- key -> lock {key, kind, row, was}; the changed ones

-- Forget the locks of the call before.
function lock_rows.begin_locks()
  if next(locks) then
    locks, changed = {}, {}
  end
end

local function lock_of(key)
  local l = locks[key]
  if not l then
    txn.is_used = true
    l = {key = key, kind = 'hash', row = false, was = false, is_changed = false}
    local row = not txn.is_known_empty(key) and txn.read_entry(l, 'HMGET', unpack(FIELDS))
    row = row and row[1] and row
    l.row, l.was, locks[key] = row, row, l
  end
  return l
end

-- The row of a lock, false for none.
function lock_rows.lock_row(key)
  return lock_of(key).row
end

-- Put another row; false: the lock is free.
function lock_rows.put_lock(key, row)
  local l = lock_of(key)
  change.assign(l, 'row', row)
  if not l.is_changed then
    l.is_changed = true
    changed[#changed + 1] = l
  end
end

-- Write a row to Redis. was: the row that is there, false for none. -> the reply of Redis
local function put(key, row, was)
  local args = {'holder', row[1], 'until', row[2], 'fence', row[3], 'depth', row[4], 'since',
                row[5]}
  args[11], args[12] = row[6] and 'token' or nil, row[6] or nil
  local reply = redis.pcall('HSET', key, unpack(args))
  if type(reply) == 'table' then
    return reply
  end
  if was and was[6] and not row[6] then
    redis.pcall('HDEL', key, 'token')
  end
  if row[2] ~= '0' then
    return redis.pcall('PEXPIREAT', key, row[2])
  elseif was and was[2] ~= '0' then
    return redis.pcall('PERSIST', key)
  end
  return reply
end

-- Undo the writes of these locks.
local function take_back(list)
  for _, l in ipairs(list) do
    if l.was then
      put(l.key, l.was, l.row)
    else
      redis.pcall('DEL', l.key)
    end
  end
end

local function write_taken(step)
  local l = step.locks[1]
  local reply = put(l.key, l.row, l.was)
  if type(reply) == 'table' then
    take_back(step.locks) -- its first command may have been written
  end
  return reply
end

local function write_freed(step)
  return redis.pcall('DEL', unpack(step.names))
end

-- -> one write that deletes the keys of the locks from..to of the list, which are free.
local function free_step(list, from, to)
  local step = {locks = {unpack(list, from, to)}, names = {}, write = write_freed, undo = take_back,
                command = 'DEL'}
  for i, l in ipairs(step.locks) do
    step.names[i] = l.key
  end
  return step
end

-- Append the writes of the changed locks to the lists that txn.lua makes.
function lock_rows.plan_locks(adds, removals)
  local freed = {}
  for _, l in ipairs(changed) do
    if l.row and l.row ~= l.was then
      adds[#adds + 1] = {locks = {l}, write = write_taken, undo = take_back, command = 'HSET'}
    elseif l.row ~= l.was then
      freed[#freed + 1] = l
    end
  end
  for from = 1, #freed, CHUNK do
    removals[#removals + 1] = free_step(freed, from, math.min(from + CHUNK - 1, #freed))
  end
end
