-- later_throttle R NAME [quota N] -> [limited, limit, left, retry_after_ms, reset_after_ms]
--
-- Take N (1 without it) permits of a rate, all or none. The reply has the shape of
-- CL.THROTTLE of redis-cell, with times in ms. limited: 1 when nothing was counted. limit: how many
-- can pass at once. left: how many could pass now. retry_after_ms: after how long N can pass; -1
-- when they did or never can (N over the limit). reset_after_ms: after how long all is as if
-- nothing had been counted.
-- Jobs that wait for this rate come first: while there are any, the answer is limited.
-- Errors: ELATER_ARGS GATE OPTION LIMIT TYPE. Cost: O(log n) for sliding, else O(1).

local clock, gate, limits, rates = use('core/clock', 'gates/gate', 'gates/limits', 'gates/rates')

-- -> in how many ms n can pass, -1 for never. kept: permits that are reserved for granted jobs.
-- Where n + kept are more than the limit, the time for n alone.
local function retry_after(ledger, g, n, kept)
  local rate = rates.RATES[g.limit.algorithm]
  local opens_ms = rate.opens(ledger, g, n + kept) or rate.opens(ledger, g, n)
  return opens_ms and math.max(opens_ms - ledger.now_ms, 1) or -1
end

register('later_throttle', {}, function(R, args)
  local name = limits.check_gate_name('rate', args[1])
  local n = 1
  if #args ~= 1 then
    if #args ~= 3 or string.lower(args[2]) ~= 'quota' then
      fail('ELATER_ARGS', 'give NAME [quota N]')
    end
    n = check_whole('ELATER_OPTION', 'quota', args[3], 1, limits.MAX_PERMITS)
  end
  local ledger = gate.ledger(R, clock.now_us())
  local g = gate.of(ledger, 'rate:' .. name)
  limits.need_limit(R, 'rate', name)
  local rate, kept = rates.RATES[g.limit.algorithm], db('SCARD', g.granted)
  local is_limited = #db('ZRANGE', g.waiters, 0, 0) > 0 or gate.free_permits(ledger, g) < n
  local retry_ms = -1
  if is_limited then
    retry_ms = retry_after(ledger, g, n, kept)
  else
    rate.take(ledger, g, n)
  end
  local left, reset_us = rate.outlook(ledger, g)
  return {is_limited and 1 or 0, g.limit.algorithm == 'gcra' and g.limit.burst or g.limit.n,
          math.max(left - kept, 0), retry_ms,
          math.ceil(math.max(reset_us, 0) / 1000)}
end)
