-- The results of a step over rows: jobs that failed and are tried again later, jobs that are kept
-- (kept.lua), and progress (claim/result.lua has all of them). Any other result is odd, and so is a
-- retry that is due within this step, or of a job that is pinned, a suspect, or replaced by a
-- successor.
--
-- What the step knows of them: retried: columns {ids, texts and tries (R:tries, old and new),
-- outcomes (R:errors), lines (R:failures)}; progress: {id, text}*; had: {ids, values} of what is
-- there and is replaced: errors, failures, progress, results; gone: the same of what is removed:
-- errors, progress; waiting: key of a set -> {ids, scores} of those that wait in it now; late:
-- queue -> {due, digits (of their priorities)}, and a list of these queues; counts: name of a
-- counter -> n; host: of the worker; answers.

-- -> the values of these jobs in a hash
local function read_had(s, name, ids)
  return s.is_calm and {} or redis.call('HMGET', s.R .. ':' .. name, unpack(ids))
end

local function need_key(s, id, job)
  local owner = job.u and redis.call('GET', s.R .. ':uniq:' .. job.queue .. ':' .. job.u)
  if owner and owner ~= id then
    L.odd()
  end
end

local function count(s, name)
  s.counts[name] = (s.counts[name] or 0) + 1
end

-- The job waits for its next start.
local function wait_again(s, id, job, due)
  local digit = job.priority ~= 5 and L.int(job.priority)
  local queue = job.queue
  local key, late = s.R .. ':q:' .. queue .. ':' .. (digit or '5'), s.late[queue]
  if digit and not string.find(s.marks[queue] or '', digit, 1, true) then
    L.odd() -- it has to get a mark
  elseif not late then
    late = {due = due, digits = {}}
    s.late[queue], s.late[#s.late + 1] = late, queue
  end
  local set = s.waiting[key] or {ids = {}, scores = {}}
  local n = #set.ids + 1
  s.waiting[key], set.ids[n], set.scores[n] = set, id, L.int(due)
  late.due, late.digits[digit or '5'] = math.min(late.due, due), true
  count(s, 'failed:' .. queue)
end

-- Result r of a job with these rows. -> how many bytes it moves
local function retry(s, r, text, record, had)
  local tries, job, due = L.tries(text), L.parse(record), s.now_ms + r.a
  if not job or job.W or tries.crashes >= L.SOLO_CRASHES then
    L.odd()
  end
  need_key(s, r.id, job)
  wait_again(s, r.id, job, due)
  local out, n = s.retried, #s.retried.ids + 1
  out.ids[n], out.texts[n], out.tries[n] = r.id, text, L.tries_text(tries, due)
  out.outcomes[n] = L.outcome('failed', r.code, s.now_ms, tries.starts, r.text, r.output)
  s.host = s.host or L.host_of(s.R, s.epoch_text)
  out.lines[n] = L.add_failure(had, L.failure_line(s.now_ms, s.epoch_text, s.host, r.code, r.text))
  return #record + #r.output
end

-- The least amount of each result that is known here.
local LEAST = {retry = 1, done = 1, progress = 0}

-- -> ids. Each is told of once, by a verb that is known here, and is no plain end.
local function ids_of(s, results)
  local ids, is_told = {}, {}
  for i = 1, #results do
    local r = results[i]
    local least = LEAST[r.verb]
    if is_told[r.id] or not r.a or not least or r.a < least or
       r.verb == 'retry' and r.a <= s.q.ahead then
      L.odd()
    end
    ids[i], is_told[r.id] = r.id, true
  end
  for _, id in ipairs(s.q.end_ids) do
    if is_told[id] then
      L.odd()
    end
  end
  return ids
end

local function need_held(s, results, ids)
  local owners = redis.call('ZMSCORE', s.R .. ':running', unpack(ids))
  local tries = redis.call('HMGET', s.R .. ':tries', unpack(ids))
  for i = 1, #ids do
    local start = string.match(tries[i] or '', '^(%d+) %d+ %d+ %d+$')
    if owners[i] ~= s.epoch_text or start ~= results[i].start or not L.tries(tries[i]).due then
      L.odd()
    end
  end
  return tries
end

local RETRY, DONE, PROGRESS, LEFT = {retry = true}, {done = true}, {progress = true},
                                    {retry = true, done = true}

-- -> {ids, values} of what is there of the results with these verbs
local function had_of(results, values, verbs)
  local had = {ids = {}, values = {}}
  for i = 1, #results do
    if values[i] and verbs[results[i].verb] then
      local n = #had.ids + 1
      had.ids[n], had.values[n] = results[i].id, values[i]
    end
  end
  return had
end

-- -> a value for each, of R:failures. What else there is goes to had and gone.
local function load_had(s, results, ids)
  local errors, failures = read_had(s, 'errors', ids), read_had(s, 'failures', ids)
  local progress, kept = read_had(s, 'progress', ids), read_had(s, 'results', ids)
  s.had = {errors = had_of(results, errors, RETRY), failures = had_of(results, failures, RETRY),
           progress = had_of(results, progress, PROGRESS), results = had_of(results, kept, DONE)}
  s.gone = {errors = had_of(results, errors, DONE), progress = had_of(results, progress, LEFT)}
  return failures
end

local function load_result(s, r, tries, record, failures)
  if r.verb == 'progress' then
    local n = #s.progress
    s.progress[n + 1], s.progress[n + 2] = r.id, L.one_line(r.text)
    return 0
  elseif r.verb == 'retry' then
    return retry(s, r, tries, record, failures)
  end
  local bytes, queue = L.keep_row(s, r, tries, record)
  count(s, 'done:' .. queue)
  return bytes
end

-- Jobs that run wait nowhere; this read tells of a foreign type, too.
local function need_absent(s)
  for key, set in pairs(s.waiting) do
    for _, score in ipairs(redis.call('ZMSCORE', key, unpack(set.ids))) do
      if score then
        L.odd()
      end
    end
  end
end

-- Records may be large, so these are read at a time: the first may be odd.
local RECORDS = 16

-- Load the jobs that results tell of, at least one. -> ids of those that leave the worker, which
-- of them wait again
function L.load_results(s)
  local results, bytes, left, waits = s.q.results, 0, {}, {}
  s.is_rare = true
  s.retried = {ids = {}, texts = {}, tries = {}, outcomes = {}, lines = {}}
  s.progress, s.waiting, s.counts, s.late, s.woken, s.answers = {}, {}, {}, {}, {}, {}
  local ids = ids_of(s, results)
  local tries = need_held(s, results, ids)
  local failures, records = load_had(s, results, ids), {}
  for i = 1, #results do
    local r = results[i]
    if i % RECORDS == 1 then
      records = redis.call('HMGET', s.R .. ':jobs', unpack(ids, i, math.min(i + RECORDS - 1, #ids)))
    end
    bytes = bytes + load_result(s, r, tries[i], records[(i - 1) % RECORDS + 1], failures[i])
    if bytes >= L.CALL_BYTES then
      L.odd() -- some of them come later
    end
    s.answers[i] = 'ok'
    if r.verb ~= 'progress' then
      left[#left + 1], waits[#waits + 1] = r.id, r.verb == 'retry'
    end
  end
  if s.kept then
    L.load_over(s)
  end
  need_absent(s)
  return left, waits
end

-- The head of a queue with these retried jobs (one of s.late). told: the text that is there, false
-- for none. -> that head; whether it was lowered
function L.head_with(late, told)
  local head = told and tonumber(told)
  if not head or head > late.due then
    return late.due, true
  end
  return head, false
end
