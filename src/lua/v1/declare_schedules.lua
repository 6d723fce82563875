-- later_v1_declare_schedules R EPOCH READ_MS last|more NS {NA arg*NA}*NS -> [[name, status]...]
--
-- Takes the schedules from the configuration of a worker. The file that was read last holds:
-- READ_MS is when it was read, by Redis' clock. A schedule that is there from a later reading stays
-- as it is (status older). args: as of later_schedule_set; a schedule that would be refused there
-- has the text as its status, and the others are taken. With `last`, which the last call of a file
-- says, those that an earlier reading has defined and this one has not are removed, a hundred a
-- call: a row ['', 'more'] says that there are more of them.
-- status: added | changed | same | older | a refusal. Not allow-oom.
-- Errors: ELATER_ARGS WORKER TYPE. Cost: O(NS log n + those removed).

local SCHEDULES_MAX, REMOVED = 100, 100

local function read_args(args)
  local read_ms, n, i, all = L.whole(args[2]), L.whole(args[4]), 5, {}
  if not read_ms or not n or n > SCHEDULES_MAX or (args[3] ~= 'last' and args[3] ~= 'more') then
    L.fail('ELATER_ARGS', 'give EPOCH READ_MS last|more NS {NA arg*NA}*NS')
  end
  for k = 1, n do
    local count = L.whole(args[i]) or 0
    local words = {}
    for j = 1, count do
      words[j] = args[i + j] or ''
    end
    all[k], i = words, i + count + 1
  end
  return read_ms, all
end

local function declare(R, words, read_ms, now_us)
  local file, name = R .. ':schedule:file', L.check_schedule_name(words[1])
  local was = db('ZSCORE', file, name)
  if was and tonumber(was) > read_ms then
    return 'older'
  end
  local status = L.put_schedule(R, L.read_schedule(R, words, L.ms(now_us)), now_us)
  db('ZADD', file, L.int(read_ms), name)
  return status
end

-- Remove those of earlier readings. -> whether there are more
local function remove_rest(R, read_ms, now_us)
  local names = db('ZRANGEBYSCORE', R .. ':schedule:file', '-inf', '(' .. L.int(read_ms), 'LIMIT',
                   0, REMOVED)
  for _, name in ipairs(names) do
    L.drop_schedule(R, name, now_us)
  end
  return #names == REMOVED
end

L.register('later_v1_declare_schedules', {}, function(R, args)
  local read_ms, all = read_args(args)
  local status = L.worker(R, args[1])
  if status ~= 'ok' then
    L.fail('ELATER_WORKER', 'worker ' .. L.quote(args[1]) .. ' is ' .. status)
  end
  local now_us, out = L.now_us(), {}
  read_ms = math.min(read_ms, L.ms(now_us))
  for _, words in ipairs(all) do
    local ok, answer = pcall(declare, R, words, read_ms, now_us)
    if not ok and not (type(answer) == 'table' and answer.elater) then
      error(answer, 0)
    end
    out[#out + 1] = {words[1] or '', ok and answer or L.one_line(answer.elater)}
  end
  if args[3] == 'last' and remove_rest(R, read_ms, now_us) then
    out[#out + 1] = {'', 'more'}
  end
  return out
end)
