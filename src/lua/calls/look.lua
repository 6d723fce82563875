-- later_v2_look R SOON QUEUE... -> [now_us, timer_ms, name...]
--
-- Which of these queues, 1,000 at most, a step has to name now or soon: those with a head that is
-- due within SOON ms, a mark, a pause, raw members, or jobs of priority 5 without a head (it was
-- lost). timer_ms: when a gate needs a step, as in calls/step.lua. A worker asks this once a
-- second, of its next queues by turns; the step that names them learns the rest. no-writes.
-- Cost: O(names).

local MOST = 1000

L.register('later_v2_look', {'no-writes'}, function(R, args)
  local soon = L.whole(args[1])
  if not soon or #args < 2 or #args > MOST + 1 then
    L.fail('ELATER_ARGS', 'give SOON and 1 to ' .. L.int(MOST) .. ' queues')
  end
  local names, now_us = {unpack(args, 2)}, L.now_us()
  local until_ms = L.ms(now_us) + soon
  local marks, paused = L.know(R .. ':prio', names), L.know(R .. ':paused', names)
  local heads, rest, out = L.read_heads(R, names), {}, {now_us, L.next_timer(R)}
  for i = 1, #names do
    local name, head = names[i], heads[i] or false
    if not (marks[name] or paused[name] or head and tonumber(head) <= until_ms) then
      rest[i] = head
    end
  end
  local untold = L.find_untold(R, names, rest)
  for i = 1, #names do
    out[#out + 1] = (rest[i] == nil or untold[names[i]]) and names[i] or nil
  end
  return out
end)
