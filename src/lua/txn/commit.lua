-- How the transaction of a call is written (txn.lua), and what follows the writes.

local commit = module 'txn/commit'
local queue_names, rights, series, change, lock_rows, txn = use(
  'core/queue_names', 'core/rights', 'series/series', 'txn/change', 'txn/lock_rows', 'txn/txn')
local foreign, remember, CHUNK = txn.foreign, change.remember, txn.CHUNK

local MOMENT_MS = 1
local FINAL_CHUNK = 7000    -- names in a command that cannot be undone: more than a call removes

-- ---- what follows the writes, and may fail

-- Add to a counter of later_stats, and to the series of the queue (series/series.lua). The series
-- alone count added and failed.
function commit.count(R, what, queue, n)
  commit.count_as(R, what .. ':' .. queue, n)
end

-- The same for a counter of this name.
function commit.count_as(R, name, n)
  txn.is_used = true
  remember(txn.counts, name)
  txn.counts[name] = (txn.counts[name] or 0) + n
  txn.counts.R = R
end

-- Call fn(...) after the writes. Its errors are ignored.
function commit.hint(fn, ...)
  txn.is_used = true
  txn.hints[#txn.hints + 1] = {fn, ...}
end

-- Call fn(key) after the writes, or after they were undone; once for each key.
function commit.after_writes(fn, key)
  for _, mend in ipairs(txn.mends) do
    if mend[1] == fn and mend[2] == key then
      return
    end
  end
  commit.hint(fn, key)
  txn.mends[#txn.mends + 1] = {fn, key}
end

local function publish(channel, text)
  redis.call('PUBLISH', channel, text)
end

-- A queue may be due earlier: wake its workers. text: its name
function commit.wake(R, text)
  for _, hint in ipairs(txn.hints) do
    if hint[1] == publish and hint[3] == text then
      return
    end
  end
  commit.hint(publish, R .. ':wake', text)
end

-- Publish a text after the writes.
function commit.say(channel, text)
  commit.hint(publish, channel, text)
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
      args[n + 1], args[n + 2], n = score_text_of(values[name]), name, n + 2
    elseif e.kind == 'set' then
      args[n + 1], n = name, n + 1
    else
      args = e.expire and {values[''], 'PXAT', int(e.expire)} or {values[''], 'KEEPTTL'}
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
local function take_back(entry)
  local e, lost, kept = entry.e, {}, {}
  if entry.undo then
    entry.undo(entry.locks)
  elseif not entry.is_final then
    for _, name in ipairs(entry.names) do
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

-- -> all names that change.erase was given for one key: they go in one command, since it cannot be
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
local function plan(R)
  local adds, removals, finals, is_erased = {}, {}, {}, {}
  local has_names = queue_names.name_sources(R)
  for _, e in ipairs(txn.unsaved) do
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
    if has_names[e.key] then
      queue_names.note_names(R, e, set, unset)
    end
  end
  lock_rows.plan_locks(adds, removals)
  for _, e in ipairs(txn.erasures) do
    if e.erased and not is_erased[e] then
      push(finals, e, all_names(e.erased), true)
      is_erased[e] = true
    end
  end
  return adds, removals, finals
end

-- Check the reply to a write. If it failed, undo all writes before it and raise an error.
local function check(entry, reply, done)
  if type(reply) ~= 'table' or not reply.err then
    done[#done + 1] = entry
    return
  end
  for i = #done, 1, -1 do
    take_back(done[i])
  end
  for _, mend in ipairs(txn.mends) do
    pcall(unpack(mend))
  end
  if entry.e and string.find(reply.err, '^WRONGTYPE') then
    foreign(entry.e.key, entry.e.kind, reply)
  end
  error(reply, 0)
end

-- Fail with NOPERM if the caller lacks a right to remove that this call needs: what was added could
-- not be undone without it, either.
local function need_rights(removals, finals)
  local asked = {}
  local function ask(command, key, first)
    local args = {command, key, command ~= 'DEL' and (first or 'm') or nil}
    if not asked[command] and not rights.may(unpack(args)) then
      fail('NOPERM', 'this user may not ' .. command .. ' ' .. quote(key))
    end
    asked[command] = true
  end
  for _, list in ipairs({removals, finals}) do
    for _, entry in ipairs(list) do
      ask(entry.command or REMOVE[entry.e.kind], entry.e and entry.e.key or entry.names[1])
    end
  end
  for _, entry in ipairs(txn.commands) do
    if entry.is_removal then
      ask(entry.command, entry.key, entry.args[1])
    end
  end
  local gone = next(txn.gone)
  if gone then
    ask('PEXPIRE', gone, MOMENT_MS)
  end
end

local function run(list, is_removal, done)
  for _, entry in ipairs(list) do
    local reply = entry.write and entry.write(entry) or write(entry.e, is_removal, entry.names)
    check(entry, reply, done)
  end
end

-- Remove the expiry of a key.
local function persist(key, done)
  local old_ms = redis.call('PEXPIRETIME', key)
  check({undo = function()
    if old_ms > 0 then
      redis.pcall('PEXPIREAT', key, int(old_ms))
    end
  end}, redis.pcall('PERSIST', key), done)
end

-- Give a key a moment to live; follow() deletes it.
local function let_expire(key, done)
  local entry = {undo = function() redis.pcall('PERSIST', key) end}
  check(entry, redis.pcall('PEXPIRE', key, MOMENT_MS), done)
end

local function run_commands(is_removal, done)
  for _, entry in ipairs(txn.commands) do
    if entry.is_removal == is_removal then
      check(entry, redis.pcall(entry.command, entry.key, unpack(entry.args)), done)
    end
  end
end

-- Add n to a counter. A new counter needs the name of its queue in R:names, with which tidying
-- removes it: it may have dropped both while the last job of the queue ran.
function commit.write_count(R, name, n)
  local what, queue = string.match(name, '^(%a+):(.+)$')
  local column = series.SERIES_COLUMN[what]
  if column then
    series.count_in_series(R, queue, column, n)
  end
  if what ~= 'added' and what ~= 'failed' and
     redis.pcall('HINCRBY', R .. ':stats', name, n) == n and column and
     redis.pcall('SADD', R .. ':names', queue) == 1 then
    queue_names.index_queues(R, {queue})
  end
end

-- Do what follows the writes: expiries, keys that have a moment to live, counters, messages. A
-- failure here does no harm.
local function follow()
  for _, e in ipairs(txn.unsaved) do
    if e.expire and e.kind ~= 'string' or e.expire and e.cells[''] == e.was[''] then
      redis.pcall('PEXPIREAT', e.key, int(e.expire))
    end
  end
  for key, size in pairs(txn.gone) do
    if size == 'large' then
      redis.pcall('UNLINK', key)
    else
      redis.pcall('DEL', key)
    end
  end
  for name, n in pairs(txn.counts) do
    if name ~= 'R' then
      commit.write_count(txn.counts.R, name, n)
    end
  end
  for _, hint in ipairs(txn.hints) do
    pcall(unpack(hint))
  end
end

-- Write the transaction of the call.
function commit.commit(R)
  if not txn.is_used then
    return
  end
  local done = {}
  local adds, removals, finals = plan(R)
  need_rights(removals, finals)
  -- A key must not expire with an earlier lease once it has a holder without one.
  for _, e in ipairs(txn.unsaved) do
    if e.expire == false then
      persist(e.key, done)
    end
  end
  run(adds, false, done)
  run_commands(false, done)
  run(removals, true, done)
  run_commands(true, done)
  for key in pairs(txn.gone) do
    let_expire(key, done)
  end
  run(finals, true, done)
  follow()
end
