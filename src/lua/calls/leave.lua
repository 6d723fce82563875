-- later_v1_leave R EPOCH -> 'left' | 'holds' | 'unknown'
--
-- A worker leaves in good order. One that still holds jobs may not: it is reaped instead. unknown:
-- it is not registered, or was given up.

L.register('later_v1_leave', {'allow-oom'}, function(R, args)
  local epoch = args[1] or ''
  if L.worker(R, epoch) ~= 'ok' then
    return 'unknown'
  end
  if db('ZCOUNT', R .. ':running', epoch, epoch) > 0 then
    return 'holds'
  end
  local book = L.book(R, L.now_us())
  L.leave_gate(book, epoch)
  L.hand_on(book)
  db('HDEL', R .. ':workers', epoch)
  L.drop_key(R .. ':worker:' .. epoch)
  return 'left'
end)
