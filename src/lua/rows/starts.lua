-- The rows that start or are parked, in a sync over rows.

local row_starts = module 'rows/starts'
local starting, events, row_gates, row_waiters = use(
  'claim/starting', 'core/events', 'rows/gates', 'rows/waiters')
local NEVER_TRIED = starting.NEVER_TRIED
local NONE = {}

-- Job `id`, which starts, holds what this text says.
local function hold_text(s, id, text)
  local n = s.n_held + 1
  s.n_held, s.holds[2 * n - 1], s.holds[2 * n] = n, id, text
end

-- The rows from..to of a fair queue start, and hold a line of their tenant, behind what they hold
-- since pass. b.held: id -> where in holds that is
local function hold_shares(s, b, from, to)
  local st, at = s.starts, b.held
  local n, holds, ids, of = st.n_held, st.holds, b.ids, b.of
  for k = b.first_held, n do
    at[holds[2 * k - 1]] = 2 * k
  end
  for i = from, to do
    local id, share = ids[i], of[i].share
    if at[id] then
      holds[at[id]] = holds[at[id]] .. '\n' .. share
    else
      n = n + 1
      holds[2 * n - 1], holds[2 * n] = id, share
    end
  end
  st.n_held, b.first_held = n, n + 1
end

-- The rows from..to start: those that do for the first time are counted by their keys.
local function count_keys(s, b, from, to)
  local counted, keys = s.keys[b.queue] or {}, b.keys
  for i = from, to do
    counted[#counted + 1] = keys[i]
  end
  s.keys[b.queue] = counted
end

-- The rows from..to start; these have the tries of the first.
local function start(s, b, from, to, fence, gated)
  local tries = b.tries[from] or NEVER_TRIED
  starting.start_rows(s, s.starts, b, from, to, fence, tries, gated)
  if events.now then
    starting.tell_started(b, from, to, tries)
  end
  if b.keys then
    count_keys(s, b, from, to)
    if b.of then
      hold_shares(s, b, from, to)
    end
  end
  s.claimed = s.claimed + to - from + 1
end

-- The line of the unique key of a job in R:holds (gates/holding.lua).
local function unique_line(queue, job)
  return 'uniq:' .. (job.f or '0') .. ':' .. queue .. ':' .. job.u
end

-- The job of row i holds its gates, all of which are free for it, and its unique key; its batch is
-- told there (gates/holding.lua). gates: nil for none. -> gated, as a group has it
local function take_all(s, b, i, gates, fence)
  local id, job, gated = b.ids[i], b.jobs[i] or NONE, 0
  local held = {job.b and 'batch ' .. job.b}
  for k = 1, gates and #gates or 0 do
    local g = gates[k]
    gated = math.max(gated, g.gated)
    held[#held + 1] = g.kind ~= 'rate' and g.id or nil
    row_gates.take_from(s, g, id, fence)
  end
  if job.u then
    held[#held + 1] = unique_line(b.queue, job)
  end
  if held[1] then
    hold_text(s.starts, id, table.concat(held, '\n'))
  end
  return gated
end

-- -> the number of the first gate that is shut for a job that comes new; nil: none
local function shut_gate(gates)
  for i = 1, #gates do
    local g = gates[i]
    if g.is_awaited ~= false and row_gates.is_awaited(g) or
       (g.free or row_gates.free_of(g)) <= 0 then
      return i
    end
  end
  return nil
end

-- Row i, which is special, takes its gates or is parked. -> gated, as a group has it; nil: parked
local function pass(s, b, i, fence)
  local gates, job, id = b.gates[i], b.jobs[i], b.ids[i]
  local shut = gates and not b.is_in and shut_gate(gates)
  if shut then
    row_waiters.park(s, b.queue, id, gates, shut, b.dues[i], fence)
    return nil
  end
  local tried = b.texts[i]
  if tried then
    local st = s.starts
    local n = #st.old_ids + 1
    st.old_ids[n], st.old_tries[n] = id, tried
  end
  if job and (job.u or job.b) or gates and gates[2] then
    return take_all(s, b, i, gates, fence)
  elseif gates then
    local g = gates[1]
    row_gates.take_from(s, g, id, fence)
    if g.kind ~= 'rate' then
      hold_text(s.starts, id, g.id)
    end
    return g.gated
  end
  return 0
end

-- Start or park the first n rows, until the sync has claimed `most`. Rows side by side that begin
-- alike start together. -> how many rows, how many of them were parked
function row_starts.handle_rows(s, b, n, most)
  local first, i, parked, k = s.number - 1, 0, 0, 1
  local from, gated -- of the rows from `from` to i, which start; nil: there are none
  s.number, most = s.number + 2 * n, most - s.claimed
  while i < n and i - parked < most do
    local to, its_gated = i + 1, 0
    if b.special[k] == to then
      its_gated, k = pass(s, b, to, first + 2 * to), k + 1
    else
      to = math.min((b.special[k] or n + 1) - 1, most + parked)
    end
    if from and (its_gated ~= gated or b.tries[from] ~= b.tries[to]) then
      start(s, b, from, i, first + 2 * from, gated)
      from = nil
    end
    if its_gated then
      from, gated = from or i + 1, its_gated
    else
      parked = parked + 1
      if events.now then
        events.add('parked', b.ids[to], b.queue, b.dues[to])
      end
    end
    i = to
  end
  if from then
    start(s, b, from, i, first + 2 * from, gated)
  end
  for row = i + 1, n do
    s.bytes = s.bytes + #b.records[row]
  end
  return i, parked
end
