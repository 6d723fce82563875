-- later_v1_import R QUEUE {n {name value}*n PAYLOAD}... -> [how many were added, status]
--
-- Jobs with options of their own, in one call; all or nothing. Names: those of later_add, without
-- in, at and unique_for, but with due MS, which unlike `at` may be past, unique_until MS, then (all
-- queues at once, with commas between them), parent ID and reason TEXT (as later_show has them),
-- callback NAME,TOTAL,DONE,DEAD,CANCELLED, schedule NAME, occurrence MS, day (as in its calendar),
-- topic NAME, pinned TARGET (broadcast/pins.lua), checkpoint TEXT and steps (resume.pack), which it
-- has kept.
-- 1 to 1000 jobs, payloads of 16 MiB together. A job with a token or a unique key, one that is
-- pinned, and one that has kept something goes alone; a job with a larger payload may go alone.
-- status: of one job that of later_add, of more `added`. With the token import:ID also `repeated`,
-- when the job ID is waiting, parked or running in QUEUE with this payload.
-- dead OUTCOME (as R:errors has it; goes alone): the job is dead, not waiting. It takes no unique
-- key, is not counted as one that died, and makes no room for itself. It may have died of what the
-- queue refuses: a larger payload, no key for its gates. tries "STARTS ATTEMPTS
-- CRASHES" goes with it. With the token import:ID also `repeated`, when the job ID is dead.
-- Errors: as later_add; the text ends with `[record N]` if it is about the N-th. Cost: O(k log n).

local imports = module 'calls/import'
local batches, membership, chains, clock, events, jobs, resume, uses, tenants, wanted, adds,
      calendar, schedules, topics, change, commit = use(
  'batch/batches', 'batch/membership', 'core/chains', 'core/clock', 'core/events', 'core/jobs',
  'core/resume', 'core/uses', 'fair/tenants', 'gates/wanted', 'public/add', 'schedule/calendar',
  'schedule/schedules', 'topic/topics', 'txn/change', 'txn/commit')
local MANY_BYTES = 16777216
local OPTIONS = adds.OPTIONS
local NOT_HERE = {['in'] = true, at = true, unique_for = true}
local PRIORITIES = {['0'] = 0, ['1'] = 1, ['2'] = 2, ['3'] = 3, ['4'] = 4, ['5'] = 5, ['6'] = 6,
                    ['7'] = 7, ['8'] = 8, ['9'] = 9}

local function instant(name, value)
  local ms = whole(value)
  if not ms or ms > LATEST then
    fail('ELATER_TIME', name .. ' ' .. quote(value) .. ' is no time in ms up to the year 5000')
  elseif ms >= SECONDS_FROM and ms <= SECONDS_TO then
    fail('ELATER_TIME', name .. ' ' .. quote(value) .. ' looks like seconds: times are in ms')
  end
  return ms
end

-- The names that jobs.header gives these options. They are put into job.fields as they are read.
-- Gates are left out: {key} may have to be filled in first, and few jobs have gates.
local LETTERS = {attempts = 'a', timeout = 't', expire = 'x', keep = 'k', key = 'K', trace = 'T',
                 batch = 'b'}

local function put_field(job, letter)
  local value = job[letter]
  job.fields = job.fields .. ' ' .. letter .. '=' .. (type(value) == 'number' and int(value) or
                                                      value)
end

local function record_of(job, payload)
  if not job.fields then
    return jobs.header(job) .. payload
  end
  return (job.big and '+' or '-') .. job.queue .. (job.priority ~= 5 and ' ' .. int(job.priority) or
                                                   '') .. job.fields .. '\n' .. payload
end

-- What an add cannot say, or says in another form: put into the job by read_options. `dead` and
-- `tries`: the outcome of a dead job, and its tries.
local KEPT = {}

KEPT['then'] = function(job, value)
  for queue in string.gmatch(value .. ',', '([^,]*),') do
    chains.add_then(job, queue)
  end
end

function KEPT.parent(job, value)
  if not is_id(value) then
    fail('ELATER_OPTION', 'parent ' .. quote(value) .. ' is no job id')
  end
  job.p = value
end

function KEPT.reason(job, value)
  job.m = chains.encode_reason(value)
end

-- What a callback is told of its batch.
function KEPT.callback(job, value)
  local name = string.match(value, '^([^,]+),%d+,%d+,%d+,%d+$')
  if not name then
    fail('ELATER_OPTION', 'callback ' .. quote(value) .. ' is no name and four numbers')
  end
  batches.check_name(name)
  job.B = value
end

-- What added it, for which time, and the day of that in the calendar.
function KEPT.schedule(job, value)
  job.S = schedules.check_name(value)
end

function KEPT.occurrence(job, value)
  job.O = instant('occurrence', value)
end

function KEPT.day(job, value)
  job.Y = whole(value)
  if not calendar.is_day(job.Y) then
    fail('ELATER_OPTION', 'day ' .. quote(value) .. ' is no day: year * 1000 + its number')
  end
end

function KEPT.topic(job, value)
  job.P = topics.check_name(value)
end

function KEPT.pinned(job, value)
  if not string.find(value, '^w%d+$') and not string.find(value, '^h[%w._-]+$') or #value > 256 then
    fail('ELATER_OPTION', 'pinned ' .. quote(value) .. ' is no w EPOCH and no h HOST')
  end
  job.W = value
end

local function keeps(job)
  job.kept = job.kept or {steps = {}}
  return job.kept
end

function KEPT.checkpoint(job, value)
  if #value > resume.CHECKPOINT_MAX then
    fail('ELATER_OPTION', 'checkpoint: it has ' .. int(#value) .. ' bytes, a job may keep ' ..
         int(resume.CHECKPOINT_MAX))
  end
  keeps(job).checkpoint = value ~= '' and value or nil
end

function KEPT.steps(job, value)
  keeps(job).steps = resume.unpack(value)
end

-- A job that died after now would be kept longer than others.
function KEPT.dead(job, value, now_ms)
  local state, code, when, start, text, output = jobs.read_outcome(value)
  when, start = whole(when or ''), whole(start or '')
  if state ~= 'dead' or not whole(code) or not when or not start then
    fail('ELATER_OPTION', 'dead ' .. quote(value) .. ' is no outcome of a dead job')
  end
  instant('died_ms', int(when))
  job.died_ms = math.min(when, now_ms)
  job.dead = jobs.outcome('dead', code, job.died_ms, start, text, output)
end

function KEPT.tries(job, value)
  local tries = jobs.tries(value .. ' 0')
  if not tries.due then
    fail('ELATER_OPTION', 'tries ' .. quote(value) .. ' are no three numbers')
  end
  job.tries = tries
end

-- Read the options of one job, from args[at] on. -> the number of the argument with its payload
local function read_options(args, at, job, now_ms)
  local n = whole(args[at])
  if not n or n > 100 or not args[at + 2 * n + 1] then
    fail('ELATER_ARGS', 'give QUEUE and for each job N, N names with values, PAYLOAD')
  end
  local seen = {}
  for i = at + 1, at + 2 * n, 2 do
    local name, value = args[i], args[i + 1]
    if seen[name] then
      fail('ELATER_OPTION', quote(name) .. ' is given twice')
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
      fail('ELATER_OPTION', quote(name) .. ' is not an option here')
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
    fail('ELATER_OPTION', 'tries goes with dead')
  end
  return at + 2 * n + 1
end

-- Write a checked job that is dead already. -> its status
local function add_dead(R, job, payload, now_us)
  local reply, print = adds.repeated(R, job, payload, db)
  if reply then
    return 'repeated'
  end
  adds.check_names(R, job.queue)
  local id = clock.id(clock.tick(R, now_us, 1))
  adds.insert(R, id, job, payload)
  db('SADD', R .. ':names', job.queue)
  uses.put_chain_names(R, job)
  db('ZADD', R .. ':dead:' .. job.queue, int(job.died_ms), id)
  db('HSET', R .. ':errors', id, job.dead)
  db('HSET', R .. ':tries', id, jobs.tries_text(job.tries or jobs.tries(nil), job.due))
  if job.kept then
    resume.begin(R, id, job.kept.steps, job.kept.checkpoint)
  end
  if job.b then
    membership.join(R, job.b, id)
    membership.end_member(R, job.b, id, 'dead', clock.ms(now_us))
  end
  adds.put_token(R, job, {id, 'added', job.due}, print, now_us)
  commit.count(R, 'added', job.queue, 1)
  if events.now then
    events.add_end(id, job.queue, job.dead)
  end
  return 'added'
end

-- The same for one that waits.
local function add_waiting(R, job, payload, now_us)
  if not job.kept then
    return adds.add_one(R, job, payload, now_us)[2]
  end
  local reply = adds.add_in_transaction(R, job, payload, now_us)
  if reply[2] == 'added' then
    resume.begin(R, reply[1], job.kept.steps, job.kept.checkpoint)
  end
  return reply[2]
end

-- Write checked jobs that have neither token nor unique key. jobs, payloads: as many of each.
function imports.write_many(R, queue, list, payloads, now_us)
  local is_fair = tenants.are_kept(R, queue)
  adds.check_names(R, queue)
  local first, earliest = clock.tick(R, now_us, #list), math.huge
  for k, job in ipairs(list) do
    local id, payload = clock.id(first + k - 1), payloads[k]
    local key = R .. ':q:' .. queue .. ':' .. int(job.priority)
    job.big = #payload > BIG
    adds.put_record(R, id, record_of(job, job.big and '' or payload), job.big and payload)
    change.is_new(key, 'zset', id)
    db('ZADD', key, job.due, id)
    if is_fair then
      tenants.put(R, id, job, job.due)
    end
    if job.priority ~= 5 then
      jobs.flag_set(R, queue, int(job.priority))
    end
    earliest = math.min(earliest, job.due)
    if job.n or job.d then
      uses.new_names(R, uses.chain_queues(job)) -- those of the jobs before it count by now
      uses.put_chain_names(R, job)
    end
    if job.b then
      membership.check_join(R, job, 1)
      membership.join(R, job.b, id)
    end
    if events.now then
      events.add('added', id, queue, job.due, nil, nil, nil, job.origin)
    end
  end
  jobs.lower_head(R, queue, earliest)
  commit.count(R, 'added', queue, #list)
end

-- Fill `jobs` and `payloads`. -> the bytes of the payloads
local function read_jobs(R, args, queue, now_ms, list, payloads)
  local of_queue = wanted.queue_gates(db('HGET', R .. ':queues', queue))
  local bytes, at, n = 0, 2, 0
  while at <= #args do
    local job = {queue = queue, priority = 5, due = now_ms, fields = '', K = nil,
                 has_options = false}
    at = read_options(args, at, job, now_ms)
    local payload = args[at]
    if #payload > LEAST_LIMIT and not job.dead then
      adds.check_payload(R, queue, payload)
    end
    adds.check_gates(R, job, not (job.dead or job.W) and of_queue or nil)
    if job.b then
      membership.check_join(R, job, 1)
    end
    n, at, bytes = n + 1, at + 1, bytes + #payload
    list[n], payloads[n] = job, payload
  end
  return bytes
end

local function read_all(R, args, queue, now_ms)
  local list, payloads = {}, {}
  local ok, bytes = pcall(read_jobs, R, args, queue, now_ms, list, payloads)
  if not ok then
    local why = bytes
    if type(why) == 'table' and why.elater then
      why.elater = why.elater .. ' [record ' .. int(#list + 1) .. ']'
    end
    error(why, 0)
  end
  if #list < 1 or #list > 1000 then
    fail('ELATER_ARGS', 'give 1 to 1000 jobs, not ' .. int(#list))
  elseif #list > 1 and bytes > MANY_BYTES then
    fail('ELATER_SIZE', 'the payloads of one call may have 16 MiB together')
  end
  return list, payloads
end

-- `import --once` gives each job the token import:ID, with its id in the exported file. If the job
-- ID is still to run or running (of a dead line: dead), in this very queue and with this payload,
-- it is the same job, and is not added again: each copy would be one more job of the next export.
-- With another payload it is another job. Where a namespace is cut into shards the token is
-- import:ID.SHARD, and a line goes back to the shard that it comes from.
local function is_itself(R, job, payload)
  local id = job.token and string.match(job.token, '^import:(%w+)%.?%d*$')
  if not id then
    return false
  end
  local state, here = jobs.locate(R, id)
  local is_same = jobs.is_live(state) or job.dead and state == 'dead'
  if not here or here.queue ~= job.queue or not is_same then
    return false
  end
  local kept = here.big and db('GET', R .. ':big:' .. id) or string.sub(here.record, here.body)
  return payload == kept
end

register('later_v1_import', {}, function(R, args)
  local queue, now_us = check_queue(args[1]), clock.now_us()
  local list, payloads = read_all(R, args, queue, clock.ms(now_us))
  if #list == 1 and is_itself(R, list[1], payloads[1]) then
    return {1, 'repeated'}
  elseif #list == 1 and list[1].dead then
    return {1, add_dead(R, list[1], payloads[1], now_us)}
  elseif #list == 1 then
    return {1, add_waiting(R, list[1], payloads[1], now_us)}
  end
  for i, job in ipairs(list) do
    local alone = job.token and 'token' or job.u and 'unique' or job.dead and 'dead' or
                  job.W and 'pinned' or job.kept and 'checkpoint'
    if alone then
      fail('ELATER_OPTION', alone .. ' goes alone [record ' .. int(i) .. ']')
    end
  end
  imports.write_many(R, queue, list, payloads, now_us)
  return {#list, 'added'}
end)
