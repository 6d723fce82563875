-- Pinned jobs: each waits for one worker, or for the workers of one host (public/broadcast.lua).
--
--   R:pin:<queue>:<target>  ZSET  id -> due ms, of the jobs that wait for this target
--   R:pins:<queue>          SET   the targets that have any, and perhaps some that have none
--   R:pinned                SET   the queues that have targets
--
-- target: w<epoch>, or h<host>; the record of a job has it as W. Their times are not in R:heads: no
-- other worker could do something about them. The flag p has every worker of the queue look.

local pins = module 'broadcast/pins'
local workers, judge, rooms, waiting, job_sets, jobs, cancels, change, txn = use(
  'calls/register', 'claim/judge', 'claim/rooms', 'claim/waiting', 'core/job_sets', 'core/jobs',
  'public/cancel', 'txn/change', 'txn/txn')
local TARGETS = 2000        -- workers and hosts with jobs of one queue; more are not looked at
-- What a call looks at that tidies, at random; and how many jobs it ends.
local TIDY_QUEUES, TIDY_TARGETS, TIDY_ROWS, TIDY_ENDS = 8, 32, 100, 200
pins.BROADCAST_EXPIRE_MS = 3600000 -- of a job that says nothing

function pins.key_of(R, queue, target)
  return R .. ':pin:' .. queue .. ':' .. target
end

-- -> the targets that have jobs of a queue, sorted by bytes
function pins.targets(R, queue)
  local targets = txn.ask(R .. ':pins:' .. queue, 'set', 'SRANDMEMBER', TARGETS)
  table.sort(targets, job_sets.is_before)
  return targets
end

-- The same for counts, where a set of a foreign type counts as empty.
function pins.readable(R, queue)
  local targets = redis.pcall('SRANDMEMBER', R .. ':pins:' .. queue, TARGETS)
  return targets.err and {} or targets
end

-- -> how many jobs of a queue are pinned and wait, for how many targets
function pins.count(R, queue)
  local n, targets = 0, pins.readable(R, queue)
  for _, target in ipairs(targets) do
    local more = redis.pcall('ZCARD', pins.key_of(R, queue, target))
    n = n + (type(more) == 'number' and more or 0)
  end
  return n, #targets
end

-- A job waits for a target.
function pins.put(R, queue, target)
  db('SADD', R .. ':pins:' .. queue, target)
  db('SADD', R .. ':pinned', queue)
end

-- Take a target off the list if it has no jobs.
function pins.drop(R, queue, target)
  if db('ZCARD', pins.key_of(R, queue, target)) == 0 then
    db('SREM', R .. ':pins:' .. queue, target)
  end
end

-- -> the flag, if there are targets still
function pins.flag_of(R, queue)
  if db('SCARD', R .. ':pins:' .. queue) > 0 then
    return 'p'
  end
  db('SREM', R .. ':pinned', queue)
  return ''
end

-- -> the targets that the worker of this sync is
local function own_targets(R, ctx)
  if not ctx.targets then
    local host = db('HGET', R .. ':worker:' .. ctx.epoch_text, 'host')
    ctx.targets = {'w' .. ctx.epoch_text, host and 'h' .. host or nil}
  end
  return ctx.targets
end

-- The due jobs that are pinned to the worker of this sync. -> a chunk (claim/waiting.lua); when the
-- next one is due
function pins.gather(R, queue, room, ctx)
  local b, head = waiting.new_chunk(queue), math.huge
  b.is_pinned = true
  for _, target in ipairs(own_targets(R, ctx)) do
    local its_head = waiting.take_ids(pins.key_of(R, queue, target), room - b.n, b, ctx.now_ms)
    head = math.min(head, its_head)
  end
  return b, head
end

-- Jobs were claimed. -> the flag, if some are left for any target
function pins.end_queue(R, queue, ctx)
  for _, target in ipairs(own_targets(R, ctx)) do
    pins.drop(R, queue, target)
  end
  return pins.flag_of(R, queue)
end

-- ---- targets that are gone

-- -> host -> what its live workers serve, a list
local function read_hosts(R)
  local hosts = {}
  for _, peer in ipairs(workers.peers(R, {'host', 'queues'})) do
    local host = peer.counter ~= 'dead' and peer.row[1]
    if host then
      hosts[host] = hosts[host] or {}
      table.insert(hosts[host], peer.row[2] or '')
    end
  end
  return hosts
end

-- Is there a live worker that a target means, and does it serve the queue?
function pins.is_target(ledger, target, queue)
  local R, kind, name = ledger.R, string.match(target, '^([wh])(.+)$')
  if kind == 'w' then
    local counter = db('HGET', R .. ':workers', name)
    return counter and counter ~= 'dead' and rooms.serves(db('HGET', R .. ':worker:' .. name,
                                                             'queues'), queue)
  end
  ledger.hosts = ledger.hosts or read_hosts(R)
  for _, queues in ipairs(ledger.hosts[name or ''] or {}) do
    if rooms.serves(queues, queue) then
      return true
    end
  end
  return false
end

-- End a job whose worker is gone. Of a host another worker may come, until the job expires. -> was
-- it ended?
local function end_job(ledger, queue, target, id, due)
  local state, job, tries = jobs.locate(ledger.R, id)
  local expire_ms = job and whole(job.x) or pins.BROADCAST_EXPIRE_MS
  if state ~= 'waiting' or job.W ~= target then
    return false
  elseif string.byte(target) == 119 then -- w
    cancels.cancel(ledger, id, state, job, tries, 'its worker is gone')
    return true
  elseif due + expire_ms >= ledger.now_ms then
    return false
  elseif tries.starts > 0 then
    cancels.cancel(ledger, id, state, job, tries, 'its host is gone')
    return true
  end
  db('ZREM', pins.key_of(ledger.R, queue, target), id)
  jobs.bury(ledger.R, queue, id, jobs.outcome('dead', 0, ledger.now_ms, 0,
                                              judge.expired(int(expire_ms)), ''), ledger.now_ms)
  return true
end

-- Look at some jobs of a target that is gone, from a random one on. -> how many were ended
local function end_jobs(ledger, queue, target, most)
  local key, n = pins.key_of(ledger.R, queue, target), 0
  local all = db('ZCARD', key)
  local from = all > TIDY_ROWS and ledger.now_us % (all - TIDY_ROWS + 1) or 0
  local rows = db('ZRANGE', key, from, from + TIDY_ROWS - 1, 'WITHSCORES')
  for i = 1, #rows, 2 do
    if n < most and end_job(ledger, queue, target, rows[i], to_due(rows[i + 1])) then
      n = n + 1
    end
  end
  return n
end

local function tidy_queue(ledger, queue, left)
  local R = ledger.R
  local targets = txn.ask(R .. ':pins:' .. queue, 'set', 'SRANDMEMBER', TIDY_TARGETS)
  table.sort(targets, job_sets.is_before)
  for _, target in ipairs(targets) do
    if left > 0 and not pins.is_target(ledger, target, queue) then
      left = left - end_jobs(ledger, queue, target, left)
    end
    pins.drop(R, queue, target)
  end
  if pins.flag_of(R, queue) == '' then
    jobs.flag_clear(R, queue, 'p')
  end
  return left
end

-- End the jobs whose worker is gone, in any queue: perhaps nobody serves it any more.
function pins.tidy(ledger)
  local queues = db('SRANDMEMBER', ledger.R .. ':pinned', TIDY_QUEUES)
  local left = TIDY_ENDS
  table.sort(queues)
  for _, queue in ipairs(queues) do
    local ok, rest = change.try(tidy_queue, ledger, queue, left)
    left = ok and rest or left
  end
end
