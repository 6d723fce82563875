-- What the jobs of a fair queue are charged with: a tick when one starts, its run time when it ends
-- or waits again, in place of the tick; of one that started before tenants shared, what it ran
-- since then, and its tick stays where it is. R:holds of a running job has the line
--   fair <when it started, us> <virtual time of its queue before> <queue>:<tenant>
-- so all that ends a job or takes it from its worker charges it once (gates/holding.lua).

local charges = module 'fair/charges'
local clock, tenants, usage, change, commit = use(
  'core/clock', 'fair/tenants', 'fair/usage', 'txn/change', 'txn/commit')

-- -> how the line of a job that starts begins; its tenant follows. began: the virtual time of its
-- queue when the call began to claim there
function charges.line_begin(queue, began, now_us)
  return 'fair ' .. int(now_us) .. ' ' .. int(began) .. ' ' .. queue .. ':'
end

-- A line -> when the job started, the virtual time of its queue before, queue, tenant; nil: it is
-- none
function charges.read_line(line)
  local from_us, time, queue, tenant = string.match(line, '^fair (%d+) (%d+) (%w[%w_-]*):(.*)$')
  if whole(from_us) and whole(time) then
    return whole(from_us), whole(time), queue, tenant
  end
end

-- A job of this tenant starts. began: as in charges.line_begin; is_its_turn: nobody with due jobs
-- has a lower virtual time, so that of the queue follows; it stays where a gate let the job in, or
-- it is a suspect -> its line of R:holds
function charges.begin(R, queue, tenant, weights, began, is_its_turn, now_us)
  local active = R .. ':fair:' .. queue
  local time, of_queue, todo = db('ZSCORE', active, tenant), tenants.state(R, queue)
  local tick = tenants.tick(weights, tenant)
  if not time then
    local debts = R .. ':fair-debts:' .. queue
    db('ZADD', debts, math.max(db('ZSCORE', debts, tenant) or 0, of_queue) + tick, tenant)
  else
    if is_its_turn and time > of_queue then
      tenants.set_state(R, queue, time, todo)
    end
    db('ZADD', active, time + tick, tenant)
  end
  return charges.line_begin(queue, began, now_us) .. tenant
end

-- A job ends that started then. since: when tenants began to share; weight: nil: 1 -> what it has
-- run since then, divided by the weight; the tick in place of which its tenant is charged with that
function charges.ran(from_us, since, now_us, weight, tick)
  if from_us < since then
    from_us, tick = since, 0
  end
  local ran = now_us > from_us and now_us - from_us or 0
  return weight and math.floor(ran / weight) or ran, tick
end

-- What a job has run is so much for each of n tenants with due jobs.
function charges.part(ran, n)
  return n > 1 and math.floor(ran / n) or ran
end

-- Tenants share, and a job of this one ends that started then. began: as in charges.line_begin
-- -> what it adds to the virtual time of the queue (turns.lua)
local function charge(R, from_us, began, queue, tenant, weights, now_us)
  local active, debts = R .. ':fair:' .. queue, R .. ':fair-debts:' .. queue
  local of_queue, _, since = tenants.state(R, queue)
  local time, tick = db('ZSCORE', active, tenant), tenants.tick(weights, tenant)
  local ran, instead_of = charges.ran(from_us, since, now_us, weights[tenant], tick)
  local more = ran - instead_of
  if time then
    db('ZADD', active, time + more, tenant)
  elseif not tenants.reset_idle(R, queue, clock.ms(now_us)) then
    -- Without a debt it goes on from where it began, if the queue has not begun anew since.
    time = db('ZSCORE', debts, tenant) or math.min(began, of_queue)
    db('ZADD', debts, time + more, tenant)
  end
  return charges.part(ran, db('ZCARD', active))
end

-- A job of this tenant that started then does not run any more. used: queue -> tenant -> ms, to
-- which its run time is added; paid: queue -> {part (us), tenant -> true}, to which its part is
-- added
local function finish(R, from_us, began, queue, tenant, now_us, used, paid)
  local weights = tenants.weights(R, queue)
  if not weights or not tenants.take_turns(R, queue) then
    return
  end
  local _, _, since = tenants.state(R, queue)
  if since > 0 then
    local part = charge(R, from_us, began, queue, tenant, weights, now_us)
    local its = paid[queue] or {part = 0, tenants = {}}
    change.assign(paid, queue, its)
    change.assign(its, 'part', its.part + part)
    change.assign(its.tenants, tenant, true)
  end
  used[queue] = used[queue] or {}
  used[queue][tenant] = (used[queue][tenant] or 0) + usage.ms(math.max(now_us - from_us, 0))
end

-- Jobs end or wait again; lines: theirs in R:holds. A key of a foreign type must not keep a job
-- from ending.
function charges.finish_all(ledger, lines)
  local used, paid = {}, ledger.paid or {}
  ledger.paid = paid
  for _, line in ipairs(lines) do
    local from_us, began, queue, tenant = charges.read_line(line)
    if from_us then
      change.unless_foreign(finish, ledger.R, from_us, began, queue, tenant, ledger.now_us, used,
                            paid)
    end
  end
  for queue, of_tenants in pairs(used) do
    commit.hint(usage.count, ledger.R, queue, of_tenants, ledger.now_us)
  end
end
