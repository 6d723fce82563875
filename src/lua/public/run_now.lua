-- later_run_now R ID -> [id, 'moved', due_ms]
--
-- Make a waiting job due at once. Errors: ELATER_ARGS NOJOB STATE. Cost: O(log n).

local clock, uniques, moves = use('core/clock', 'gates/uniques', 'public/reschedule')

register('later_run_now', {'allow-oom'}, function(R, args)
  return moves.move(R, uniques.check_id(R, args[1]), clock.ms(clock.now_us()))
end)
