-- Pinned jobs: each waits for one worker, or for the workers of one host (public/broadcast.lua).
--
--   R:pin:<queue>:<target>  ZSET  id -> due ms, of the jobs that wait for this target
--   R:pins:<queue>          SET   the targets that have any, and perhaps some that have none
--   R:pinned                SET   the queues that have targets
--
-- target: w<epoch>, or h<host>; the record of a job has it as W. Their times are not in R:heads: no
-- other worker could do something about them. The mark p has every worker of the queue look.

local TARGETS = 2000        -- workers and hosts with jobs of one queue; more are not looked at
-- What a call looks at that tidies, at random; and how many jobs it ends.
local TIDY_QUEUES, TIDY_TARGETS, TIDY_ROWS, TIDY_ENDS = 8, 32, 100, 200
L.BROADCAST_EXPIRE_MS = 3600000 -- of a job that says nothing

function L.pin_key(R, queue, target)
  return R .. ':pin:' .. queue .. ':' .. target
end

-- -> the targets that have jobs of a queue, sorted by bytes
function L.pin_targets(R, queue)
  local targets = L.ask(R .. ':pins:' .. queue, 'set', 'SRANDMEMBER', TARGETS)
  table.sort(targets, L.is_before)
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

-- A job waits for a target.
function L.put_pin(R, queue, target)
  db('SADD', R .. ':pins:' .. queue, target)
  db('SADD', R .. ':pinned', queue)
end

-- Take a target off the list if it has no jobs.
function L.drop_pin(R, queue, target)
  if db('ZCARD', L.pin_key(R, queue, target)) == 0 then
    db('SREM', R .. ':pins:' .. queue, target)
  end
end

-- -> the mark, if there are targets still
function L.pinned_mark(R, queue)
  if db('SCARD', R .. ':pins:' .. queue) > 0 then
    return 'p'
  end
  db('SREM', R .. ':pinned', queue)
  return ''
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
function L.end_pinned(R, queue, ctx)
  for _, target in ipairs(own_targets(R, ctx)) do
    L.drop_pin(R, queue, target)
  end
  return L.pinned_mark(R, queue)
end

-- ---- targets that are gone

-- -> host -> what its live workers serve, a list
local function read_hosts(R)
  local hosts = {}
  for _, peer in ipairs(L.peers(R, {'host', 'queues'})) do
    local host = peer.counter ~= 'dead' and peer.row[1]
    if host then
      hosts[host] = hosts[host] or {}
      table.insert(hosts[host], peer.row[2] or '')
    end
  end
  return hosts
end

-- Is there a live worker that a target means, and does it serve the queue?
function L.is_target(book, target, queue)
  local R, kind, name = book.R, string.match(target, '^([wh])(.+)$')
  if kind == 'w' then
    local counter = db('HGET', R .. ':workers', name)
    return counter and counter ~= 'dead' and
           L.serves(db('HGET', R .. ':worker:' .. name, 'queues'), queue)
  end
  book.hosts = book.hosts or read_hosts(R)
  for _, queues in ipairs(book.hosts[name or ''] or {}) do
    if L.serves(queues, queue) then
      return true
    end
  end
  return false
end

-- End a job whose worker is gone. Of a host another worker may come, until the job expires. -> was
-- it ended?
local function end_job(book, queue, target, id, due)
  local state, job, tries = L.locate(book.R, id)
  local expire_ms = job and L.whole(job.x) or L.BROADCAST_EXPIRE_MS
  if state ~= 'waiting' or job.W ~= target then
    return false
  elseif string.byte(target) == 119 then -- w
    L.cancel(book, id, state, job, tries, 'its worker is gone')
    return true
  elseif due + expire_ms >= book.now_ms then
    return false
  elseif tries.starts > 0 then
    L.cancel(book, id, state, job, tries, 'its host is gone')
    return true
  end
  db('ZREM', L.pin_key(book.R, queue, target), id)
  L.bury(book.R, queue, id, L.outcome('dead', 0, book.now_ms, 0, L.expired(L.int(expire_ms)), ''),
         book.now_ms)
  return true
end

-- Look at some jobs of a target that is gone, from a random one on. -> how many were ended
local function end_jobs(book, queue, target, most)
  local key, n = L.pin_key(book.R, queue, target), 0
  local all = db('ZCARD', key)
  local from = all > TIDY_ROWS and book.now_us % (all - TIDY_ROWS + 1) or 0
  local rows = db('ZRANGE', key, from, from + TIDY_ROWS - 1, 'WITHSCORES')
  for i = 1, #rows, 2 do
    if n < most and end_job(book, queue, target, rows[i], L.due(rows[i + 1])) then
      n = n + 1
    end
  end
  return n
end

local function tidy_queue(book, queue, left)
  local R = book.R
  local targets = L.ask(R .. ':pins:' .. queue, 'set', 'SRANDMEMBER', TIDY_TARGETS)
  table.sort(targets, L.is_before)
  for _, target in ipairs(targets) do
    if left > 0 and not L.is_target(book, target, queue) then
      left = left - end_jobs(book, queue, target, left)
    end
    L.drop_pin(R, queue, target)
  end
  if L.pinned_mark(R, queue) == '' then
    L.mark_clear(R, queue, 'p')
  end
  return left
end

-- End the jobs whose worker is gone, in any queue: perhaps nobody serves it any more.
function L.tidy_pinned(book)
  local queues = db('SRANDMEMBER', book.R .. ':pinned', TIDY_QUEUES)
  local left = TIDY_ENDS
  table.sort(queues)
  for _, queue in ipairs(queues) do
    local ok, rest = L.try(tidy_queue, book, queue, left)
    left = ok and rest or left
  end
end
