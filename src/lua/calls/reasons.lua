-- later_v1_reasons R QUEUE CURSOR COUNT [FROM_MS STEP_MS]
--   -> [next cursor, seen, [reason, count, first_ms, last_ms, last_id, deaths]...]
--
-- What the dead jobs of a queue died of: one page of them, those that died last first. CURSOR: ''
-- first, then what the page before returned; '' behind the last page. COUNT: at most 500 jobs.
-- seen: how many jobs the page has. It has fewer than COUNT where their outputs are large.
-- reason: the text of the outcome with each number as a *, so that "order 17 is gone" and "order 18
-- is gone" are one; an exit status or a signal stays (groups_fold in src/cli/show/groups.c has the
-- same rule). count: how many jobs of the page died of it; first_ms, last_ms: when; last_id: the
-- last of them. The caller adds up the pages: a reason comes once in each. A job without an outcome
-- is seen and has no reason.
-- deaths, where FROM_MS and STEP_MS are given: [step, jobs, ...], how many of them died in which
-- step of STEP_MS; the first one, 0, begins at FROM_MS. Those that died before are left out. A step
-- may come more than once: the caller adds up.
-- no-writes. Errors: ELATER_ARGS QUEUE TYPE. Cost: O(log n + COUNT), about 512 KiB of outcomes:
-- Redis reads them with their outputs.

local job_sets = use 'core/job_sets'
local COUNT_MAX = 500
local BYTES = 524288        -- of outcomes a call

local function stays(text, at)
  local before = string.sub(text, math.max(at - 12, 1), at - 1)
  return before == 'exit status ' or string.sub(before, -7) == 'signal '
end

local function fold_slowly(text)
  return (string.gsub(text, '()%d+', function(at)
    return not stays(text, at) and '*' or nil
  end))
end

-- Most texts have no number that stays, or only one that they begin with.
local function fold(text)
  local _, head = string.find(text, '^exit status %d+')
  local rest, find = string.sub(text, (head or 0) + 1), string.find
  if find(rest, 'exit status ', 1, true) or find(rest, 'signal ', 1, true) then
    return fold_slowly(text)
  end
  rest = string.gsub(rest, '%d+', '*')
  return head and string.sub(text, 1, head) .. rest or rest
end

-- Count a job in its group. The jobs come the last first, so of those that died at once the first
-- that comes is the last. -> the group
local function count(groups, order, reason, id, ms)
  local g = groups[reason]
  if not g then
    g = {reason, 0, ms, ms, id}
    groups[reason], order[#order + 1] = g, g
  elseif ms > g[4] then
    g[4], g[5] = ms, id
  end
  g[2], g[3] = g[2] + 1, ms > 0 and (ms < g[3] or g[3] == 0) and ms or g[3]
  return g
end

-- Count a death in its step. Jobs come in the order of their deaths, so mostly the last pair is it.
local function count_death(g, step)
  local deaths = g[6]
  if deaths[#deaths - 1] == step then
    deaths[#deaths] = deaths[#deaths] + 1
  else
    deaths[#deaths + 1], deaths[#deaths + 2] = step, 1
  end
end

-- Read outcomes until they have BYTES, ever more at once, but no more than would fit if each were
-- as large as the largest so far. -> them, false where there is none; perhaps fewer than ids
local function read_outcomes(R, ids)
  local outcomes, left, step, largest = {}, BYTES, 16, 1
  while #outcomes < #ids and left > 0 do
    local from = #outcomes + 1
    local n = math.min(step, math.max(math.floor(left / largest), 1), #ids - from + 1)
    local some = redis.call('HMGET', R .. ':errors', unpack(ids, from, from + n - 1))
    for i, outcome in ipairs(some) do
      outcomes[from + i - 1] = outcome
      left, largest = left - #(outcome or ''), math.max(largest, #(outcome or ''))
    end
    step = 4 * step
  end
  return outcomes
end

-- -> how many members of the set stand before this score and member, which may be gone
local function rank_before(key, score, member)
  local rank = job_sets.rank_behind(key, score, member)
  return redis.call('ZSCORE', key, member) == score and rank - 1 or rank
end

-- -> {id, score, ...} of up to `count` members below this rank, the highest first
local function read_below(key, rank, n)
  if rank <= 0 then
    return {}
  end
  local rows, out = redis.call('ZRANGE', key, math.max(rank - n, 0), rank - 1, 'WITHSCORES'), {}
  for i = #rows - 1, 1, -2 do
    out[#out + 1], out[#out + 2] = rows[i], rows[i + 1]
  end
  return out
end

-- -> the rank below which a page begins
local function page_start(key, cursor)
  if cursor == '' then
    return redis.call('ZCARD', key)
  end
  local score, member = string.match(cursor, '^(%S+) (.+)$')
  if not tonumber(score) then
    fail('ELATER_ARGS', quote(cursor) .. ' is no cursor of later_v1_reasons')
  end
  return rank_before(key, score, member)
end

register('later_v1_reasons', {'no-writes'}, function(R, args)
  local queue, cursor, most = check_queue(args[1]), args[2], whole(args[3])
  local from, step = whole(args[4]), whole(args[5])
  if not cursor or not most or most < 1 or most > COUNT_MAX or
     (args[4] and not (from and step and step > 0)) then
    fail('ELATER_ARGS', 'give QUEUE CURSOR COUNT (1 to ' .. int(COUNT_MAX) ..
         ') [FROM_MS STEP_MS]')
  end
  local key = R .. ':dead:' .. queue
  local rank, ids, groups, order = page_start(key, cursor), {}, {}, {}
  local rows = read_below(key, rank, most)
  for i = 1, #rows, 2 do
    ids[#ids + 1] = rows[i]
  end
  local outcomes = read_outcomes(R, ids)
  local seen = #outcomes
  for i = 1, seen do
    local when, text = string.match(outcomes[i] or '', '^%a+ %d+ (%d+) %d+ ([^\n]*)')
    if when then
      local ms = whole(when) or 0
      local g = count(groups, order, fold(text), ids[i], ms)
      g[6] = g[6] or from and {}
      if from and ms >= from then
        count_death(g, math.floor((ms - from) / step))
      end
    end
  end
  return {seen < rank and rows[2 * seen] .. ' ' .. ids[seen] or '', seen, unpack(order)}
end)
