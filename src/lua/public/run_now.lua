-- later_run_now R ID -> [id, 'moved', due_ms]
--
-- Make a waiting job due at once. Errors: ELATER_ARGS NOJOB STATE. Cost: O(log n).

L.register('later_run_now', {'allow-oom'}, function(R, args)
  return L.move(R, L.check_id(R, args[1]), L.ms(L.now_us()))
end)
