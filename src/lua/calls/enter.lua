-- later_v1_enter R EPOCH GATE [wait]
--   -> [granted, fence, 0, ahead, holder] of later_lock, or [status]
-- later_v1_exit R EPOCH -> 'released' | 'not-held'
--
-- For a worker that runs a program under a lock or a semaphore (later lock, later sem). Its permit
-- has no lease: it lives with the worker, and a reap of the worker frees it. A worker holds or
-- waits for one gate.
-- GATE: lock:NAME or sem:NAME. wait: wait until its turn comes (R:wake then says @EPOCH;
-- the permit is kept for five seconds, and asking again takes it). status: dead | unknown.
-- later_v1_exit frees the permit, or ends the wait.
-- Errors: ELATER_ARGS GATE LIMIT TYPE. Cost: as later_lock.

local beats, clock, gate, limits, waiters, locks = use(
  'calls/beat', 'core/clock', 'gates/gate', 'gates/limits', 'gates/waiters', 'public/lock')

register('later_v1_enter', {}, function(R, args)
  local epoch, id = args[1] or '', args[2] or ''
  local kind, name = string.match(id, '^(%a+):(.+)$')
  if kind ~= 'lock' and kind ~= 'sem' then
    fail('ELATER_ARGS', 'give EPOCH and lock:NAME or sem:NAME')
  end
  limits.check_gate_name(kind, name)
  local status = beats.worker(R, epoch)
  if status ~= 'ok' then
    return {status}
  end
  local was = db('HGET', R .. ':worker:' .. epoch, 'gate')
  if was and was ~= id then
    fail('ELATER_ARGS', 'this worker holds or waits for ' .. quote(was))
  end
  local ledger = gate.ledger(R, clock.now_us())
  local g = gate.of(ledger, id)
  if kind == 'sem' and not locks.has_lease(ledger, g, '@' .. epoch) then
    limits.need_limit(R, kind, name) -- a holder keeps its permit
  end
  local reply = locks.enter(ledger, g, '@' .. epoch, nil, args[3] and 0 or nil)
  if reply[1] == 1 or args[3] then
    db('HSET', R .. ':worker:' .. epoch, 'gate', id)
  end
  return reply
end)

register('later_v1_exit', {'allow-oom'}, function(R, args)
  local epoch = args[1] or ''
  local ledger = gate.ledger(R, clock.now_us())
  local held = locks.leave_gate(ledger, epoch)
  db('HDEL', R .. ':worker:' .. epoch, 'gate')
  waiters.hand_on(ledger)
  return held and 'released' or 'not-held'
end)
