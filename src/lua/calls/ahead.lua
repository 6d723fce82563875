-- later_v1_ahead R QUEUE FROM_MS STEP_MS N -> N numbers
--
-- How many jobs of a queue wait with a due time in each of N spans of STEP_MS from FROM_MS on, raw
-- members and pinned jobs among them. N: at most 60. A job that is parked is due already. Of pinned
-- jobs only those of some targets are told where there are many targets. Redis compares raw members
-- as it counts them: where the first is large, some spans share what is due in them.
-- no-writes. Errors: ELATER_ARGS QUEUE. Cost: O(sets * N * log n), at most about 800 questions. A
-- set of a foreign type counts as empty.

local pins, job_sets = use('broadcast/pins', 'core/job_sets')
local STEPS, QUESTIONS = 60, 800
local LARGE = 49152        -- bytes of a raw member for each span that is not told apart

-- How many members of a set are due from bound i on and before bound k. work.asked: how many
-- questions were asked
local function between(work, key, i, k)
  work.asked = work.asked + 1
  local n = redis.pcall('ZCOUNT', key, work.bounds[i], '(' .. work.bounds[k])
  return type(n) == 'number' and n or 0
end

-- Add the n members of a set between bounds i and k to the counts of the spans. If there are any,
-- it counts those of one half and knows the other. width: so many spans are not told apart.
local function spread(work, key, i, k, n, width)
  if n == 0 then
    return
  elseif k - i <= width then
    for span = i, k - 1 do
      local share = math.floor(n / (k - span))
      work.counts[span], n = work.counts[span] + share, n - share
    end
    return
  end
  local middle = math.floor((i + k) / 2)
  local first = between(work, key, i, middle)
  spread(work, key, i, middle, first, width)
  spread(work, key, middle, k, n - first, width)
end

-- The largest raw members take as long to compare as many questions.
local function width_of(work, key)
  local first = redis.pcall('ZRANGEBYSCORE', key, work.bounds[1], '+inf', 'LIMIT', 0, 1)
  return math.max(math.ceil(#(first[1] or '') / LARGE), 1)
end

local function count_set(work, key, is_raw)
  local steps = #work.counts
  local n = work.asked < QUESTIONS and between(work, key, 1, steps + 1) or 0
  if n > 0 then
    spread(work, key, 1, steps + 1, n, is_raw and width_of(work, key) or 1)
  end
end

register('later_v1_ahead', {'no-writes'}, function(R, args)
  local queue, from_ms, step_ms = check_queue(args[1]), whole(args[2]), whole(args[3])
  local steps = whole(args[4])
  if not from_ms or not step_ms or step_ms < 1 or not steps or steps < 1 or steps > STEPS or
     from_ms + steps * step_ms > LATEST then
    fail('ELATER_ARGS', 'give QUEUE FROM_MS STEP_MS N (1 to ' .. int(STEPS) .. ')')
  end
  local work = {asked = 0, bounds = {}, counts = {}}
  for i = 1, steps + 1 do
    work.bounds[i], work.counts[i] = int(from_ms + (i - 1) * step_ms), i <= steps and 0 or nil
  end
  for _, set in ipairs(job_sets.head_sets(R, queue)) do
    count_set(work, set.key, set.is_raw)
  end
  for _, target in ipairs(pins.readable(R, queue)) do
    count_set(work, pins.key_of(R, queue, target))
  end
  return work.counts
end)
