-- Statistics by the minute. What happens in a queue is first counted in the memory of the library,
-- and the next tidy of a worker writes it: so no job costs a command. A crash of Redis loses what
-- was not written yet, ten seconds or so; the counters of `later stats` are written with each call.
--
-- A row has a number for each of COLUMNS columns: added done failed dead cancelled busy (ms), then
-- how many starts were late in each of 18 classes, and how many runs took as long as each of 12
-- (job/queue_counts.h has the bounds). BITFIELD adds to them and stops at the highest number.
--   R:m:<queue>:<hour>   60 rows of u32, one for each minute; kept for 6 h after the hour
--   R:h:<queue>:<day>    24 rows of u32, one for each hour; kept for 15 d after the day
--   R:total:<queue>      one row of i64 with all that was counted, and two more columns: the sum of
--                        lateness and of run times, us; kept for 15 d after the last count
--   R:keys:<queue>:<day> HyperLogLog of the keys of jobs, at their first start; kept for 8 d
--   R:series             HASH queue -> the last hour in which it was counted
-- Hours and days are whole numbers since 1970. At most QUEUES queues have rows of their own; all
-- others count as `~rest`.

local series = module 'series/series'
local clock, ranks = use('core/clock', 'series/ranks')
local COLUMNS, OF_TOTAL = 36, 38
local QUEUES = 256
local REST = '~rest'
series.SERIES_REST = REST
local HOUR_MS = 3600000
local DAY_MS = 24 * HOUR_MS
local FULL_HOURS, KEPT_HOURS = 24, 360 -- a queue leaves R:series after so long a silence
local KEYS_MAX = 2000       -- keys of jobs in memory
local ROWS_MAX = 10000      -- rows in memory, of one root
local ROWS_AT_ONCE = 100    -- of one minute; so many or a few more are written by one call
local MINUTES_MAX = 60
local ROOTS_MAX = 1000      -- in memory; with one more, what another has counted is lost
local CHUNK = 1000

-- Columns by the name of their counter: commit.count counts in them, too.
series.SERIES_COLUMN = {added = 1, done = 2, failed = 3, dead = 4, cancelled = 5}
series.FAILED, series.BUSY, series.LATE_US = 3, 6, 37

-- root -> {minutes, keys: queue -> list, nkeys, of and n_of: as listed() returns them}. minutes:
-- {minute, rows}*, the newest last; rows: queue -> {[column] = number, first_ms}.
local pending, n_roots = {}, 0

-- The row that was counted in last, and what it is of: most calls count in it again.
local recent, recent_root, recent_queue, recent_minute

local function pending_of(R)
  local p = pending[R]
  if not p then
    if n_roots == ROOTS_MAX then
      pending[next(pending)], n_roots, recent_queue = nil, n_roots - 1, nil
    end
    p = {minutes = {}, keys = {}, nkeys = 0, n_of = 0}
    pending[R], n_roots = p, n_roots + 1
  end
  return p
end

local function rows_in(p)
  local n = 0
  for _, m in ipairs(p.minutes) do
    for _ in pairs(m.rows) do
      n = n + 1
    end
  end
  return n
end

-- Begin the rows of this minute. While no worker runs nothing is written: the oldest minute goes.
local function new_minute(p)
  if #p.minutes == MINUTES_MAX or rows_in(p) >= ROWS_MAX then
    table.remove(p.minutes, 1)
  end
  local m = {minute = clock.minute, rows = {}}
  p.minutes[#p.minutes + 1] = m
  return m
end

-- Find or make the row of a queue in this minute.
local function find_row(R, queue)
  local p = pending_of(R)
  local m = p.minutes[#p.minutes]
  if not m or m.minute ~= clock.minute then
    m = new_minute(p)
  end
  recent, recent_root, recent_queue, recent_minute = m.rows[queue], R, queue, m.minute
  if not recent then
    recent = {first_ms = clock.last_ms()}
    m.rows[queue] = recent
  end
end

-- Count n in a column. Only what was written is counted: call it after the writes.
function series.count_in_series(R, queue, column, n)
  if queue ~= recent_queue or R ~= recent_root or clock.minute ~= recent_minute then
    find_row(R, queue)
  end
  recent[column] = (recent[column] or 0) + n
end

-- Count what a worker tells of a queue: "<column>:<n> ...". Anything else in the text is ignored.
function series.count_told(R, queue, text)
  for column, n in string.gmatch(text, '(%d+):(%d+)') do
    local at, value = whole(column), whole(n)
    if at and value and at >= series.BUSY and at <= OF_TOTAL then
      series.count_in_series(R, queue, at, value)
    end
  end
end

-- ---- writing

-- Add a row to row `at` of a string. The last column is named in any case: so a new string gets its
-- full length at once, instead of growing to twice of it.
local function add_row(key, kind, rows, at, columns, row, until_ms)
  local args = {'OVERFLOW', 'SAT', 'INCRBY', kind, '#' .. int(rows * columns - 1), 0}
  for c = 1, columns do
    if row[c] and row[c] > 0 then
      local n = #args
      args[n + 1], args[n + 2], args[n + 3], args[n + 4] = 'INCRBY', kind, '#' ..
        int(at * columns + c - 1), int(row[c])
    end
  end
  if #args > 6 and not redis.pcall('BITFIELD', key, unpack(args)).err then
    redis.pcall('PEXPIREAT', key, int(until_ms))
  end
end

local function add_keys(key, keys, until_ms)
  for from = 1, #keys, CHUNK do
    redis.call('PFADD', key, unpack(keys, from, math.min(from + CHUNK - 1, #keys)))
  end
  redis.call('PEXPIREAT', key, int(until_ms))
end

local function write_keys(R, p)
  local day = math.floor(clock.minute / 1440)
  for queue, keys in pairs(p.keys) do
    local name = (p.of and p.of[queue] or p.n_of < QUEUES) and queue or REST
    pcall(add_keys, R .. ':keys:' .. name .. ':' .. int(day), keys, DAY_MS * (day + 9))
  end
  p.keys, p.nkeys = {}, 0
end

-- Jobs with these keys were started for the first time.
function series.count_keys(R, queue, keys)
  local p = pending_of(R)
  local all = p.keys[queue] or {}
  p.keys[queue], p.nkeys = all, p.nkeys + #keys
  for i = 1, #keys do
    all[#all + 1] = keys[i]
  end
  if p.nkeys >= KEYS_MAX then
    write_keys(R, p)
  end
end

local function write_row(R, queue, minute, row)
  local in_hour = minute % 60
  local hour = (minute - in_hour) / 60
  local in_day = hour % 24
  local day = (hour - in_day) / 24
  local until_ms, today = DAY_MS * (day + 16), math.floor(clock.minute / 1440)
  add_row(R .. ':m:' .. queue .. ':' .. int(hour), 'u32', 60, in_hour, COLUMNS, row,
          HOUR_MS * (hour + 7))
  add_row(R .. ':h:' .. queue .. ':' .. int(day), 'u32', 24, in_day, COLUMNS, row, until_ms)
  add_row(R .. ':total:' .. queue, 'i64', 1, 0, OF_TOTAL, row, DAY_MS * (today + 16))
end

-- -> queue -> last hour, of those that have rows of their own; how many these are. Silent ones
-- leave R:series.
local function listed(R, hour)
  local key, of, n = R .. ':series', {}, 0
  if redis.call('HLEN', key) > 4 * QUEUES then
    redis.call('DEL', key) -- written by somebody else
  end
  local all = redis.call('HGETALL', key)
  local most = #all / 2 > QUEUES and FULL_HOURS or KEPT_HOURS
  for i = 1, #all, 2 do
    local last = whole(all[i + 1])
    if not last or math.abs(hour - last) > most then
      redis.call('HDEL', key, all[i])
    else
      of[all[i]], n = last, n + (all[i] ~= REST and 1 or 0)
    end
  end
  return of, n
end

-- Take rows out of those of a minute: ROWS_AT_ONCE of queues that have rows of their own, and all
-- others as one. -> {queue, row}*
local function take(p, rows)
  local out, rest = {}, nil
  for queue, row in pairs(rows) do
    if not p.of[queue] and p.n_of < QUEUES and #out < ROWS_AT_ONCE then
      p.of[queue], p.n_of = 0, p.n_of + 1
    end
    if p.of[queue] and #out < ROWS_AT_ONCE then
      out[#out + 1], rows[queue] = {queue, row}, nil
    elseif not p.of[queue] and p.n_of >= QUEUES then
      rest, rows[queue] = rest or {first_ms = row.first_ms}, nil
      for column, n in pairs(row) do
        rest[column] = column ~= 'first_ms' and (rest[column] or 0) + n or math.min(rest[column], n)
      end
    end
  end
  out[#out + 1] = rest and {REST, rest}
  return out
end

local function write_rows(R, p, minute, all)
  local hour, hours = (minute - minute % 60) / 60, {}
  for _, one in ipairs(all) do
    write_row(R, one[1], minute, one[2])
    if p.of[one[1]] ~= hour then
      hours[#hours + 1], hours[#hours + 2] = one[1], int(hour)
    end
  end
  if hours[1] then
    redis.call('HSET', R .. ':series', unpack(hours))
  end
  ranks.queues(R, minute, all)
end

-- -> how many rows were written
local function write_minute(R, p, m)
  p.of, p.n_of = listed(R, (m.minute - m.minute % 60) / 60)
  local all = take(p, m.rows)
  write_rows(R, p, m.minute, all)
  return #all
end

-- Write what was counted, up to ROWS_AT_ONCE rows and those of a minute more; the next tidy goes
-- on. A key of a foreign type, a Redis without memory or a missing right loses it: that must not
-- harm the call.
function series.write(R)
  local p, left = pending_of(R), ROWS_AT_ONCE
  recent_queue = nil
  while p.minutes[1] and left > 0 do
    local m = p.minutes[1]
    local ok, n = pcall(write_minute, R, p, m)
    left = left - (ok and n or ROWS_AT_ONCE)
    if not ok or not next(m.rows) then
      table.remove(p.minutes, 1)
    end
  end
  write_keys(R, p)
end
