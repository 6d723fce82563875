-- The tenants of a fair queue: which of their jobs wait, and their virtual times.
--
-- A tenant is the key of a job; jobs without a key are those of the tenant ''. Places are shared by
-- start-time fair queueing (P. Goyal, H. Vin, H. Cheng: Start-time Fair Queueing, SIGCOMM 1996). A
-- tenant has a virtual time, which rises by the run time of its jobs divided by its weight; the
-- claim takes a job of the tenant with the least. The virtual time of the queue is the highest one
-- of a tenant at a claim: who comes new, or comes back, begins there, so nobody saves up for later.
-- Virtual times are whole microseconds of run time.
--
--   R:queues           "fair=1 ..." of a fair queue, with "w=<weight>:<tenant>" for each weight
--   R:fair             HASH  queue -> its virtual time, since when it is fair (us), and what is to
--                            be done (passes.lua)
--   R:fair:<queue>     ZSET  tenant -> its virtual time: those with due jobs
--   R:fair-next:<queue>  ZSET  tenant -> when its first job is due, ms: those that have waiting
--                              jobs, and are not in R:fair:<queue> yet
--   R:fair-runs:<queue>  HASH  tenant -> "<its running jobs> <its virtual time, where it is not in
--                              R:fair:<queue>>"
--   R:fair-debts:<queue> ZSET  tenant -> its virtual time, if that is after the queue's, and it has
--                              neither due nor running jobs
--   R:fair-jobs:<queue>:<priority>:<tenant>  ZSET  id -> due ms, of its waiting jobs. They are in
--                              R:q:<queue>:<priority>, too, which is what counts: a job that is
--                              here alone does not wait any more (turns.lua drops it)
--
-- A tenant without waiting and running jobs and without a debt has no row.

local tenants = module 'fair/tenants'
local change = use 'txn/change'
local TICK_US = 1000  -- what a start is charged, until its job has ended
tenants.WEIGHT_MAX = 1000
tenants.WEIGHTS_MAX = 64

-- -> weights of a value of R:queues: tenant -> weight; nil: the queue is not fair
function tenants.weights_in(text)
  if not text or not string.find(text, '^fair=1%f[ %z]') then
    return nil
  end
  local weights = {}
  for weight, tenant in string.gmatch(text, ' w=(%d+):(%S*)') do
    weights[tenant] = math.min(math.max(tonumber(weight), 1), tenants.WEIGHT_MAX)
  end
  return weights
end

-- -> the same for a queue
function tenants.weights(R, queue)
  return tenants.weights_in(db('HGET', R .. ':queues', queue))
end

-- -> the key of the waiting jobs of a tenant. priority: text
function tenants.jobs_key(R, queue, priority, tenant)
  return R .. ':fair-jobs:' .. queue .. ':' .. priority .. ':' .. tenant
end

-- -> the virtual time of the queue; what is to be done there, '' for nothing; since when it is fair
function tenants.state(R, queue)
  local time, since, todo = string.match(db('HGET', R .. ':fair', queue) or '',
                                         '^(%d+) (%d+) ?(.*)$')
  return whole(time) or 0, todo or '', whole(since) or 0
end

-- Do the tenants of a queue that is to be fair take turns? Not while rows of an earlier time go.
function tenants.take_turns(R, queue)
  local _, todo = tenants.state(R, queue)
  return todo ~= 'drop' and db('HEXISTS', R .. ':fair', queue) == 1
end

-- Does a job that waits in this queue come to its tenant? If the queue becomes fair only now, all
-- that wait do later.
function tenants.are_kept(R, queue)
  return tenants.weights(R, queue) ~= nil and tenants.take_turns(R, queue)
end

-- since: nil: as it is
function tenants.set_state(R, queue, time, todo, since)
  local _, _, was = tenants.state(R, queue)
  db('HSET', R .. ':fair', queue, int(time) .. ' ' .. int(since or was) ..
     (todo ~= '' and ' ' .. todo or ''))
end

-- Has no tenant of the queue a job that is due?
function tenants.none_due(R, queue, now_ms)
  local row = db('ZRANGE', R .. ':fair-next:' .. queue, 0, 0, 'WITHSCORES')
  return db('ZCARD', R .. ':fair:' .. queue) == 0 and not (row[2] and to_due(row[2]) <= now_ms)
end

-- A value of R:fair-runs:<queue> -> how many jobs run, virtual time
function tenants.runs(text)
  local n, time = string.match(text or '', '^(%d+) (%d+)$')
  return whole(n) or 0, whole(time) or 0
end

-- What is one tick for this tenant.
function tenants.tick(weights, tenant)
  return math.max(math.floor(TICK_US / (weights[tenant] or 1)), 1)
end

-- A job waits in this queue, whose tenants are kept.
function tenants.put(R, id, job, due)
  local queue, tenant = job.queue, job.K or ''
  db('ZADD', tenants.jobs_key(R, queue, int(job.priority), tenant), due, id)
  if not db('ZSCORE', R .. ':fair:' .. queue, tenant) then
    db('ZADD', R .. ':fair-next:' .. queue, 'LT', int(due), tenant)
  end
end

-- -> when the first waiting job of a tenant is due; math.huge: it has none. digits: the priorities
-- of its queue
function tenants.first_due(R, queue, digits, tenant)
  local first = math.huge
  for i = 1, #digits do
    local row = db('ZRANGE', tenants.jobs_key(R, queue, digits[i], tenant), 0, 0, 'WITHSCORES')
    first = row[2] and math.min(first, to_due(row[2])) or first
  end
  return first
end

-- The tenant has no due jobs any more: keep its virtual time where that still counts.
function tenants.leave(R, queue, tenant, time)
  local runs = R .. ':fair-runs:' .. queue
  local text = db('HGET', runs, tenant)
  db('ZREM', R .. ':fair:' .. queue, tenant)
  if text then
    db('HSET', runs, tenant, int((tenants.runs(text))) .. ' ' .. int(time))
  elseif time > tenants.state(R, queue) then
    db('ZADD', R .. ':fair-debts:' .. queue, time, tenant)
  end
end

-- Some jobs of a tenant have left, others may be due: put its rows right. first: of first_due
function tenants.settle(R, queue, tenant, first, now_ms)
  local active, later = R .. ':fair:' .. queue, R .. ':fair-next:' .. queue
  local time = db('ZSCORE', active, tenant)
  if time and first <= now_ms then
    return
  elseif time then
    tenants.leave(R, queue, tenant, time)
  end
  if first < math.huge then
    db('ZADD', later, first, tenant)
  else
    db('ZREM', later, tenant)
  end
end

-- While nobody's jobs are due and none runs, no debt counts: the next one begins at 0 again.
function tenants.reset_idle(R, queue)
  local time, todo = tenants.state(R, queue)
  if todo == '' and db('ZCARD', R .. ':fair:' .. queue) == 0 and
     db('HLEN', R .. ':fair-runs:' .. queue) == 0 then
    if db('EXISTS', R .. ':fair-debts:' .. queue) == 1 then
      change.drop_key(R .. ':fair-debts:' .. queue, 'large')
    end
    if time > 0 then
      tenants.set_state(R, queue, 0, '')
    end
  end
end

-- -> the priorities of which the queue may have jobs, in order, as text
function tenants.digits(R, queue)
  local flags, digits = db('HGET', R .. ':prio', queue) or '', {}
  for p = 0, 9 do
    local digit = int(p)
    if p == 5 or string.find(flags, digit, 1, true) then
      digits[#digits + 1] = digit
    end
  end
  return digits
end

-- -> how many due jobs of its tenant are claimed before this job
function tenants.due_before(R, id, job, now_ms)
  local n, tenant = 0, job.K or ''
  for p = 0, job.priority - 1 do
    n = n + db('ZCOUNT', tenants.jobs_key(R, job.queue, int(p), tenant), '-inf', int(now_ms))
  end
  return n + (db('ZRANK', tenants.jobs_key(R, job.queue, int(job.priority), tenant), id) or 0)
end

-- A job of this queue does not wait any more. It is no matter if the queue is not fair.
function tenants.remove(R, id, job)
  local queue, tenant = job.queue, job.K or ''
  if not tenants.are_kept(R, queue) then
    return
  end
  db('ZREM', tenants.jobs_key(R, queue, int(job.priority), tenant), id)
  if tenants.first_due(R, queue, tenants.digits(R, queue), tenant) == math.huge then
    tenants.settle(R, queue, tenant, math.huge, 0)
    tenants.reset_idle(R, queue)
  end
end
