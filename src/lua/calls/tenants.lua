-- later_v1_tenants R QUEUE COUNT
--   -> [now_ms, tenants with due jobs, ran_ms, [tenant, ran_ms, due, first_ms, before]...]
--
-- The tenants of a fair queue, up to COUNT (1 to 100): those whose jobs ran longest within the last
-- minute, then others with due jobs, the next ones first. ran_ms: of all, and of each; a tenant
-- behind the first 10,000 of a minute is counted in the former alone. due: how many of its jobs are
-- due, first_ms: since when the first is ('' none), before: how many tenants with due jobs go
-- first ('' without due jobs). no-writes.
-- Cost: O(tenants of two minutes, at most 20,000, + COUNT * priorities).
-- Errors: ELATER_STATE: the queue is not fair; ELATER_QUEUE ARGS TYPE.

local clock, job_sets, standing, tenants, usage = use(
  'core/clock', 'core/job_sets', 'fair/standing', 'fair/tenants', 'fair/usage')

-- -> the names of those with due jobs, the next ones first, that are not in `used`
local function find_waiting(R, queue, now_ms, used, count)
  local names, is_there = {}, {}
  local active = db('ZRANGE', R .. ':fair:' .. queue, 0, count - 1)
  local later = db('ZRANGEBYSCORE', R .. ':fair-next:' .. queue, '-inf', int(now_ms), 'LIMIT', 0,
                   count)
  for _, list in ipairs({active, later}) do
    for _, name in ipairs(list) do
      if not used[name] and not is_there[name] then
        names[#names + 1], is_there[name] = name, true
      end
    end
  end
  return names
end

-- -> up to about `count` names of `used`, those that ran longest first. Numbers alone are sorted
-- first: that takes a tenth of the time.
local function sort_used(used, count)
  local numbers, names = {}, {}
  for _, ms in pairs(used) do
    numbers[#numbers + 1] = ms
  end
  table.sort(numbers)
  local least = numbers[#numbers - count + 1] or 0
  for name, ms in pairs(used) do
    if ms > least or ms == least and #names < 2 * count then
      names[#names + 1] = name
    end
  end
  table.sort(names, function(x, y)
    return used[x] > used[y] or used[x] == used[y] and job_sets.is_before(x, y)
  end)
  return names
end

local function row(R, queue, digits, name, ran, now_ms)
  local due, first = 0, tenants.first_due(R, queue, digits, name)
  for _, digit in ipairs(digits) do
    due = due + standing.count_due(R, queue, name, digit, now_ms)
  end
  return {name, ran, due, first <= now_ms and first or '',
          due > 0 and standing.before(R, queue, name) or ''}
end

register('later_v1_tenants', {'no-writes'}, function(R, args)
  local queue = check_queue(args[1])
  local count = check_whole('ELATER_ARGS', 'the count', args[2], 1, 100)
  local now_ms = clock.ms(clock.now_us())
  if not tenants.are_kept(R, queue) then
    fail('ELATER_STATE', 'queue ' .. queue .. ' is not fair: set fair: true in the settings of ' ..
         'its workers')
  end
  local used, all = usage.of_all(R, queue, now_ms)
  local names = sort_used(used, count)
  for _, name in ipairs(find_waiting(R, queue, now_ms, used, count)) do
    names[#names + 1] = name
  end
  local digits, out = tenants.digits(R, queue), {now_ms, tenants.count_due(R, queue, now_ms), all}
  for i = 1, math.min(#names, count) do
    out[i + 3] = row(R, queue, digits, names[i], used[names[i]] or 0, now_ms)
  end
  return out
end)
