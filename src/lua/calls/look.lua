-- later_v2_look R SOON QUEUE... -> [now_us, timer_ms, name...]
--
-- Which of these queues, 1,000 at most, a sync has to name now or soon: those with a head that is
-- due within SOON ms, a flag, a pause, raw members, or jobs of priority 5 without a head (it was
-- lost). A queue that is fair has a flag all the time: it counts while the queue becomes so, or is
-- so no more (fair/passes.lua). timer_ms: when a gate needs a sync, as in calls/sync.lua. A worker
-- asks this once a second, of its next queues by turns; the sync that names them learns the rest.
-- no-writes. Cost: O(names).

local idle, clock, tenants, waiters, txn = use(
  'claim/idle', 'core/clock', 'fair/tenants', 'gates/waiters', 'txn/txn')
local MOST = 1000

-- -> name -> true: the fair queues that have nothing to do but to share their places
local function sharing(R, names, flags)
  local fair, out = {}, {}
  for i = 1, #names do
    fair[#fair + 1] = flags[names[i]] == 'f' and names[i] or nil
  end
  local states = fair[1] and txn.know(R .. ':fair', fair) or {}
  for _, name in ipairs(fair) do
    local _, _, todo = tenants.read_state(states[name] or nil)
    out[name] = todo == ''
  end
  return out
end

register('later_v2_look', {'no-writes'}, function(R, args)
  local soon = whole(args[1])
  if not soon or #args < 2 or #args > MOST + 1 then
    fail('ELATER_ARGS', 'give SOON and 1 to ' .. int(MOST) .. ' queues')
  end
  local names, now_us = {unpack(args, 2)}, clock.now_us()
  local until_ms = clock.ms(now_us) + soon
  local flags, paused = txn.know(R .. ':prio', names), txn.know(R .. ':paused', names)
  local heads, rest, out = idle.read_heads(R, names), {}, {now_us, waiters.next_timer(R)}
  local is_sharing = sharing(R, names, flags)
  for i = 1, #names do
    local name, head = names[i], heads[i] or false
    local is_flagged = flags[name] and not is_sharing[name]
    if not (is_flagged or paused[name] or head and tonumber(head) <= until_ms) then
      rest[i] = head
    end
  end
  local untold = idle.find_untold(R, names, rest)
  for i = 1, #names do
    out[#out + 1] = (rest[i] == nil or untold[names[i]]) and names[i] or nil
  end
  return out
end)
