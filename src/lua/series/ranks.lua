-- Which queues and keys of jobs failed most, were busy longest, or started latest, day by day.
--
--   R:top:<by>:<of>:<day>  ZSET name -> score; by: failed busy late; of: queues keys; kept for 8 d
--
-- A score has two parts: units × 2^23 + (131071 − the second of the day at which the name came
-- first). So more units win, then the earlier one. A unit is a failed attempt, or a tenth of a
-- second of run time or lateness. Units stop at 2^30 − 1, so the score is below 2^53 and exact.
--
-- A board has at most MOST names. A name that is new to a full board may have been in it before: it
-- starts from the least units that are there, and is flagged with 2^22. So it has too many units by
-- at most these, and a name with more than 1/MOST of all units is never missing. This is
-- Space-Saving (Metwally, Agrawal, El Abbadi 2005), a batch at a time (Agarwal et al. 2012).

local ranks = module 'series/ranks'
local series = use 'series/series'
local UNIT = 8388608        -- 2^23
local MARK = 4194304        -- 2^22
local UNITS_MAX = 1073741823
local LATEST_S = 131071
local MOST = 512
local DAY_MS = 86400000
local KEYS_MAX = 1024       -- of one tidy

ranks.BOARDS_BY = {failed = true, busy = true, late = true}
ranks.BOARDS_OF = {queues = true, keys = true}

-- A score as text -> the number; nil for one that cannot be ours.
local function read_score(text)
  local score = tonumber(text)
  return score and score >= UNIT and score < 9007199254740992 and score % 1 == 0 and score or nil
end

-- -> units, second, whether it is flagged
local function parts_of(score)
  local rest = score % UNIT
  local is_flagged = rest >= MARK
  return (score - rest) / UNIT, math.max(LATEST_S - rest + (is_flagged and MARK or 0), 0),
         is_flagged
end

-- A score as text -> units, second, whether it is flagged; nil for one that cannot be ours.
function ranks.read(text)
  local score = read_score(text)
  if score then
    return parts_of(score)
  end
  return nil
end

local function score_of(units, second, is_flagged)
  return math.min(units, UNITS_MAX) * UNIT + LATEST_S - second + (is_flagged and MARK or 0)
end

-- -> scores: name -> score; how many there are; the lowest; names whose score is not ours
local function read_board(key)
  local scores, n, lowest, foreign = {}, 0, 0, {}
  local all = redis.call('ZRANGE', key, 0, 4 * MOST - 1, 'REV', 'WITHSCORES')
  for i = 1, #all, 2 do
    local score = read_score(all[i + 1])
    if score then
      scores[all[i]], n, lowest = score, n + 1, score
    else
      foreign[#foreign + 1] = all[i]
    end
  end
  return scores, n, lowest, foreign
end

-- The scores of the names that come, in `scores` and alone. coming: name -> {units, second}; n: how
-- many names are on the board. -> the new scores, how many names there are then
local function merge(scores, n, lowest, coming)
  local changed, is_full, least = {}, n >= MOST, parts_of(lowest)
  for name, c in pairs(coming) do
    local units, second, is_flagged = is_full and least or 0, c.second, is_full
    if scores[name] then
      units, second, is_flagged = parts_of(scores[name])
    else
      n = n + 1
    end
    changed[name] = score_of(units + c.units, math.min(second, c.second), is_flagged)
    scores[name] = changed[name]
  end
  return changed, n
end

-- -> the lowest of the MOST highest scores; how many names with this score are too many
local function lowest_kept(scores, n)
  if n <= MOST then
    return 0, 0
  end
  local all, below = {}, n - MOST
  for _, score in pairs(scores) do
    all[#all + 1] = score
  end
  table.sort(all)
  local lowest = all[below + 1]
  while below > 0 and all[below] == lowest do
    below = below - 1
  end
  return lowest, n - MOST - below
end

-- Write the scores that have changed. What is below the MOST highest of n leaves the board.
local function write_board(key, scores, n, changed, out, until_ms)
  local add, lowest, equal = {}, lowest_kept(scores, n)
  for name, score in pairs(scores) do
    if score < lowest or score == lowest and equal > 0 then
      out[#out + 1] = name
      equal = equal - (score == lowest and 1 or 0)
    elseif changed[name] then
      add[#add + 1], add[#add + 2] = int(score), name
    end
  end
  if out[1] then
    redis.call('ZREM', key, unpack(out))
  end
  if add[1] then
    redis.call('ZADD', key, unpack(add))
    redis.call('PEXPIREAT', key, int(until_ms))
  end
end

local function rank(key, coming, day)
  if next(coming) then
    local scores, n, lowest, foreign = read_board(key)
    local changed, many = merge(scores, n, lowest, coming)
    write_board(key, scores, many, changed, foreign, DAY_MS * (day + 9))
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
    pcall(rank, R .. ':top:' .. by .. ':' .. of .. ':' .. int(day), coming, day)
  end
end

-- Rank queues by the rows that are written now, {queue, row}* (series.lua).
function ranks.queues(R, minute, all)
  local counted = {}
  for i, one in ipairs(all) do
    local row = one[2]
    counted[i] = {one[1], row[series.FAILED] or 0, row[series.BUSY] or 0, (row[series.LATE_US] or
                                                                           0) / 1000, row.first_ms}
  end
  rank_all(R, 'queues', math.floor(minute / 1440), counted)
end

-- Rank the keys of jobs that a worker tells, a line each: "<age s> <failed> <busy ms> <late ms>
-- <key>". age: how long ago it came first since the worker told last. Other lines are ignored.
function ranks.keys(R, text, now_ms)
  local counted = {}
  for line in string.gmatch(text, '[^\n]+') do
    local age, failed, busy, late, key = string.match(line, '^(%d+) (%d+) (%d+) (%d+) (%S+)$')
    age, failed, busy, late = whole(age), whole(failed), whole(busy), whole(late)
    if age and failed and busy and late and #key <= 256 and #counted < KEYS_MAX then
      counted[#counted + 1] = {key, failed, busy, late, now_ms - 1000 * age}
    end
  end
  rank_all(R, 'keys', math.floor(now_ms / DAY_MS), counted)
end
