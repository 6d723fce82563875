-- later_schedule_pause R NAME [by WHO] [reason TEXT] [for D] -> [NAME, 'paused']
-- later_schedule_resume R NAME -> [NAME, 'resumed' | 'repeated']
--
-- Occurrences of a paused schedule add no jobs: they are counted as skipped. Pausing again replaces
-- who, reason and time.
-- Errors: ELATER_ARGS SCHEDULE NOSCHEDULE OPTION TIME TYPE. Cost: O(1).

local clock, pauses, schedules = use('core/clock', 'public/pause', 'schedule/schedules')

register('later_schedule_pause', {'allow-oom'}, function(R, args)
  local s = schedules.need(R, args[1])
  db('HSET', R .. ':schedule:paused', s.name, pauses.read_pause(args, clock.ms(clock.now_us())))
  return {s.name, 'paused'}
end)

register('later_schedule_resume', {'allow-oom'}, function(R, args)
  local s = schedules.need(R, args[1])
  local was = db('HDEL', R .. ':schedule:paused', s.name)
  return {s.name, was == 1 and 'resumed' or 'repeated'}
end)
