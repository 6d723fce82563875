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
function L.check_schedule_name(name)
  return L.check_name('ELATER_SCHEDULE', 'schedule', name)
end

-- A value of R:schedules -> the schedule: its fields, name and payload; nil: there is none, or it
-- is not ours.
function L.parse_schedule(name, text)
  local stop = text and string.find(text, '\n\n', 1, true)
  if not stop then
    return nil
  end
  local s = {name = name, payload = string.sub(text, stop + 2)}
  for field, value in string.gmatch(string.sub(text, 1, stop), '([%l_]+)=([^\n]*)\n') do
    if NUMBERS[field] and not L.whole(value) then
      return nil
    end
    s[field] = NUMBERS[field] and L.whole(value) or value
  end
  return s.revision and s.when and s.queue and s
end

function L.schedule(R, name)
  return L.parse_schedule(name, db('HGET', R .. ':schedules', name))
end

function L.need_schedule(R, name)
  local s = L.schedule(R, L.check_schedule_name(name))
  if not s then
    L.fail('ELATER_NOSCHEDULE', 'there is no schedule ' .. L.quote(name) ..
           ': later_schedule_set makes it')
  end
  return s
end

-- A value of R:cursors -> its fields; those that it lacks are nil, the counts 0.
function L.parse_cursor(text)
  local c = {runs = 0, skipped = 0, missed = 0}
  for field, value in string.gmatch(text or '', '(%l+)=(%S+)') do
    c[field] = NUMBERS[field] and L.whole(value) or not NUMBERS[field] and value or c[field]
  end
  return c
end

function L.schedule_cursor(R, name)
  return L.parse_cursor(db('HGET', R .. ':cursors', name))
end

function L.put_cursor(R, name, c)
  db('HSET', R .. ':cursors', name, L.fields_text(c, CURSOR, NUMBERS, ' '))
end

-- Tell the workers that a definition has changed.
local function tell_change(R, now_us)
  db('HSET', R .. ':schedule:state', 'changed', L.int(L.tick(R, now_us, 1)))
  L.wake(R, '!schedules')
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
function L.put_schedule(R, s, now_us)
  local was = L.schedule(R, s.name)
  if not was and db('HLEN', R .. ':schedules') >= SCHEDULES_MAX then
    L.fail('ELATER_FULL', 'there are ' .. L.int(SCHEDULES_MAX) .. ' schedules already')
  end
  L.put_names(R, L.schedule_queues(s))
  if was and has_same(was, s, FIELDS) and was.payload == s.payload then
    return 'same'
  end
  s.revision = was and has_same(was, s, TIMING) and was.revision or L.tick(R, now_us, 1)
  local header = L.fields_text(s, FIELDS, NUMBERS, '\n')
  db('HSET', R .. ':schedules', s.name, header .. '\n\n' .. s.payload)
  db('ZREM', R .. ':schedule:gone', s.name)
  tell_change(R, now_us)
  return was and 'changed' or 'added'
end

-- Remove a schedule. Its jobs stay, and its cursor for a time.
function L.drop_schedule(R, name, now_us)
  db('HDEL', R .. ':schedules', name)
  db('HDEL', R .. ':schedule:paused', name)
  db('ZREM', R .. ':schedule:file', name)
  db('ZADD', R .. ':schedule:gone', L.int(L.ms(now_us) + GONE_MS), name)
  tell_change(R, now_us)
end

-- Forget up to n cursors whose time is over.
function L.tidy_schedules(R, now_ms, n)
  local key = R .. ':schedule:gone'
  for _, name in ipairs(db('ZRANGEBYSCORE', key, '-inf', L.int(now_ms), 'LIMIT', 0, n)) do
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
function L.job_of_schedule(s, now_ms)
  local job, words = {queue = L.check_queue(s.queue), priority = 5, due = now_ms,
                      is_named = true}, {}
  for word in string.gmatch(s.options or '', '%S+') do
    words[#words + 1] = word
  end
  if #words % 2 == 1 then
    L.fail('ELATER_OPTION', 'an option of schedule ' .. s.name .. ' has no value')
  end
  L.read_options(job, words, 1, #words)
  return job
end

-- times: {at: of the occurrence, due}; day: of the calendar, nil for none
local function make_job(s, times, day, now_ms)
  local job = L.job_of_schedule(s, now_ms)
  job.has_options = true
  job.S, job.O, job.Y = s.name, times.at, day
  job.due = math.max(times.due + splay_of(s), now_ms)
  if s.overlap == 'queue' or s.overlap == 'replace' then
    job.l = 'schedule:' .. s.name
  end
  return job
end

-- Has the time of this job not come? One within its splay, or after a first try, has come.
local function is_to_come(book, s, state, tries, score)
  return state == 'waiting' and tries.attempts == 0 and score > book.now_ms + splay_of(s)
end

-- The live jobs that overlap looks at. -> those that have come: {id, state, job, tries}; the ids of
-- those that are to come, as text
local function look_behind(book, s, c)
  local come, ahead, ids = {}, {}, {c.job}
  for id in string.gmatch(c.ahead or '', '[^,]+') do
    ids[#ids + 1] = #ids <= AHEAD_MAX and id or nil
  end
  for _, id in ipairs(ids) do
    local state, job, tries, score = L.locate(book.R, id)
    if job and L.is_live(state) then
      if is_to_come(book, s, state, tries, score) then
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
local function has_way(book, s, c)
  if s.overlap == 'allow' then
    return true
  end
  local come, ahead = look_behind(book, s, c)
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
    L.cancel(book, met.id, met.state, met.job, met.tries, 'superseded by the next occurrence')
  end
  L.assign(c, 'ahead', ahead)
  return true
end

-- Remember a job that is to come, so that overlap finds it once it has come.
local function put_ahead(c, id)
  local ids = {id}
  for other in string.gmatch(c.ahead or '', '[^,]+') do
    ids[#ids + 1] = #ids < AHEAD_MAX and other or nil
  end
  L.assign(c, 'ahead', table.concat(ids, ','))
end

-- Tell `later tail` of n occurrences without a job. what: skipped or missed
function L.tell_left_out(s, what, n)
  if L.events and n > 0 then
    L.event('schedule-' .. what, '-', s.queue, nil, nil, nil, nil, s.name .. ' ' .. L.int(n))
  end
end

-- Add the job of an occurrence, unless one that has come keeps it out. c: the cursor, which counts
-- it; times: {at, due}: for which time it is, and when it is due, without its splay; day: of the
-- calendar, nil for none -> id, due ms; nil: it was skipped. Overlap is a question of its time: one
-- that is to come asks nothing now and becomes no last job, but counts once it has come. One that
-- is forced is beside the occurrences for ever.
function L.start_occurrence(book, s, c, times, day, is_forced)
  local is_ahead = times.due > book.now_ms
  if not is_forced and not is_ahead and not has_way(book, s, c) then
    L.assign(c, 'skipped', c.skipped + 1)
    L.tell_left_out(s, 'skipped', 1)
    return nil
  end
  local job = make_job(s, times, day, book.now_ms)
  local reply = L.add_in_draft(book.R, job, s.payload, book.now_us)
  if not is_forced and is_ahead then
    put_ahead(c, reply[1])
  elseif not is_forced then
    L.assign(c, 'job', reply[1])
  end
  L.assign(c, 'runs', c.runs + 1)
  if L.events then
    L.event('schedule-fired', reply[1], s.queue, job.due, nil, nil, nil, s.name)
  end
  return reply[1], job.due
end
