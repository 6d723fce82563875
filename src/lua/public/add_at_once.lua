-- The add of a plain job, which most adds are: it writes at once, since a draft and the checks of types cost as much as the
-- writing. What refuses to be written has the rest taken back. Burst: adds to one root in one millisecond, between which no
-- other function of ours ran, need not look for gates and the head again (burst.lua).

L.NEW = {crashes = 0}

local function key_of(R, job)
  return R .. ':q:' .. job.queue .. ':5'
end

-- As L.lower_head, in one command for most jobs: LT writes a head that is lower or the first, CH tells so. One name too many
-- is refused, and its head stays for the caller to take back.
local function lower_head(R, job)
  local queue = job.queue
  if redis.call('ZADD', R .. ':heads', 'LT', 'CH', L.int(job.due), queue) == 0 then
    return
  end
  job.has_head = true
  job.has_name = redis.call('SADD', R .. ':names', queue) == 1
  if job.has_name and redis.call('SCARD', R .. ':names') > L.MAX_QUEUES then
    L.fail_full()
  end
  redis.pcall('PUBLISH', R .. ':wake', queue)
end

-- head: as early as this is the one of its queue, nil: not known
local function write(R, id, job, payload, head)
  job.big = #payload > L.BIG
  if job.big then
    redis.call('SET', R .. ':big:' .. id, payload)
  end
  redis.call('HSET', R .. ':jobs', id, L.header(job) .. (job.big and '' or payload))
  redis.call('ZADD', key_of(R, job), L.int(job.due), id)
  if not head or job.due < head then
    lower_head(R, job)
  end
end

local function put_clock_back(R, clock)
  if clock then
    redis.pcall('SET', R .. ':clock', clock)
  else
    redis.pcall('DEL', R .. ':clock')
  end
end

-- Take back what was written of a job. A head that was made for it goes from before an empty queue; one that was lowered may
-- stay.
local function take_back(R, id, job, clock)
  redis.pcall('HDEL', R .. ':jobs', id)
  redis.pcall('DEL', R .. ':big:' .. id)
  redis.pcall('ZREM', key_of(R, job), id)
  put_clock_back(R, clock)
  if job.has_name then
    redis.pcall('SREM', R .. ':names', job.queue)
  end
  if job.has_head then
    local ok, n = pcall(L.count_in, L.sets_of(R, job.queue, 'due'))
    if ok and n == 0 then
      redis.pcall('ZREM', R .. ':heads', job.queue)
    end
  end
end

-- Write a new job, and tell its id. head: the one that a burst knows, behind which nobody asks for gates again; nil: it
-- knows none. -> the id; nil where the clock ends the burst
local function write_new(R, job, payload, now_us, head)
  local number, clock, is_ours = L.tick_at_once(R, now_us)
  if not is_ours then
    L.forget_burst()
    if head then
      put_clock_back(R, clock)
      return nil
    end
  end
  local id = L.id(number)
  local ok, why = pcall(write, R, id, job, payload, head)
  if not ok then
    take_back(R, id, job, clock)
    L.need(R, 'jobs', 'hash', 'q:' .. job.queue .. ':5', 'zset', 'heads', 'zset', 'names', 'set')
    error(why, 0)
  end
  if L.events then
    L.event('added', id, job.queue, job.due)
  end
  return id
end

-- Write a job of which only its gates may be unchecked. -> its id
function L.add_at_once(R, job, payload, now_us)
  local queue = job.queue
  local head = not job.has_options and L.burst_head(R, queue, L.ms(now_us))
  local id = head and write_new(R, job, payload, now_us, head)
  if id then
    L.go_on_with_burst(queue, job.due)
    return id
  end
  local gates = redis.call('HGET', R .. ':queues', queue)
  if gates or job.has_options then
    L.check_gates(R, job, L.queue_gates(gates))
    return write_new(R, job, payload, now_us)
  end
  id = write_new(R, job, payload, now_us)
  L.go_on_with_burst(queue, job.due)
  return id
end
