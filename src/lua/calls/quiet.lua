-- later_v1_quiet R EPOCH|* on|off -> how many workers were told
--
-- Tell one worker or all to claim no more, or to claim again. R:wake makes them beat at once; else
-- they learn it with their next beat.

local commit = use 'txn/commit'

register('later_v1_quiet', {'allow-oom'}, function(R, args)
  local who, what = args[1], args[2]
  if not who or (what ~= 'on' and what ~= 'off') then
    fail('ELATER_ARGS', 'give EPOCH or *, and on or off')
  end
  local told = {}
  local all = db('HGETALL', R .. ':workers')
  for i = 1, #all, 2 do
    if (who == '*' or who == all[i]) and all[i + 1] ~= 'dead' then
      told[#told + 1] = all[i]
    end
  end
  if #told == 0 then
    fail('ELATER_WORKER', who == '*' and 'there is no worker' or 'there is no worker ' ..
         quote(who))
  end
  for _, epoch in ipairs(told) do
    db('HSET', R .. ':worker:' .. epoch, 'quiet', what == 'on' and '1' or '0')
  end
  commit.wake(R, '!beat')
  return #told
end)
