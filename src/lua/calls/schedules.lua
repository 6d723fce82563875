-- later_v1_schedules R CURSOR -> [now_us, changed, CURSOR, row...]
--
-- A page of all schedules, for workers and `later schedule ls`. CURSOR: 0 first, then that of the
-- last reply; 0 in a reply: there are no more. changed: the clock number of the last change of a
-- definition, '' for none. row: as of later_schedules. As with HSCAN, one that is there all the
-- time comes at least once.
-- Errors: ELATER_ARGS TYPE. no-writes. Cost: O(1) a page.

local clock, schedule_pages = use('core/clock', 'public/schedules')

register('later_v1_schedules', {'no-writes'}, function(R, args)
  if not whole(args[1]) then
    fail('ELATER_ARGS', 'give CURSOR')
  end
  local now_us = clock.now_us()
  local out = {now_us, db('HGET', R .. ':schedule:state', 'changed') or '', ''}
  out[3] = schedule_pages.schedule_page(R, args[1], out, clock.ms(now_us))
  return out
end)
