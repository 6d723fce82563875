-- The calendar of a schedule: on which days it was due, and what became of its jobs.
--
--   R:cal:<name>:<year>  STRING  four rows of 64 bytes with a bit for each day of the year, as days
--                        are in the time zone of the schedule: due (it added jobs), ok (one was
--                        done), failed (one died), missed
--
-- It is written after all else of a call, and an error there is ignored: a calendar keeps no job
-- from ending. It expires 400 days after its year. A day is a number: year * 1000 + day of the
-- year.

local calendar = module 'schedule/calendar'
local instant, commit = use('core/instant', 'txn/commit')
local ROW = 512             -- bits
local ROWS = {due = 0, ok = 1, failed = 2, missed = 3}
local KEPT_DAYS = 400

local function set_bit(key, bit, until_ms)
  redis.call('SETBIT', key, bit, 1)
  redis.call('PEXPIREAT', key, int(until_ms))
end

-- Is this a day of a calendar? A zone may be a day ahead of Redis' clock, or behind.
function calendar.is_day(day)
  local of_year = day and day % 1000
  return day and day >= 1970001 and day < 10000000 and of_year >= 1 and of_year <= 366
end

-- Mark a day in a row: due, ok, failed or missed.
function calendar.mark_day(R, name, day, row)
  local year = math.floor(day / 1000)
  commit.hint(set_bit, R .. ':cal:' .. name .. ':' .. int(year), ROWS[row] * ROW + day % 1000 - 1,
              (instant.days(year + 1, 1, 1) + KEPT_DAYS) * 86400000)
end

-- A job has ended. job: as jobs.parse tells it, nil if it was lost; row: ok or failed
function calendar.mark_end(R, job, row)
  local day = job and job.S and whole(job.Y)
  if calendar.is_day(day) then
    calendar.mark_day(R, job.S, day, row)
  end
end
