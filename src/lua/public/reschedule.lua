-- later_reschedule R ID T -> [id, 'moved', due_ms]
--
-- Give a waiting job another due time. A parked job leaves its gate and waits for that time.
-- T: as for `at`.
-- Errors: ELATER_ARGS NOJOB STATE TIME. Cost: O(log n).

-- Give a waiting or parked job another due time. -> the reply of later_reschedule
function L.move(R, id, due)
  local state, job, tries = L.find(R, id)
  if state ~= 'waiting' and state ~= 'parked' then
    L.fail('ELATER_STATE', 'job ' .. id .. ' is ' .. state .. ', only a waiting one can be moved' ..
           (state == 'dead' and ' (later_retry runs it again)' or ''))
  end
  local book = L.book(R, L.now_us())
  if L.events then
    L.event('moved', id, job.queue, due)
  end
  if state == 'parked' then
    L.unpark(book, job.queue, id)
    L.enqueue(R, id, job, tries, due)
    L.hand_on(book)
    return {id, 'moved', due}
  end
  L.enqueue(R, id, job, tries, due)
  return {id, 'moved', due}
end

L.register('later_reschedule', {'allow-oom'}, function(R, args)
  local id = L.check_id(R, args[1])
  if not args[2] then
    L.fail('ELATER_ARGS', 'give ID and the new time')
  end
  return L.move(R, id, L.time(args[2], L.ms(L.now_us()), 'time'))
end)
