-- later_v1_distinct R QUEUE FIRST N -> [how many different keys]
--
-- How many different keys the jobs of a queue had that were started for the first time on N days (1
-- to 8) from day FIRST on (whole days since 1970): the union of HyperLogLogs, with a standard error
-- of 0.81 %. Not no-writes, since Redis counts PFCOUNT as a write; allow-oom.
-- Errors: ELATER_ARGS QUEUE TYPE. Cost: O(N).

local series_calls = use 'calls/series'

register('later_v1_distinct', {'allow-oom'}, function(R, args)
  local queue, first, n = series_calls.check(args[1]), whole(args[2] or ''), whole(args[3] or '')
  if not first or not n or n < 1 or n > 8 then
    fail('ELATER_ARGS', 'give QUEUE, FIRST and N (1 to 8)')
  end
  local keys = {}
  for i = 0, n - 1 do
    local name = 'keys:' .. queue .. ':' .. int(first + i)
    need_kinds(R, name, 'string')
    keys[i + 1] = R .. ':' .. name
  end
  return {redis.call('PFCOUNT', unpack(keys))}
end)
