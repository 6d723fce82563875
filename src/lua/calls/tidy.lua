-- later_v1_tidy R EPOCH NQ {queue dead_keep_ms}*NQ [NF {field value}*NF]
--   -> [[queue unserved for a minute...], buried, active bulks (left out if there are none)]
--
-- Slow housekeeping of a worker's queues, each every ten seconds or so (a worker of very many names
-- 64 of them four times a second). It removes outcomes whose time is over and dead jobs past their
-- keeping (1,000 a queue, 4,000 a call; of large payloads about 100 a set), forgets batches, bulks
-- and the cursors of schedules that are gone, buries raw members that can never be due, restores
-- lost flags of priorities, drops debts of tenants that do not count any more, removes stale
-- entries of R:await, old notes and empty names, and writes notes of queues with due jobs that no
-- worker serves. Fields: how the worker is, for later_v1_health (room unsent refused skew_ms limits
-- modes defects reload runs timeouts), and what it counted since its last tidy: retried (added to
-- R:stats), series:<queue> (series/series.lua) and keys (series/ranks.lua); others are ignored.
-- Then it writes the series.
-- Cost: O(queues named + workers + due queues).

local tidy = module 'calls/tidy'
local batches, pins, bulks, beats, workers, clock, instant, job_sets, jobs, queue_names, uses,
      passes, gate, waiters, adds, schedules, ranks, series, change, commit, txn = use(
  'batch/batches', 'broadcast/pins', 'bulk/bulks', 'calls/beat', 'calls/register', 'core/clock',
  'core/instant', 'core/job_sets', 'core/jobs', 'core/queue_names', 'core/uses', 'fair/passes',
  'gates/gate', 'gates/waiters', 'public/add', 'schedule/schedules', 'series/ranks',
  'series/series', 'txn/change', 'txn/commit', 'txn/txn')
local TIDY_ROWS = 100
local TIDY_BYTES = 1048576
local TRIM_ROWS = 1000
local TRIM_CALL = 4000
local MANY_NAMES = 1000
local CURSORS = 16           -- of schedules that are gone
local OLD_ROWS, OLD_SPAN = 500, 16384 -- of R:await, which may have 10,000 entries

-- Bury raw members whose scores are behind every possible now. They may be large: about TIDY_BYTES
-- of them are read. -> how many were buried
local function bury_never(R, queue, now_us)
  local key = R .. ':due:' .. queue
  local n = db('ZCOUNT', key, '(' .. int(LATEST), '+inf')
  local rows = n > 0 and job_sets.read_set(key, db('ZCARD', key) - n, math.min(n, TIDY_ROWS),
                                           TIDY_BYTES) or {}
  for i = 1, #rows, 2 do
    db('ZREM', key, rows[i])
    adds.bury_new(R, {queue = queue, priority = 5}, rows[i], 'its score ' .. rows[i + 1] ..
                  ' is not finite or after the year 5000', now_us)
  end
  return #rows / 2
end

-- Has the queue any key that tidying could change? Most of very many queues are empty.
local function has_keys(R, queue)
  local keys = {R .. ':done:' .. queue, R .. ':dead:' .. queue, R .. ':solo:' .. queue,
                R .. ':due:' .. queue, R .. ':pins:' .. queue, R .. ':fair-debts:' .. queue}
  for p = 0, 9 do
    if p ~= 5 then
      keys[#keys + 1] = R .. ':q:' .. queue .. ':' .. int(p)
    end
  end
  return db('EXISTS', unpack(keys)) > 0
end

local function repair_flags(R, queue)
  for p = 0, 9 do
    if p ~= 5 and db('EXISTS', R .. ':q:' .. queue .. ':' .. int(p)) == 1 then
      jobs.flag_set(R, queue, int(p))
    end
  end
  if db('EXISTS', R .. ':solo:' .. queue) == 1 then
    jobs.flag_set(R, queue, 's')
  end
  if db('EXISTS', R .. ':pins:' .. queue) == 1 then
    jobs.flag_set(R, queue, 'p')
  end
end

tidy.NOTE_BYTES = 200          -- of a note's name

local function write_note(R, name, now_ms)
  local key = R .. ':notes'
  if redis.call('HLEN', key) < 100 or redis.call('HEXISTS', key, name) == 1 then
    redis.call('HSET', key, name, int(now_ms))
  end
end

-- Write a note for `later health`, at most 100 of them. A note must not fail the call that it is
-- about.
function tidy.note(R, name, now_ms)
  commit.hint(write_note, R, name, now_ms)
end

-- -> the names of a comma-separated list: name -> true. Workers of one kind serve the same list,
-- which may be long and is needed all the time: the last few stay from call to call.
local LISTS = 8
local lists, nlists = {}, 0

local function names_in(text)
  if not lists[text] then
    local names = {}
    for name in string.gmatch(text, '[^,]+') do
      names[name] = true
    end
    if nlists == LISTS then
      lists, nlists = {}, 0
    end
    lists[text], nlists = names, nlists + 1
  end
  return lists[text]
end

-- -> is_served(queue): whether a live worker serves it
function tidy.served(R)
  local live = {}
  for _, peer in ipairs(workers.peers(R, {'queues'})) do
    if peer.counter ~= 'dead' and peer.row[1] then
      live[#live + 1] = names_in(peer.row[1])
    end
  end
  return function(queue)
    for _, names in ipairs(live) do
      if names[queue] then
        return true
      end
    end
    return false
  end
end

-- -> when the first job of a queue with a due head that nobody serves is due. Syncs put a head
-- right, and nobody makes them here: it may be of jobs that were cancelled, moved or purged. So it
-- is put right now.
local function first_unserved(R, queue, now_ms)
  local usual = db('ZRANGE', R .. ':q:' .. queue .. ':5', 0, 0, 'WITHSCORES')
  if usual[2] and to_due(usual[2]) <= now_ms or string.find(db('HGET', R .. ':prio', queue) or '',
                                                            'g', 1, true) then
    return now_ms -- a granted job is in no set, and needs a head
  end
  local keys, first = {}, math.huge
  for i, set in ipairs(job_sets.head_sets(R, queue)) do
    keys[i] = set.key
  end
  txn.learn_absent(keys)
  for _, key in ipairs(keys) do
    local row = db('ZRANGE', key, 0, 0, 'WITHSCORES')
    first = row[2] and math.min(first, to_due(row[2])) or first
  end
  if first == math.huge then
    db('ZREM', R .. ':heads', queue)
  elseif first > now_ms then
    db('ZADD', R .. ':heads', first, queue)
  end
  return first
end

-- Write a note of each queue with due jobs that nobody has served for a minute. A key of a foreign
-- type counts as a due job: its queue is not well. -> their names
local function unserved(R, is_served, now_ms)
  local out = {}
  local due = db('ZRANGEBYSCORE', R .. ':heads', '-inf', int(now_ms), 'LIMIT', 0, 1000)
  local is_due = {}
  for _, queue in ipairs(due) do
    local first = not is_served(queue) and (change.unless_foreign(first_unserved, R, queue,
                                                                  now_ms) or now_ms)
    is_due[queue] = first and first <= now_ms
    if is_due[queue] and not instant.paused_until(db('HGET', R .. ':paused', queue), now_ms) then
      db('HSETNX', R .. ':unserved', queue, int(now_ms))
      local since = tonumber(db('HGET', R .. ':unserved', queue))
      if since and now_ms - since >= 60000 then
        tidy.note(R, 'unserved-queue:' .. queue, now_ms)
        out[#out + 1] = queue
      end
    end
  end
  for _, queue in ipairs(db('HKEYS', R .. ':unserved')) do
    if not is_due[queue] then
      db('HDEL', R .. ':unserved', queue)
      db('HDEL', R .. ':notes', 'unserved-queue:' .. queue)
    end
  end
  return out
end

-- Remove entries of a hash name -> ms that are before `before`, among some hundred, at random in a
-- large hash: any number is a cursor. Those at the beginning are met only from 0 on.
local function drop_old(key, before, now_us)
  local at = now_us % OLD_SPAN
  local cursor = int(at < OLD_SPAN / 8 and 0 or at)
  local some = txn.ask(key, 'hash', 'HSCAN', cursor, 'COUNT', OLD_ROWS)[2]
  for i = 1, #some, 2 do
    if (tonumber(some[i + 1]) or 0) < before then
      db('HDEL', key, some[i])
    end
  end
end

-- Has the queue jobs that wait or are kept? Running ones do not count.
function tidy.has_jobs(R, queue)
  local keys = {R .. ':due:' .. queue, R .. ':dead:' .. queue, R .. ':done:' .. queue,
                R .. ':solo:' .. queue, R .. ':parked:' .. queue, R .. ':pins:' .. queue}
  for p = 0, 9 do
    keys[#keys + 1] = R .. ':q:' .. queue .. ':' .. int(p)
  end
  return db('EXISTS', unpack(keys)) > 0
end

local function is_idle(R, queue)
  return not tidy.has_jobs(R, queue) and not db('ZSCORE', R .. ':heads', queue) and
         db('HEXISTS', R .. ':paused', queue) == 0
end

-- Remove the counters of a queue. runs and run_us: libraries before number 26 had them.
function tidy.drop_counts(R, queue)
  local names = {}
  local kinds = {'done:', 'dead:', 'cancelled:', 'adopted:', 'runs:', 'run_us:'}
  for i, what in ipairs(kinds) do
    names[i] = what .. queue
  end
  db('HDEL', R .. ':stats', unpack(names))
end

-- With more than MANY_NAMES names, remove those of idle queues that nobody serves, and their
-- counters: of ten names at random a call. A name that something uses (core/uses.lua) stays. With
-- fewer names an idle queue keeps its counters. A later count brings the name back (commit.count).
local function drop_names(R, is_served)
  if db('SCARD', R .. ':names') <= MANY_NAMES then
    return
  end
  for _, queue in ipairs(db('SRANDMEMBER', R .. ':names', 10)) do
    if not is_served(queue) and is_idle(R, queue) and not uses.is_used(R, queue) then
      db('SREM', R .. ':names', queue)
      tidy.drop_counts(R, queue)
    end
  end
end

local STATE = {room = true, unsent = true, refused = true, skew_ms = true, limits = true,
               modes = true, defects = true, reload = true,
               runs = true, timeouts = true}

local function keep_state(R, epoch, fields, now_ms)
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    local queue = #name <= 71 and string.match(name, '^series:(%w[%w_-]*)$')
    if STATE[name] then
      db('HSET', R .. ':worker:' .. epoch, name, value)
    elseif name == 'retried' and whole(value) then
      commit.count_as(R, name, whole(value))
    elseif queue then
      commit.hint(series.count_told, R, queue, value)
    elseif name == 'keys' then
      commit.hint(ranks.keys, R, value, now_ms)
    end
  end
  commit.hint(series.write, R)
end

-- queues: {name, ms to keep its dead}*. A key of a foreign type must not keep the other queues
-- untidy; the sync reports it. -> how many raw members were buried
local function tidy_queues(R, queues, now_us)
  local now_ms, buried, room = clock.ms(now_us), 0, TRIM_CALL
  local function trim(key, before)
    local ok, n = change.try(jobs.trim, R, key, before, math.min(TRIM_ROWS, room))
    room = room - (ok and n or 0)
  end
  for i = 1, #queues, 2 do
    local queue = queues[i]
    if has_keys(R, queue) then
      if room > 0 then
        trim(R .. ':done:' .. queue, now_ms)
        trim(R .. ':dead:' .. queue, now_ms - tonumber(queues[i + 1]))
      end
      change.try(repair_flags, R, queue)
      change.try(passes.forgive, R, queue)
      local ok, n = change.try(bury_never, R, queue, now_us)
      buried = buried + (ok and n or 0)
    end
  end
  return buried
end

-- Check 16 timers at random: a timer may be too late, for example when the clock was set back.
local function repair_timers(R, now_us)
  local ledger = gate.ledger(R, now_us)
  local timers = db('ZRANDMEMBER', R .. ':timers', 16)
  table.sort(timers)
  for _, what in ipairs(timers) do
    local kind, id = string.match(what, '^(%a+):(.+)$')
    if kind == 'gate' then
      gate.touch(ledger, id)
    elseif kind == 'granted' then
      waiters.arm(ledger, what, ledger.now_ms)
    end
  end
  waiters.hand_on(ledger)
end

register('later_v1_tidy', {'allow-oom'}, function(R, args)
  local queues, at = workers.pairs_at(args, 2)
  local fields = args[at] and workers.pairs_at(args, at) or {}
  for i = 1, #queues, 2 do
    check_queue(queues[i])
    if not whole(queues[i + 1]) then
      fail('ELATER_ARGS', 'queue ' .. queues[i] .. ' has no time to keep its dead')
    end
  end
  workers.need_worker(R)
  if beats.worker(R, args[1]) ~= 'ok' then
    return {{}, 0}
  end
  local is_served, now_us = tidy.served(R), clock.now_us()
  local now_ms = clock.ms(now_us)
  keep_state(R, args[1], fields, now_ms)
  local buried, ledger = tidy_queues(R, queues, now_us), gate.ledger(R, now_us)
  -- A key of a foreign type keeps only the part that reads it from being done.
  change.try(pins.tidy, ledger)
  change.unless_foreign(waiters.hand_on, ledger)
  change.unless_foreign(drop_old, R .. ':await', now_ms, now_us)
  change.unless_foreign(drop_old, R .. ':notes', now_ms - 600000, now_us)
  change.unless_foreign(drop_names, R, is_served)
  change.try(batches.tidy, R, now_ms)
  change.try(schedules.tidy, R, now_ms, CURSORS)
  local is_told, nbulks = change.try(bulks.tidy, R, now_ms)
  change.unless_foreign(repair_timers, R, now_us)
  queue_names.mend_names(R, now_ms)
  return {change.unless_foreign(unserved, R, is_served, now_ms) or {}, buried,
          is_told and nbulks > 0 and nbulks or nil}
end)
