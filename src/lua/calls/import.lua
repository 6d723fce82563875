-- later_v1_import R QUEUE {n {name value}*n PAYLOAD}... -> [how many were added, status]
--
-- Jobs with options of their own, in one call; all or nothing. Names: those of later_add, without
-- in, at and unique_for, but with due MS, which unlike `at` may be past, unique_until MS, then (all
-- queues at once, with commas between them), parent ID and reason TEXT (as later_show has them),
-- callback NAME,TOTAL,DONE,DEAD,CANCELLED, schedule NAME, occurrence MS, day (as in its calendar),
-- topic NAME, pinned TARGET (broadcast/pinned.lua).
-- 1 to 1000 jobs, payloads of 16 MiB together. A job with a token or a unique key, and one that is
-- pinned, goes alone; a job
-- with a larger payload may go alone. status: of one job that of later_add, of more `added`. With
-- the token import:ID also `repeated`, when the job ID is waiting, parked or running in QUEUE with
-- this payload.
-- dead OUTCOME (as R:errors has it; goes alone): the job is dead, not waiting. It takes no unique
-- key, is not counted as one that died, and makes no room for itself. It may have died of what the
-- queue refuses: a larger payload, no key for its gates. tries "STARTS ATTEMPTS
-- CRASHES" goes with it. With the token import:ID also `repeated`, when the job ID is dead.
-- Errors: as later_add; the text ends with `[record N]` if it is about the N-th. Cost: O(k log n).

local MANY_BYTES = 16777216
local OPTIONS = L.OPTIONS
local NOT_HERE = {['in'] = true, at = true, unique_for = true}
local PRIORITIES = {['0'] = 0, ['1'] = 1, ['2'] = 2, ['3'] = 3, ['4'] = 4, ['5'] = 5, ['6'] = 6,
                    ['7'] = 7, ['8'] = 8, ['9'] = 9}

local function instant(name, value)
  local ms = L.whole(value)
  if not ms or ms > L.LATEST then
    L.fail('ELATER_TIME', name .. ' ' .. L.quote(value) .. ' is no time in ms up to the year 5000')
  elseif ms >= L.SECONDS_FROM and ms <= L.SECONDS_TO then
    L.fail('ELATER_TIME', name .. ' ' .. L.quote(value) .. ' looks like seconds: times are in ms')
  end
  return ms
end

-- The names that L.header gives these options. They are put into job.fields as they are read. Gates
-- are left out: {key} may have to be filled in first, and few jobs have gates.
local LETTERS = {attempts = 'a', timeout = 't', expire = 'x', keep = 'k', key = 'K', trace = 'T',
                 batch = 'b'}

local function put_field(job, letter)
  local value = job[letter]
  job.fields = job.fields .. ' ' .. letter .. '=' ..
               (type(value) == 'number' and L.int(value) or value)
end

local function record_of(job, payload)
  if not job.fields then
    return L.header(job) .. payload
  end
  return (job.big and '+' or '-') .. job.queue ..
         (job.priority ~= 5 and ' ' .. L.int(job.priority) or '') .. job.fields .. '\n' .. payload
end

-- What an add cannot say, or says in another form: put into the job by read_options. `dead` and
-- `tries`: the outcome of a dead job, and its tries.
local KEPT = {}

KEPT['then'] = function(job, value)
  for queue in string.gmatch(value .. ',', '([^,]*),') do
    L.add_then(job, queue)
  end
end

function KEPT.parent(job, value)
  if not L.is_id(value) then
    L.fail('ELATER_OPTION', 'parent ' .. L.quote(value) .. ' is no job id')
  end
  job.p = value
end

function KEPT.reason(job, value)
  job.m = L.encode_reason(value)
end

-- What a callback is told of its batch.
function KEPT.callback(job, value)
  local name = string.match(value, '^([^,]+),%d+,%d+,%d+,%d+$')
  if not name then
    L.fail('ELATER_OPTION', 'callback ' .. L.quote(value) .. ' is no name and four numbers')
  end
  L.check_batch_name(name)
  job.B = value
end

-- What added it, for which time, and the day of that in the calendar.
function KEPT.schedule(job, value)
  job.S = L.check_schedule_name(value)
end

function KEPT.occurrence(job, value)
  job.O = instant('occurrence', value)
end

function KEPT.day(job, value)
  job.Y = L.whole(value)
  if not L.is_day(job.Y) then
    L.fail('ELATER_OPTION', 'day ' .. L.quote(value) .. ' is no day: year * 1000 + its number')
  end
end

function KEPT.topic(job, value)
  job.P = L.check_topic(value)
end

function KEPT.pinned(job, value)
  if not string.find(value, '^w%d+$') and not string.find(value, '^h[%w._-]+$') or #value > 256 then
    L.fail('ELATER_OPTION', 'pinned ' .. L.quote(value) .. ' is no w EPOCH and no h HOST')
  end
  job.W = value
end

-- A job that died after now would be kept longer than others.
function KEPT.dead(job, value, now_ms)
  local state, code, when, start, text, output = L.read_outcome(value)
  when, start = L.whole(when or ''), L.whole(start or '')
  if state ~= 'dead' or not L.whole(code) or not when or not start then
    L.fail('ELATER_OPTION', 'dead ' .. L.quote(value) .. ' is no outcome of a dead job')
  end
  instant('died_ms', L.int(when))
  job.died_ms = math.min(when, now_ms)
  job.dead = L.outcome('dead', code, job.died_ms, start, text, output)
end

function KEPT.tries(job, value)
  local tries = L.tries(value .. ' 0')
  if not tries.due then
    L.fail('ELATER_OPTION', 'tries ' .. L.quote(value) .. ' are no three numbers')
  end
  job.tries = tries
end

-- Read the options of one job, from args[at] on. -> the number of the argument with its payload
local function read_options(args, at, job, now_ms)
  local n = L.whole(args[at])
  if not n or n > 100 or not args[at + 2 * n + 1] then
    L.fail('ELATER_ARGS', 'give QUEUE and for each job N, N names with values, PAYLOAD')
  end
  local seen = {}
  for i = at + 1, at + 2 * n, 2 do
    local name, value = args[i], args[i + 1]
    if seen[name] then
      L.fail('ELATER_OPTION', L.quote(name) .. ' is given twice')
    end
    seen[name] = true
    if name == 'due' then
      job.due = instant(name, value)
    elseif name == 'priority' and PRIORITIES[value] then
      job.priority = PRIORITIES[value]
    elseif name == 'unique_until' then
      job.f, job.has_options = instant(name, value), true
    elseif KEPT[name] then
      KEPT[name](job, value, now_ms)
      job.has_options, job.fields = true, nil
    elseif NOT_HERE[name] or not OPTIONS[name] then
      L.fail('ELATER_OPTION', L.quote(name) .. ' is not an option here')
    else
      job.has_options = true
      OPTIONS[name](job, value, now_ms)
      if LETTERS[name] and job.fields then
        put_field(job, LETTERS[name])
      else
        job.fields = nil
      end
    end
  end
  if job.tries and not job.dead then
    L.fail('ELATER_OPTION', 'tries goes with dead')
  end
  return at + 2 * n + 1
end

-- Write a checked job that is dead already. -> its status
local function add_dead(R, job, payload, now_us)
  local reply, print = L.repeated(R, job, payload, db)
  if reply then
    return 'repeated'
  end
  L.check_names(R, job.queue)
  local id = L.id(L.tick(R, now_us, 1))
  L.insert(R, id, job, payload)
  db('SADD', R .. ':names', job.queue)
  L.put_chain_names(R, job)
  db('ZADD', R .. ':dead:' .. job.queue, L.int(job.died_ms), id)
  db('HSET', R .. ':errors', id, job.dead)
  db('HSET', R .. ':tries', id, L.tries_text(job.tries or L.tries(nil), job.due))
  if job.b then
    L.join(R, job.b, id)
    L.end_member(R, job.b, id, 'dead', L.ms(now_us))
  end
  L.put_token(R, job, {id, 'added', job.due}, print, now_us)
  L.count(R, 'added', job.queue, 1)
  if L.events then
    L.event_end(id, job.queue, job.dead)
  end
  return 'added'
end

-- Write checked jobs that have neither token nor unique key. jobs, payloads: as many of each.
function L.write_many(R, queue, jobs, payloads, now_us)
  L.check_names(R, queue)
  local first, earliest = L.tick(R, now_us, #jobs), math.huge
  for k, job in ipairs(jobs) do
    local id, payload = L.id(first + k - 1), payloads[k]
    local key = R .. ':q:' .. queue .. ':' .. L.int(job.priority)
    job.big = #payload > L.BIG
    L.put_record(R, id, record_of(job, job.big and '' or payload), job.big and payload)
    L.is_new(key, 'zset', id)
    db('ZADD', key, job.due, id)
    if job.priority ~= 5 then
      L.mark_set(R, queue, L.int(job.priority))
    end
    earliest = math.min(earliest, job.due)
    if job.n or job.d then
      L.new_names(R, L.chain_queues(job)) -- those of the jobs before it count by now
      L.put_chain_names(R, job)
    end
    if job.b then
      L.check_join(R, job, 1)
      L.join(R, job.b, id)
    end
    if L.events then
      L.event('added', id, queue, job.due, nil, nil, nil, job.origin)
    end
  end
  L.lower_head(R, queue, earliest)
  L.count(R, 'added', queue, #jobs)
end

-- Fill `jobs` and `payloads`. -> the bytes of the payloads
local function read_jobs(R, args, queue, now_ms, jobs, payloads)
  local of_queue = L.queue_gates(db('HGET', R .. ':queues', queue))
  local bytes, at, n = 0, 2, 0
  while at <= #args do
    local job = {queue = queue, priority = 5, due = now_ms, fields = '', K = nil,
                 has_options = false}
    at = read_options(args, at, job, now_ms)
    local payload = args[at]
    if #payload > L.LEAST_LIMIT and not job.dead then
      L.check_payload(R, queue, payload)
    end
    L.check_gates(R, job, not (job.dead or job.W) and of_queue or nil)
    if job.b then
      L.check_join(R, job, 1)
    end
    n, at, bytes = n + 1, at + 1, bytes + #payload
    jobs[n], payloads[n] = job, payload
  end
  return bytes
end

local function read_all(R, args, queue, now_ms)
  local jobs, payloads = {}, {}
  local ok, bytes = pcall(read_jobs, R, args, queue, now_ms, jobs, payloads)
  if not ok then
    local why = bytes
    if type(why) == 'table' and why.elater then
      why.elater = why.elater .. ' [record ' .. L.int(#jobs + 1) .. ']'
    end
    error(why, 0)
  end
  if #jobs < 1 or #jobs > 1000 then
    L.fail('ELATER_ARGS', 'give 1 to 1000 jobs, not ' .. L.int(#jobs))
  elseif #jobs > 1 and bytes > MANY_BYTES then
    L.fail('ELATER_SIZE', 'the payloads of one call may have 16 MiB together')
  end
  return jobs, payloads
end

-- `import --once` gives each job the token import:ID, with its id in the exported file. If the job
-- ID is still to run or running (of a dead line: dead), in this very queue and with this payload,
-- it is the same job, and is not added again: each copy would be one more job of the next export.
-- With another payload it is another job.
local function is_itself(R, job, payload)
  local id = job.token and string.match(job.token, '^import:(%w+)$')
  if not id then
    return false
  end
  local state, here = L.locate(R, id)
  local is_same = L.is_live(state) or job.dead and state == 'dead'
  if not here or here.queue ~= job.queue or not is_same then
    return false
  end
  local kept = here.big and db('GET', R .. ':big:' .. id) or string.sub(here.record, here.body)
  return payload == kept
end

L.register('later_v1_import', {}, function(R, args)
  local queue, now_us = L.check_queue(args[1]), L.now_us()
  local jobs, payloads = read_all(R, args, queue, L.ms(now_us))
  if #jobs == 1 and is_itself(R, jobs[1], payloads[1]) then
    return {1, 'repeated'}
  elseif #jobs == 1 and jobs[1].dead then
    return {1, add_dead(R, jobs[1], payloads[1], now_us)}
  elseif #jobs == 1 then
    return {1, L.add_one(R, jobs[1], payloads[1], now_us)[2]}
  end
  for i, job in ipairs(jobs) do
    if job.token or job.u or job.dead or job.W then
      L.fail('ELATER_OPTION', (job.token and 'token' or job.u and 'unique' or
                               job.dead and 'dead' or 'pinned') ..
             ' goes alone [record ' .. L.int(i) .. ']')
    end
  end
  L.write_many(R, queue, jobs, payloads, now_us)
  return {#jobs, 'added'}
end)
