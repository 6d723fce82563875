-- later_add R QUEUE [name value]... PAYLOAD -> [id, status, due_ms]
--
-- Options (names in any case): in D | at T; priority 0-9 (0 first; default 5); key KEY; attempts N;
-- timeout D; expire D (dead if not claimed within D of its due time); keep D (how long the outcome
-- of a done or cancelled job stays); token T (the same token within 24 h answers `repeated` with
-- the first id); trace TRACEPARENT; lock NAME, sem NAME, rate NAME: gates besides those of the
-- queue ({key} in NAME is the job's key); unique KEY; unique_mode drop|replace|move (drop);
-- unique_for D (the key stays taken for D from now, even when the job has ended); then QUEUE, up to
-- 8 times: where the job goes on when it is done; on_dead QUEUE: where a job tells of its death
-- (core/chains.lua); batch NAME: the open batch that it joins (batch/membership.lua).
--
-- status: added | repeated; with unique also dropped | replaced | moved: id is that of the job that
-- has the key.
-- Errors: ELATER_ARGS QUEUE OPTION TIME SIZE KEY TOKEN FULL TYPE GATE LIMIT BATCH NOBATCH.
-- Cost: O(log n) in the waiting jobs of the queue. Not allow-oom: a full Redis refuses new jobs.

local adds = module 'public/add'
local batches, membership, chains, clock, events, instant, jobs, uses, limits, uniques, wanted,
      at_once, change, commit = use(
  'batch/batches', 'batch/membership', 'core/chains', 'core/clock', 'core/events', 'core/instant',
  'core/jobs', 'core/uses', 'gates/limits', 'gates/uniques', 'gates/wanted', 'public/add_at_once',
  'txn/change', 'txn/commit')

-- -> the number; refuses what is not a whole number from min to max
local function whole_option(name, value, min, max)
  if not string.match(value, '^%d+$') or #value > 9 or
     tonumber(value) < min or tonumber(value) > max then
    fail('ELATER_OPTION', name .. ' ' .. quote(value) .. ' is not a whole number from ' ..
         int(min) .. ' to ' .. int(max))
  end
  return tonumber(value)
end

-- Refuse a word that cannot stand in a record header and an environment variable. -> the word
local function word_option(code, name, value, max)
  if #value < 1 or #value > max or string.find(value, '[%z\1-\32\127]') then
    fail(code, name .. ' must be 1 to ' .. int(max) ..
         ' bytes without spaces and control characters')
  end
  return value
end

-- Refuse what is no traceparent of W3C Trace Context. A version above 00 may have more behind its
-- four fields. (src/job/traceparent.c reads the same.) -> the text
local function check_trace(text)
  local version, trace, parent, rest =
    string.match(text, '^([%da-f][%da-f])%-([%da-f]+)%-([%da-f]+)%-[%da-f][%da-f](.*)$')
  local is_fine = version and version ~= 'ff' and #trace == 32 and string.find(trace, '[^0]') and
                  #parent == 16 and string.find(parent, '[^0]') and
                  (rest == '' or version ~= '00' and string.find(rest, '^%-'))
  if not is_fine or #text > 256 or string.find(text, '[%z\1-\32\127]') then
    fail('ELATER_OPTION', 'trace ' .. quote(text) .. ' is no traceparent of W3C: 00, 32' ..
         ' digits, 16 digits, 2 digits, of 0-9 a-f, with dashes between them, neither the 32' ..
         ' nor the 16 all 0')
  end
  return text
end

local OPTIONS = {
  ['in'] = function(job, v, now) job.due = now + instant.duration(v, 'in') end,
  at = function(job, v, now) job.due = instant.time(v, now, 'at') end,
  priority = function(job, v) job.priority = whole_option('priority', v, 0, 9) end,
  key = function(job, v) job.K = word_option('ELATER_KEY', 'key', v, 256) end,
  attempts = function(job, v) job.a = whole_option('attempts', v, 1, 1000000) end,
  timeout = function(job, v) job.t = adds.positive('timeout', v) end,
  expire = function(job, v) job.x = adds.positive('expire', v) end,
  keep = function(job, v) job.k = instant.duration(v, 'keep') end,
  token = function(job, v) job.token = word_option('ELATER_TOKEN', 'token', v, 128) end,
  trace = function(job, v) job.T = check_trace(v) end,
  lock = function(job, v) job.l = limits.check_gate_name('lock', v) end,
  sem = function(job, v) job.s = limits.check_gate_name('sem', v) end,
  rate = function(job, v) job.r = limits.check_gate_name('rate', v) end,
  unique = function(job, v) job.u = word_option('ELATER_OPTION', 'unique', v, 256) end,
  unique_mode = function(job, v)
    job.mode = string.lower(v)
    if job.mode ~= 'drop' and job.mode ~= 'replace' and job.mode ~= 'move' then
      fail('ELATER_OPTION', 'unique_mode ' .. quote(v) .. ' is none of drop replace move')
    end
  end,
  unique_for = function(job, v, now) job.f = now + adds.positive('unique_for', v) end,
  ['then'] = function(job, v) chains.add_then(job, v) end,
  on_dead = function(job, v) job.d = check_queue(v) end,
  batch = function(job, v) job.b = batches.check_name(v) end,
}

local REPEATS = {['then'] = true} -- options that may be given more than once

-- For calls/import.lua, which refuses an option that is given twice itself.
adds.OPTIONS = OPTIONS

local function fill_gates(R, job, of_queue)
  for _, option in ipairs(wanted.GATE_OPTIONS) do
    local field, kind = option[1], option[2]
    local names = {job[field] or false, of_queue and of_queue[kind] or false}
    for i, name in ipairs(names) do
      local filled = name and wanted.fill_key(name, job.K)
      if name and not filled then
        fail('ELATER_KEY', kind .. ' ' .. quote(name) .. (i == 2 and ' of queue ' .. job.queue or
                                                          '') ..
             ' has {key} in it: give the job a key')
      elseif name then
        limits.check_gate_name(kind, filled)
        if i == 1 then
          job[field] = filled
          if kind ~= 'lock' then
            limits.need_limit(R, kind, filled)
          end
        end
      end
    end
  end
end

-- Check the gates of a new job: fill {key} in, and refuse a semaphore or rate of its own that is
-- not defined. Check what its options say together, too. of_queue: the gates of its queue, as
-- wanted.queue_gates returns them
function adds.check_gates(R, job, of_queue)
  if of_queue or job.l or job.s or job.r then
    fill_gates(R, job, of_queue)
  end
  if job.u and job.b then
    fail('ELATER_OPTION', 'unique and batch do not go together: a job that is dropped,' ..
         ' replaced or moved has no end of its own')
  elseif not job.u and (job.mode or job.f) then
    fail('ELATER_OPTION', 'unique_mode and unique_for belong to unique')
  end
  if job.n or job.d or job.p or job.m then
    chains.check_chain(R, job)
  end
end

-- -> ms of a duration that must be longer than nothing
function adds.positive(name, value)
  local ms = instant.duration(value, name)
  if ms < 1 then
    fail('ELATER_TIME', name .. ' must be longer than nothing')
  end
  return ms
end

-- Read one option into job; refuse an unknown option and one that is given twice.
function adds.option(job, seen, name, value, now_ms)
  local lower = string.lower(name)
  if not OPTIONS[lower] then
    fail('ELATER_OPTION', 'unknown option ' .. quote(name) ..
         ' (the payload comes last, after the options)')
  end
  local slot = lower == 'at' and 'in' or lower
  if seen[slot] and not REPEATS[slot] then
    fail('ELATER_OPTION', 'option ' .. lower .. ' is given twice (in and at are one)')
  end
  seen[slot] = true
  -- A job with no option but its due time gets the shortest record.
  job.has_options = job.has_options or slot ~= 'in'
  OPTIONS[lower](job, value, now_ms)
end

function adds.is_option(name)
  return OPTIONS[string.lower(name)] ~= nil
end

-- Refuse a payload of so many bytes, if that is more than its queue takes. No limit is below
-- LEAST_LIMIT, so a smaller payload needs no check.
function adds.check_payload_size(R, queue, bytes)
  local max = jobs.max_payload(R, queue)
  if bytes > max then
    fail('ELATER_SIZE', 'the payload has ' .. int(bytes) .. ' bytes, queue ' .. queue ..
         ' takes ' .. int(max) .. ' (max_payload)')
  end
end

function adds.check_payload(R, queue, payload)
  adds.check_payload_size(R, queue, #payload)
end

function adds.fail_full()
  fail('ELATER_FULL', 'there are ' .. int(MAX_QUEUES) .. ' queue names already')
end

-- Refuse a new queue name when there are too many already.
function adds.check_names(R, queue)
  if db('SISMEMBER', R .. ':names', queue) == 0 and db('SCARD', R .. ':names') >= MAX_QUEUES then
    adds.fail_full()
  end
end

-- Write the record of a new job, and its payload if that has a key of its own.
function adds.put_record(R, id, record, payload)
  change.is_new(R .. ':jobs', 'hash', id)
  db('HSET', R .. ':jobs', id, record)
  if payload then
    change.is_new(R .. ':big:' .. id, 'string', '')
    db('SET', R .. ':big:' .. id, payload)
  end
end

-- Write the record of a checked job. The id may have a record already. -> the record
function adds.insert(R, id, job, payload)
  job.big = #payload > BIG
  local record = jobs.header(job) .. (job.big and '' or payload)
  db('HSET', R .. ':jobs', id, record)
  if job.big then
    db('SET', R .. ':big:' .. id, payload)
  end
  return record
end

-- A new job that its queue cannot take is put among its dead, with the reason. -> its id
function adds.bury_new(R, job, payload, why, now_us)
  local id, now_ms = clock.id(clock.tick(R, now_us, 1)), clock.ms(now_us)
  job.big = #payload > BIG
  adds.put_record(R, id, jobs.header(job) .. (job.big and '' or payload), job.big and payload)
  commit.count(R, 'added', job.queue, 1)
  jobs.bury(R, job.queue, id, jobs.outcome('dead', 0, now_ms, 0, one_line(why), ''), now_ms)
  return id
end

-- What a token stands for. A payload that has many copies (publish.lua) is read once for all of
-- them: shared.print is then its own.
local function print_of(job, payload)
  local shared = job.shared
  if not shared then
    return redis.sha1hex(job.queue .. '\n' .. payload)
  end
  shared.print = shared.print or redis.sha1hex(payload)
  return redis.sha1hex(job.queue .. '\n' .. (job.P or '') .. '\n' .. shared.print)
end

-- Was this the print of a copy in libraries before number 28? A token lives for a day.
local function was_print_of(sha, job, payload)
  return job.shared and sha ==
         redis.sha1hex(job.queue .. '\n' .. (job.P and job.P .. '\n' or '') .. payload)
end

-- -> the reply to the first add with the job's token, or nil: no token, or a new one; refuses
-- another queue or payload under the token; and what adds.put_token is to be given. get: reads
-- Redis: db, or redis.call for a call without a transaction
function adds.repeated(R, job, payload, get)
  local token = job.token
  if not token then
    return nil
  end
  local print = print_of(job, payload)
  local was = get('GET', adds.token_key(R, job))
  if not was then
    return nil, print
  end
  local id, due, sha = string.match(was, '^(%S+) (%d+) (%x+)$')
  if sha ~= print and not was_print_of(sha, job, payload) then
    -- Behind a space: whose copy it is (publish.lua).
    fail('ELATER_TOKEN', 'token ' .. quote(string.match(token, '^%S+')) ..
         ' was used for another job (' .. (id or '?') .. ')')
  end
  return {id, 'repeated', tonumber(due)}
end

function adds.token_key(R, job)
  return R .. ':token:' .. job.token
end

-- -> the value of a token: what its first add answered; until when it is kept, ms. print: of
-- adds.repeated
function adds.token_text(reply, print, now_us)
  return reply[1] .. ' ' .. int(reply[3]) .. ' ' .. print, clock.ms(now_us) + 1000 * TOKEN_TTL_S
end

-- Remember what the add with the job's token answered.
function adds.put_token(R, job, reply, print, now_us)
  if job.token then
    db('SET', adds.token_key(R, job), adds.token_text(reply, print, now_us))
  end
end

-- Write a new job. origin: where it comes from, for `later tail`; nil: an add; is_named: what adds
-- it has reserved the names of its queues (core/uses.lua). -> its id
local function put_new(R, job, payload, now_us)
  local id = clock.id(clock.tick(R, now_us, 1))
  job.big = #payload > BIG
  adds.put_record(R, id, jobs.header(job) .. (job.big and '' or payload), job.big and payload)
  change.is_new(jobs.waiting_key(R, job, at_once.NEW), 'zset', id)
  jobs.enqueue(R, id, job, at_once.NEW, job.due, not job.is_named)
  if job.b then
    membership.join(R, job.b, id)
  end
  commit.count(R, 'added', job.queue, 1)
  if events.now then
    events.add('added', id, job.queue, job.due, nil, nil, nil, job.origin)
  end
  return id
end

-- Add a job whose payload and gates are checked, or which passes none, in a transaction. -> [id,
-- status, due_ms]
function adds.add_ungated(R, job, payload, now_us)
  local reply, print = adds.repeated(R, job, payload, db)
  if reply then
    return reply
  end
  if job.b then
    membership.check_join(R, job, 1)
  end
  uses.put_chain_names(R, job)
  reply = job.u and uniques.add(R, job, payload)
  if not reply then
    local id = put_new(R, job, payload, now_us)
    if job.u then
      db('SET', R .. ':uniq:' .. job.queue .. ':' .. job.u, id)
      db('PERSIST', R .. ':uniq:' .. job.queue .. ':' .. job.u)
    end
    reply = {id, 'added', job.due}
  end
  adds.put_token(R, job, reply, print, now_us)
  return reply
end

-- Check and write a job whose options are read, in a transaction. -> [id, status, due_ms]
function adds.add_in_transaction(R, job, payload, now_us)
  if #payload > LEAST_LIMIT then
    adds.check_payload(R, job.queue, payload)
  end
  if not job.W then
    adds.check_gates(R, job, wanted.queue_gates(db('HGET', R .. ':queues', job.queue)))
  end
  return adds.add_ungated(R, job, payload, now_us)
end

-- The same, for a call that does nothing else.
function adds.add_one(R, job, payload, now_us)
  if job.u or job.W then
    return adds.add_in_transaction(R, job, payload, now_us)
  elseif #payload > LEAST_LIMIT then
    adds.check_payload(R, job.queue, payload)
  end
  return at_once.add_at_once(R, job, payload, now_us)
end

-- Read the options args[from..to], names and values, of a job that is due now without one.
function adds.read_options(job, args, from, to)
  local seen, now_ms = {}, job.due
  for i = from, to, 2 do
    adds.option(job, seen, args[i], args[i + 1], now_ms)
  end
end

register('later_add', {}, function(R, args)
  local n = #args
  if n < 2 then
    fail('ELATER_ARGS', 'give QUEUE [name value]... PAYLOAD')
  end
  local queue = check_queue(args[1])
  if n % 2 == 1 then
    if not adds.is_option(args[2]) then
      fail('ELATER_OPTION', 'unknown option ' .. quote(args[2]) ..
           ' (the payload comes last, after the options)')
    end
    fail('ELATER_ARGS', 'an option has no value or the payload is missing: ' ..
         'QUEUE [name value]... PAYLOAD')
  end
  local now_us = clock.now_us()
  local now_ms = clock.ms(now_us)
  local job = {queue = queue, priority = 5, due = now_ms}
  if n > 2 then
    adds.read_options(job, args, 2, n - 1)
  end
  return adds.add_one(R, job, args[n], now_us)
end)
