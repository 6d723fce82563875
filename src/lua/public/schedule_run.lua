-- later_schedule_run R NAME [at T] [for T] [force] -> [id, status, due_ms]
--
-- Add a job of this schedule besides its occurrences, which stay as they are: due now, or at T, and
-- for the occurrence of `for`, which may be past; without it, for the time when it is due. One that
-- is due now a job before it may keep out, as `overlap` says: then status is skipped, id empty and
-- due_ms 0. One at a later T is added; overlap looks at it from then on. With `force` it is added
-- in any case, and overlap never looks at it. A pause does not hinder it.
-- status: added | skipped
-- Errors: ELATER_ARGS SCHEDULE NOSCHEDULE OPTION TIME, and those of later_add. Cost: as later_add.

local clock, instant, gate, waiters, schedules = use(
  'core/clock', 'core/instant', 'gates/gate', 'gates/waiters', 'schedule/schedules')
local FORM = 'give NAME [at T] [for T] [force]'

register('later_schedule_run', {}, function(R, args)
  local s, ledger = schedules.need(R, args[1]), gate.ledger(R, clock.now_us())
  local given, i = {}, 2
  while args[i] do
    local name = string.lower(args[i])
    if given[name] or (name ~= 'force' and not args[i + 1]) then
      fail('ELATER_OPTION', FORM)
    elseif name == 'at' then
      given.at, i = instant.time(args[i + 1], ledger.now_ms, 'at'), i + 2
    elseif name == 'for' then
      given['for'], i = instant.instant(args[i + 1], ledger.now_ms, 'for'), i + 2
    elseif name == 'force' then
      given.force, i = true, i + 1
    else
      fail('ELATER_OPTION', FORM)
    end
  end
  local c, due = schedules.cursor(R, s.name), given.at or ledger.now_ms
  local times = {at = given['for'] or due, due = due}
  local id, due_ms = schedules.start_occurrence(ledger, s, c, times, nil, given.force)
  schedules.put_cursor(R, s.name, c)
  waiters.hand_on(ledger)
  return {id or '', id and 'added' or 'skipped', due_ms or 0}
end)
