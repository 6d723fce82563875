-- Plain jobs: priority 5, a small record without options, never started before, no gates. Most jobs are, and a step
-- claims them by the hundred: so they pass here as lists, without a table for each, at a fifth of the cost of
-- claim.lua, which claims all others. What is written and answered is the same.

-- The ids of the first jobs that are due, up to `room`, and when they are. -> ids, dues, the due ms of the first
-- that stays (math.huge: none)
local function due_ids(key, room, ctx)
  local rows = redis.call('ZRANGE', key, 0, room, 'WITHSCORES')
  local ids, dues = {}, {}
  for i = 1, #rows, 2 do
    local due = L.due(rows[i + 1])
    if due > ctx.now_ms or #ids == room then
      return ids, dues, due
    end
    ids[#ids + 1], dues[#dues + 1] = rows[i], due
  end
  return ids, dues, math.huge
end

-- How many of the first ones are plain, and fit into what the call may read.
local function count_plain(queue, records, tries, ctx)
  local prefix, n = '-' .. queue .. ' 5\n', 0
  local len = #prefix
  for i, record in ipairs(records) do
    if tries[i] or not record or #record > len + L.BIG or string.sub(record, 1, len) ~= prefix or ctx.bytes <= 0 then
      break
    end
    n = i
    ctx.bytes = ctx.bytes - #record
  end
  return n
end

-- Start the first n of them.
local function start(R, queue, key, ids, dues, records, n, ctx)
  local number, epoch = L.tick(R, ctx.now_us, 2 * n), ctx.epoch_text
  local running, tries, claims = {}, {}, ctx.claims
  local before = #claims
  for i = 1, n do
    running[2 * i - 1], running[2 * i] = epoch, ids[i]
    tries[2 * i - 1], tries[2 * i] = ids[i], '1 1 0 ' .. L.int(dues[i])
    claims[before + i] = {ids[i], queue, 1, 1, 0, number + 2 * i - 1, dues[i], records[i], 0}
  end
  redis.call('HSET', R .. ':tries', unpack(tries))
  redis.call('ZADD', R .. ':running', unpack(running))
  redis.call('ZREM', key, unpack(ids, 1, n))
end

-- Claim the first jobs of a queue, up to `room`, as long as they are plain. -> the head that is left; nil where
-- claim.lua has to go on, because there are others
function L.claim_plain(R, queue, room, ctx)
  if room == 0 or ctx.gates[queue] or string.find(ctx.marks[queue], '%d') or
     redis.call('EXISTS', R .. ':due:' .. queue) == 1 then
    return nil
  end
  local key = R .. ':q:' .. queue .. ':5'
  local ids, dues, head = due_ids(key, room, ctx)
  if #ids == 0 then
    return head
  end
  local records = redis.call('HMGET', R .. ':jobs', unpack(ids))
  local n = count_plain(queue, records, redis.call('HMGET', R .. ':tries', unpack(ids)), ctx)
  if n > 0 then
    start(R, queue, key, ids, dues, records, n, ctx)
  end
  return n == #ids and head or nil
end
