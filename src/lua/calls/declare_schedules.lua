-- later_v1_declare_schedules R EPOCH READ_MS last|more NS {NA arg*NA}*NS -> [[name, status]...]
--
-- Takes the schedules from the configuration of a worker. The file that was read last holds:
-- READ_MS is when it was read, by Redis' clock. A schedule that is there from a later reading stays
-- as it is (status older). args: as of later_schedule_set, but from and until name a fixed time; a
-- schedule that would be refused has the text as its status, and the others are taken. With `last`,
-- which the last call of a file says, those that an earlier reading has defined and this one has
-- not are removed, a hundred a call: a row ['', 'more'] says that there are more of them.
-- status: added | changed | same | older | a refusal. Not allow-oom.
-- Errors: ELATER_ARGS WORKER TYPE. Cost: O(NS log n + those removed).

local clock, declared, schedule_calls, schedules = use(
  'core/clock', 'core/declared', 'public/schedule', 'schedule/schedules')
local REMOVED = 100

local function declare(R, words, read_ms, now_us)
  local file, name = R .. ':schedule:file', schedules.check_name(words[1])
  local was = db('ZSCORE', file, name)
  if was and declared.is_older(tonumber(was), read_ms, clock.ms(now_us)) then
    return 'older'
  end
  local status = schedules.put(R, schedule_calls.read_schedule(R, words, clock.ms(now_us)), now_us)
  db('ZADD', file, int(read_ms), name)
  return status
end

-- Remove those of earlier readings, and of times to come, since the clock was set back. -> whether
-- there are more
local function remove_rest(R, read_ms, now_us)
  local file = R .. ':schedule:file'
  local names = db('ZRANGEBYSCORE', file, '-inf', '(' .. int(read_ms), 'LIMIT', 0, REMOVED)
  for _, name in ipairs(db('ZRANGEBYSCORE', file, '(' .. int(clock.ms(now_us)), '+inf', 'LIMIT', 0,
                           REMOVED - #names)) do
    names[#names + 1] = name
  end
  for _, name in ipairs(names) do
    schedules.drop(R, name, now_us)
  end
  return #names == REMOVED
end

register('later_v1_declare_schedules', {}, function(R, args)
  local now_us = clock.now_us()
  local read_ms, is_last, all = declared.read_declared(R, args, clock.ms(now_us))
  local out = declared.declare_each(R, all, declare, read_ms, now_us)
  if is_last and remove_rest(R, read_ms, now_us) then
    out[#out + 1] = {'', 'more'}
  end
  return out
end)
