-- What becomes of the rows of a chunk (waiting.lua): reads their records and decides. Nothing is
-- written.

local judge = module 'claim/judge'
local chains, jobs, resume, wanted = use(
  'core/chains', 'core/jobs', 'core/resume', 'gates/wanted')

-- Is the payload larger than an add would take now? Its key or record was written by hand, or the
-- limit was lowered. The larger limit of Redis and the worker counts, since workers learn of a new
-- limit one after the other.
local function too_large(R, b, i, job, max_payload)
  local queue = b.queue
  local n = job.big and chains.payload_size(R, b.ids[i]) or #b.records[i] - job.body + 1
  -- The fetch of the payload tells of a foreign type.
  if type(n) ~= 'number' or n <= math.max(max_payload, BIG) then
    return nil
  end
  local max = math.max(max_payload, jobs.max_payload(R, queue))
  return n > max and 'the payload has ' .. int(n) .. ' bytes, queue ' .. queue .. ' takes ' ..
         int(max) or nil
end

-- -> why it cannot run
local function judge_raw(b, i, max_payload)
  b.jobs[i], b.tries[i] = {queue = b.queue, priority = 5}, false
  if not b.whys[i] and #b.raws[i] > max_payload then
    return 'the payload has ' .. int(#b.raws[i]) .. ' bytes, queue ' .. b.queue .. ' takes ' ..
           int(max_payload)
  end
  return b.whys[i]
end

-- Why a job that was not started in time is dead. ms: the text of its expire
function judge.expired(ms)
  return 'expired: not started within ' .. ms .. ' ms of its due time'
end

-- Why a row cannot run, nil: it can.
local function bad_job(R, b, i, job, max_payload, ctx)
  local text = b.tries[i]
  local tries = text and jobs.tries(text)
  if not job or job.queue ~= b.queue then
    b.broken[i] = true
    return b.records[i] and CORRUPT or 'its record is missing'
  elseif text and not tries.due then
    return 'its tries are corrupt'
  elseif job.x and not (tries and tries.starts > 0) and
         b.dues[i] + tonumber(job.x) < ctx.now_ms then
    return judge.expired(job.x)
  end
  return too_large(R, b, i, job, max_payload)
end

local function judge_row(R, b, i, max_payload, ctx)
  local job, why
  if b.raws[i] then
    why = judge_raw(b, i, max_payload)
    job = b.jobs[i]
  else
    job = jobs.parse(b.records[i])
    why = bad_job(R, b, i, job, max_payload, ctx)
    b.jobs[i] = job
  end
  if not why and not b.is_granted and not b.is_pinned then
    b.gates[i], why = wanted.gates_of(job, ctx.gates[b.queue])
  end
  b.whys[i] = why
  if why or b.raws[i] or b.gates[i] or job.u or job.n or job.S or ctx.fair[b.queue] then
    b.is_special[i] = true
  end
  b.has_members = b.has_members or job and job.b ~= nil
  b.has_keys = b.has_keys or job and job.K ~= nil
end

local function begin_rows(b)
  b.records, b.tries, b.jobs, b.gates, b.broken = {}, {}, {}, b.gates or {}, {}
  b.resumes = {}
  b.is_special, b.has_members, b.has_keys = {}, false, false
end

-- Read the records and tries of the rows from..to that have an id, and what they have kept
-- (core/resume.lua).
local function read_rows(R, b, from, to)
  local ids, rows = b.ids, nil
  if next(b.raws) then
    ids, rows = {}, {}
    for i = from, to do
      if b.ids[i] then
        ids[#ids + 1], rows[#rows + 1] = b.ids[i], i
      end
    end
  end
  local first, last = rows and 1 or from, rows and #rows or to
  if last < first then
    return
  end
  local records = db('HMGET', R .. ':jobs', unpack(ids, first, last))
  local tries = db('HMGET', R .. ':tries', unpack(ids, first, last))
  local resumes = resume.rows(R, ids, first, last)
  if not rows and from == 1 then
    b.records, b.tries, b.resumes = records, tries, resumes
    return
  end
  for k = first, last do
    local i, at = rows and rows[k] or k, k - first + 1
    b.records[i], b.tries[i], b.resumes[i] = records[at], tries[at], resumes[at]
  end
end

-- Records may be large, and a call starts no more than ctx.bytes of them: so a few are read first,
-- and more only while there is room.
local ROWS_FIRST, ROWS_FACTOR = 64, 3
judge.ROWS_FIRST, judge.ROWS_FACTOR = ROWS_FIRST, ROWS_FACTOR -- of a sync over rows, too

-- May the job be claimed before it is due? Not if it holds gates, or if its payload has to be
-- fetched.
local function may_be_early(b, i)
  local job = b.jobs[i]
  return b.is_granted or not (b.gates[i] or b.whys[i] or job and job.big)
end

-- -> how many bytes the call copies for row i: a large payload, where a death is told (on_dead)
local function copied(R, b, i)
  local job = b.jobs[i]
  local n = b.whys[i] and job and job.d and job.big and chains.payload_size(R, b.ids[i])
  return type(n) == 'number' and n or 0
end

-- Decide what becomes of each row: whys[i]: it is buried; gates[i]: what it has to pass;
-- is_special[i]: more is to be done than to start it; jobs[i] is nil for most, which have no
-- options; first_judged: the first row that has options or was started before. -> how many of the
-- first rows were judged: a call reads no more than ctx.bytes, and what is not due yet is claimed
-- only without gates.
function judge.judge(R, b, max_payload, ctx)
  begin_rows(b)
  local known = math.min(ROWS_FIRST, b.n)
  read_rows(R, b, 1, known)
  local records, tries, find = b.records, b.tries, string.find
  local prefix, of_queue, bytes = '-' .. b.queue .. '\n', ctx.gates[b.queue], ctx.bytes
  local most, n = #prefix + BIG, b.n
  for i = 1, n do
    if i > known then
      known = math.min(ROWS_FACTOR * known, n)
      read_rows(R, b, i, known)
    end
    local record = records[i]
    -- Most jobs have no options and start for the first time: there is nothing to judge.
    if record and not tries[i] and not of_queue and #record <= most and
       find(record, prefix, 1, true) == 1 then
      bytes = bytes - #record
    else
      b.first_judged = b.first_judged or i
      judge_row(R, b, i, max_payload, ctx)
      if b.dues[i] > ctx.now_ms and not may_be_early(b, i) then
        n = i - 1
        break
      end
      bytes = bytes - #(record or b.raws[i] or '') - copied(R, b, i)
    end
    bytes = bytes - #(b.resumes[i] or '')
    if bytes <= 0 then
      n = i
      break
    end
  end
  ctx.bytes = bytes
  return n
end
