-- later_reschedule R ID T -> [id, 'moved', due_ms]
--
-- Give a waiting job another due time. A parked job leaves its gate and waits for that time.
-- T: as for `at`.
-- Errors: ELATER_ARGS NOJOB STATE TIME. Cost: O(log n).

local moves = module 'public/reschedule'
local clock, events, instant, jobs, gate, uniques, waiters = use(
  'core/clock', 'core/events', 'core/instant', 'core/jobs', 'gates/gate', 'gates/uniques',
  'gates/waiters')

-- Give a waiting or parked job another due time. state, job, tries: as jobs.find tells them. The
-- caller hands on what a parked job was let in at.
function moves.move_found(ledger, id, state, job, tries, due)
  if events.now then
    events.add('moved', id, job.queue, due)
  end
  if state == 'parked' then
    waiters.unpark(ledger, job.queue, id)
  else
    jobs.leave_waiting(ledger.R, id, job, tries)
  end
  jobs.enqueue(ledger.R, id, job, tries, due)
end

-- The same for an id. -> the reply of later_reschedule
function moves.move(R, id, due)
  local state, job, tries = jobs.find(R, id)
  if state ~= 'waiting' and state ~= 'parked' then
    fail('ELATER_STATE', 'job ' .. id .. ' is ' .. state .. ', only a waiting one can be moved' ..
         (state == 'dead' and ' (later_retry runs it again)' or ''))
  end
  local ledger = gate.ledger(R, clock.now_us())
  moves.move_found(ledger, id, state, job, tries, due)
  if state == 'parked' then
    waiters.hand_on(ledger)
  end
  return {id, 'moved', due}
end

register('later_reschedule', {'allow-oom'}, function(R, args)
  local id = uniques.check_id(R, args[1])
  if not args[2] then
    fail('ELATER_ARGS', 'give ID and the new time')
  end
  return moves.move(R, id, instant.time(args[2], clock.ms(clock.now_us()), 'time'))
end)
