-- later_v1_note R KIND NAME -> 'noted'
--
-- A worker saw something that an operator should know (KIND: stray-key). later_stats shows it for
-- ten minutes. For KIND raw-queue, NAME is a queue that has raw members but is not in R:names: it
-- becomes known, so that later_v1_tidy can tell whether anybody serves it.

local PEEK_BYTES = 1

L.register('later_v1_note', {'allow-oom'}, function(R, args)
  local kind, name = args[1] or '', args[2] or ''
  local now_ms = L.ms(L.now_us())
  if kind == 'raw-queue' then
    local queue = L.check_queue(name)
    L.check_names(R, queue)
    local key = R .. ':due:' .. queue
    if db('ZCARD', key) > 0 then
      local is_due = db('ZCOUNT', key, '-inf', L.int(now_ms)) > 0
      L.lower_head(R, queue, is_due and now_ms or
                   L.next_raw(key, 0, {now_ms = now_ms, peek = PEEK_BYTES},
                              db('ZSCORE', R .. ':heads', queue)))
    end
  else
    L.note(R, L.one_line(string.sub(kind .. ':' .. name, 1, L.NOTE_BYTES)), now_ms)
  end
  return 'noted'
end)
