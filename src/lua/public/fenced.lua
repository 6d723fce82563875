-- later_fence_check R NAME FENCE -> 1 | 0
-- later_fenced R NAME FENCE COMMAND [ARG...] -> the reply of COMMAND
--
-- Does FENCE belong to the present holder of the lock NAME? later_fenced checks this and runs the
-- command in one call. So a holder that has lost the lock cannot write: it gets ELATER_STALE. Jobs,
-- and programs under `later lock`, have their fence in LATER_FENCE; later_lock replies with it. The
-- command runs with the rights of the caller and must name keys on this server.
-- Errors: ELATER_ARGS GATE STALE TYPE, and what the command raises. Cost: O(1) and the command.

local clock, limits = use('core/clock', 'gates/limits')

local function is_current(R, name, fence)
  limits.check_gate_name('lock', name)
  if not whole(fence) then
    fail('ELATER_ARGS', 'give NAME FENCE, a whole number')
  end
  local row = redis.call('HMGET', R .. ':lock:' .. name, 'fence', 'until', 'depth')
  local until_ms = whole(row[2]) or 0
  return row[1] == fence and row[3] ~= '0' and
         (until_ms == 0 or until_ms > clock.ms(clock.now_us()))
end

register('later_fence_check', {'no-writes'}, function(R, args)
  return is_current(R, args[1], args[2]) and 1 or 0
end)

register('later_fenced', {}, function(R, args)
  if not args[3] then
    fail('ELATER_ARGS', 'give NAME FENCE COMMAND [ARG...]')
  end
  if not is_current(R, args[1], args[2]) then
    fail('ELATER_STALE', 'fence ' .. args[2] .. ' is not that of the holder of the lock ' ..
         quote(args[1]) .. ' any more: what it guarded must stop')
  end
  return redis.call(unpack(args, 3))
end)
