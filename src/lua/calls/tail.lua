-- later_v1_tail R FOR_MS -> [now_ms, was_on]
--
-- For `later tail`, which follows the events of jobs: for FOR_MS, at most a minute, each call in
-- this namespace publishes on R:events what it did. Repeat this call before the time is over.
-- was_on: 0 when nobody followed, so that what happened just before was not published. A variable
-- of the loaded library keeps this, not a key: other calls pay nothing while nobody follows; a
-- restart of Redis or a new library forgets it until the next call of this function. Cost: O(1).
--
-- A message is text, separated by LF: first `1 <now_ms> <left out>`, then for each event
--   <event> <id> <queue> <due ms> <start> <attempt> <code> <text>
-- `-` stands for what an event has not. Events: added replaced moved retried (a dead one by hand)
-- started parked failed (due: when it is tried again) released cancelling (it runs) done dead
-- cancelled batch-sealed batch-ended schedule-fired (a job was added) schedule-skipped
-- schedule-missed. text: why, for failed, done, dead and cancelled; where it comes from, for added
-- (`topic NAME`, `broadcast to TARGET`, `adopted from KEY`); the name of a batch or a schedule, and
-- how many occurrences were skipped or missed. Events are hints: they are published,
-- not kept. A caller without a right to the channel publishes nothing. Beyond 5,000 events a
-- second, or 64 KiB a call, events are only counted, as `left out`.

local PER_S = 5000
local MESSAGE_BYTES = 65536
local TEXT_BYTES = 200
local FOR_MAX = 60000

local function number(x)
  return x and L.int(tonumber(x)) or '-'
end

-- Add an event to those of this call, or count it as left out.
local function tell(event, id, queue, due, start, attempt, code, text)
  local events = L.events
  if #events >= events.left or events.bytes >= MESSAGE_BYTES then
    events.left_out = events.left_out + 1
    return
  end
  -- A record or an argument that was written by hand may have spaces in the name of the queue.
  queue = string.find(queue, '^[%w_-]+$') and queue or '-'
  local line = event .. ' ' .. id .. ' ' .. queue .. ' ' .. number(due) .. ' ' .. number(start) ..
               ' ' .. number(attempt) .. ' ' .. number(code) .. ' ' ..
               L.one_line(string.sub(text or '-', 1, TEXT_BYTES))
  events[#events + 1] = line
  events.bytes = events.bytes + #line
end

-- L.event may be called only while L.events is set. An error in it does not fail the call.
function L.event(...)
  pcall(tell, ...)
end

-- Add the event of an end. outcome: as L.outcome wrote it
function L.event_end(id, queue, outcome)
  local state, code, _, start, text = L.read_outcome(outcome)
  if state then
    L.event(state, id, queue, nil, start, nil, code, text)
  end
end

-- Called at the beginning of a call that somebody follows. -> its L.events
function L.watch(R)
  local tail, second = L.tails[R], math.floor(L.ms(L.now_us()) / 1000)
  if second ~= tail.second then
    tail.second, tail.left = second, PER_S
  end
  return {left = tail.left, bytes = 0, left_out = 0}
end

-- Called at the end of such a call: publish its events.
function L.publish(R, events)
  local tail, channel = L.tails[R], R .. ':events'
  if not tail or #events + events.left_out + tail.left_out == 0 then
    return
  end
  local now_ms = L.ms(L.now_us())
  if now_ms > tail.until_ms then
    L.tails[R] = nil
    return
  end
  tail.left = math.max(tail.left - #events, 0)
  tail.left_out = tail.left_out + events.left_out
  if #events == 0 and tail.left == 0 then
    return
  end
  if L.may('PUBLISH', channel, '') then
    table.insert(events, 1, '1 ' .. L.int(now_ms) .. ' ' .. L.int(tail.left_out))
    redis.pcall('PUBLISH', channel, table.concat(events, '\n'))
    tail.left_out = 0
  end
end

L.register('later_v1_tail', {'allow-oom'}, function(R, args)
  local for_ms = L.whole(args[1])
  if not for_ms or for_ms < 1 or for_ms > FOR_MAX then
    L.fail('ELATER_ARGS', 'give FOR_MS, 1 to ' .. L.int(FOR_MAX))
  end
  local now_ms = L.ms(L.now_us())
  for root, tail in pairs(L.tails) do
    if tail.until_ms < now_ms then
      L.tails[root] = nil
    end
  end
  local tail = L.tails[R]
  L.tails[R] = tail or {until_ms = 0, left = PER_S, left_out = 0}
  L.tails[R].until_ms = math.max(L.tails[R].until_ms, now_ms + for_ms)
  -- Let this call publish how many events were left out, in case no later event does.
  L.events = L.watch(R)
  return {now_ms, tail and 1 or 0}
end)
