-- The tenants of a fair queue: which of their jobs wait, and their virtual times.
--
-- A tenant is the key of a job; jobs without a key are those of the tenant ''. Places are shared
-- by start-time fair queueing (P. Goyal, H. Vin, H. Cheng: Start-time Fair Queueing, SIGCOMM
-- 1996). A tenant has a virtual time, which rises by the run time of its jobs divided by its
-- weight; the claim takes a job of the tenant with the least. The virtual time of the queue is the
-- highest one of a tenant at a claim, and follows the run time of what ends (turns.lua): who comes
-- new, or comes back, begins there, so nobody saves up for later. Virtual times are whole
-- microseconds of run time.
--
--   R:queues           "fair=1 ..." of a fair queue, with "w=<weight>:<tenant>" for each weight
--   R:fair             HASH  queue -> its virtual time, since when its tenants share (us, 0: they
--                            do not), and what is to be done (passes.lua)
--   R:fair:<queue>     ZSET  tenant -> its virtual time: those with due jobs
--   R:fair-next:<queue>  ZSET  tenant -> when its first job is due, ms: those that have waiting
--                              jobs, and are not in R:fair:<queue> yet
--   R:fair-debts:<queue> ZSET  tenant -> its virtual time, of those without due jobs. One that the
--                              queue's has passed does not count, and goes when the queue is tidied
--   R:fair-jobs:<queue>  ZSET  "<tenant> <priority><due ms, 15 digits><id>" -> 0: the waiting jobs
--                              of all tenants, in the order of these lines. They are in
--                              R:q:<queue>:<priority>, too, which is what counts: a job that is
--                              here alone does not wait any more (turns.lua drops it)
--
-- While no tenant has due jobs there are no debts, and the virtual time of the queue is 0: whoever
-- comes then waits for nobody. A tenant without waiting jobs and without a debt has no row.
--
-- Tenants share from the first sync on that finds due jobs of two of them and cannot start all that
-- is due, until no tenant has due jobs. A job is charged for its run time of that span only: what
-- it ran before took nothing from anybody else.

local tenants = module 'fair/tenants'
local change = use 'txn/change'
tenants.TICK_US = 1000  -- what a start is charged, until its job has ended
local FORGIVEN = 2000   -- debts that a call drops
local DEBTS_MAX = 10000 -- of a queue, that count
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

-- ---- its waiting jobs

-- -> the key of the waiting jobs of all tenants
function tenants.jobs_key(R, queue)
  return R .. ':fair-jobs:' .. queue
end

local DUE_DIGITS = 15

-- -> the line of a waiting job. digit: its priority, text
function tenants.line(tenant, digit, due, id)
  local text = int(due)
  return tenant .. ' ' .. digit .. string.rep('0', DUE_DIGITS - #text) .. text .. id
end

-- A line of this tenant -> when its job is due, its id
function tenants.read_line(line, tenant)
  local at = #tenant + 3
  return tonumber(string.sub(line, at, at + DUE_DIGITS - 1)) or 0,
         string.sub(line, at + DUE_DIGITS)
end

-- -> the bounds of the lines of a tenant with this priority, as ZRANGE BYLEX takes them
function tenants.range(tenant, digit)
  local begin = tenant .. ' ' .. digit
  return '[' .. begin, '(' .. begin .. ':' -- the character behind 9
end

-- ---- its queue

-- A value of R:fair -> virtual time, since when tenants share, what is to be done there, as text;
-- nil: it is no such value
function tenants.read_state(text)
  return string.match(text or '', '^(%d+) (%d+) ?(.*)$')
end

-- -> the virtual time of the queue; what is to be done there, '' for nothing; since when its
-- tenants share, 0: they do not
function tenants.state(R, queue)
  local time, since, todo = tenants.read_state(db('HGET', R .. ':fair', queue) or nil)
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

-- Where a tenant without a debt begins: before those that are as far as the queue is. So it gets
-- the next place beside a backlog, whatever its name.
function tenants.first_time(of_queue)
  return math.max(of_queue - 1, 0)
end

-- since: nil: as it is
function tenants.set_state(R, queue, time, todo, since)
  local _, _, was = tenants.state(R, queue)
  db('HSET', R .. ':fair', queue, int(time) .. ' ' .. int(since or was) ..
     (todo ~= '' and ' ' .. todo or ''))
end

-- -> how many tenants of the queue have due jobs
function tenants.count_due(R, queue, now_ms)
  return db('ZCARD', R .. ':fair:' .. queue) +
         db('ZCOUNT', R .. ':fair-next:' .. queue, '-inf', int(now_ms))
end

-- Has no tenant of the queue a job that is due?
function tenants.none_due(R, queue, now_ms)
  if db('ZCARD', R .. ':fair:' .. queue) > 0 then
    return false
  end
  local row = db('ZRANGE', R .. ':fair-next:' .. queue, 0, 0, 'WITHSCORES')
  return not (row[2] and to_due(row[2]) <= now_ms)
end

-- Do two tenants have due jobs while nobody shares? All of them have been woken.
function tenants.may_share(R, queue)
  local _, _, since = tenants.state(R, queue)
  return since == 0 and db('ZCARD', R .. ':fair:' .. queue) > 1
end

-- Jobs of a queue where they do could not all start: its tenants share from now on.
function tenants.share(R, queue, now_us)
  local time, todo = tenants.state(R, queue)
  tenants.set_state(R, queue, time, todo, now_us)
end

-- What is one tick for this tenant.
function tenants.tick(weights, tenant)
  return math.max(math.floor(tenants.TICK_US / (weights[tenant] or 1)), 1)
end

-- A job waits in this queue, whose tenants are kept.
function tenants.put(R, id, job, due)
  local queue, tenant = job.queue, job.K or ''
  db('ZADD', tenants.jobs_key(R, queue), 0, tenants.line(tenant, int(job.priority), due, id))
  if not db('ZSCORE', R .. ':fair:' .. queue, tenant) then
    db('ZADD', R .. ':fair-next:' .. queue, 'LT', int(due), tenant)
  end
end

-- -> when the first waiting job of a tenant is due; math.huge: it has none. digits: the priorities
-- of its queue
function tenants.first_due(R, queue, digits, tenant)
  local first, key = math.huge, tenants.jobs_key(R, queue)
  for i = 1, #digits do
    local from, to = tenants.range(tenant, digits[i])
    local line = db('ZRANGE', key, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
    first = line and math.min(first, (tenants.read_line(line, tenant))) or first
  end
  return first
end

-- The virtual time of a fair queue passes the least of more than DEBTS_MAX debts: while new tenants
-- fill all places it stays, and they would not end. Who comes back begins there, no earlier than
-- its debt was.
function tenants.bound_debts(R, queue)
  local key = R .. ':fair-debts:' .. queue
  local n, time, todo = db('ZCARD', key), tenants.state(R, queue)
  if n > DEBTS_MAX then
    local last = n - DEBTS_MAX - 1
    local score = whole(db('ZRANGE', key, last, last, 'WITHSCORES')[2])
    if score and score > time then
      tenants.set_state(R, queue, score, todo)
    end
  end
end

-- Some debts that do not count any more go. -> whether there may be more of them
function tenants.forgive(R, queue)
  local key = R .. ':fair-debts:' .. queue
  local names = db('ZRANGEBYSCORE', key, '-inf', int((tenants.state(R, queue))), 'LIMIT', 0,
                   FORGIVEN)
  if names[1] then
    db('ZREM', key, unpack(names))
  end
  return #names == FORGIVEN
end

-- Some jobs of a tenant have left, others may be due: put its rows right. first: of first_due
function tenants.settle(R, queue, tenant, first, now_ms)
  local active, later = R .. ':fair:' .. queue, R .. ':fair-next:' .. queue
  local time = db('ZSCORE', active, tenant)
  if time and first <= now_ms then
    return
  elseif time then
    db('ZREM', active, tenant)
    if time > tenants.state(R, queue) then
      db('ZADD', R .. ':fair-debts:' .. queue, time, tenant)
    end
  end
  if first < math.huge then
    db('ZADD', later, first, tenant)
  else
    db('ZREM', later, tenant)
  end
end

-- While nobody's jobs are due, no debt counts and nobody shares: the next one begins at 0 again.
-- -> whether it is so
function tenants.reset_idle(R, queue, now_ms)
  local time, todo, since = tenants.state(R, queue)
  if todo ~= '' or not tenants.none_due(R, queue, now_ms) then
    return false
  end
  -- One by one, since the call may still add some: a key that is dropped takes them with it.
  local key = R .. ':fair-debts:' .. queue
  local names = db('ZRANGE', key, 0, FORGIVEN - 1)
  if names[FORGIVEN] then
    change.drop_key(key, 'large')
  elseif names[1] then
    db('ZREM', key, unpack(names))
  end
  if time > 0 or since > 0 then
    tenants.set_state(R, queue, 0, '', 0)
  end
  return true
end

-- -> the priorities of which a queue with these flags may have jobs, in order, as text
function tenants.digits_in(flags)
  local digits = {}
  for p = 0, 9 do
    local digit = int(p)
    if p == 5 or string.find(flags, digit, 1, true) then
      digits[#digits + 1] = digit
    end
  end
  return digits
end

-- -> the same for a queue
function tenants.digits(R, queue)
  return tenants.digits_in(db('HGET', R .. ':prio', queue) or '')
end

-- A job of this queue, which was due then, does not wait any more. It is no matter if the queue is
-- not fair, or the job is none of a tenant: a suspect, one that is pinned, dead or done.
function tenants.remove(R, id, job, due)
  local queue, tenant = job.queue, job.K or ''
  if not due or not tenants.are_kept(R, queue) then
    return
  end
  local line = tenants.line(tenant, int(job.priority), due, id)
  if db('ZREM', tenants.jobs_key(R, queue), line) == 1 and
     tenants.first_due(R, queue, tenants.digits(R, queue), tenant) == math.huge then
    tenants.settle(R, queue, tenant, math.huge, 0)
    tenants.reset_idle(R, queue, LATEST)
  end
end
