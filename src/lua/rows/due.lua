-- What is due of a queue, in a step over rows: the jobs of each priority that its marks tell of,
-- the first priority first (claim/waiting.lua has the order).
--
-- A queue's sets: list of {key, digit (nil for priority 5, which has no mark), cut: how many of its
-- first members were handled in this step}.

-- -> the sets of a queue
function L.due_sets(s, queue)
  local begin, marks, sets = s.R .. ':q:' .. queue .. ':', s.marks[queue], {}
  if not marks then
    return {{key = begin .. '5', cut = 0}}
  end
  for p = 0, 9 do
    local digit = L.int(p)
    if p == 5 then
      sets[#sets + 1] = {key = begin .. '5', cut = 0}
    elseif string.find(marks, digit, 1, true) then
      sets[#sets + 1] = {key = begin .. digit, digit = digit, cut = 0}
    end
  end
  return sets
end

-- -> a slice of up to `room` rows that are due; the head behind them; the marks that are still true
function L.gather_due(sets, queue, room, until_ms)
  local b, head, kept = L.new_slice(queue), math.huge, ''
  for i = 1, #sets do
    local set = sets[i]
    local its_head, rows = L.take_first(set.key, set.cut, room - b.n, b, until_ms)
    head = math.min(head, its_head)
    if set.digit and rows > 0 then
      kept = kept .. set.digit
    end
  end
  return b, head, kept
end

-- The first n rows of the slice leave their sets: append {key, ids, dues, from, to} to taken.
function L.leave_sets(sets, b, n, taken)
  local from = 1
  for k = 1, #b.sets, 2 do
    local key, to = b.sets[k], math.min(b.sets[k + 1], n)
    if from <= to then
      taken[#taken + 1] = {key = key, ids = b.ids, dues = b.dues, from = from, to = to}
      for i = 1, #sets do
        if sets[i].key == key then
          sets[i].cut = sets[i].cut + to - from + 1
        end
      end
    end
    from = to + 1
  end
end
