-- What follows the call under test: its worker reconciles, all gates are opened, and two workers
-- run what is left to its end. No call fails here any more.

local ROUNDS = 60
local IDLE_ROUNDS = 8

-- A sync whose answers and claims are taken. -> how much it moved, its reply
function nth.sync(m, epoch, results, queues, more)
  local args = nth.sync_args(m, epoch, nth.count(m.held[epoch]) - #results, results, queues, more)
  local reply, why = nth.call(unpack(args))
  if why or reply[2] ~= 'ok' then
    nth.found('stuck', 'a sync of the drain says ' .. (why or reply[2]))
    return 0
  end
  nth.take_answers(m, epoch, reply, results)
  local moved = #results + nth.take_claims(m, epoch, reply)
  for i = 1, #reply[7], 2 do
    nth.found('stuck', 'a sync of the drain says of queue ' .. reply[7][i] .. ': ' .. reply[7][i + 1])
  end
  return moved, reply
end

-- The call of this worker failed: it beats and tells all jobs that it runs, also those whose
-- results were not confirmed.
function nth.reconcile(m, epoch)
  local beat = nth.must('later_v1_beat', epoch, table.concat(nth.QUEUES, ','))
  local pairs_of = {}
  for id, held in pairs(m.held[epoch]) do
    pairs_of[#pairs_of + 1], pairs_of[#pairs_of + 2] = id, tostring(held.start)
  end
  local reply = nth.must('later_v1_reconcile', epoch, beat[3], tostring(#pairs_of / 2), unpack(pairs_of))
  m.link[epoch] = tostring(reply[3])
  for _, id in ipairs(reply[5]) do
    local held, sent = m.held[epoch][id], m.sent[id]
    if sent then
      nth.end_result(m, epoch, sent)
    else
      nth.found('settled', held.tag .. ': its worker runs it, and a reconcile says that it does not')
      m.held[epoch][id] = nil
    end
    m.sent[id] = nil
  end
end

-- Add jobs right after the call: what it left in the locals of the library must not harm them.
local function probe(m)
  for i = 1, 2 do
    for _, queue in ipairs({'mail', 'gate'}) do
      local tag = 'probe_' .. queue .. i
      local reply, why = nth.call('later_add', queue, tag .. '|')
      if why then
        nth.found('stuck', 'an add to ' .. queue .. ' says ' .. why)
      else
        m.fate[tag], m.tag[reply[1]] = 'run', tag
      end
    end
  end
end

local function open_all(m)
  for _, queue in ipairs(nth.redis('HKEYS', 'paused')) do
    nth.must('later_resume', queue)
  end
  for name, definition in pairs(m.open or {}) do
    nth.must('later_limit_set', name, unpack(definition))
  end
  for _, c in ipairs(m.callers) do
    repeat
      local reply = nth.call(c[1], c[2], c[3])
    until reply ~= 'kept'
  end
  for _, epoch in ipairs(m.programs or {}) do
    nth.call('later_v1_exit', epoch)
    nth.call('later_v1_leave', epoch)
  end
  for _, epoch in ipairs(m.victims) do
    m.held[epoch] = nil
    for _ = 1, 4 do
      local counter = nth.redis('HGET', 'workers', epoch) or '?'
      nth.must('later_v1_reap', m.live[1], epoch, counter == 'dead' and '0' or counter, '5', '100')
    end
  end
end

-- The results of this worker: those that were not accepted are sent again; other jobs are done.
local function results_of(m, epoch)
  local results = {}
  for id, held in pairs(m.held[epoch]) do
    results[#results + 1] = m.sent[id] or {id, held.start, 'done', 'mail', 0}
  end
  table.sort(results, function(a, b) return a[1] < b[1] end)
  return results
end

local LEFT = {'q:', 'solo:', 'pin', 'due:', 'parked', 'granted:', 'line:', 'wait:', 'lock:', 'sem:', 'running', 'timers'}

local function is_anything_left()
  for key in pairs(nth.content_keys()) do
    local rest = string.sub(key, #nth.ROOT + 2)
    for _, prefix in ipairs(LEFT) do
      if string.sub(rest, 1, #prefix) == prefix then
        return true
      end
    end
  end
  return false
end

-- Nothing moves now: let time pass until something may.
local function pass_on(m, reply, idle)
  local next_ms = math.huge
  for _, head in ipairs(reply and reply[6] or {}) do
    next_ms = head > nth.now_ms() and math.min(next_ms, head) or next_ms
  end
  if reply and reply[9] > nth.now_ms() then
    next_ms = math.min(next_ms, reply[9])
  end
  local least = idle > 4 and 3600000 or 1000
  nth.pass(next_ms < math.huge and math.max(next_ms - nth.now_ms(), 1) or least)
  for _, epoch in ipairs(m.live) do
    local beat = nth.must('later_v1_beat', epoch, table.concat(nth.QUEUES, ','))
    if beat[4] ~= nth.count(m.held[epoch]) then
      nth.reconcile(m, epoch) -- the worker counts other jobs than Redis
    end
  end
  local tidy = {}
  for _, queue in ipairs(nth.QUEUES) do
    tidy[#tidy + 1], tidy[#tidy + 2] = queue, '604800000'
  end
  nth.must('later_v1_tidy', m.live[1], tostring(#nth.QUEUES), unpack(tidy))
end

function nth.drain(m)
  probe(m)
  open_all(m)
  local idle, turn, last = 0, 0, nil
  for _ = 1, ROUNDS do
    turn = turn % #m.live + 1
    local epoch = m.live[turn]
    local moved, reply = nth.sync(m, epoch, results_of(m, epoch), nth.QUEUES, {0})
    nth.judge_gates(m)
    last = reply or last
    if moved > 0 then
      idle = 0
    elseif turn == #m.live then
      if not is_anything_left() or idle >= IDLE_ROUNDS then
        return
      end
      idle = idle + 1
      pass_on(m, last, idle)
    end
  end
end
