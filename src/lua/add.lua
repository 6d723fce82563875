-- later_add R QUEUE [name value]... PAYLOAD -> [id, status, due_ms]
--
-- Options (names in any case): in D | at T, priority 0-9 (0 first; default 5), key KEY,
-- attempts N, timeout D, expire D (dead if not started within D of its due time), keep D (how long
-- the outcome of a done job stays), token T (the same token within 24 h answers `repeated` with the
-- first id), trace TRACEPARENT; lock NAME, sem NAME, rate NAME ({key} in NAME is the job's key): passed
-- besides those of the queue; unique KEY, unique_mode drop|replace|move (drop), unique_for D (the key
-- stays taken for D from now, even when the job has ended). then, on_dead and batch are refused by name
-- in this version.
--
-- status: added | repeated; with unique also dropped | replaced | moved, with the id that is there.
-- Errors: ELATER_ARGS QUEUE OPTION TIME SIZE KEY TOKEN FULL TYPE NOTYET GATE LIMIT.
-- Cost: O(log n) in the waiting jobs of the queue. Not allow-oom: a full Redis refuses new jobs.

local NOT_YET = {['then'] = 'chains', on_dead = 'chains', batch = 'batches'}

-- A whole number within [min, max] as text, or a refusal.
local function whole_option(name, value, min, max)
  if not string.match(value, '^%d+$') or #value > 9 or tonumber(value) < min or tonumber(value) > max then
    L.fail('ELATER_OPTION', name .. ' ' .. L.quote(value) .. ' is not a whole number from ' .. L.int(min) ..
           ' to ' .. L.int(max))
  end
  return tonumber(value)
end

-- A word that may stand in a record header and an environment variable.
local function word_option(code, name, value, max)
  if #value < 1 or #value > max or string.find(value, '[%z\1-\32\127]') then
    L.fail(code, name .. ' must be 1 to ' .. L.int(max) .. ' bytes without spaces and control characters')
  end
  return value
end

local OPTIONS = {
  ['in'] = function(job, v, now) job.due = now + L.duration(v, 'in') end,
  at = function(job, v, now) job.due = L.time(v, now, 'at') end,
  priority = function(job, v) job.priority = whole_option('priority', v, 0, 9) end,
  key = function(job, v) job.K = word_option('ELATER_KEY', 'key', v, 256) end,
  attempts = function(job, v) job.a = whole_option('attempts', v, 1, 1000000) end,
  timeout = function(job, v) job.t = L.positive('timeout', v) end,
  expire = function(job, v) job.x = L.positive('expire', v) end,
  keep = function(job, v) job.k = L.duration(v, 'keep') end,
  token = function(job, v) job.token = word_option('ELATER_TOKEN', 'token', v, 128) end,
  trace = function(job, v) job.T = word_option('ELATER_OPTION', 'trace', v, 256) end,
  lock = function(job, v) job.l = L.check_gate_name('lock', v) end,
  sem = function(job, v) job.s = L.check_gate_name('sem', v) end,
  rate = function(job, v) job.r = L.check_gate_name('rate', v) end,
  unique = function(job, v) job.u = word_option('ELATER_OPTION', 'unique', v, 256) end,
  unique_mode = function(job, v)
    job.mode = string.lower(v)
    if job.mode ~= 'drop' and job.mode ~= 'replace' and job.mode ~= 'move' then
      L.fail('ELATER_OPTION', 'unique_mode ' .. L.quote(v) .. ' is none of drop replace move')
    end
  end,
  unique_for = function(job, v, now) job.f = now + L.positive('unique_for', v) end,
}

-- For functions that see to it themselves that none comes twice.
L.OPTIONS = OPTIONS

local GATES = {{'l', 'lock'}, {'s', 'sem'}, {'r', 'rate'}}

local function fill_gates(R, job, of_queue)
  for _, option in ipairs(GATES) do
    local field, kind = option[1], option[2]
    local names = {job[field] or false, of_queue and of_queue[kind] or false}
    for i, name in ipairs(names) do
      local filled = name and L.fill_key(name, job.K)
      if name and not filled then
        L.fail('ELATER_KEY', kind .. ' ' .. L.quote(name) .. (i == 2 and ' of queue ' .. job.queue or '') ..
               ' has {key} in it: give the job a key')
      elseif name then
        L.check_gate_name(kind, filled)
        if i == 1 then
          job[field] = filled
          if kind ~= 'lock' and not L.limit_of(R, kind, filled) then
            L.fail('ELATER_LIMIT', 'there is no ' .. (kind == 'sem' and 'semaphore ' or 'rate ') .. L.quote(filled) ..
                   ': later_limit_set defines it')
          end
        end
      end
    end
  end
end

-- The gates of a new job: {key} is filled in, and what needs a definition has one. of_queue: those of its
-- queue, as L.queue_gates tells them
function L.check_gates(R, job, of_queue)
  if of_queue or job.l or job.s or job.r then
    fill_gates(R, job, of_queue)
  end
  if not job.u and (job.mode or job.f) then
    L.fail('ELATER_OPTION', 'unique_mode and unique_for belong to unique')
  end
end

function L.positive(name, value)
  local ms = L.duration(value, name)
  if ms < 1 then
    L.fail('ELATER_TIME', name .. ' must be longer than nothing')
  end
  return ms
end

-- One option into job; refuses what is unknown or comes twice.
function L.option(job, seen, name, value, now_ms)
  local lower = string.lower(name)
  if NOT_YET[lower] then
    L.fail('ELATER_NOTYET', lower .. ': ' .. NOT_YET[lower] .. ' are not in this version')
  end
  if not OPTIONS[lower] then
    L.fail('ELATER_OPTION', 'unknown option ' .. L.quote(name) .. ' (the payload comes last, after the options)')
  end
  local slot = lower == 'at' and 'in' or lower
  if seen[slot] then
    L.fail('ELATER_OPTION', 'option ' .. lower .. ' is given twice (in and at are one)')
  end
  seen[slot] = true
  -- Of one that says only when it is due, the record is as short as can be.
  job.has_options = job.has_options or slot ~= 'in'
  OPTIONS[lower](job, value, now_ms)
end

function L.is_option(name)
  return OPTIONS[string.lower(name)] ~= nil or NOT_YET[string.lower(name)] ~= nil
end

-- Refuse a payload over the queue's limit, to be asked for one over L.LEAST_LIMIT.
function L.check_payload(R, queue, payload)
  local max = L.max_payload(R, queue)
  if #payload > max then
    L.fail('ELATER_SIZE', 'the payload has ' .. L.int(#payload) .. ' bytes, queue ' .. queue .. ' takes ' ..
           L.int(max) .. ' (max_payload)')
  end
end

function L.fail_full()
  L.fail('ELATER_FULL', 'there are ' .. L.int(L.MAX_QUEUES) .. ' queue names already')
end

-- Refuse a new queue name when there are too many already, for all that cannot take back what they wrote.
function L.check_room(R, queue)
  if redis.call('SCARD', R .. ':names') >= L.MAX_QUEUES and redis.call('SISMEMBER', R .. ':names', queue) == 0 then
    L.fail_full()
  end
end

-- Write one checked job.
function L.insert(R, id, job, payload)
  job.big = #payload > L.BIG
  if job.big then
    redis.call('SET', R .. ':big:' .. id, payload)
    redis.call('HSET', R .. ':jobs', id, L.header(job))
  else
    redis.call('HSET', R .. ':jobs', id, L.header(job) .. payload)
  end
end

-- The first answer to this token, or nil; refuses other bytes under the same token.
local function repeated(R, token, print)
  local was = redis.call('GET', R .. ':token:' .. token)
  if not was then
    return nil
  end
  local id, due, sha = string.match(was, '^(%S+) (%d+) (%x+)$')
  if sha ~= print then
    L.fail('ELATER_TOKEN', 'token ' .. L.quote(token) .. ' was used for another job (' .. (id or '?') .. ')')
  end
  return {id, 'repeated', tonumber(due)}
end

local NEW = {crashes = 0}

local function write(R, id, job, payload, head)
  L.insert(R, id, job, payload)
  L.enqueue(R, id, job, NEW, job.due, true, head)
end

local function put_clock_back(R, clock)
  if clock then
    redis.call('SET', R .. ':clock', clock)
  else
    redis.call('DEL', R .. ':clock')
  end
end

-- Take back what was written of a job, but for the head of its queue.
local function take_back(R, id, job, clock)
  redis.pcall('HDEL', R .. ':jobs', id)
  redis.pcall('DEL', R .. ':big:' .. id)
  redis.pcall('ZREM', L.waiting_key(R, job, NEW), id)
  put_clock_back(R, clock)
end

-- A head was written for a job that is taken back: before an empty queue it was made for it, one that was lowered may stay.
local function take_back_head(R, queue)
  if L.count_in(L.sets_of(R, queue, 'due')) == 0 then
    redis.call('ZREM', R .. ':heads', queue)
  end
end

-- Write a new job, and tell its id. The types of its keys and the number of names are not asked for before: that costs
-- as much as the writing. What refuses to be written has the rest taken back.
-- head: the one that a burst knows, behind which nobody asks for gates again; nil: it knows none. -> the id; nil where
-- the clock ends the burst
local function write_new(R, job, payload, now_us, head)
  local number, clock, is_ours = L.advance(R, now_us, 1)
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
    L.need(R, 'jobs', 'hash', 'q:' .. job.queue .. ':' .. L.int(job.priority), 'zset', 'heads', 'zset')
    -- So it was its name that was refused.
    take_back_head(R, job.queue)
    L.need(R, 'names', 'set')
    error(why, 0)
  end
  if L.events then
    L.event('added', id, job.queue, job.due)
  end
  return id
end

-- Write a job that is checked but for what only these options need.
local function add_with_options(R, job, payload, now_us)
  if job.priority ~= 5 then
    L.need(R, 'prio', 'hash')
  end
  local print
  if job.token then
    L.need(R, 'token:' .. job.token, 'string')
    print = redis.sha1hex(job.queue .. '\n' .. payload)
    local reply = repeated(R, job.token, print)
    if reply then
      return reply
    end
  end
  if job.u then
    -- It may come to another place than a new one.
    L.need(R, 'heads', 'zset', 'clock', 'string', 'names', 'set', 'prio', 'hash')
  end
  local reply = job.u and L.add_unique(R, job, payload)
  if not reply then
    local id = write_new(R, job, payload, now_us)
    if job.u then
      redis.call('SET', R .. ':uniq:' .. job.queue .. ':' .. job.u, id)
    end
    reply = {id, 'added', job.due}
  end
  if job.token then
    redis.call('SET', R .. ':token:' .. job.token, reply[1] .. ' ' .. L.int(reply[3]) .. ' ' .. print, 'EX',
               L.TOKEN_TTL_S)
  end
  return reply
end

-- Write a job that has no options. -> its id
local function add_plain(R, job, payload, now_us)
  local queue = job.queue
  local head = L.burst_head(R, queue, L.ms(now_us))
  local id = head and write_new(R, job, payload, now_us, head)
  if not id then
    local gates = redis.call('HGET', R .. ':queues', queue)
    if gates then
      L.check_gates(R, job, L.queue_gates(gates))
      return write_new(R, job, payload, now_us)
    end
    id = write_new(R, job, payload, now_us)
  end
  L.go_on_with_burst(queue, job.due)
  return id
end

-- Check and write a job of which the options are read. -> [id, status, due_ms]
function L.add_one(R, job, payload, now_us)
  if #payload > L.LEAST_LIMIT then
    L.check_payload(R, job.queue, payload)
  end
  if job.has_options then
    L.check_gates(R, job, L.queue_gates(redis.call('HGET', R .. ':queues', job.queue)))
    return add_with_options(R, job, payload, now_us)
  end
  return {add_plain(R, job, payload, now_us), 'added', job.due}
end

local function read_options(job, args, n, now_ms)
  local seen = {}
  for i = 2, n - 1, 2 do
    L.option(job, seen, args[i], args[i + 1], now_ms)
  end
end

L.register('later_add', {}, function(R, args)
  local n = #args
  if n < 2 then
    L.fail('ELATER_ARGS', 'give QUEUE [name value]... PAYLOAD')
  end
  local queue = L.check_queue(args[1])
  if n % 2 == 1 then
    if not L.is_option(args[2]) then
      L.fail('ELATER_OPTION', 'unknown option ' .. L.quote(args[2]) .. ' (the payload comes last, after the options)')
    end
    L.fail('ELATER_ARGS', 'an option has no value or the payload is missing: QUEUE [name value]... PAYLOAD')
  end
  local now_us = L.now_us()
  local now_ms = L.ms(now_us)
  local job = {queue = queue, priority = 5, due = now_ms}
  if n > 2 then
    read_options(job, args, n, now_ms)
  end
  return L.add_one(R, job, args[n], now_us)
end)
