-- The events of a call, for those who follow them (calls/tail.lua has their form). They are hints:
-- they are published behind the writes of the call, and not kept.
--
-- events.now: the events of this call, false while nobody follows. Events that nobody follows must
-- cost nothing, so events.add is called only while it is set.

local events = module 'core/events'
local clock, jobs, rights = use('core/clock', 'core/jobs', 'core/rights')

local PER_S = 5000
local MESSAGE_BYTES = 65536
local TEXT_BYTES = 200

-- root -> {until_ms, left (how many may be told in this second), left_out}: who is followed
local tails = {}

events.now = false

local function number(x)
  return x and int(tonumber(x)) or '-'
end

-- Add an event to those of this call, or count it as left out.
local function tell(event, id, queue, due, start, attempt, code, text)
  local list = events.now
  if #list >= list.left or list.bytes >= MESSAGE_BYTES then
    list.left_out = list.left_out + 1
    return
  end
  -- A record or an argument that was written by hand may have spaces in the name of the queue.
  queue = string.find(queue, '^[%w_-]+$') and queue or '-'
  local line = event .. ' ' .. id .. ' ' .. queue .. ' ' .. number(due) .. ' ' .. number(start) ..
               ' ' .. number(attempt) .. ' ' .. number(code) .. ' ' ..
               one_line(string.sub(text or '-', 1, TEXT_BYTES))
  list[#list + 1] = line
  list.bytes = list.bytes + #line
end

-- Add an event. An error in it does not fail the call.
function events.add(...)
  pcall(tell, ...)
end

-- Add the event of an end. outcome: as jobs.outcome wrote it
function events.add_end(id, queue, outcome)
  local state, code, _, start, text = jobs.read_outcome(outcome)
  if state then
    events.add(state, id, queue, nil, start, nil, code, text)
  end
end

local function watch(tail)
  local second = math.floor(clock.ms(clock.now_us()) / 1000)
  if second ~= tail.second then
    tail.second, tail.left = second, PER_S
  end
  return {left = tail.left, bytes = 0, left_out = 0}
end

-- A call begins, or begins anew.
function events.begin(R)
  local tail = tails[R]
  events.now = tail and watch(tail) or false
end

-- A call that somebody follows ends: publish its events.
function events.publish(R)
  local tail, channel, list = tails[R], R .. ':events', events.now
  if not tail or #list + list.left_out + tail.left_out == 0 then
    return
  end
  local now_ms = clock.ms(clock.now_us())
  if now_ms > tail.until_ms then
    tails[R] = nil
    return
  end
  tail.left = math.max(tail.left - #list, 0)
  tail.left_out = tail.left_out + list.left_out
  if #list == 0 and tail.left == 0 then
    return
  end
  if rights.may('PUBLISH', channel, '') then
    table.insert(list, 1, '1 ' .. int(now_ms) .. ' ' .. int(tail.left_out))
    redis.pcall('PUBLISH', channel, table.concat(list, '\n'))
    tail.left_out = 0
  end
end

-- Follow the events of this namespace until then. -> whether somebody did
function events.follow(R, now_ms, until_ms)
  for root, tail in pairs(tails) do
    if tail.until_ms < now_ms then
      tails[root] = nil
    end
  end
  local was = tails[R]
  local tail = was or {until_ms = 0, left = PER_S, left_out = 0}
  tail.until_ms, tails[R] = math.max(tail.until_ms, until_ms), tail
  -- Let this call publish how many events were left out, in case no later event does.
  events.begin(R)
  return was ~= nil
end
