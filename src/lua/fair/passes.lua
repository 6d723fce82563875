-- A queue becomes fair while jobs wait there, or is fair no more, or has many debts that do not
-- count. A sync does a part of that: R:fair has, behind the virtual time, what is to be done,
--   index <priority> <score> <id>   the jobs behind this one get their tenants
--   drop                            the rows of all tenants go
--   forgive                         debts that do not count any more go
-- and the queue has the flag `f` (core/jobs.lua) as long as it has any rows.

local passes = module 'fair/passes'
local clock, job_sets, jobs, tenants, change, txn = use(
  'core/clock', 'core/job_sets', 'core/jobs', 'fair/tenants', 'txn/change', 'txn/txn')
local INDEXED, BYTES = 512, 1048576 -- jobs of a sync, bytes of their records

-- The queue is fair from now on, or is so no more.
function passes.begin(R, queue, is_fair)
  local time, todo = tenants.state(R, queue)
  local is_there = db('HEXISTS', R .. ':fair', queue) == 1
  if is_fair and (not is_there or todo == '') then
    tenants.set_state(R, queue, time, 'index 0 - -')
  elseif is_there and not is_fair then
    tenants.set_state(R, queue, time, 'drop')
  end
  if is_fair or is_there then
    jobs.flag_set(R, queue, 'f')
  end
end

-- Give these jobs their tenants; records: as they are in Redis. The call may have given some
-- another due time, or another key, before.
local function put_all(R, queue, digit, ids, records)
  if not ids[1] then
    return
  end
  local scores = db('ZMSCORE', R .. ':q:' .. queue .. ':' .. digit, unpack(ids))
  if txn.is_changed(R .. ':jobs') then
    records = db('HMGET', R .. ':jobs', unpack(ids))
  end
  for i, id in ipairs(ids) do
    local job = scores[i] and jobs.parse(records[i])
    if scores[i] then
      tenants.put(R, id, {queue = queue, priority = tonumber(digit), K = job and job.K},
                  to_due(scores[i]))
    end
  end
end

-- Give up to `most` waiting jobs of a priority their tenants, those behind this score and id.
-- -> how many; the score and id of the last; whether there are no more
local function index_some(R, queue, digit, score, id, most)
  local key, ids = R .. ':q:' .. queue .. ':' .. digit, {}
  local rank = job_sets.rank_behind(key, score == '-' and '' or score, id)
  local rows = txn.ask(key, 'zset', 'ZRANGE', rank, rank + most - 1, 'WITHSCORES')
  for i = 1, #rows, 2 do
    ids[#ids + 1] = rows[i]
  end
  local records = job_sets.read_records(R, ids, BYTES)
  local n = #records
  put_all(R, queue, digit, {unpack(ids, 1, n)}, records)
  return n, rows[2 * n] or score, ids[n] or id, n == #ids and n < most
end

-- Give the next waiting jobs their tenants.
local function index(R, queue, time, todo, now_ms)
  local digit, score, id = string.match(todo, '^index (%d) (%S+) (%S+)$')
  local left = INDEXED
  digit, score, id = digit or '0', score or '-', id or '-'
  while digit and left > 0 do
    local n, last_score, last_id, is_end = index_some(R, queue, digit, score, id, left)
    left = is_end and left - n - 1 or 0
    score, id = last_score, last_id
    if is_end then
      digit, score, id = digit ~= '9' and int(tonumber(digit) + 1) or nil, '-', '-'
    end
  end
  tenants.set_state(R, queue, time, digit and 'index ' .. digit .. ' ' .. score .. ' ' .. id or '')
  tenants.reset_idle(R, queue, now_ms)
end

-- Drop the rows of all tenants.
function passes.drop(R, queue)
  for _, what in ipairs({':fair:', ':fair-next:', ':fair-jobs:', ':fair-debts:'}) do
    change.drop_key(R .. what .. queue, 'large')
  end
  db('HDEL', R .. ':fair', queue)
  jobs.flag_clear(R, queue, 'f')
end

-- Tidying: some debts that do not count any more go, and if there are more, the syncs go on.
function passes.forgive(R, queue)
  if not tenants.take_turns(R, queue) then
    return
  end
  tenants.bound_debts(R, queue)
  local time, todo = tenants.state(R, queue)
  if tenants.forgive(R, queue) and todo == '' then
    tenants.set_state(R, queue, time, 'forgive')
  end
end

-- Do a part of what is to be done. is_fair: as R:queues says -> whether something is left
function passes.advance(R, queue, is_fair, now_us)
  local time, todo = tenants.state(R, queue)
  if db('HEXISTS', R .. ':fair', queue) == 0 then
    if is_fair then
      passes.begin(R, queue, true)
    end
    return is_fair
  elseif todo == 'drop' or not is_fair then
    passes.drop(R, queue)
  elseif todo == 'forgive' then
    if not tenants.forgive(R, queue) then
      tenants.set_state(R, queue, time, '')
      tenants.reset_idle(R, queue, clock.ms(now_us))
    end
  elseif todo ~= '' then
    index(R, queue, time, todo, clock.ms(now_us))
  else
    return false
  end
  return true
end
