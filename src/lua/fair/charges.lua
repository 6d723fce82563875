-- What the jobs of a fair queue are charged with: a tick when one starts, its run time when it ends
-- or waits again, in place of the tick. R:holds of a running job has the line
--   fair <when it started, us> <queue>:<tenant>
-- so all that ends a job or takes it from its worker charges it once (gates/holding.lua).

local charges = module 'fair/charges'
local tenants, usage, change, commit = use(
  'fair/tenants', 'fair/usage', 'txn/change', 'txn/commit')

-- A job of this tenant starts. -> its line of R:holds
function charges.begin(R, queue, tenant, weights, now_us)
  local active, runs = R .. ':fair:' .. queue, R .. ':fair-runs:' .. queue
  local n, kept = tenants.runs(db('HGET', runs, tenant))
  local time, of_queue, todo = db('ZSCORE', active, tenant), tenants.state(R, queue)
  local is_active = time
  if not time then
    -- Its job was let in by a gate, or is a suspect.
    time = math.max(kept, db('ZSCORE', R .. ':fair-debts:' .. queue, tenant) or 0, of_queue)
    db('ZREM', R .. ':fair-debts:' .. queue, tenant)
  elseif time > of_queue then
    tenants.set_state(R, queue, time, todo)
  end
  time = time + tenants.tick(weights, tenant)
  if is_active then
    db('ZADD', active, time, tenant)
  end
  db('HSET', runs, tenant, int(n + 1) .. ' ' .. int(time))
  return 'fair ' .. int(now_us) .. ' ' .. queue .. ':' .. tenant
end

-- A job of this tenant that started then does not run any more.
local function finish(R, queue, tenant, from_us, now_us)
  local weights = tenants.weights(R, queue)
  local of_queue, _, since = tenants.state(R, queue)
  if not weights or from_us < since or not tenants.take_turns(R, queue) then
    return -- it started before the queue was fair, as it is now
  end
  local active, runs = R .. ':fair:' .. queue, R .. ':fair-runs:' .. queue
  local n, time = tenants.runs(db('HGET', runs, tenant))
  local is_active = db('ZSCORE', active, tenant)
  local ran = math.max(now_us - from_us, 0)
  time = (is_active or time) + math.floor(ran / (weights[tenant] or 1)) -
         tenants.tick(weights, tenant)
  time = math.max(time, 0)
  if is_active then
    db('ZADD', active, time, tenant)
  end
  if n > 1 then
    db('HSET', runs, tenant, int(n - 1) .. ' ' .. int(time))
  else
    db('HDEL', runs, tenant)
    if not is_active and time > of_queue then
      db('ZADD', R .. ':fair-debts:' .. queue, time, tenant)
    end
  end
  tenants.reset_idle(R, queue)
  commit.hint(usage.count, R, queue, tenant, ran, now_us)
end

-- Jobs end or wait again; lines: theirs in R:holds. A key of a foreign type must not keep a job
-- from ending.
function charges.finish_all(ledger, lines)
  for _, line in ipairs(lines) do
    local from_us, queue, tenant = string.match(line, '^fair (%d+) (%w[%w_-]*):(.*)$')
    if whole(from_us) then
      change.unless_foreign(finish, ledger.R, queue, tenant, whole(from_us), ledger.now_us)
    end
  end
end
