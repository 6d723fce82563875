-- later_pause R QUEUE [by WHO] [reason TEXT] [for D] -> 'paused'
--
-- No job of this queue is claimed until later_resume, or for D. Claimed jobs go on. Pausing again
-- replaces who, reason and time. A queue need not exist yet.
-- Errors: ELATER_ARGS QUEUE OPTION TIME TYPE FULL. Cost: O(1).

local pauses = module 'public/pause'
local clock, adds = use('core/clock', 'public/add')

-- Read [by WHO] [reason TEXT] [for D] behind args[1]. -> a value as in R:paused
function pauses.read_pause(args, now_ms)
  local given = {by = '-', reason = ''}
  local until_ms = 0
  if #args % 2 == 0 then
    fail('ELATER_ARGS', 'an option has no value: [by WHO] [reason TEXT] [for D]')
  end
  for i = 2, #args, 2 do
    local name = string.lower(args[i])
    if name == 'for' then
      until_ms = now_ms + adds.positive('for', args[i + 1])
    elseif name == 'by' or name == 'reason' then
      given[name] = one_line(string.sub(args[i + 1], 1, 200))
    else
      fail('ELATER_OPTION', 'unknown option ' .. quote(args[i]) .. ' (there are: by reason for)')
    end
  end
  local who = string.gsub(given.by, '%s', '_')
  return int(until_ms) .. ' ' .. int(now_ms) .. ' ' .. (who == '' and '-' or who) .. ' ' ..
         given.reason
end

register('later_pause', {'allow-oom'}, function(R, args)
  local queue = check_queue(args[1])
  local text = pauses.read_pause(args, clock.ms(clock.now_us()))
  adds.check_names(R, queue)
  db('HSET', R .. ':paused', queue, text)
  db('SADD', R .. ':names', queue)
  return 'paused'
end)
