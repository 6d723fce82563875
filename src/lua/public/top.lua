-- later_top R BY OF [days N] [count N] -> [now_ms, [name, n, first_ms, is_more]...]
--
-- Which queues or keys of jobs failed most, were busy longest, started latest: series/ranks.lua.
-- BY: failed busy late; OF: queues keys; days: 1 (today, in UTC) to 8, and their numbers add up;
-- count: how many at most, 1 to 500 (20). n: failed attempts, or ms. first_ms: when it came first.
-- is_more: '1' if n is an upper bound, since the name came to a board that was full.
-- The highest n comes first; of equal ones the earlier, then the lower name.
-- no-writes. Cost: O(days × 512 log). Errors: ELATER_ARGS TYPE.

local clock, job_sets, ranks = use('core/clock', 'core/job_sets', 'series/ranks')
local DAY_S = 86400
local ROWS = 512

local function read_args(args)
  local q = {by = string.lower(args[1] or ''), of = string.lower(args[2] or ''), days = 1,
             count = 20}
  if not ranks.BOARDS_BY[q.by] or not ranks.BOARDS_OF[q.of] or #args % 2 == 1 then
    fail('ELATER_ARGS', 'give failed, busy or late; queues or keys; [days N] [count N]')
  end
  local most = {days = 8, count = 500}
  for i = 3, #args, 2 do
    local name = string.lower(args[i])
    if not most[name] then
      fail('ELATER_ARGS', quote(args[i]) .. ' is none of days, count')
    end
    q[name] = check_whole('ELATER_ARGS', name, args[i + 1], 1, most[name])
  end
  return q
end

-- Add a day to the sums, name -> {units, first (s), is_marked}.
local function add_day(sums, rows, day)
  for i = 1, #rows, 2 do
    local units, second, is_flagged = ranks.read(rows[i + 1])
    if units then
      local sum = sums[rows[i]] or {units = 0, first = math.huge}
      sums[rows[i]] = sum
      sum.units = sum.units + units
      sum.first = math.min(sum.first, day * DAY_S + second)
      sum.is_flagged = sum.is_flagged or is_flagged
    end
  end
end

local function comes_before(a, b)
  if a.units ~= b.units then
    return a.units > b.units
  elseif a.first ~= b.first then
    return a.first < b.first
  end
  return job_sets.is_before(a.name, b.name)
end

register('later_top', {'no-writes'}, function(R, args)
  local q, now_ms = read_args(args), clock.ms(clock.now_us())
  local today, sums, list = math.floor(now_ms / 1000 / DAY_S), {}, {}
  for day = today - q.days + 1, today do
    local key = 'top:' .. q.by .. ':' .. q.of .. ':' .. int(day)
    need_kinds(R, key, 'zset')
    add_day(sums, redis.call('ZRANGE', R .. ':' .. key, 0, ROWS - 1, 'REV', 'WITHSCORES'), day)
  end
  for name, sum in pairs(sums) do
    sum.name, list[#list + 1] = name, sum
  end
  table.sort(list, comes_before)
  local out = {now_ms}
  for i = 1, math.min(#list, q.count) do
    local sum = list[i]
    out[i + 1] = {sum.name, sum.units * (q.by == 'failed' and 1 or 100), 1000 * sum.first,
                  sum.is_flagged and '1' or '0'}
  end
  return out
end)
