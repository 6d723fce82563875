-- Schedules: what adds a job again and again. A worker computes when one is due (src/schedule); the
-- library compares what the worker knows with what is here, and adds the jobs (calls/fire.lua).
--
--   R:schedules        HASH  name -> its definition: a header, an empty line, the payload
--   R:cursors          HASH  name -> how far it is: <name>=<value>, with spaces between them
--   R:schedule:file    ZSET  name -> when the file that defines it was read, ms
--   R:schedule:paused  HASH  name -> as in R:paused
--   R:schedule:gone    ZSET  name -> when the cursor of a schedule that is gone is forgotten, ms
--   R:schedule:state   HASH  changed: a clock number, a new one with each change of a definition
--
-- The header: <name>=<value>, a line each, in the order of FIELDS. revision: a clock number, a new
-- one when the timing changes. when: "cron EXPRESSION" or "every DURATION". options: those of
-- later_add, names and values, with spaces between them. catch_up_window, splay, from and until in
-- ms.
--
-- The cursor: revision for which next was computed; last, next: occurrences in ms; zones: the
-- version of the time zones by which next was computed; job: the last one; ahead: others that were
-- still to come when they were last looked at, with a comma between them, the newest first; runs,
-- skipped (by overlap or a pause) and missed: how many occurrences.

local schedules = module 'schedule/schedules'
local clock, events, jobs, uses, adds, cancels, change, commit = use(
  'core/clock', 'core/events', 'core/jobs', 'core/uses', 'public/add', 'public/cancel',
  'txn/change', 'txn/commit')
local FIELDS = {'revision', 'when', 'tz', 'queue', 'overlap', 'catch_up', 'catch_up_window',
                'splay', 'from', 'until', 'options'}
local TIMING = {'when', 'tz', 'from', 'until'}
local NUMBERS = {revision = true, catch_up_window = true, splay = true, from = true,
                 ['until'] = true, last = true, next = true, runs = true, skipped = true,
                 missed = true}
local CURSOR = {'revision', 'last', 'next', 'zones', 'job', 'ahead', 'runs', 'skipped', 'missed'}

local SCHEDULES_MAX = 10000
local AHEAD_MAX = 16        -- so many jobs that are to come are remembered
local GONE_MS = 7776000000  -- the cursor of a schedule that is gone stays so long: 90 days

-- -> the name; fails with ELATER_SCHEDULE if it is none
function schedules.check_name(name)
  return check_name_of('ELATER_SCHEDULE', 'schedule', name)
end

-- A value of R:schedules -> the schedule: its fields, name and payload; nil: there is none, or it
-- is not ours.
function schedules.parse(name, text)
  local stop = text and string.find(text, '\n\n', 1, true)
  if not stop then
    return nil
  end
  local s = {name = name, payload = string.sub(text, stop + 2)}
  for field, value in string.gmatch(string.sub(text, 1, stop), '([%l_]+)=([^\n]*)\n') do
    if NUMBERS[field] and not whole(value) then
      return nil
    end
    s[field] = NUMBERS[field] and whole(value) or value
  end
  return s.revision and s.when and s.queue and s
end

function schedules.of(R, name)
  return schedules.parse(name, db('HGET', R .. ':schedules', name))
end

function schedules.need(R, name)
  local s = schedules.of(R, schedules.check_name(name))
  if not s then
    fail('ELATER_NOSCHEDULE', 'there is no schedule ' .. quote(name) ..
         ': later_schedule_set makes it')
  end
  return s
end

-- A value of R:cursors -> its fields; those that it lacks are nil, the counts 0.
function schedules.parse_cursor(text)
  local c = {runs = 0, skipped = 0, missed = 0}
  for field, value in string.gmatch(text or '', '(%l+)=(%S+)') do
    c[field] = NUMBERS[field] and whole(value) or not NUMBERS[field] and value or c[field]
  end
  return c
end

function schedules.cursor(R, name)
  return schedules.parse_cursor(db('HGET', R .. ':cursors', name))
end

function schedules.put_cursor(R, name, c)
  db('HSET', R .. ':cursors', name, fields_text(c, CURSOR, NUMBERS, ' '))
end

-- Tell the workers that a definition has changed.
local function tell_change(R, now_us)
  db('HSET', R .. ':schedule:state', 'changed', int(clock.tick(R, now_us, 1)))
  commit.wake(R, '!schedules')
end

local function has_same(a, b, fields)
  for _, field in ipairs(fields) do
    if field ~= 'revision' and a[field] ~= b[field] then
      return false
    end
  end
  return true
end

-- Write a schedule that was checked (public/schedule.lua). Its timing is planned from now where it
-- changes. -> added | changed | same
function schedules.put(R, s, now_us)
  local was = schedules.of(R, s.name)
  if not was and db('HLEN', R .. ':schedules') >= SCHEDULES_MAX then
    fail('ELATER_FULL', 'there are ' .. int(SCHEDULES_MAX) .. ' schedules already')
  end
  uses.put_names(R, uses.queues_of(s))
  if was and has_same(was, s, FIELDS) and was.payload == s.payload then
    return 'same'
  end
  s.revision = was and has_same(was, s, TIMING) and was.revision or clock.tick(R, now_us, 1)
  local header = fields_text(s, FIELDS, NUMBERS, '\n')
  db('HSET', R .. ':schedules', s.name, header .. '\n\n' .. s.payload)
  db('ZREM', R .. ':schedule:gone', s.name)
  tell_change(R, now_us)
  return was and 'changed' or 'added'
end

-- Remove a schedule. Its jobs stay, and its cursor for a time.
function schedules.drop(R, name, now_us)
  db('HDEL', R .. ':schedules', name)
  db('HDEL', R .. ':schedule:paused', name)
  db('ZREM', R .. ':schedule:file', name)
  db('ZADD', R .. ':schedule:gone', int(clock.ms(now_us) + GONE_MS), name)
  tell_change(R, now_us)
end

-- Forget up to n cursors whose time is over.
function schedules.tidy(R, now_ms, n)
  local key = R .. ':schedule:gone'
  for _, name in ipairs(db('ZRANGEBYSCORE', key, '-inf', int(now_ms), 'LIMIT', 0, n)) do
    db('ZREM', key, name)
    db('HDEL', R .. ':cursors', name)
  end
end

-- ---- the jobs of a schedule

-- The same offset each time, from the name.
local function splay_of(s)
  return s.splay and s.splay > 0 and
         tonumber(string.sub(redis.sha1hex(s.name), 1, 8), 16) % s.splay or 0
end

-- -> a job with the options of a schedule; fails with ELATER_OPTION, _QUEUE, ... where they are
-- corrupt
function schedules.job_of(s, now_ms)
  local job, words = {queue = check_queue(s.queue), priority = 5, due = now_ms, is_named = true}, {}
  for word in string.gmatch(s.options or '', '%S+') do
    words[#words + 1] = word
  end
  if #words % 2 == 1 then
    fail('ELATER_OPTION', 'an option of schedule ' .. s.name .. ' has no value')
  end
  adds.read_options(job, words, 1, #words)
  return job
end

-- times: {at: of the occurrence, due}; day: of the calendar, nil for none
local function make_job(s, times, day, now_ms)
  local job = schedules.job_of(s, now_ms)
  job.has_options = true
  job.S, job.O, job.Y = s.name, times.at, day
  job.due = math.max(times.due + splay_of(s), now_ms)
  if s.overlap == 'queue' or s.overlap == 'replace' then
    job.l = 'schedule:' .. s.name
  end
  return job
end

-- Has the time of this job not come? One within its splay, or after a first try, has come.
local function is_to_come(ledger, s, state, tries, score)
  return state == 'waiting' and tries.attempts == 0 and score > ledger.now_ms + splay_of(s)
end

-- The live jobs that overlap looks at. -> those that have come: {id, state, job, tries}; the ids of
-- those that are to come, as text
local function look_behind(ledger, s, c)
  local come, ahead, ids = {}, {}, {c.job}
  for id in string.gmatch(c.ahead or '', '[^,]+') do
    ids[#ids + 1] = #ids <= AHEAD_MAX and id or nil
  end
  for _, id in ipairs(ids) do
    local state, job, tries, score = jobs.locate(ledger.R, id)
    if job and jobs.is_live(state) then
      if is_to_come(ledger, s, state, tries, score) then
        ahead[#ahead + 1] = #ahead < AHEAD_MAX and id or nil
      else
        come[#come + 1] = {id = id, state = state, job = job, tries = tries}
      end
    end
  end
  return come, #ahead > 0 and table.concat(ahead, ',') or nil
end

-- Is there no job that keeps the next one out? One that only waits for a retry keeps none out. Jobs
-- that have to give way are cancelled, and the cursor keeps those that are to come.
local function has_way(ledger, s, c)
  if s.overlap == 'allow' then
    return true
  end
  local come, ahead = look_behind(ledger, s, c)
  local give_way = {}
  for _, met in ipairs(come) do
    local is_retry = met.state == 'waiting' and met.tries.attempts > 0
    if s.overlap == 'replace' or s.overlap == 'skip' and is_retry then
      give_way[#give_way + 1] = met
    elseif s.overlap == 'skip' or met.state ~= 'running' and not is_retry then
      return false
    end
  end
  for _, met in ipairs(give_way) do
    cancels.cancel(ledger, met.id, met.state, met.job, met.tries,
                   'superseded by the next occurrence')
  end
  change.assign(c, 'ahead', ahead)
  return true
end

-- Remember a job that is to come, so that overlap finds it once it has come.
local function put_ahead(c, id)
  local ids = {id}
  for other in string.gmatch(c.ahead or '', '[^,]+') do
    ids[#ids + 1] = #ids < AHEAD_MAX and other or nil
  end
  change.assign(c, 'ahead', table.concat(ids, ','))
end

-- Tell `later tail` of n occurrences without a job. what: skipped or missed
function schedules.tell_left_out(s, what, n)
  if events.now and n > 0 then
    events.add('schedule-' .. what, '-', s.queue, nil, nil, nil, nil, s.name .. ' ' .. int(n))
  end
end

-- Add the job of an occurrence, unless one that has come keeps it out. c: the cursor, which counts
-- it; times: {at, due}: for which time it is, and when it is due, without its splay; day: of the
-- calendar, nil for none -> id, due ms; nil: it was skipped. Overlap is a question of its time: one
-- that is to come asks nothing now and becomes no last job, but counts once it has come. One that
-- is forced is beside the occurrences for ever.
function schedules.start_occurrence(ledger, s, c, times, day, is_forced)
  local is_ahead = times.due > ledger.now_ms
  if not is_forced and not is_ahead and not has_way(ledger, s, c) then
    change.assign(c, 'skipped', c.skipped + 1)
    schedules.tell_left_out(s, 'skipped', 1)
    return nil
  end
  local job = make_job(s, times, day, ledger.now_ms)
  local reply = adds.add_in_transaction(ledger.R, job, s.payload, ledger.now_us)
  if not is_forced and is_ahead then
    put_ahead(c, reply[1])
  elseif not is_forced then
    change.assign(c, 'job', reply[1])
  end
  change.assign(c, 'runs', c.runs + 1)
  if events.now then
    events.add('schedule-fired', reply[1], s.queue, job.due, nil, nil, nil, s.name)
  end
  return reply[1], job.due
end
