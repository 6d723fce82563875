-- later_schedule_set R NAME cron EXPRESSION|every D [name value]... PAYLOAD -> [NAME, status]
-- later_schedule_del R NAME -> [NAME, 'deleted']
--
-- A schedule adds a job with PAYLOAD (at most 16 KiB) at each of its occurrences.
-- Options: tz ZONE (of cron; UTC); queue QUEUE (NAME); overlap allow|skip|queue|replace (allow);
-- catch_up none|last|all (last): which past occurrences count; catch_up_window D (1d); splay D (0):
-- the job is due up to so much later, always the same; from T, until T (as for `at`, and may be
-- past); and of later_add: priority key attempts timeout expire keep lock sem rate then on_dead.
-- EXPRESSION is checked roughly here, and whole by the workers: one that they cannot read gets the
-- note bad-schedule:NAME. status: added | changed | same. A schedule that comes from a file belongs
-- to no file any more when it is set here.
-- Errors: ELATER_ARGS SCHEDULE NOSCHEDULE OPTION QUEUE TIME SIZE KEY FULL TYPE GATE LIMIT.
-- Cost: O(1).

local schedule_calls = module 'public/schedule'
local clock, instant, uses, wanted, adds, schedules = use(
  'core/clock', 'core/instant', 'core/uses', 'gates/wanted', 'public/add', 'schedule/schedules')
local WINDOW_MS = 86400000
local EXPRESSION_MAX = 256
local EVERY_MIN_MS = 1000

local OVERLAPS = {allow = true, skip = true, queue = true, replace = true}
local CATCH_UPS = {none = true, last = true, all = true}
local OF_JOB = {priority = true, key = true, attempts = true, timeout = true, expire = true,
                keep = true, lock = true, sem = true, rate = true, ['then'] = true, on_dead = true}
local NICKNAMES = {hourly = true, daily = true, midnight = true, weekly = true, monthly = true,
                   yearly = true, annually = true}

local function one_of(name, value, words, all)
  local lower = string.lower(value)
  if not words[lower] then
    fail('ELATER_OPTION', name .. ' ' .. quote(value) .. ' is none of ' .. all)
  end
  return lower
end

local function check_zone(name)
  if #name > 64 or not string.find(name, '^%a[%w_+/-]*$') then
    fail('ELATER_OPTION', 'tz ' .. quote(name) .. ' is no time zone: Europe/Berlin, or UTC')
  end
  return name
end

local OPTIONS = {
  tz = function(s, v) s.tz = check_zone(v) end,
  queue = function(s, v) s.queue = check_queue(v) end,
  overlap = function(s, v)
    s.overlap = one_of('overlap', v, OVERLAPS, 'allow skip queue replace')
  end,
  catch_up = function(s, v) s.catch_up = one_of('catch_up', v, CATCH_UPS, 'none last all') end,
  catch_up_window = function(s, v) s.catch_up_window = adds.positive('catch_up_window', v) end,
  splay = function(s, v) s.splay = instant.duration(v, 'splay') end,
  from = function(s, v, from_ms) s.from = instant.instant(v, from_ms, 'from') end,
  ['until'] = function(s, v, from_ms) s['until'] = instant.instant(v, from_ms, 'until') end,
}

-- Refuse what cannot be an expression. C knows the rest.
local function check_expression(text)
  local fields = 0
  for _ in string.gmatch(text, '%S+') do
    fields = fields + 1
  end
  local is_fine = #text <= EXPRESSION_MAX and not string.find(text, '[^%w%s*,/#@-]')
  if string.byte(text) == 64 then
    is_fine = NICKNAMES[string.lower(string.sub(text, 2))]
  elseif is_fine then
    is_fine = (fields == 5 or fields == 6) and not string.find(text, '[@%c]')
  end
  if not is_fine then
    fail('ELATER_SCHEDULE', quote(text) .. ' is no expression of cron: minute hour day ' ..
         'month weekday, or with the second first, or @hourly @daily @weekly @monthly @yearly')
  end
end

local function read_when(kind, text)
  kind = string.lower(kind or '')
  if kind == 'every' then
    if instant.duration(text, 'every') < EVERY_MIN_MS then
      fail('ELATER_TIME', 'every ' .. quote(text) .. ' is shorter than 1s')
    end
  elseif kind == 'cron' then
    check_expression(text)
  else
    fail('ELATER_ARGS', 'give NAME cron EXPRESSION|every D [name value]... PAYLOAD')
  end
  return kind .. ' ' .. text
end

-- Read the options args[from..to]: of the schedule into s, those of its jobs into job. from_ms:
-- what +DURATION counts from, or nil.
local function read_options(s, job, args, from, to, from_ms)
  local seen, words = {}, {}
  for i = from, to, 2 do
    local name, value = string.lower(args[i]), args[i + 1]
    if OF_JOB[name] then
      adds.option(job, seen, name, value, job.due)
      words[#words + 1] = name .. ' ' .. value
    elseif not OPTIONS[name] then
      fail('ELATER_OPTION', 'unknown option ' .. quote(args[i]) ..
           ' (the payload comes last, after the options)')
    elseif seen[name] then
      fail('ELATER_OPTION', 'option ' .. name .. ' is given twice')
    else
      seen[name] = true
      OPTIONS[name](s, value, from_ms)
    end
  end
  s.options = table.concat(words, ' ')
end

local function check(R, s, job)
  if (s.overlap == 'queue' or s.overlap == 'replace') and job.l then
    fail('ELATER_OPTION', 'overlap ' .. s.overlap .. ' has a lock of its own: take lock out')
  elseif s.from and s['until'] and s.from >= s['until'] then
    fail('ELATER_TIME', 'from is not before until')
  elseif #s.payload > BIG then
    fail('ELATER_SIZE', 'the payload of a schedule has ' .. int(#s.payload) .. ' bytes, at most ' ..
         int(BIG) .. ' fit')
  end
  job.queue = s.queue
  adds.check_payload(R, s.queue, s.payload)
  uses.new_names(R, uses.queues_of(s))
  adds.check_gates(R, job, wanted.queue_gates(db('HGET', R .. ':queues', s.queue)))
end

-- NAME KIND TEXT [name value]... PAYLOAD -> the checked schedule, for schedules.put. from_ms: what
-- +DURATION counts from; nil for a file, where it is refused, as workers read it at other times
function schedule_calls.read_schedule(R, args, now_ms, from_ms)
  local n, job = #args, {priority = 5, due = now_ms}
  if n < 4 or n % 2 == 1 then
    fail('ELATER_ARGS', 'give NAME cron EXPRESSION|every D [name value]... PAYLOAD')
  end
  local s = {name = schedules.check_name(args[1]), when = read_when(args[2], args[3]), tz = 'UTC',
             overlap = 'allow', catch_up = 'last', catch_up_window = WINDOW_MS, payload = args[n]}
  read_options(s, job, args, 4, n - 1, from_ms)
  s.queue = s.queue or check_queue(args[1])
  if s.options == '' then
    s.options = nil
  end
  check(R, s, job)
  return s
end

register('later_schedule_set', {}, function(R, args)
  local now_us = clock.now_us()
  local s = schedule_calls.read_schedule(R, args, clock.ms(now_us), clock.ms(now_us))
  local status = schedules.put(R, s, now_us)
  db('ZREM', R .. ':schedule:file', s.name)
  return {s.name, status}
end)

register('later_schedule_del', {'allow-oom'}, function(R, args)
  local s = schedules.need(R, args[1])
  schedules.drop(R, s.name, clock.now_us())
  return {s.name, 'deleted'}
end)
