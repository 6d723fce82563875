-- later_v1_leave R EPOCH -> 'left' | 'holds' | 'unknown'
--
-- A worker leaves in good order. One that still holds jobs may not: it is reaped instead. unknown:
-- it is not registered, or was given up.

local beats, clock, gate, waiters, locks, change = use(
  'calls/beat', 'core/clock', 'gates/gate', 'gates/waiters', 'public/lock', 'txn/change')

register('later_v1_leave', {'allow-oom'}, function(R, args)
  local epoch = args[1] or ''
  if beats.worker(R, epoch) ~= 'ok' then
    return 'unknown'
  end
  if db('ZCOUNT', R .. ':running', epoch, epoch) > 0 then
    return 'holds'
  end
  local ledger = gate.ledger(R, clock.now_us())
  locks.leave_gate(ledger, epoch)
  waiters.hand_on(ledger)
  db('HDEL', R .. ':workers', epoch)
  change.drop_key(R .. ':worker:' .. epoch)
  return 'left'
end)
