-- later_schedule_run R NAME [at T] [force] -> [id, status, due_ms]
--
-- Add a job of this schedule now, or for T, besides its occurrences, which stay as they are. The
-- last job may keep it out, as `overlap` says: then status is skipped, id empty and due_ms 0. With
-- `force` it is added all the same. A pause does not hinder it. status: added | skipped
-- Errors: ELATER_ARGS SCHEDULE NOSCHEDULE OPTION TIME, and those of later_add. Cost: as later_add.

L.register('later_schedule_run', {}, function(R, args)
  local s, book, at, is_forced = L.need_schedule(R, args[1]), L.book(R, L.now_us()), nil, false
  local i = 2
  while args[i] do
    local name = string.lower(args[i])
    if name == 'at' and args[i + 1] and not at then
      at, i = L.time(args[i + 1], book.now_ms, 'at'), i + 2
    elseif name == 'force' and not is_forced then
      is_forced, i = true, i + 1
    else
      L.fail('ELATER_OPTION', 'give NAME [at T] [force]')
    end
  end
  local c = L.schedule_cursor(R, s.name)
  local id, due = L.start_occurrence(book, s, c, at or book.now_ms, nil, is_forced)
  L.put_cursor(R, s.name, c)
  L.hand_on(book)
  return {id or '', id and 'added' or 'skipped', due or 0}
end)
