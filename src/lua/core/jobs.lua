-- The data of a job: its record, its tries, where it waits, how it ends.

local jobs = module 'core/jobs'
local membership, pins, chains, events, resume, tenants, holding, uniques, adds, calendar, change,
      commit = use(
  'batch/membership', 'broadcast/pins', 'core/chains', 'core/events', 'core/resume',
  'fair/tenants', 'gates/holding', 'gates/uniques', 'public/add', 'schedule/calendar',
  'txn/change', 'txn/commit')

-- A record: a header, LF, then the payload bytes untouched.
--   <flag><queue>[ <priority>][ <name>=<value>]... LF payload
-- flag: '-' payload here, '+' payload in R:big:<id>. Names: a attempts, t timeout ms, x expire ms,
-- k keep ms, K key, T trace; l lock, s semaphore, r rate; u unique key, f until when the unique key
-- stays taken, ms; o: it waits for the end of its predecessor under its unique key
-- (gates/uniques.lua); n, d, p, m, c: what its end causes, and what caused it (chains.lua); b, B:
-- the batch that it is a member of, and the one whose callback it is (batch/membership.lua); S, O:
-- the schedule that added it, and the occurrence, ms (schedule/schedules.lua); Y: the day of it
-- (schedule/calendar.lua); P: the topic under which it was published (topic/topics.lua); W: the
-- worker or host that it is pinned to (broadcast/pins.lua). Names are short because a million of
-- them wait in memory.
local NAMES = {'a', 't', 'x', 'k', 'K', 'T', 'l', 's', 'r', 'u', 'f', 'o', 'n', 'd', 'p', 'm',
               'b', 'B', 'S', 'O', 'Y', 'P', 'W'}

-- -> the header of a job, with its LF.
function jobs.header(job)
  if not job.has_options and job.priority == 5 then
    return (job.big and '+' or '-') .. job.queue .. '\n'
  end
  local h = {(job.big and '+' or '-') .. job.queue}
  if job.priority ~= 5 then
    h[2] = int(job.priority)
  end
  for i = 1, #NAMES do
    local name = NAMES[i]
    local value = job[name]
    if value then
      h[#h + 1] = name .. '=' .. (type(value) == 'number' and int(value) or value)
    end
  end
  return table.concat(h, ' ') .. '\n'
end

local NUMBERS = {a = true, t = true, x = true, k = true, f = true, O = true}

-- A record -> {queue, priority, big, body (offset of the payload), and the named values as text};
-- nil when it is missing or not ours. Numbers are checked here, so that callers need not.
function jobs.parse(record)
  if not record then
    return nil
  end
  local flag, queue, at, stop = string.match(record, '^([-+])(%w[%w_-]*)()([ \n])')
  if flag == nil or #queue > 64 then
    return nil
  end
  local priority, behind, then_stop = string.match(record, '^ (%d)()([ \n])', at)
  if priority then
    at, stop = behind, then_stop
  elseif stop == ' ' and not string.find(record, '^ %a=', at) then
    return nil
  end
  local job = {queue = queue, priority = tonumber(priority or 5), big = flag == '+', body = at + 1}
  if stop == '\n' then
    return job
  end
  local lf = string.find(record, '\n', at, true)
  if lf == nil or lf > HEADER_MAX then
    return nil
  end
  job.body = lf + 1
  for name, value in string.gmatch(string.sub(record, at, lf - 1), ' (%a)=(%S+)') do
    if NUMBERS[name] and not whole(value) then
      return nil
    end
    job[name] = value
  end
  return job
end

-- -> the largest payload, in bytes, that an add to this queue takes.
function jobs.max_payload(R, queue)
  local set = db('HMGET', R .. ':config', 'max_payload:' .. queue, 'max_payload')
  return whole(set[1] or set[2]) or MAX_PAYLOAD
end

-- A value of R:tries, "<starts> <attempts> <crashes> <due ms>" -> {starts, attempts, crashes, due};
-- zeros and no due for a job that was never started. A library that comes back (a downgrade) reads
-- these four numbers and no more.
function jobs.tries(text)
  local s, a, c, due
  if text then
    s, a, c, due = string.match(text, '^(%d+) (%d+) (%d+) (%d+)$')
  end
  -- 15 digits are below 2^53.
  if not s or #s > 15 or #a > 15 or #c > 15 or #due > 15 then
    return {starts = 0, attempts = 0, crashes = 0}
  end
  return {starts = tonumber(s), attempts = tonumber(a), crashes = tonumber(c), due = tonumber(due)}
end

function jobs.tries_text(t, due)
  return int(t.starts) .. ' ' .. int(t.attempts) .. ' ' .. int(t.crashes) .. ' ' .. int(due)
end

-- How an attempt or a job ended, for R:errors and R:results:
--   "<state> <code> <when ms> <start> <reason>" LF output bytes
-- state: failed, dead, done, cancelled. code: exit status (128 + n for signal n), 0 where none.
function jobs.outcome(state, code, now_ms, start, reason, output)
  return state .. ' ' .. int(whole(code) or 0) .. ' ' .. int(now_ms) .. ' ' .. int(start) .. ' ' ..
         one_line(reason) .. '\n' .. (output or '')
end

-- An outcome -> state, code, when ms, start, reason, output, all as text; nil when it is not ours.
function jobs.read_outcome(outcome)
  return string.match(outcome, '^(%a+) (%d+) (%d+) (%d+) ([^\n]*)\n(.*)$')
end

local FAILURES, FAILURE_BYTES = 5, 200

-- -> the host of a worker, '-' if it is not known
function jobs.host_of(R, epoch)
  local host = redis.pcall('HGET', R .. ':worker:' .. epoch, 'host')
  return type(host) == 'string' and string.match(host, '^[%w._-]+$') or '-'
end

-- An attempt that failed, as R:failures has it:
--   "<when ms> <epoch of its worker> <host, - if unknown> <code> <text>"
function jobs.failure_line(now_ms, epoch, host, code, text)
  return int(now_ms) .. ' ' .. epoch .. ' ' .. host .. ' ' .. int(whole(code) or 0) .. ' ' ..
         one_line(string.sub(text, 1, FAILURE_BYTES))
end

-- -> the last FAILURES attempts of a job, the newest first. had: those before, false for none
function jobs.add_failure(had, line)
  local lines = {line}
  for earlier in string.gmatch(had or '', '[^\n]+') do
    lines[#lines + 1] = #lines < FAILURES and earlier or nil
  end
  return table.concat(lines, '\n')
end

local function write_failure(R, id, line)
  local key = R .. ':failures'
  db('HSET', key, id, jobs.add_failure(db('HGET', key, id), line))
end

-- Keep the last attempts of a job that failed, for people. A key of a foreign type is left alone:
-- it must not keep a job from ending.
function jobs.keep_failure(R, id, now_ms, epoch, code, text)
  local line = jobs.failure_line(now_ms, epoch, jobs.host_of(R, epoch), code, text)
  change.unless_foreign(write_failure, R, id, line)
end

-- The set that a waiting job is in; pinned jobs and the suspects of a queue have their own. -> its
-- key; the flag that tells of it, false for priority 5, which needs none
function jobs.waiting_key(R, job, tries)
  if job.W then
    return pins.key_of(R, job.queue, job.W), 'p'
  elseif tries.crashes >= SOLO_CRASHES then
    return R .. ':solo:' .. job.queue, 's'
  end
  local priority = int(job.priority)
  return R .. ':q:' .. job.queue .. ':' .. priority, priority ~= '5' and priority
end

-- Add a flag to a queue. R:prio has its flags as a string: digits (priorities beside 5, which is
-- always read), 's' (suspects), 'p' (pinned jobs), 'g' (granted jobs), 'a' (gates where it stands
-- aside) and 'f' (it has rows of tenants, fair/tenants.lua).
function jobs.flag_set(R, queue, flag)
  local flags = db('HGET', R .. ':prio', queue) or ''
  if not string.find(flags, flag, 1, true) then
    db('HSET', R .. ':prio', queue, flags .. flag)
  end
end

-- run: db, or redis.pcall for a call without a transaction
function jobs.set_flags(R, queue, flags, run)
  if flags == '' then
    run('HDEL', R .. ':prio', queue)
  else
    run('HSET', R .. ':prio', queue, flags)
  end
end

function jobs.flag_clear(R, queue, flag)
  jobs.set_flags(R, queue, (string.gsub(db('HGET', R .. ':prio', queue) or '', flag, '')), db)
end

-- A queue has a job that is due then. If that is earlier than its head, the head is lowered and the
-- workers are woken. is_new: the job is new, so its queue may be new; fails if that is one name too
-- many.
function jobs.lower_head(R, queue, due, is_new)
  local was = db('ZSCORE', R .. ':heads', queue)
  if was and was <= due then
    return
  end
  if is_new then
    adds.check_names(R, queue)
  end
  db('ZADD', R .. ':heads', due, queue)
  db('SADD', R .. ':names', queue)
  commit.wake(R, queue)
end

-- Is the job, which waits, one of a tenant? Pinned jobs and suspects are not.
local function has_tenant(R, job, tries)
  return not job.W and tries.crashes < SOLO_CRASHES and tenants.are_kept(R, job.queue)
end

-- A waiting job leaves its set.
function jobs.leave_waiting(R, id, job, tries)
  local key = jobs.waiting_key(R, job, tries)
  local due = has_tenant(R, job, tries) and db('ZSCORE', key, id)
  db('ZREM', key, id)
  tenants.remove(R, id, job, due and to_due(due))
end

-- Put a job with a record into the waiting set of its queue. is_new: as in jobs.lower_head
function jobs.enqueue(R, id, job, tries, due, is_new)
  local key, flag = jobs.waiting_key(R, job, tries)
  db('ZADD', key, due, id)
  if has_tenant(R, job, tries) then
    tenants.put(R, id, job, due)
  end
  if job.W then
    if is_new then
      adds.check_names(R, job.queue)
    end
    pins.put(R, job.queue, job.W)
    db('SADD', R .. ':names', job.queue)
    commit.wake(R, job.queue)
  else
    jobs.lower_head(R, job.queue, due, is_new)
  end
  if flag then
    jobs.flag_set(R, job.queue, flag)
  end
end

-- Remove the record, payload, outcome, failures, progress, cancellation, checkpoint and steps of
-- these ids, but not their tries. are_small: the caller knows for certain that none has a large
-- payload. -> how many have one
function jobs.forget_but_tries(R, ids, are_small)
  for _, name in ipairs({'cancel', 'progress', 'errors', 'failures', 'results'}) do
    db('HDEL', R .. ':' .. name, unpack(ids))
  end
  resume.drop(R, ids)
  change.erase(R .. ':jobs', ids)
  if not are_small then
    local keys, prefix = {}, R .. ':big:'
    for i = 1, #ids do
      keys[i] = prefix .. ids[i]
    end
    return change.drop_keys(keys, 1, #keys)
  end
  return 0
end

-- The same, and their tries.
function jobs.forget(R, ids)
  if #ids == 0 then
    return 0
  end
  db('HDEL', R .. ':tries', unpack(ids))
  return jobs.forget_but_tries(R, ids)
end

local TRIM_ROWS, TRIM_LARGE = 100, 100

-- Forget up to `rows` ids whose score is at most `before`, in a set that is scored by a time in ms:
-- fewer where many have large payloads, which take long to free. -> how many
function jobs.trim(R, key, before, rows)
  local ids, n, large = db('ZRANGEBYSCORE', key, '-inf', int(before), 'LIMIT', 0, rows), 0, 0
  while n < #ids and large < TRIM_LARGE do
    local some = {unpack(ids, n + 1, math.min(n + TRIM_ROWS, #ids))}
    db('ZREM', key, unpack(some))
    large = large + jobs.forget(R, some)
    n = n + #some
  end
  return n
end

-- If somebody waits for the end of this job (later wait), tell its outcome, once.
function jobs.announce(R, id, outcome)
  if db('HDEL', R .. ':await', id) == 1 then
    commit.say(R .. ':ended:' .. id, outcome)
  end
end

-- Bury a job: its record stays, with the outcome beside it. If a queue has more than `max` dead
-- jobs (10,000 without it), the oldest are forgotten.
function jobs.bury(R, queue, id, outcome, now_ms, max)
  local key = R .. ':dead:' .. queue
  local record = db('HGET', R .. ':jobs', id)
  local job = jobs.parse(record)
  db('ZADD', key, int(now_ms), id)
  db('SADD', R .. ':names', queue)
  db('HSET', R .. ':errors', id, outcome)
  db('HDEL', R .. ':cancel', id)
  db('HDEL', R .. ':progress', id)
  uniques.free_of(R, id, job)
  membership.end_member(R, job and job.b, id, 'dead', now_ms)
  commit.count(R, 'dead', queue, 1)
  calendar.mark_end(R, job, 'failed')
  jobs.announce(R, id, outcome)
  if events.now then
    events.add_end(id, queue, outcome)
  end
  -- Each burial forgets at most two: a call stays short, and there are never too many for long.
  local over = db('ZCARD', key) - (max or DEAD_MAX)
  if over > 0 then
    local old = db('ZRANGE', key, 0, math.min(over, 2) - 1)
    db('ZREM', key, unpack(old))
    jobs.forget(R, old)
  end
  if job then
    job.record = record
  end
  chains.tell_death(R, id, job, string.match(outcome, '^%a+ %d+ %d+ %d+ ([^\n]*)'), now_ms)
end

-- End a job for good: forget it, or keep it with its outcome for `keep` ms. Each job that is kept
-- removes up to two whose time is over: so however many end, no more are kept than end in that
-- time. job may be nil if keep is 0.
function jobs.finish(R, job, id, outcome, now_ms, keep)
  jobs.announce(R, id, outcome)
  if events.now then
    events.add_end(id, job and job.queue or '-', outcome)
  end
  uniques.free_of(R, id, job)
  membership.end_member(R, job and job.b, id, string.find(outcome, '^done ') and 'done' or
                        'cancelled', now_ms)
  if keep > 0 then
    db('ZADD', R .. ':done:' .. job.queue, int(now_ms + keep), id)
    db('SADD', R .. ':names', job.queue)
    db('HSET', R .. ':results', id, outcome)
    db('HDEL', R .. ':errors', id)
    db('HDEL', R .. ':cancel', id)
    db('HDEL', R .. ':progress', id)
    resume.drop(R, {id})
    jobs.trim(R, R .. ':done:' .. job.queue, now_ms, 2)
  else
    jobs.forget(R, {id})
  end
end

-- End a running job that was cancelled or replaced and did not end well by itself.
function jobs.end_cancelled(R, job, id, outcome, now_ms)
  db('ZREM', R .. ':running', id)
  jobs.finish(R, job, id, outcome, now_ms, tonumber(job.k or '0'))
  commit.count(R, 'cancelled', job.queue, 1)
end

-- -> a new record for a job whose own is missing or corrupt. Its payload is R:big:<id> if there is
-- one, else the bytes of the corrupt record. A missing record without R:big:<id> still refers to
-- that key: a retry must not run with an empty payload.
function jobs.mended(R, id, queue, record)
  local big = not record or db('TYPE', R .. ':big:' .. id).ok == 'string'
  return jobs.header({queue = queue, priority = 5, big = big}) .. (big and '' or record)
end

-- A running job whose record is missing or corrupt cannot run again. It is buried with what is left
-- of it as its payload, in the queue that its record names or else in `queue`. Without either it is
-- forgotten. What it holds names its batch.
function jobs.bury_broken(R, id, record, queue, now_ms)
  queue = string.match(record or '', '^[-+](%w[%w_-]*)[ \n]') or queue
  db('ZREM', R .. ':running', id)
  membership.end_member(R, holding.batch_of(db('HGET', R .. ':holds', id)), id, 'dead', now_ms)
  local why = record and CORRUPT or 'its record is missing'
  local outcome = jobs.outcome('dead', 0, now_ms, 0, why, '')
  if queue == nil or #queue > 64 then
    jobs.announce(R, id, outcome)
    jobs.forget(R, {id})
    return
  end
  db('HSET', R .. ':jobs', id, jobs.mended(R, id, queue, record))
  jobs.bury(R, queue, id, outcome, now_ms)
end

-- Has a job in this state not ended yet?
function jobs.is_live(state)
  return state == 'waiting' or state == 'parked' or state == 'running'
end

-- -> state, job, tries, score. state: waiting parked running dead done, or nil when there is no
-- such job; the score is, in this order: due ms, ticket, epoch, died ms, forgotten-at ms. job: nil
-- for a running job whose record is missing or corrupt.
function jobs.locate(R, id)
  local record = db('HGET', R .. ':jobs', id)
  local tries = jobs.tries(db('HGET', R .. ':tries', id))
  local epoch = db('ZSCORE', R .. ':running', id)
  local job = jobs.parse(record)
  if job then
    job.record = record
  end
  if epoch then
    return 'running', job, tries, tonumber(epoch)
  end
  if job == nil then
    return nil
  end
  local due = db('ZSCORE', jobs.waiting_key(R, job, tries), id)
  if due then
    return 'waiting', job, tries, tonumber(due)
  end
  for _, state in ipairs({'parked', 'dead', 'done'}) do
    local score = db('ZSCORE', R .. ':' .. state .. ':' .. job.queue, id)
    if score then
      return state, job, tries, tonumber(score)
    end
  end
  return nil
end

-- The same for a function that needs the job; fails with ELATER_NOJOB without it.
function jobs.find(R, id)
  local state, job, tries, score = jobs.locate(R, id)
  if state == nil or job == nil then
    fail('ELATER_NOJOB', 'there is no job ' .. id .. ' (done, cancelled, or never here)')
  end
  return state, job, tries, score
end
