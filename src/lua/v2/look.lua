-- later_v2_look R SOON QUEUE... -> [now_us, timer_ms, name...]
--
-- Which of these queues, 1,000 at most, a step has to name now or soon: those with a head that is
-- due within SOON ms, a mark, a pause, raw members, or jobs of priority 5 without a head (it was
-- lost). timer_ms: when a gate wants a step, as v1/step.lua tells it. A worker asks this once a
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
  local heads, raw, five = L.read_heads(R, names), R .. ':due:', R .. ':q:'
  local is_told, keys, exists, out = {}, {}, {}, {now_us, L.next_timer(R)}
  for i = 1, #names do
    local name, head = names[i], heads[i]
    is_told[i] = marks[name] or paused[name] or head and tonumber(head) <= until_ms
    if not is_told[i] then
      keys[#keys + 1] = raw .. name
      keys[#keys + 1] = not head and five .. name .. ':5' or nil
    end
  end
  L.find_existing(keys, 1, #keys, exists)
  local is_any = next(exists) ~= nil
  for i = 1, #names do
    local name = names[i]
    if is_told[i] or is_any and (exists[raw .. name] or exists[five .. name .. ':5']) then
      out[#out + 1] = name
    end
  end
  return out
end)
