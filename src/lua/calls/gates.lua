-- later_v1_gates R GATE...
--   -> [[gate, limit, holders, [holder, since_ms, until_ms, fence, ...], waiting,
--        [who, how many, since_ms, ...], opens_ms]...]
--
-- Holders and waiters of these gates (kind:NAME, at most 100). limit: the definition; '' for locks
-- and where there is none. holders: how many, and the first 20 of them: a job, =OWNER or @EPOCH;
-- since_ms 0 where it is not known (leases of a semaphore), until_ms 0 for a holder that lives with
-- its job or worker, fence 0 for semaphores.
-- waiting: how many jobs and callers wait (of the first 1000 waiters), and the first 20 waiters, in
-- their turn: how many jobs each has parked there (1 for a program or caller), and since when its
-- first one waits. opens_ms: when a rate lets the next one pass, or a lease ends; 0: not by
-- itself, or it is open.
-- no-writes. Cost: O(gates * (20 + waiters, at most 1000)).

local gate_calls = module 'calls/gates'
local clock, gate, kinds, limits, rates = use(
  'core/clock', 'gates/gate', 'gates/kinds', 'gates/limits', 'gates/rates')
local SHOWN = 20

local function lock_holders(ledger, g)
  local row = redis.call('HMGET', g.key, 'holder', 'since', 'until', 'fence')
  local until_ms = whole(row[3]) or 0
  if not row[1] or (until_ms > 0 and until_ms <= ledger.now_ms) then
    return 0, {}
  end
  return 1, {row[1], whole(row[2]) or 0, until_ms, whole(row[4]) or 0}
end

local function sem_holders(ledger, g)
  local from, out = '(' .. int(ledger.now_ms), {}
  local rows = redis.call('ZRANGEBYSCORE', g.key, from, '+inf', 'WITHSCORES', 'LIMIT', 0, SHOWN)
  for i = 1, #rows, 2 do
    local until_ms = tonumber(rows[i + 1])
    local since_ms = until_ms - gate.LIVES
    local is_known = since_ms >= 0 and since_ms < LATEST
    for _, value in ipairs({rows[i], is_known and since_ms or 0, until_ms < gate.LIVES and
                            until_ms or 0, 0, }) do
      out[#out + 1] = value
    end
  end
  return redis.call('ZCOUNT', g.key, from, '+inf'), out
end

-- -> how many hold it, and the first of them as in the reply above. Nothing is changed.
function gate_calls.holders(ledger, g)
  if g.kind == 'lock' then
    return lock_holders(ledger, g)
  elseif g.kind == 'sem' then
    return sem_holders(ledger, g)
  end
  return 0, {}
end

local function waiters_of(R, gate_id)
  local key, total, out = R .. ':wait:' .. gate_id, 0, {}
  local rows = redis.call('ZRANGE', key, 0, 999, 'WITHSCORES')
  for i = 1, #rows, 2 do
    local who = rows[i]
    local n = string.match(who, '^[@=]') and 1 or redis.call('ZCARD', R .. ':line:' .. who .. ':' ..
                                                             gate_id)
    total = total + n
    if i < 2 * SHOWN then
      out[#out + 1] = who
      out[#out + 1] = n
      out[#out + 1] = clock.ms(tonumber(rows[i + 1]))
    end
  end
  return total, out
end

-- -> when a rate lets the next one pass and its timer is due (ms; 0: it would now; nil: not by
-- itself); how many permits are reserved for granted jobs. Nothing is changed.
function gate_calls.next_pass(ledger, g)
  local rate, kept = rates.RATES[g.limit.algorithm], redis.call('SCARD', g.granted)
  if rate.outlook(ledger, g) > kept then
    return 0, kept
  end
  local opens_ms = rate.opens(ledger, g, kept + 1)
  local timer = tonumber(redis.call('ZSCORE', ledger.R .. ':timers', 'gate:' .. g.id) or 0)
  return opens_ms and math.max(opens_ms, timer < LATEST and timer or 0), kept
end

local function describe(ledger, id)
  local kind = string.match(id, '^(%a+):.')
  if not kind or not kinds.KINDS[kind] then
    fail('ELATER_GATE', quote(id) .. ' is no gate: lock:NAME, sem:NAME or rate:NAME')
  end
  local g = gate.of(ledger, id)
  local holders, list = gate_calls.holders(ledger, g)
  local opens_ms = kind == 'rate' and g.limit and (gate_calls.next_pass(ledger, g)) or list[3] or 0
  local waiting, waiters = waiters_of(ledger.R, id)
  return {id, g.limit and limits.limit_text(g.limit) or '', holders, list, waiting, waiters,
          opens_ms}
end

register('later_v1_gates', {'no-writes'}, function(R, args)
  if #args < 1 or #args > 100 then
    fail('ELATER_ARGS', 'give 1 to 100 gates')
  end
  local ledger, out = gate.ledger(R, clock.now_us()), {}
  for i, id in ipairs(args) do
    out[i] = describe(ledger, id)
  end
  return out
end)
