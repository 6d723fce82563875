-- The add of a job without unique key. Most adds are so. So it writes at once: a draft and the
-- checks of types would cost more than the writes. When a write fails, the writes before it are
-- taken back.

L.NEW = {crashes = 0}

local ADDED = L.SERIES_COLUMN.added

-- As L.mark_set. job.marks_before: what is to be put back
local function set_mark(R, job, mark)
  local marks = redis.call('HGET', R .. ':prio', job.queue) or ''
  if not string.find(marks, mark, 1, true) then
    redis.call('HSET', R .. ':prio', job.queue, marks .. mark)
    job.marks_before = marks
  end
end

-- As L.lower_head, but with one command for most jobs: LT writes only a head that is new or lower,
-- and CH makes the reply tell whether it did. A queue name over the limit is refused; the caller
-- takes its head back.
local function lower_head(R, job)
  local queue = job.queue
  if redis.call('ZADD', R .. ':heads', 'LT', 'CH', L.int(job.due), queue) == 0 then
    return
  end
  job.has_head = true
  job.has_name = redis.call('SADD', R .. ':names', queue) == 1
  if job.has_name and redis.call('SCARD', R .. ':names') > L.MAX_QUEUES then
    L.fail_full()
  elseif job.has_name then
    L.index_queues(R, {queue})
  end
  redis.pcall('PUBLISH', R .. ':wake', queue)
end

-- token: {text, until ms} of the job's token; nil: it has none
local function write(R, id, job, payload, token)
  local key, mark = L.waiting_key(R, job, L.NEW)
  job.big = #payload > L.BIG
  if job.big then
    redis.call('SET', R .. ':big:' .. id, payload)
  end
  redis.call('HSET', R .. ':jobs', id, L.header(job) .. (job.big and '' or payload))
  if job.b then
    redis.call('ZADD', R .. ':members:' .. job.b, 0, id)
  end
  if job.n or job.d then
    job.new_names = L.add_chain_names(R, job)
  end
  if mark then
    set_mark(R, job, mark)
  end
  redis.call('ZADD', key, L.int(job.due), id)
  lower_head(R, job)
  -- The last write: of a torn transaction Redis 7.0 may load the first half, and a token without a
  -- job would answer for one that is not there.
  if token then
    redis.call('SET', L.token_key(R, job), token[1], 'PXAT', L.int(token[2]))
  end
end

local function put_clock_back(R, clock)
  if clock then
    redis.pcall('SET', R .. ':clock', clock)
  else
    redis.pcall('DEL', R .. ':clock')
  end
end

-- Take back what was written of a job. If the queue is empty now, its head is removed; otherwise a
-- head that was lowered may stay.
local function take_back(R, id, job, clock)
  redis.pcall('HDEL', R .. ':jobs', id)
  redis.pcall('DEL', R .. ':big:' .. id)
  redis.pcall('ZREM', (L.waiting_key(R, job, L.NEW)), id)
  if job.token then
    redis.pcall('DEL', L.token_key(R, job))
  end
  if job.marks_before then
    L.set_marks(R, job.queue, job.marks_before, redis.pcall)
  end
  if job.b then
    redis.pcall('ZREM', R .. ':members:' .. job.b, id)
  end
  put_clock_back(R, clock)
  if job.has_name then
    redis.pcall('SREM', R .. ':names', job.queue)
  end
  if job.new_names and job.new_names[1] then
    redis.pcall('SREM', R .. ':names', unpack(job.new_names))
  end
  if job.has_head then
    local ok, n = pcall(L.count_in, L.head_sets(R, job.queue))
    if ok and n == 0 then
      redis.pcall('ZREM', R .. ':heads', job.queue)
    end
  end
end

-- Write a job that is checked except for its gates, token and batch. -> [id, status, due_ms]
function L.add_at_once(R, job, payload, now_us)
  local gates = redis.call('HGET', R .. ':queues', job.queue)
  if gates or job.has_options then
    L.check_gates(R, job, L.queue_gates(gates))
  end
  local repeated, print = L.repeated(R, job, payload, redis.call)
  if repeated then
    return repeated
  end
  if job.b then
    L.check_batch_size(job.b, redis.call('HGET', R .. ':batches', job.b),
                       redis.call('ZCARD', R .. ':members:' .. job.b), L.chain_length(job))
  end
  local number, clock = L.tick_at_once(R, now_us)
  local reply = {L.id(number), 'added', job.due}
  local id, token = reply[1], print and {L.token_text(reply, print, now_us)}
  local ok, why = pcall(write, R, id, job, payload, token)
  if not ok then
    take_back(R, id, job, clock)
    L.need(R, 'jobs', 'hash', 'q:' .. job.queue .. ':' .. L.int(job.priority), 'zset',
           'prio', 'hash', 'heads', 'zset', 'names', 'set')
    error(why, 0)
  end
  if job.new_names and job.new_names[1] then
    L.index_queues(R, job.new_names)
  end
  L.count_in_series(R, job.queue, ADDED, 1)
  if L.events then
    L.event('added', id, job.queue, job.due)
  end
  return reply
end
