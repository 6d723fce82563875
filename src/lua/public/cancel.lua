-- later_cancel R ID [waiting] -> 'cancelled' | 'cancelling' | 'freed'
--
-- A waiting or parked job ends at once. A running one is flagged: its worker terminates the
-- handler, and the job ends as cancelled, whatever the result of the attempt is (unless the handler
-- finishes first: then it is done). With `waiting` a running job is refused instead.
-- QUEUE@KEY names the job that has a unique key. If that job has ended and unique_for still holds
-- the key, the key is freed.
-- The outcome `cancelled` is kept as long as the job's own `keep` says.
-- Errors: ELATER_ARGS OPTION NOJOB STATE TYPE. Cost: O(log n).

local cancels = module 'public/cancel'
local clock, events, jobs, gate, uniques, waiters, commit = use(
  'core/clock', 'core/events', 'core/jobs', 'gates/gate', 'gates/uniques', 'gates/waiters',
  'txn/commit')

-- Flag a running job: its worker ends it.
local function flag(R, id, job, tries, now_ms)
  db('HSET', R .. ':cancel', id, int(now_ms))
  commit.wake(R, '!cancel')
  if events.now then
    events.add('cancelling', id, job.queue, nil, tries.starts)
  end
end

-- Cancel a live job. state, job, tries: as jobs.find tells them; why: for the outcome of a waiting
-- one, nil for the usual text -> 'cancelled' | 'cancelling'
function cancels.cancel(ledger, id, state, job, tries, why)
  local R, now_ms = ledger.R, ledger.now_ms
  if state == 'running' then
    flag(R, id, job, tries, now_ms)
    return 'cancelling'
  elseif state == 'parked' then
    waiters.unpark(ledger, job.queue, id)
  end
  jobs.leave_waiting(R, id, job, tries)
  jobs.finish(R, job, id, jobs.outcome('cancelled', 0, now_ms, tries.starts, why or
                                       'cancelled while waiting', ''), now_ms,
              tonumber(job.k or '0'))
  commit.count(R, 'cancelled', job.queue, 1)
  return 'cancelled'
end

register('later_cancel', {'allow-oom'}, function(R, args)
  local id = uniques.check_id(R, args[1])
  if args[2] and string.lower(args[2]) ~= 'waiting' then
    fail('ELATER_OPTION', 'unknown option ' .. quote(args[2]) .. ' (there is only: waiting)')
  end
  local queue, key = string.match(args[1], '^([^@]*)@(.+)$')
  if queue and not jobs.is_live(jobs.locate(R, id)) then
    db('DEL', R .. ':uniq:' .. queue .. ':' .. key)
    return 'freed'
  end
  local state, job, tries = jobs.find(R, id)
  if not jobs.is_live(state) then
    fail('ELATER_STATE', 'job ' .. id .. ' is ' .. state .. ' already')
  elseif state == 'running' and args[2] then
    fail('ELATER_STATE', 'job ' .. id .. ' is running')
  end
  local ledger = gate.ledger(R, clock.now_us())
  local answer = cancels.cancel(ledger, id, state, job, tries)
  waiters.hand_on(ledger)
  return answer
end)
