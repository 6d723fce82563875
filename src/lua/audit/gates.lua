-- Phases of later_v1_audit and later_v1_repair (calls/audit.lua) about gates, and their checks of a
-- parked job.
--   parked holds   (no name) HSCAN of the hashes
--   gates          NAME: keys relative to R: lock:… sem:… rate:granted:… wait:… granted:…
-- A parked job must be among the jobs parked at the gate that its spot names, or be granted. A
-- holder of a gate must be a job whose entry of R:holds names the gate, a registered worker, or
-- have a lease. Of the waiters of a gate, each program and caller must have an entry in R:parked,
-- each queue a parked job there. A repair makes a job that is at no gate wait in its queue again,
-- and frees permits that no holder can give back any more.

local audit_gates = module 'audit/gates'
local audit, clock, jobs, gate, holding, waiters, lock_rows = use(
  'audit/audit', 'core/clock', 'core/jobs', 'gates/gate', 'gates/holding', 'gates/waiters',
  'txn/lock_rows')

local function is_parked(R, id)
  local job = jobs.parse(db('HGET', R .. ':jobs', id) or nil)
  return job and db('ZSCORE', R .. ':parked:' .. job.queue, id) and true or false
end

-- Let a parked job leave its gate, as far as its spot and the keys of the gate are still there.
function audit_gates.unpark(R, queue, id)
  local ledger = gate.ledger(R, clock.now_us())
  waiters.unpark(ledger, queue, id)
  waiters.hand_on(ledger)
end

-- Judge a job that is in parked:<queue> and in no other set.
function audit_gates.each_parked(ctx, row)
  local R, id, queue = ctx.R, row.id, row.queue
  local spot = waiters.read_spot(db('HGET', R .. ':parked', id) or nil)
  local gate_id = spot and spot.gates[spot.at]
  local why
  if not spot then
    why = 'its spot is missing or corrupt'
  elseif not gate_id and not db('ZSCORE', R .. ':granted:' .. queue, id) then
    why = 'it was let in, and is not among the granted jobs'
  elseif gate_id and not db('ZSCORE', R .. ':line:' .. queue .. ':' .. gate_id, id) then
    why = 'it is not among the jobs parked at ' .. gate_id
  end
  if why then
    ctx.tell('lost-waiter', id, queue, why, function()
      audit_gates.unpark(R, queue, id)
      jobs.enqueue(R, id, row.job, jobs.tries(row.tries or nil), spot and spot.due or ctx.now_ms)
    end)
  elseif gate_id and not db('ZSCORE', R .. ':wait:' .. gate_id, queue) and
         db('SISMEMBER', R .. ':aside:' .. queue, gate_id) == 0 then
    ctx.tell('lost-waiter', id, queue, 'its queue is no waiter at ' .. gate_id, function()
      db('SADD', R .. ':aside:' .. queue, gate_id)
      jobs.flag_set(R, queue, 'a')
    end)
  end
end

local function judge_spot(ctx, field)
  local R = ctx.R
  local who, gate_id = string.match(field, '^([@=][^\n]*)\n(.+)$')
  if who and not db('ZSCORE', R .. ':wait:' .. gate_id, who) or not who and
     not is_parked(R, field) then
    local text = 'an entry of parked, and it waits for no gate'
    ctx.tell('leftover', who or field, '', text, function()
      db('HDEL', R .. ':parked', field)
    end)
  end
end

-- Phase parked. -> next cursor, how many entries
function audit_gates.each_spot(ctx, cursor, count)
  return audit.each(ctx, db('HSCAN', ctx.R .. ':parked', cursor, 'COUNT', count), judge_spot)
end

local function judge_held(ctx, id)
  local R = ctx.R
  if not db('ZSCORE', R .. ':running', id) and not is_parked(R, id) then
    ctx.tell('leftover', id, '', 'it is in holds, and neither running nor parked', function()
      local ledger = gate.ledger(R, clock.now_us())
      holding.let_go(ledger, {id})
      waiters.hand_on(ledger)
    end)
  end
end

-- Phase holds. -> next cursor, how many entries
function audit_gates.each_hold(ctx, cursor, count)
  return audit.each(ctx, db('HSCAN', ctx.R .. ':holds', cursor, 'COUNT', count), judge_held)
end

-- -> why this holder cannot have the gate, or nil. is_leased: its permit has an end
local function bad_holder(R, gate_id, holder, is_leased)
  local epoch = string.match(holder, '^@(.*)$')
  if epoch then
    if db('HEXISTS', R .. ':workers', epoch) == 0 and not is_leased then
      return 'worker ' .. epoch .. ' is not registered'
    end
  elseif string.match(holder, '^=') then
    return not is_leased and 'its lease has no end' or nil
  elseif not string.find('\n' .. (db('HGET', R .. ':holds', holder) or '') .. '\n', '\n' ..
                         gate_id .. '\n', 1, true) then
    return 'the job does not know of it'
  end
  return nil
end

local function judge_holder(ctx, gate_id, holder, is_leased)
  local why = bad_holder(ctx.R, gate_id, holder, is_leased)
  if why then
    local text = 'held by ' .. one_line(holder) .. ', and ' .. why
    ctx.tell('stale-holder', gate_id, '', text, function()
      local ledger = gate.ledger(ctx.R, clock.now_us())
      gate.drop(ledger, gate.of(ledger, gate_id), holder)
      waiters.hand_on(ledger)
    end)
  end
end

local JUDGES = {}

function JUDGES.lock(ctx, name)
  local row = lock_rows.lock_row(ctx.R .. ':lock:' .. name)
  if row then
    judge_holder(ctx, 'lock:' .. name, row[1], (tonumber(row[2] or '0') or 0) > 0)
  end
end

function JUDGES.sem(ctx, name)
  local holders = db('ZRANGE', ctx.R .. ':sem:' .. name, 0, 999, 'WITHSCORES')
  for i = 1, #holders, 2 do
    judge_holder(ctx, 'sem:' .. name, holders[i], tonumber(holders[i + 1]) < gate.LIVES)
  end
end

function JUDGES.rate(ctx, rest)
  local name = string.match(rest, '^granted:(.+)$')
  for _, job in ipairs(name and db('SRANDMEMBER', ctx.R .. ':rate:' .. rest, 1000) or {}) do
    judge_holder(ctx, 'rate:' .. name, job, false)
  end
end

function JUDGES.wait(ctx, gate_id)
  local R = ctx.R
  for _, who in ipairs(db('ZRANGE', R .. ':wait:' .. gate_id, 0, 999)) do
    local is_there
    if string.match(who, '^[@=]') then
      is_there = db('HEXISTS', R .. ':parked', who .. '\n' .. gate_id) == 1
    else
      is_there = db('EXISTS', R .. ':line:' .. who .. ':' .. gate_id) == 1
    end
    if not is_there then
      local text = one_line(who) .. ' is among its waiters, but does not wait there'
      ctx.tell('leftover', gate_id, '', text, function()
        db('ZREM', R .. ':wait:' .. gate_id, who)
      end)
    end
  end
end

function JUDGES.granted(ctx, queue)
  local R = ctx.R
  for _, id in ipairs(db('ZRANGE', R .. ':granted:' .. queue, 0, 999)) do
    if not db('ZSCORE', R .. ':parked:' .. queue, id) then
      ctx.tell('leftover', id, queue, 'it is among the granted jobs, and not parked', function()
        db('ZREM', R .. ':granted:' .. queue, id)
      end)
    end
  end
end

-- Phase gates. -> next cursor, how many entries
function audit_gates.each_gate(ctx, names)
  for _, name in ipairs(names) do
    local kind, rest = string.match(name, '^(%a+):(.+)$')
    -- The phase keys reports a foreign type.
    if JUDGES[kind] then
      pcall(JUDGES[kind], ctx, rest)
    end
  end
  return '0', #names
end
