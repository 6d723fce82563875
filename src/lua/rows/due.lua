-- What is due of a queue, in a step over rows: the jobs of each priority that its marks tell of,
-- the first priority first (claim/waiting.lua has the order).
--
-- sets: of a queue, a list of {key, digit (nil for priority 5, which has no mark), is_kept: a
-- retried job waits in it from now on}; cut: key -> how many of its first members were handled in
-- this step.

-- -> the sets of a queue
function L.due_sets(s, queue)
  local begin, marks, sets = s.R .. ':q:' .. queue .. ':', s.marks[queue], {}
  if not marks then
    return {{key = begin .. '5'}}
  end
  local late = s.late and s.late[queue]
  for p = 0, 9 do
    local digit = L.int(p)
    if p == 5 then
      sets[#sets + 1] = {key = begin .. '5'}
    elseif string.find(marks, digit, 1, true) then
      sets[#sets + 1] = {key = begin .. digit, digit = digit,
                         is_kept = late and late.digits[digit]}
    end
  end
  return sets
end

-- -> a slice of up to `room` rows that are due; the head behind them; the marks that are still true
function L.gather_due(sets, cut, queue, room, until_ms)
  local b, head, kept = L.new_slice(queue), math.huge, ''
  for i = 1, #sets do
    local set = sets[i]
    local key = set.key
    local its_head, rows = L.take_first(key, cut[key] or 0, room - b.n, b, until_ms)
    head = math.min(head, its_head)
    if set.digit and (rows > 0 or set.is_kept) then
      kept = kept .. set.digit
    end
  end
  return b, head, kept
end

-- The first n rows of the slice leave their sets: append {key, ids, dues, from, to} to taken.
function L.leave_sets(cut, b, n, taken)
  local from, sets = 1, b.sets
  for k = 1, #sets, 2 do
    local key, to = sets[k], math.min(sets[k + 1], n)
    if from <= to then
      taken[#taken + 1] = {key = key, ids = b.ids, dues = b.dues, from = from, to = to}
      cut[key] = (cut[key] or 0) + to - from + 1
    end
    from = to + 1
  end
end
