-- Schedules: what adds a job again and again. A worker computes when one is due (src/schedule); the
-- library compares what the worker knows with what is here, and adds the jobs (v1/fire.lua).
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
-- version of the time zones by which next was computed; job: the last one; runs, skipped (by
-- overlap or a pause) and missed: how many occurrences.

local FIELDS = {'revision', 'when', 'tz', 'queue', 'overlap', 'catch_up', 'catch_up_window',
                'splay', 'from', 'until', 'options'}
local TIMING = {'when', 'tz', 'from', 'until'}
local NUMBERS = {revision = true, catch_up_window = true, splay = true, from = true,
                 ['until'] = true, last = true, next = true, runs = true, skipped = true,
                 missed = true}
local CURSOR = {'revision', 'last', 'next', 'zones', 'job', 'runs', 'skipped', 'missed'}

local SCHEDULES_MAX = 10000
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

-- times: {at: of the occurrence, due}; day: of the calendar, nil for none
local function make_job(s, times, day, now_ms)
  local job, words = {queue = s.queue, priority = 5, due = now_ms}, {}
  for word in string.gmatch(s.options or '', '%S+') do
    words[#words + 1] = word
  end
  L.read_options(job, words, 1, #words)
  job.has_options = true
  job.S, job.O, job.Y = s.name, times.at, day
  job.due = math.max(times.due + splay_of(s), now_ms)
  if s.overlap == 'queue' or s.overlap == 'replace' then
    job.l = 'schedule:' .. s.name
  end
  return job
end

-- Is there a job that keeps the next one out? One that only waits for a retry does not. Jobs that
-- have to give way are cancelled.
local function has_way(book, s, c)
  local state, job, tries = nil, nil, nil
  if s.overlap ~= 'allow' and c.job then
    state, job, tries = L.locate(book.R, c.job)
  end
  if not job or not L.is_live(state) then
    return true
  end
  local is_retry = state == 'waiting' and tries.attempts > 0
  if s.overlap == 'replace' or s.overlap == 'skip' and is_retry then
    L.cancel(book, c.job, state, job, tries, 'superseded by the next occurrence')
    return true
  end
  return s.overlap == 'queue' and (state == 'running' or is_retry)
end

-- Tell `later tail` of n occurrences without a job. what: skipped or missed
function L.tell_left_out(s, what, n)
  if L.events and n > 0 then
    L.event('schedule-' .. what, '-', s.queue, nil, nil, nil, nil, s.name .. ' ' .. L.int(n))
  end
end

-- Add the job of an occurrence, unless the last one keeps it out. c: the cursor, which counts it;
-- times: {at, due}: for which time it is, and when it is due, without its splay; day: of the
-- calendar, nil for none -> id, due ms; nil: it was skipped
function L.start_occurrence(book, s, c, times, day, is_forced)
  if not is_forced and not has_way(book, s, c) then
    L.assign(c, 'skipped', c.skipped + 1)
    L.tell_left_out(s, 'skipped', 1)
    return nil
  end
  local job = make_job(s, times, day, book.now_ms)
  local reply = L.add_in_draft(book.R, job, s.payload, book.now_us)
  if not is_forced then -- else it is beside the occurrences, keeps none out and makes way for none
    L.assign(c, 'job', reply[1])
  end
  L.assign(c, 'runs', c.runs + 1)
  if L.events then
    L.event('schedule-fired', reply[1], s.queue, job.due, nil, nil, nil, s.name)
  end
  return reply[1], job.due
end
