-- later_schedule_calendar R NAME YEAR -> the bits of a year, 256 bytes at most; '' for none
--
-- Rows of 64 bytes: due, ok, failed, missed; the highest bit of a byte is the first day. BITCOUNT
-- counts them. The schedule may be gone.
-- Errors: ELATER_ARGS SCHEDULE TYPE. no-writes. Cost: O(1).

local schedules = use 'schedule/schedules'

register('later_schedule_calendar', {'no-writes'}, function(R, args)
  local name, year = schedules.check_name(args[1]), whole(args[2])
  if not year or year < 1970 or year > 9999 then
    fail('ELATER_ARGS', 'give NAME YEAR')
  end
  return db('GET', R .. ':cal:' .. name .. ':' .. int(year)) or ''
end)
