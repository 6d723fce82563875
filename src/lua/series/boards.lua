-- Which queues and keys of jobs failed most, were busy longest, or started latest, day by day.
--
--   R:top:<by>:<of>:<day>  ZSET name -> score; by: failed busy late; of: queues keys; kept for 8 d
--
-- A score has two parts: units × 2^23 + (131071 − the second of the day at which the name came
-- first). So more units win, then the earlier one. A unit is a failed attempt, or a tenth of a
-- second of run time or lateness. Units stop at 2^30 − 1, so the score is below 2^53 and exact.
--
-- A board has at most MOST names. A name that is new to a full board may have been in it before: it
-- starts from the least units that are there, and is marked with 2^22. So it has too many units by
-- at most these, and a name with more than 1/MOST of all units is never missing. This is
-- Space-Saving (Metwally, Agrawal, El Abbadi 2005), a batch at a time (Agarwal et al. 2012).

local UNIT = 8388608        -- 2^23
local MARK = 4194304        -- 2^22
local UNITS_MAX = 1073741823
local LATEST_S = 131071
local MOST = 512
local DAY_MS = 86400000
local KEYS_MAX = 2048       -- of one tidy

L.BOARDS_BY = {failed = true, busy = true, late = true}
L.BOARDS_OF = {queues = true, keys = true}

-- A score -> {units, second, is_marked}; nil for one that cannot be ours.
function L.read_rank(score)
  local n = tonumber(score)
  if not n or n < UNIT or n >= 9007199254740992 or n % 1 ~= 0 then
    return nil
  end
  local rest = n % UNIT
  local is_marked = rest >= MARK
  rest = is_marked and rest - MARK or rest
  return {units = (n - n % UNIT) / UNIT, second = math.max(LATEST_S - rest, 0),
          is_marked = is_marked}
end

local function score_of(r)
  return math.min(r.units, UNITS_MAX) * UNIT + LATEST_S - r.second + (r.is_marked and MARK or 0)
end

-- -> rows: name -> {units, second, is_marked}; how many there are; names whose score is not ours
local function read_board(key)
  local rows, n, foreign = {}, 0, {}
  local all = redis.call('ZRANGE', key, 0, 4 * MOST - 1, 'REV', 'WITHSCORES')
  for i = 1, #all, 2 do
    local r = L.read_rank(all[i + 1])
    if r then
      rows[all[i]], n = r, n + 1
    else
      foreign[#foreign + 1] = all[i]
    end
  end
  return rows, n, foreign
end

-- Add what comes to the rows of a board. coming: name -> {units, second}; n: how many rows it has
local function merge(rows, n, coming)
  local is_full, least = n >= MOST, math.huge
  for _, r in pairs(rows) do
    least = math.min(least, r.units)
  end
  for name, c in pairs(coming) do
    local r = rows[name]
    if r then
      r.units, r.second, r.is_changed = r.units + c.units, math.min(r.second, c.second), true
    else
      rows[name] = {units = c.units + (is_full and least or 0), second = c.second,
                    is_marked = is_full, is_changed = true}
    end
  end
end

-- Write the MOST highest rows. All others leave the board.
local function write_board(key, rows, foreign, until_ms)
  local list, add, out = {}, {}, foreign
  for name, r in pairs(rows) do
    list[#list + 1] = {name, score_of(r), r.is_changed}
  end
  table.sort(list, function(a, b)
    return a[2] > b[2] or a[2] == b[2] and L.is_before(a[1], b[1])
  end)
  for i, row in ipairs(list) do
    if i > MOST then
      out[#out + 1] = row[1]
    elseif row[3] then
      add[#add + 1], add[#add + 2] = L.int(row[2]), row[1]
    end
  end
  if out[1] then
    redis.call('ZREM', key, unpack(out))
  end
  redis.call('ZADD', key, unpack(add))
  redis.call('PEXPIREAT', key, L.int(until_ms))
end

local function rank(key, coming, day)
  if next(coming) then
    local rows, n, foreign = read_board(key)
    merge(rows, n, coming)
    write_board(key, rows, foreign, DAY_MS * (day + 9))
  end
end

-- Add what was counted to the three boards of a day. of: queues or keys; counted: {name, failed,
-- busy (ms), late (ms), when it came first (ms)}*. A board that cannot be written loses it.
local function rank_all(R, of, day, counted)
  local boards = {failed = {}, busy = {}, late = {}}
  for _, c in ipairs(counted) do
    local second = math.min(math.max(math.floor(c[5] / 1000) - 86400 * day, 0), 86399)
    for i, by in ipairs({'failed', 'busy', 'late'}) do
      local units = by == 'failed' and c[2] or math.floor((c[i + 1] + 50) / 100)
      boards[by][c[1]] = units > 0 and {units = units, second = second} or nil
    end
  end
  for by, coming in pairs(boards) do
    pcall(rank, R .. ':top:' .. by .. ':' .. of .. ':' .. L.int(day), coming, day)
  end
end

-- Rank queues by the rows that are written now, {queue, row}* (series.lua).
function L.rank_queues(R, minute, all)
  local counted = {}
  for i, one in ipairs(all) do
    local row = one[2]
    counted[i] = {one[1], row[L.FAILED] or 0, row[L.BUSY] or 0, (row[L.LATE_US] or 0) / 1000,
                  row.first_ms}
  end
  rank_all(R, 'queues', math.floor(minute / 1440), counted)
end

-- Rank the keys of jobs that a worker tells, a line each: "<age s> <failed> <busy ms> <late ms>
-- <key>". age: how long ago it came first since the worker told last. Other lines are ignored.
function L.rank_keys(R, text, now_ms)
  local counted = {}
  for line in string.gmatch(text, '[^\n]+') do
    local age, failed, busy, late, key = string.match(line, '^(%d+) (%d+) (%d+) (%d+) (%S+)$')
    age, failed, busy, late = L.whole(age), L.whole(failed), L.whole(busy), L.whole(late)
    if age and failed and busy and late and #key <= 256 and #counted < KEYS_MAX then
      counted[#counted + 1] = {key, failed, busy, late, now_ms - 1000 * age}
    end
  end
  rank_all(R, 'keys', math.floor(now_ms / DAY_MS), counted)
end
