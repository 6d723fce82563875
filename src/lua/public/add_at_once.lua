-- The add of a job without unique key. Most adds are so. So it writes at once: a transaction and
-- the checks of types would cost more than the writes. When a write fails, the writes before it are
-- taken back.

local at_once = module 'public/add_at_once'
local membership, chains, clock, events, job_sets, jobs, queue_names, uses, tenants, wanted, adds,
      series = use(
  'batch/membership', 'core/chains', 'core/clock', 'core/events', 'core/job_sets', 'core/jobs',
  'core/queue_names', 'core/uses', 'fair/tenants', 'gates/wanted', 'public/add', 'series/series')

at_once.NEW = {crashes = 0}

local ADDED = series.SERIES_COLUMN.added

-- As jobs.mark_set. job.marks_before: what is to be put back
local function set_flag(R, job, flag)
  local flags = redis.call('HGET', R .. ':prio', job.queue) or ''
  if not string.find(flags, flag, 1, true) then
    redis.call('HSET', R .. ':prio', job.queue, flags .. flag)
    job.flags_before = flags
  end
end

-- As jobs.lower_head, but with one command for most jobs: LT writes only a head that is new or
-- lower, and CH makes the reply tell whether it did. A queue name over the limit is refused; the
-- caller takes its head back.
local function lower_head(R, job)
  local queue = job.queue
  if redis.call('ZADD', R .. ':heads', 'LT', 'CH', int(job.due), queue) == 0 then
    return
  end
  job.has_head = true
  job.has_name = redis.call('SADD', R .. ':names', queue) == 1
  if job.has_name and redis.call('SCARD', R .. ':names') > MAX_QUEUES then
    adds.fail_full()
  elseif job.has_name then
    queue_names.index_queues(R, {queue})
  end
  redis.pcall('PUBLISH', R .. ':wake', queue)
end

-- token: {text, until ms} of the job's token; nil: it has none
local function write(R, id, job, payload, token)
  local key, flag = jobs.waiting_key(R, job, at_once.NEW)
  job.big = #payload > BIG
  if job.big then
    redis.call('SET', R .. ':big:' .. id, payload)
  end
  redis.call('HSET', R .. ':jobs', id, jobs.header(job) .. (job.big and '' or payload))
  if job.b then
    redis.call('ZADD', R .. ':members:' .. job.b, 0, id)
  end
  if job.n or job.d then
    job.new_names = uses.add_chain_names(R, job)
  end
  if flag then
    set_flag(R, job, flag)
  end
  redis.call('ZADD', key, int(job.due), id)
  lower_head(R, job)
  -- The last write: of a torn transaction Redis 7.0 may load the first half, and a token without a
  -- job would answer for one that is not there.
  if token then
    redis.call('SET', adds.token_key(R, job), token[1], 'PXAT', int(token[2]))
  end
end

local function put_clock_back(R, clock_was)
  if clock_was then
    redis.pcall('SET', R .. ':clock', clock_was)
  else
    redis.pcall('DEL', R .. ':clock')
  end
end

-- Take back what was written of a job. If the queue is empty now, its head is removed; otherwise a
-- head that was lowered may stay.
local function take_back(R, id, job, clock_was)
  redis.pcall('HDEL', R .. ':jobs', id)
  redis.pcall('DEL', R .. ':big:' .. id)
  redis.pcall('ZREM', (jobs.waiting_key(R, job, at_once.NEW)), id)
  if job.token then
    redis.pcall('DEL', adds.token_key(R, job))
  end
  if job.flags_before then
    jobs.set_flags(R, job.queue, job.flags_before, redis.pcall)
  end
  if job.b then
    redis.pcall('ZREM', R .. ':members:' .. job.b, id)
  end
  put_clock_back(R, clock_was)
  if job.has_name then
    redis.pcall('SREM', R .. ':names', job.queue)
  end
  if job.new_names and job.new_names[1] then
    redis.pcall('SREM', R .. ':names', unpack(job.new_names))
  end
  if job.has_head then
    local ok, n = pcall(job_sets.count_in, job_sets.head_sets(R, job.queue))
    if ok and n == 0 then
      redis.pcall('ZREM', R .. ':heads', job.queue)
    end
  end
end

-- Write a job that is checked except for its gates, token and batch. -> [id, status, due_ms]
function at_once.add_at_once(R, job, payload, now_us)
  local gates = redis.call('HGET', R .. ':queues', job.queue)
  if gates and tenants.weights_in(gates) then
    return adds.add_in_transaction(R, job, payload, now_us)
  end
  if gates or job.has_options then
    adds.check_gates(R, job, wanted.queue_gates(gates))
  end
  local repeated, print = adds.repeated(R, job, payload, redis.call)
  if repeated then
    return repeated
  end
  if job.b then
    membership.check_batch_size(job.b, redis.call('HGET', R .. ':batches', job.b),
                                redis.call('ZCARD', R .. ':members:' .. job.b),
                                chains.chain_length(job))
  end
  local number, clock_was = clock.tick_at_once(R, now_us)
  local reply = {clock.id(number), 'added', job.due}
  local id, token = reply[1], print and {adds.token_text(reply, print, now_us)}
  local ok, why = pcall(write, R, id, job, payload, token)
  if not ok then
    take_back(R, id, job, clock_was)
    need_kinds(R, 'jobs', 'hash', 'q:' .. job.queue .. ':' .. int(job.priority), 'zset', 'prio',
               'hash', 'heads', 'zset', 'names', 'set')
    error(why, 0)
  end
  if job.new_names and job.new_names[1] then
    queue_names.index_queues(R, job.new_names)
  end
  series.count_in_series(R, job.queue, ADDED, 1)
  if events.now then
    events.add('added', id, job.queue, job.due)
  end
  return reply
end
