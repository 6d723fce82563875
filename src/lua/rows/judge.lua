-- What becomes of the rows of a sync over rows: their records, tries and gates are read and judged.
--
-- A chunk b of rows, which are columns: queue, n, ids, dues; records, texts (of R:tries, false for
-- none); of the rows that are more than a record and a key: jobs (their options, nil for none),
-- tries (nil for none), gates (lists of rows, nil for none). keys: of rows that would start for the
-- first time; nil where none has one.

local row_judge = module 'rows/judge'
local judge, jobs, wanted, row_ends, row_gates, row_sync = use(
  'claim/judge', 'core/jobs', 'gates/wanted', 'rows/ends', 'rows/gates', 'rows/sync')
local ROWS_FIRST, ROWS_FACTOR = judge.ROWS_FIRST, judge.ROWS_FACTOR
local NO_OPTIONS = {}

-- The options that a record may have here: those that a start reads, and those that its worker
-- reads, or an end which is odd. The rest is odd, and so is a number that is none.
local OPTIONS = {l = 'text', s = 'text', r = 'text', u = 'text', K = 'text', T = 'text', d = 'text',
                 b = 'text', p = 'text', m = 'text', c = 'text', B = 'text', Y = 'text', P = 'text',
                 a = 'number', t = 'number', k = 'number', x = 'number', f = 'number',
                 O = 'number'}
local OF_START = {l = true, s = true, r = true, u = true, f = true, x = true, b = true, K = 'key'}

-- This one is no text: it has to be a number.
local function need_number(name, value)
  if not OPTIONS[name] or not whole(value) then
    row_sync.odd()
  end
end

-- The options of a header that a start reads, ' 4 a=5 l=door K=5' -> {l = 'door', K = '5'}, whether
-- there are more than a key; nil for none
local function parse(text)
  local only, its = string.match(text, '^ (%a)=(%S+)$')
  if only then
    if OPTIONS[only] ~= 'text' then
      need_number(only, its)
    end
    local read = OF_START[only]
    return read and {[only] = its}, read == true
  end
  local job, is_more, n = nil, false, 0
  for name, value in string.gmatch(text, ' (%a)=(%S+)') do
    if OPTIONS[name] ~= 'text' then
      need_number(name, value)
    end
    local read = OF_START[name]
    if read then
      job, is_more = job or {}, is_more or read == true
      if job[name] then
        row_sync.odd()
      end
      job[name] = value
    end
    n = n + 3 + #value
  end
  -- A digit in front is its priority, of which its set tells.
  if n ~= #text and not (n + 2 == #text and string.find(text, '^ %d')) then
    row_sync.odd()
  end
  return job, is_more
end

-- -> the id of the only gate of a job whose queue has gates; nil: there are more
local function only_common(job, common)
  if not common.begin or job.l or job.s or job.r then
    return nil
  elseif not common.behind then
    return common.begin
  elseif not job.K then
    row_sync.odd()
  end
  return common.begin .. job.K .. common.behind
end

-- -> the same; false if it has none
local function only_gate(job, common)
  if common then
    return only_common(job, common)
  elseif job.l then
    return not (job.s or job.r) and 'lock:' .. job.l or nil
  elseif job.s then
    return not job.r and 'sem:' .. job.s or nil
  end
  return job.r and 'rate:' .. job.r or false
end

-- -> the gates of a job as rows, nil for none. common: those of its queue
local function gates_of(s, job, common)
  local only = only_gate(job, common)
  if only then
    return {row_gates.row_gate(s, only)}
  elseif only == false then
    return nil
  end
  local ids, why = wanted.gates_of(job, common)
  if why then
    row_sync.odd()
  end
  for i = 1, ids and #ids or 0 do
    ids[i] = row_gates.row_gate(s, ids[i])
  end
  return ids
end

-- The tries of a row; whatever is odd in a start.
local function read_tries(s, text, job, due)
  local tries = jobs.tries(text or nil)
  if text and not tries.due or tries.crashes >= SOLO_CRASHES or job and job.x and
     tries.starts == 0 and due + tonumber(job.x) < s.now_ms then
    row_sync.odd()
  end
  return tries
end

-- ---- rows

local function read_some(s, b, from, to)
  local R = s.R
  local records = redis.call('HMGET', R .. ':jobs', unpack(b.ids, from, to))
  local texts = redis.call('HMGET', R .. ':tries', unpack(b.ids, from, to))
  if s.has_resume then
    row_ends.need_nothing_kept(s, b.ids, from, to)
  end
  if from == 1 then
    b.records, b.texts = records, texts
    return
  end
  for i = from, to do
    b.records[i], b.texts[i] = records[i - from + 1], texts[i - from + 1]
  end
end

-- -> as parse, of a record. bare: the last header without any such option, which rows side by side
-- often share.
local function read_options(b, record)
  local begin = b.begin
  local cut = #begin
  if string.sub(record, 1, cut) ~= begin then
    row_sync.odd()
  end
  local lf = string.find(record, '\n', cut + 1, true)
  if not lf or lf > HEADER_MAX or #record - lf > BIG then
    row_sync.odd()
  end
  local header = string.sub(record, cut + 1, lf - 1)
  if header == '' or header == b.bare then
    return nil
  end
  local job, is_more = parse(header)
  if not job then
    b.bare = header
  end
  return job, is_more
end

-- The gates of row i, which are taken when it starts. -> false: it is not due yet, and waits until
-- then
local function judge_gates(s, b, i, job)
  local gates = gates_of(s, job or NO_OPTIONS, s.of_queue[b.queue])
  if not gates then
    return true
  elseif b.dues[i] > s.now_ms then
    return false
  end
  b.gates[i] = gates
  local new = b.new
  for k = 1, #gates do
    local g = gates[k]
    if g.is_awaited == nil then
      new[#new + 1] = g
    end
  end
  return true
end

-- A row that is more than a record of this queue without options. -> as judge_gates
local function judge_special(s, b, i)
  local record, text = b.records[i] or '', b.texts[i]
  local job, is_more = read_options(b, record)
  if job and job.K and not text then
    b.keys = b.keys or {}
    b.keys[i] = job.K
  end
  if not (is_more or text or b.is_in or s.of_queue[b.queue]) then
    return true
  elseif text or job and job.x then
    local tries = read_tries(s, text, job, b.dues[i])
    b.tries[i] = text and tries or nil
  end
  b.jobs[i], b.special[#b.special + 1] = job, i
  return b.is_in or judge_gates(s, b, i, job)
end

-- The same for a row of a fair queue, which is mostly one of its tenant and has no other option.
local function judge_turn(s, b, i)
  local t, record = b.of[i], b.records[i] or ''
  local cut = #t.record
  if string.sub(record, 1, cut) ~= t.record then
    local header = string.match(record, '^[^\n]*')
    if (string.match(header, ' K=(%S+)') or '') ~= t.name then
      row_sync.odd()
    end
  elseif not b.texts[i] and not next(s.of_queue[b.queue]) and #record - cut <= BIG then
    b.keys[i] = t.name ~= '' and t.name or nil
    return true
  end
  return judge_special(s, b, i)
end

-- Read the rows b: {queue, n, ids, dues, gates (of those that come in)}. One that is not due yet
-- and has gates ends them, and so does the last one for which there are bytes. special: the
-- numbers of the rows that are more than a record and a key; new: their gates of which the sync
-- knows nothing. -> how many count
function row_judge.judge_rows(s, b)
  local sub, known, bytes, n = string.sub, 0, s.bytes, b.n
  local begin = '-' .. b.queue
  local plain = begin .. '\n'
  local cut, most, all = #plain, #plain + BIG, b.is_in or s.of_queue[b.queue]
  local judge_row = b.of and judge_turn or judge_special
  local records, texts
  b.begin = begin
  b.jobs, b.tries, b.gates, b.special, b.new = {}, {}, b.gates or {}, {}, {}
  for i = 1, n do
    if i > known then
      local to = known == 0 and math.min(ROWS_FIRST, n) or math.min(ROWS_FACTOR * known, n)
      read_some(s, b, known + 1, to)
      known, records, texts = to, b.records, b.texts
    end
    local record = records[i] or ''
    local size = #record
    if (all or texts[i] or size > most or sub(record, 1, cut) ~= plain) and
       not judge_row(s, b, i) then
      n = i - 1
      break
    end
    bytes = bytes - size
    if bytes <= 0 then
      n = i
      break
    end
  end
  s.bytes = bytes
  row_gates.load_gates(b.new)
  return n
end
