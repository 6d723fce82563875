-- later_cancel R ID [waiting] -> 'cancelled' | 'cancelling' | 'freed'
--
-- A waiting or parked job ends at once. A running one is flagged: its worker terminates the
-- handler, and the job ends as cancelled, whatever the result of the attempt is (unless the handler
-- finishes first: then it is done). With `waiting` a running job is refused instead.
-- QUEUE@KEY names the job that has a unique key. If that job has ended and unique_for still holds
-- the key, the key is freed.
-- The outcome `cancelled` is kept as long as the job's own `keep` says.
-- Errors: ELATER_ARGS OPTION NOJOB STATE TYPE. Cost: O(log n).

-- Flag a running job: its worker ends it.
local function flag(R, id, job, tries, now_ms)
  db('HSET', R .. ':cancel', id, L.int(now_ms))
  L.wake(R, '!cancel')
  if L.events then
    L.event('cancelling', id, job.queue, nil, tries.starts)
  end
end

-- Cancel a live job. state, job, tries: as L.find tells them; why: for the outcome of a waiting
-- one, nil for the usual text -> 'cancelled' | 'cancelling'
function L.cancel(book, id, state, job, tries, why)
  local R, now_ms = book.R, book.now_ms
  if state == 'running' then
    flag(R, id, job, tries, now_ms)
    return 'cancelling'
  elseif state == 'parked' then
    L.unpark(book, job.queue, id)
  end
  db('ZREM', L.waiting_key(R, job, tries), id)
  L.finish(R, job, id,
           L.outcome('cancelled', 0, now_ms, tries.starts, why or 'cancelled while waiting',
                     ''), now_ms,
           tonumber(job.k or '0'))
  L.count(R, 'cancelled', job.queue, 1)
  return 'cancelled'
end

L.register('later_cancel', {'allow-oom'}, function(R, args)
  local id = L.check_id(R, args[1])
  if args[2] and string.lower(args[2]) ~= 'waiting' then
    L.fail('ELATER_OPTION', 'unknown option ' .. L.quote(args[2]) .. ' (there is only: waiting)')
  end
  local queue, key = string.match(args[1], '^([^@]*)@(.+)$')
  if queue and not L.is_live(L.locate(R, id)) then
    db('DEL', R .. ':uniq:' .. queue .. ':' .. key)
    return 'freed'
  end
  local state, job, tries = L.find(R, id)
  if not L.is_live(state) then
    L.fail('ELATER_STATE', 'job ' .. id .. ' is ' .. state .. ' already')
  elseif state == 'running' and args[2] then
    L.fail('ELATER_STATE', 'job ' .. id .. ' is running')
  end
  local book = L.book(R, L.now_us())
  local answer = L.cancel(book, id, state, job, tries)
  L.hand_on(book)
  return answer
end)
