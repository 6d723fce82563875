-- What the file of a worker declares, with the time at which it was read: what was read last holds
-- in the whole fleet (calls/declare_schedules.lua, calls/declare_topics.lua).

local declared = module 'core/declared'
local beats, change = use('calls/beat', 'txn/change')
local PIECES_MAX, WORDS_MAX = 100, 1000

local function bad_args()
  fail('ELATER_ARGS', 'give EPOCH READ_MS last|more N {NA arg*NA}*N')
end

-- EPOCH READ_MS last|more N {NA arg*NA}*N of a worker that is there -> when the file was read (a
-- time to come counts as now), whether this is the last call of the file, the lists of arguments
function declared.read_declared(R, args, now_ms)
  local read_ms, n, i, all = whole(args[2]), whole(args[4]), 5, {}
  if not read_ms or not n or n > PIECES_MAX or (args[3] ~= 'last' and args[3] ~= 'more') then
    bad_args()
  end
  for k = 1, n do
    local count = whole(args[i])
    if not count or count < 1 or count > WORDS_MAX or i + count > #args then
      bad_args()
    end
    all[k], i = {unpack(args, i + 1, i + count)}, i + count + 1
  end
  local status = beats.worker(R, args[1])
  if status ~= 'ok' then
    fail('ELATER_WORKER', 'worker ' .. quote(args[1]) .. ' is ' .. status)
  end
  return math.min(read_ms, now_ms), args[3] == 'last', all
end

-- Does what is there come from a later reading? was_ms: when that was; a time to come, since the
-- clock was set back or somebody wrote it by hand, hinders nobody.
function declared.is_older(was_ms, read_ms, now_ms)
  return was_ms > read_ms and was_ms <= now_ms
end

-- Call declare(R, one, ...) for each of them. What it refuses does not hinder the others.
-- -> [first argument, what it returned or the refusal]...
function declared.declare_each(R, all, declare, ...)
  local out = {}
  for i, one in ipairs(all) do
    local ok, answer = change.try(declare, R, one, ...)
    if not ok and not (type(answer) == 'table' and answer.elater) then
      error(answer, 0)
    end
    out[i] = {one[1], ok and answer or one_line(answer.elater)}
  end
  return out
end
