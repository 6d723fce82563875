-- Pinned jobs: each waits for one worker, or for the workers of one host (public/broadcast.lua).
--
--   R:pin:<queue>:<target>  ZSET  id -> due ms, of the jobs that wait for this target
--   R:pins:<queue>          SET   the targets that have any, and perhaps some that have none
--
-- target: w<epoch>, or h<host>; the record of a job has it as W. Their times are not in R:heads: no
-- other worker could do something about them. The mark p has every worker of the queue look.

local TARGETS = 2000        -- workers and hosts with jobs of one queue; more are not looked at
local TIDY_ROWS = 100       -- jobs of a target that are ended in a call
local EXPIRED_ROWS = 16     -- jobs of a target that are looked at for that

function L.pin_key(R, queue, target)
  return R .. ':pin:' .. queue .. ':' .. target
end

-- -> the targets that have jobs of a queue, sorted
function L.pin_targets(R, queue)
  local targets = L.ask(R .. ':pins:' .. queue, 'set', 'SRANDMEMBER', TARGETS)
  table.sort(targets)
  return targets
end

-- The same for counts, where a set of a foreign type counts as empty.
function L.readable_pins(R, queue)
  local targets = redis.pcall('SRANDMEMBER', R .. ':pins:' .. queue, TARGETS)
  return targets.err and {} or targets
end

-- -> how many jobs of a queue are pinned and wait
function L.pinned_count(R, queue)
  local n = 0
  for _, target in ipairs(L.readable_pins(R, queue)) do
    local more = redis.pcall('ZCARD', L.pin_key(R, queue, target))
    n = n + (type(more) == 'number' and more or 0)
  end
  return n
end

-- Take a target off the list if it has no jobs.
local function drop_empty(R, queue, target)
  if db('ZCARD', L.pin_key(R, queue, target)) == 0 then
    db('SREM', R .. ':pins:' .. queue, target)
  end
end

-- -> the targets that the worker of this step is
local function own_targets(R, ctx)
  if not ctx.targets then
    local host = db('HGET', R .. ':worker:' .. ctx.epoch_text, 'host')
    ctx.targets = {'w' .. ctx.epoch_text, host and 'h' .. host or nil}
  end
  return ctx.targets
end

-- The due jobs that are pinned to the worker of this step. -> a slice (waiting.lua); when the next
-- one is due
function L.gather_pinned(R, queue, room, ctx)
  local b, head = L.new_slice(queue), math.huge
  b.is_pinned = true
  for _, target in ipairs(own_targets(R, ctx)) do
    local its_head = L.take_ids(L.pin_key(R, queue, target), room - b.n, b, ctx.now_ms)
    head = math.min(head, its_head)
  end
  return b, head
end

-- Jobs were claimed. -> the mark, if some are left for any target
function L.pinned_mark(R, queue, ctx)
  for _, target in ipairs(own_targets(R, ctx)) do
    drop_empty(R, queue, target)
  end
  return db('SCARD', R .. ':pins:' .. queue) > 0 and 'p' or ''
end

-- ---- targets that are gone, and jobs that have expired

local function is_gone(R, target)
  local epoch = string.match(target, '^w(%d+)$')
  local counter = epoch and db('HGET', R .. ':workers', epoch)
  return epoch and (not counter or counter == 'dead')
end

local function cancel_all(book, queue, target)
  local R = book.R
  for _, id in ipairs(db('ZRANGE', L.pin_key(R, queue, target), 0, TIDY_ROWS - 1)) do
    local state, job, tries = L.locate(R, id)
    if state == 'waiting' and job.W == target then
      L.cancel(book, id, state, job, tries, 'its worker is gone')
    end
  end
end

-- A claim would bury them, but nobody may come.
local function bury_expired(book, queue, target)
  local R, now_ms, key = book.R, book.now_ms, L.pin_key(book.R, queue, target)
  local rows = db('ZRANGEBYSCORE', key, '-inf', L.int(now_ms), 'WITHSCORES', 'LIMIT', 0,
                  EXPIRED_ROWS)
  for i = 1, #rows, 2 do
    local id = rows[i]
    local job, tries = L.parse(db('HGET', R .. ':jobs', id)), L.tries(db('HGET', R .. ':tries', id))
    if job and job.x and tries.starts == 0 and
       L.due(rows[i + 1]) + tonumber(job.x) < now_ms then
      db('ZREM', key, id)
      L.bury(R, queue, id, L.outcome('dead', 0, now_ms, 0, 'expired: not started within ' ..
             job.x .. ' ms of its due time', ''), now_ms)
    end
  end
end

-- End the jobs whose worker is gone, and those that have expired.
function L.tidy_pinned(book, queue)
  for _, target in ipairs(L.pin_targets(book.R, queue)) do
    if is_gone(book.R, target) then
      cancel_all(book, queue, target)
    else
      bury_expired(book, queue, target)
    end
    drop_empty(book.R, queue, target)
  end
end
