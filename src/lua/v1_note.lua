-- later_v1_note R KIND NAME -> 'noted'
--
-- A worker saw something an operator should know (KIND: stray-key). Shown by later_stats for ten
-- minutes. For KIND raw-queue, NAME is a queue that has raw jobs but was never heard of: it becomes
-- known, so that v1_tidy can tell whether anybody serves it.

L.register('later_v1_note', {'allow-oom'}, function(R, args)
  local kind, name = args[1] or '', args[2] or ''
  local now_ms = L.ms(L.now_us())
  if kind == 'raw-queue' then
    local queue = L.check_queue(name)
    L.check_room(R, queue)
    -- When the first is due the next step finds out.
    if db('ZCARD', R .. ':due:' .. queue) > 0 and not db('ZSCORE', R .. ':heads', queue) then
      L.lower_head(R, queue, now_ms)
    end
  else
    L.note(R, L.line(string.sub(kind .. ':' .. name, 1, 200)), now_ms)
  end
  return 'noted'
end)
