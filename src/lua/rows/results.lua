-- The results of a sync over rows: jobs that failed and are tried again later or are dead
-- (dead.lua), jobs that are kept (kept.lua), and progress (claim/settling.lua has all of them). Any
-- other result is odd, and so is a retry that is due within this sync, or of a job that is pinned,
-- a suspect, or replaced by a successor.
--
-- What the sync knows of them: retried: columns {ids, texts and tries (R:tries, old and new)};
-- failed, of those that are dead, too: {ids, outcomes (R:errors), lines (R:failures)}; progress:
-- {id, text}*; had: {ids, values} of what is there and is replaced: errors, failures, results, and
-- progress where there is some; gone: the same, with keys, of what is removed: errors, progress;
-- waiting: key of a set -> {ids, scores} of those that wait in it now; late: queue -> {due, digits
-- (of their priorities)}, and a list of these queues; dues: {queue, due}*; counts: name of a
-- counter -> n; host: of the worker; moved: bytes; is_told: id -> true, of plain ends, too;
-- answers.

local row_results = module 'rows/results'
local events, jobs, row_dead, row_kept, row_sync, writes, txn = use(
  'core/events', 'core/jobs', 'rows/dead', 'rows/kept', 'rows/sync', 'rows/writes', 'txn/txn')

local function need_key(s, id, job)
  local owner = job.u and redis.call('GET', s.R .. ':uniq:' .. job.queue .. ':' .. job.u)
  if owner and owner ~= id then
    row_sync.odd()
  end
end

local function count(s, name)
  s.counts[name] = (s.counts[name] or 0) + 1
end

-- The job waits for its next start.
local function wait_again(s, id, job, due)
  local digit = job.priority ~= 5 and int(job.priority)
  local queue = job.queue
  local key, late = s.R .. ':q:' .. queue .. ':' .. (digit or '5'), s.late[queue]
  if s.has_flags and not s.room[queue] or s.fair and s.fair[queue] then
    row_sync.odd() -- the queue is a fair one, or may be
  elseif digit and not string.find(s.flags[queue] or '', digit, 1, true) then
    row_sync.odd() -- it has to get a flag
  elseif not late then
    late = {due = due, digits = {}}
    s.late[queue], s.late[#s.late + 1] = late, queue
  end
  local set = s.waiting[key] or {ids = {}, scores = {}}
  local n = #set.ids + 1
  s.waiting[key], set.ids[n], set.scores[n] = set, id, int(due)
  late.due, late.digits[digit or '5'] = math.min(late.due, due), true
  s.dues[#s.dues + 1], s.dues[#s.dues + 2] = queue, due
  count(s, 'failed:' .. queue)
end

-- An attempt has failed. had: the lines of earlier ones, false for none. -> its outcome
local function note_failure(s, r, tries, state, had)
  local f, n = s.failed, #s.failed.ids + 1
  f.ids[n] = r.id
  f.outcomes[n] = jobs.outcome(state, r.code, s.now_ms, tries.starts, r.text, r.output)
  s.host = s.host or jobs.host_of(s.R, s.epoch_text)
  f.lines[n] = jobs.add_failure(had, jobs.failure_line(s.now_ms, s.epoch_text, s.host, r.code,
                                                       r.text))
  return f.outcomes[n]
end

-- Result r of a job with these rows. -> how many bytes it moves
local function retry(s, r, tries, record, had)
  local job, due = jobs.parse(record), s.now_ms + r.a
  if not job or job.W or tries.crashes >= SOLO_CRASHES then
    row_sync.odd()
  end
  need_key(s, r.id, job)
  wait_again(s, r.id, job, due)
  if events.now then
    events.add('failed', r.id, job.queue, due, tries.starts, tries.attempts, whole(r.code), r.text)
  end
  local out, n = s.retried, #s.retried.ids + 1
  out.ids[n], out.texts[n], out.tries[n] = r.id, tries.text, jobs.tries_text(tries, due)
  note_failure(s, r, tries, 'failed', had)
  return #record + #r.output
end

-- The same of a job that is dead.
local function bury(s, r, tries, record, had)
  local job = jobs.parse(record)
  if not job then
    row_sync.odd()
  end
  row_dead.dead_row(s, r, job, note_failure(s, r, tries, 'dead', had))
  count(s, 'failed:' .. job.queue)
  count(s, 'dead:' .. job.queue)
  return #record + #r.output
end

-- The least amount of each result that is known here.
local LEAST = {retry = 1, done = 1, progress = 0, dead = 0}

-- Each result is of another job, which is no plain end, by a verb that is known here. -> ids, those
-- of progress, results of jobs that leave the worker
local function sort_out(s, results)
  local ids, of_progress, leaving, bytes = {}, {}, {}, 0
  s.is_told = {}
  for i = 1, #results do
    local r = results[i]
    local id, least = r.id, LEAST[r.verb]
    if s.is_told[id] or not r.a or not least or r.a < least or r.verb == 'retry' and
       (r.a <= s.q.ahead or s.now_ms + r.a > LATEST) then
      row_sync.odd()
    end
    ids[i], s.is_told[id], s.answers[i], bytes = id, true, 'ok', bytes + #r.output
    if r.verb == 'progress' then
      of_progress[#of_progress + 1] = id
      s.progress[#s.progress + 1], s.progress[#s.progress + 2] = id, one_line(r.text)
    else
      leaving[#leaving + 1] = r
    end
  end
  for _, id in ipairs(s.q.end_ids) do
    if s.is_told[id] then
      row_sync.odd()
    end
    s.is_told[id] = true
  end
  if bytes >= txn.CALL_BYTES then
    row_sync.odd() -- some of them come later
  end
  return ids, of_progress, leaving
end

-- -> their tries by id, each with its text in R:tries
local function need_held(s, results, ids)
  local owners, out = redis.call('ZMSCORE', s.R .. ':running', unpack(ids)), {}
  local texts, sub = redis.call('HMGET', s.R .. ':tries', unpack(ids)), string.sub
  for i = 1, #ids do
    local text, begin = texts[i] or '', results[i].start .. ' '
    local tries = jobs.tries(text)
    if owners[i] ~= s.epoch_text or not tries.due or sub(text, 1, #begin) ~= begin then
      row_sync.odd()
    end
    tries.text, out[ids[i]] = text, tries
  end
  return out
end

local function note(had, id, value)
  if value then
    had.ids[#had.ids + 1], had.values[#had.values + 1] = id, value
  end
end

-- Result r of a job that leaves, with the columns of its chunk, in which it is number i.
local function leave(s, r, tries, columns, i)
  local had, gone, id = s.had, s.gone, r.id
  note(gone.progress, id, columns.progress[i])
  if r.verb ~= 'done' then
    note(had.errors, id, columns.errors[i])
    note(had.failures, id, columns.failures[i])
    local end_as = r.verb == 'retry' and retry or bury
    return end_as(s, r, tries, columns.jobs[i], columns.failures[i])
  end
  note(gone.errors, id, columns.errors[i])
  note(had.results, id, columns.results[i])
  local bytes, queue = row_kept.keep_row(s, r, tries, columns.jobs[i])
  count(s, 'done:' .. queue)
  return bytes
end

-- Records and outcomes may be large, and the first may be odd: so few are read first.
local CHUNK_FIRST, CHUNK_FACTOR = 16, 4
local COLUMNS = {'errors', 'failures', 'progress', 'results'}

-- Load the jobs of these results, which leave the worker. -> their ids
local function load_leaving(s, results, tries)
  local ids, bytes, to, columns, from = {}, 0, 0, {}, 1
  for i = 1, #results do
    ids[i] = results[i].id
  end
  for i = 1, #results do
    if i > to then
      from, to = i, math.min(math.max(CHUNK_FACTOR * to, CHUNK_FIRST), #ids)
      columns.jobs = redis.call('HMGET', s.R .. ':jobs', unpack(ids, from, to))
      for _, name in ipairs(COLUMNS) do
        columns[name] = s.has_left and
                        redis.call('HMGET', s.R .. ':' .. name, unpack(ids, from, to)) or {}
      end
    end
    bytes = bytes + leave(s, results[i], tries[ids[i]], columns, i - from + 1)
    if bytes >= txn.CALL_BYTES then
      row_sync.odd()
    end
  end
  s.moved = bytes
  return ids
end

local function nothing(key)
  return {key = key, ids = {}, values = {}}
end

-- Load the jobs that results tell of, at least one. -> ids of those that leave the worker
function row_results.load_results(s)
  s.is_rare = true
  s.retried, s.failed = {ids = {}, texts = {}, tries = {}}, {ids = {}, outcomes = {}, lines = {}}
  s.progress, s.waiting, s.counts, s.late, s.woken, s.answers = {}, {}, {}, {}, {}, {}
  s.dues = {}
  s.had = {errors = nothing(), failures = nothing(), results = nothing()}
  s.gone = {errors = nothing(s.R .. ':errors'), progress = nothing(s.R .. ':progress')}
  local ids, of_progress, leaving = sort_out(s, s.q.results)
  local tries = need_held(s, s.q.results, ids)
  if of_progress[1] then
    s.had.progress = writes.read_there(s.R .. ':progress', of_progress)
  end
  ids = load_leaving(s, leaving, tries)
  if s.kept then
    row_kept.load_over(s)
  end
  if s.dead then
    row_dead.load_dead(s)
  end
  for key, set in pairs(s.waiting) do
    writes.need_absent(key, set.ids) -- a job that runs waits nowhere
  end
  return ids
end

-- None of them may be claimed in the same sync: it waits in two sets.
function row_results.need_untold(s, ids, from, to)
  for i = from, to do
    if s.is_told[ids[i]] then
      row_sync.odd()
    end
  end
end

-- The head of a queue with these retried jobs (one of s.late). told: the text that is there, false
-- for none. -> that head; whether it was lowered
function row_results.head_with(late, told)
  local head = told and tonumber(told)
  if not head or head > late.due then
    return late.due, true
  end
  return head, false
end
