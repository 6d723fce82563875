-- later_v1_tail R FOR_MS -> [now_ms, was_on]
--
-- Somebody follows the events of the jobs of this namespace (later tail): for so long, at most
-- a minute, each call publishes on R:events what it did. Ask again in time. was_on: 0 when
-- nobody was, so that what happened just before was not told. That somebody follows is known to
-- the library as it is loaded, and stands in no key: while nobody does, a call costs what it
-- costs without all this; a restart of Redis or a new library forgets it until the next call of
-- this function. Cost: O(1).
--
-- A message: a line `1 <now_ms> <left out>`, then a line an event:
--   <event> <id> <queue> <due ms> <start> <attempt> <code> <text>
-- Where there is none stands `-`. Events: added replaced moved retried (a dead one by hand) started
-- parked failed (due: when it is tried again) released cancelling (it runs) done dead cancelled.
-- text: why, for one of the last five. Hints, no ledger: published, not kept; a caller without a
-- right to the channel tells nothing; of more than 5,000 a second only the number, as `left out`.

local PER_S = 5000
local MESSAGE_BYTES = 65536
local TEXT_BYTES = 200
local FOR_MAX = 60000

local function number(x)
  return x and L.int(tonumber(x)) or '-'
end

local function tell(event, id, queue, due, start, attempt, code, text)
  local events = L.events
  if #events >= events.room or events.bytes >= MESSAGE_BYTES then
    events.left_out = events.left_out + 1
    return
  end
  -- Of a record or an argument that somebody wrote by hand: a name that could be
  -- more than one word.
  queue = string.find(queue, '^[%w_-]+$') and queue or '-'
  local line = event .. ' ' .. id .. ' ' .. queue .. ' ' .. number(due) .. ' ' .. number(start) ..
               ' ' .. number(attempt) .. ' ' .. number(code) .. ' ' ..
               L.line(string.sub(text or '-', 1, TEXT_BYTES))
  events[#events + 1] = line
  events.bytes = events.bytes + #line
end

-- To be called only while L.events is there. Whatever is wrong with it, the call goes on.
function L.event(...)
  pcall(tell, ...)
end

-- The same of an end, as L.outcome wrote it.
function L.event_end(id, queue, outcome)
  local state, code, _, start, text = L.read_outcome(outcome)
  if state then
    L.event(state, id, queue, nil, start, nil, code, text)
  end
end

-- What a call begins with where somebody follows.
function L.watch(R)
  local tail, second = L.tails[R], math.floor(L.ms(L.now_us()) / 1000)
  if second ~= tail.second then
    tail.second, tail.room = second, PER_S
  end
  return {room = tail.room, bytes = 0, left_out = 0}
end

-- What it ends with.
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
  tail.room = math.max(tail.room - #events, 0)
  tail.left_out = tail.left_out + events.left_out
  if #events == 0 and tail.room == 0 then
    return
  end
  if redis.acl_check_cmd('PUBLISH', channel, '') then
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
  L.tails[R] = tail or {until_ms = 0, room = PER_S, left_out = 0}
  L.tails[R].until_ms = math.max(L.tails[R].until_ms, now_ms + for_ms)
  -- What was left out since nothing has happened any more.
  L.events = L.watch(R)
  return {now_ms, tail and 1 or 0}
end)
