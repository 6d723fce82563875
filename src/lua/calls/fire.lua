-- later_v1_fire R EPOCH NI {name revision next new_next zones missed ND day*ND NO {at day}*NO}*NI
--   -> [now_us, [status, revision, last, next, zones]...]
--
-- A worker adds the jobs of occurrences whose time has come, and says when the next one is. For
-- each schedule it tells what it knows: revision, and next ('-': there is none for this revision).
-- Only if Redis has the same, the occurrences `at` (ms, rising) get their jobs and next becomes
-- new_next ('-': none is left), in this call: so each is added once, whoever comes first. missed:
-- how many occurrences before new_next get no job, by the catch-up of the schedule; then their
-- days. day: year * 1000 + day of the year, there, for the calendar. zones: the
-- version of the time zones by which new_next was computed. Without occurrences and missed ones
-- only an older version may be replaced.
-- status: fired; moved: Redis has something else; early: an occurrence is later than TIME; gone:
-- there is no such schedule; failed: Redis does not take its jobs (the note bad-schedule:NAME says
-- why), and its occurrences are counted as missed. The other values are what Redis has now, '-' for
-- none.
-- At most 100 schedules and 200 occurrences and days. Not allow-oom: without memory they come
-- later.
-- Errors: ELATER_ARGS WORKER TYPE. Cost: O(NI + jobs added), each as later_add.

local beats, tidy, clock, instant, gate, waiters, calendar, schedules, change = use(
  'calls/beat', 'calls/tidy', 'core/clock', 'core/instant', 'gates/gate', 'gates/waiters',
  'schedule/calendar', 'schedule/schedules', 'txn/change')
local ITEMS_MAX, TIMES_MAX = 100, 200

local function bad_args()
  fail('ELATER_ARGS', 'give EPOCH NI {name revision next new_next zones missed ND day*ND ' ..
       'NO {at day}*NO}*NI')
end

-- Read a number n at args[i], and behind it a number for each of the lists n times. -> what follows
local function read_numbers(args, i, ...)
  local lists, n = {...}, whole(args[i])
  if not n or n > TIMES_MAX then
    bad_args()
  end
  i = i + 1
  for k = 1, n do
    for _, list in ipairs(lists) do
      list[k], i = whole(args[i]) or bad_args(), i + 1
    end
  end
  return i
end

-- -> the items
local function read_items(args)
  local n, i, items, times = whole(args[2]), 3, {}, 0
  if not n or n > ITEMS_MAX then
    bad_args()
  end
  for k = 1, n do
    local item = {name = args[i], revision = whole(args[i + 1]), next = args[i + 2],
                  new_next = args[i + 3], zones = args[i + 4], missed = whole(args[i + 5]),
                  missed_days = {}, at = {}, days = {}}
    i = read_numbers(args, i + 6, item.missed_days)
    i = read_numbers(args, i, item.at, item.days)
    times = times + #item.at + #item.missed_days
    if not item.revision or not item.missed or times > TIMES_MAX or not string.find(item.zones or
                                                                                    '',
                                                                      '^[%w.-]+$') or
item.new_next ~= '-' and not whole(item.new_next) then
      bad_args()
    end
    items[k] = item
  end
  return items
end

-- May this item change the cursor? -> fired, or why not
local function judge(item, s, c, now_ms)
  local known = c.revision == s.revision and c.next and int(c.next) or '-'
  if item.revision ~= s.revision or item.next ~= known then
    return 'moved'
  elseif #item.at == 0 and item.missed == 0 and known ~= '-' and item.zones <= (c.zones or '') then
    return 'moved'
  end
  for _, at in ipairs(item.at) do
    if at > now_ms then
      return 'early'
    elseif c.last and c.revision == s.revision and at <= c.last then
      return 'moved'
    end
  end
  return 'fired'
end

local function add_jobs(ledger, item, s, c)
  for i, at in ipairs(item.at) do
    local day = calendar.is_day(item.days[i]) and item.days[i] or nil
    if schedules.start_occurrence(ledger, s, c, {at = at, due = at}, day) and day then
      calendar.mark_day(ledger.R, s.name, day, 'due')
    end
  end
  return true
end

-- What hinders the jobs is noted. Errors that are not the schedule's are raised.
local function tell_failure(ledger, s, why)
  local text = type(why) == 'table' and why.elater
  if not text then
    error(why, 0)
  end
  tidy.note(ledger.R, string.sub('bad-schedule:' .. s.name .. ' ' .. one_line(text), 1,
                                 tidy.NOTE_BYTES), ledger.now_ms)
end

local function mark_missed(R, s, days)
  for _, day in ipairs(days) do
    if calendar.is_day(day) then
      calendar.mark_day(R, s.name, day, 'missed')
    end
  end
end

local function fire(ledger, item, s, c)
  local n, status = #item.at, 'fired'
  local pause = db('HGET', ledger.R .. ':schedule:paused', s.name)
  if n > 0 and instant.paused_until(pause, ledger.now_ms) then
    c.skipped = c.skipped + n
    schedules.tell_left_out(s, 'skipped', n)
  elseif n > 0 then
    local ok, why = change.try(add_jobs, ledger, item, s, c)
    if not ok then
      tell_failure(ledger, s, why)
      status, c.missed = 'failed', c.missed + n
      schedules.tell_left_out(s, 'missed', n)
      mark_missed(ledger.R, s, item.days)
    end
  end
  mark_missed(ledger.R, s, item.missed_days)
  schedules.tell_left_out(s, 'missed', item.missed)
  c.missed, c.revision, c.zones = c.missed + item.missed, s.revision, item.zones
  c.last, c.next = item.at[n] or c.last, whole(item.new_next)
  schedules.put_cursor(ledger.R, s.name, c)
  return status
end

register('later_v1_fire', {}, function(R, args)
  local items = read_items(args)
  local status = beats.worker(R, args[1])
  if status ~= 'ok' then
    fail('ELATER_WORKER', 'worker ' .. quote(args[1]) .. ' is ' .. status)
  end
  local ledger = gate.ledger(R, clock.now_us())
  local out = {ledger.now_us}
  for _, item in ipairs(items) do
    local s, c = schedules.of(R, item.name), schedules.cursor(R, item.name)
    local answer = s and judge(item, s, c, ledger.now_ms) or 'gone'
    if answer == 'fired' then
      answer = fire(ledger, item, s, c)
    end
    local is_planned = s and c.revision == s.revision
    out[#out + 1] = {answer, s and int(s.revision) or '-', c.last and int(c.last) or '-',
                     is_planned and c.next and int(c.next) or '-', c.zones or '-'}
  end
  waiters.hand_on(ledger)
  return out
end)
