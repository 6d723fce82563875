-- The queues of a step over rows: which are idle, which of their jobs come in or are due, and
-- whether these pass their gates (claim/claim.lua has the order).
--
-- A row of a queue's jobs: id, due, record, text and tries (of R:tries, false for none), job (the
-- options in its header, false for none), gates (list, nil for none).

local FEW_NAMES = 16
local LOOK_ROUNDS, LOOK_WINDOW, PARKED_MAX, FEW = 4, 64, 128, 16 -- as claim.lua
local ROWS_FIRST, ROWS_FACTOR = 64, 3                            -- as judge.lua
local NONE = {starts = 0, attempts = 0, crashes = 0}

-- The gates of a queue's jobs, from R:queues. Mostly there is one: begin, behind: its id before and
-- behind the key, behind is nil where there is no key in it.
local function read_queue_gates(text)
  local common = L.queue_gates(text)
  local kind, name = next(common or {})
  if kind and kind ~= 'rate' and not next(common, kind) then
    local before, behind = L.split_key(name)
    common.begin, common.behind = kind .. ':' .. before, behind
  end
  return common
end

-- Read what R has of the queues: their rooms, and the gates that all their jobs pass. A queue that
-- is paused or has marks is odd.
function L.load_queues(s)
  local R, queues, names = s.R, s.q.queues, {}
  for i = 1, #queues do
    local q = queues[i]
    if s.room[q.name] then
      L.odd()
    end
    names[i], s.room[q.name] = q.name, math.min(q.room, s.max)
  end
  s.names, s.of_queue = names, {}
  if not names[1] or s.is_calm then
    return
  end
  for _, key in ipairs({R .. ':paused', R .. ':prio'}) do
    for _, text in ipairs(redis.call('HMGET', key, unpack(names))) do
      if text then
        L.odd()
      end
    end
  end
  local texts = redis.call('HMGET', R .. ':queues', unpack(names))
  for i = 1, #names do
    s.of_queue[names[i]] = texts[i] and read_queue_gates(texts[i]) or nil
  end
end

-- ---- what a record says

-- The options that a record may have here: those that a start reads, and those that only an end
-- which is odd would read. The rest is odd, and so is a number that is none.
local OPTIONS = {l = 'text', s = 'text', K = 'text', T = 'text', d = 'text', p = 'text', m = 'text',
                 c = 'text', B = 'text', Y = 'text', P = 'text', a = 'number', t = 'number',
                 k = 'number', x = 'number', O = 'number'}

local function need_option(name, value)
  local kind = OPTIONS[name]
  if not kind or kind == 'number' and not L.whole(value) then
    L.odd()
  end
end

-- The options of a header, ' l=door K=5' -> {l = 'door', K = '5'}
local function parse(text)
  local name, value = string.match(text, '^ (%a)=(%S+)$')
  if name then
    need_option(name, value)
    return {[name] = value}
  end
  local job, n = {}, 0
  for its_name, its_value in string.gmatch(text, ' (%a)=(%S+)') do
    need_option(its_name, its_value)
    job[its_name], n = its_value, n + 3 + #its_value
  end
  if n ~= #text then
    L.odd()
  end
  return job
end

-- -> the id of the only gate of a job whose queue has gates; nil: there are more
local function only_common(job, common)
  if not common.begin or job.l or job.s then
    return nil
  elseif not common.behind then
    return common.begin
  elseif not job.K then
    L.odd()
  end
  return common.begin .. job.K .. common.behind
end

-- -> the same; false if it has none
local function only_gate(job, common)
  if common then
    return only_common(job, common)
  elseif job.l then
    return not job.s and 'lock:' .. job.l or nil
  end
  return job.s and 'sem:' .. job.s or false
end

-- -> the gates of a job as rows, nil for none. common: those of its queue
local function gates_of(s, job, common)
  local only = only_gate(job, common)
  if only then
    return {L.row_gate(s, only)}
  elseif only == false then
    return nil
  end
  local ids, why = L.gates_of(job, common)
  if why then
    L.odd()
  end
  for i = 1, ids and #ids or 0 do
    ids[i] = L.row_gate(s, ids[i])
  end
  return ids
end

-- The tries of a row; whatever is odd in a start.
local function read_tries(s, text, job, due)
  local tries = text and L.tries(text) or NONE
  if text and not tries.due or tries.crashes >= L.SOLO_CRASHES or
     job and job.x and tries.starts == 0 and due + tonumber(job.x) < s.now_ms then
    L.odd()
  end
  return tries
end

-- ---- rows

local function read_some(s, b, from, to)
  local R = s.R
  local records = redis.call('HMGET', R .. ':jobs', unpack(b.ids, from, to))
  local texts = redis.call('HMGET', R .. ':tries', unpack(b.ids, from, to))
  if from == 1 then
    b.records, b.texts = records, texts
    return
  end
  for i = from, to do
    b.records[i], b.texts[i] = records[i - from + 1], texts[i - from + 1]
  end
end

-- The options of a record, nil for none.
local function read_options(record, begin)
  local cut = #begin
  if string.sub(record, 1, cut) ~= begin then
    L.odd()
  end
  local lf = string.find(record, '\n', cut + 1, true)
  if not lf or lf > L.HEADER_MAX or #record - lf > L.BIG then
    L.odd()
  end
  return lf > cut + 1 and parse(string.sub(record, cut + 1, lf - 1)) or nil
end

-- The gates of row i, which are taken when it starts. -> false: it is not due yet, and waits until
-- then
local function judge_gates(s, b, i, job)
  local gates = gates_of(s, job or NONE, s.of_queue[b.queue])
  if not gates then
    return true
  elseif b.dues[i] > s.now_ms then
    return false
  end
  b.gates[i] = gates
  for k = 1, #gates do
    if gates[k].is_awaited == nil then
      b.new[#b.new + 1] = gates[k]
    end
  end
  return true
end

-- A row that is more than a record of this queue without options. -> as judge_gates
local function judge_special(s, b, i)
  local record, text = b.records[i] or '', b.texts[i]
  local job = read_options(record, b.begin)
  if text or job and job.x then
    b.tries[i] = read_tries(s, text, job, b.dues[i])
  end
  b.jobs[i], b.special[#b.special + 1] = job, i
  return b.is_in or judge_gates(s, b, i, job)
end

-- Read the rows b: {queue, n, ids, dues, gates (of those that come in)}. One that is not due yet
-- and has gates ends them, and so does the last one for which there are bytes. special: the
-- numbers of the rows that are more than a record; new: their gates of which the step knows
-- nothing. -> how many count
local function judge(s, b)
  local sub, known, bytes, n = string.sub, 0, s.bytes, b.n
  local plain = '-' .. b.queue .. '\n'
  local cut, most, all = #plain, #plain + L.BIG, b.is_in or s.of_queue[b.queue]
  local records, texts
  b.begin = '-' .. b.queue
  b.jobs, b.tries, b.gates, b.special, b.new = {}, {}, b.gates or {}, {}, {}
  for i = 1, n do
    if i > known then
      local to = known == 0 and math.min(ROWS_FIRST, n) or math.min(ROWS_FACTOR * known, n)
      read_some(s, b, known + 1, to)
      known, records, texts = to, b.records, b.texts
    end
    local record = records[i]
    if (all or texts[i] or not record or #record > most or sub(record, 1, cut) ~= plain) and
       not judge_special(s, b, i) then
      n = i - 1
      break
    end
    bytes = bytes - #record
    if bytes <= 0 then
      n = i
      break
    end
  end
  s.bytes = bytes
  L.meet_gates(b.new)
  return n
end

-- ---- starts

-- -> the group of a start, which is the last one where it goes on with that
local function group_of(s, b, fence, tries, gated)
  local g = s.groups[#s.groups]
  if not g or g[1] ~= b.queue or s.next_fence ~= fence or g[6] ~= gated or
     g[3] ~= tries.starts + 1 or g[4] ~= tries.attempts + 1 or g[5] ~= tries.crashes then
    g = {b.queue, fence, tries.starts + 1, tries.attempts + 1, tries.crashes, gated}
    s.groups[#s.groups + 1] = g
  end
  return g
end

-- The rows from..to start, and are told to the worker; these have the tries of the first.
local function start(s, b, from, to, fence, gated)
  local st, tries, epoch = s.starts, b.tries[from] or NONE, s.q.epoch_text
  local g = group_of(s, b, fence, tries, gated)
  local n, at, ids, dues, records = st.n, #g, b.ids, b.dues, b.records
  local running, texts, known, text = st.running, st.tries, nil, nil
  local begin = tries == NONE and '1 1 0 ' or L.int(tries.starts + 1) .. ' ' ..
                L.int(tries.attempts + 1) .. ' ' .. L.int(tries.crashes) .. ' '
  for i = from, to do
    local id, due = ids[i], dues[i]
    if due ~= known then
      known, text = due, begin .. L.int(due)
    end
    n = n + 1
    local two = 2 * n
    running[two - 1], running[two] = epoch, id
    texts[two - 1], texts[two] = id, text
    g[at + 1], g[at + 2], g[at + 3] = id, due, records[i]
    at = at + 3
  end
  s.next_fence, s.claimed, st.n = fence + 2 * (to - from + 1), s.claimed + to - from + 1, n
end

-- What a start of row i, which is special, replaces and counts.
local function note_start(s, b, i)
  local st, tries, job = s.starts, b.tries[i], b.jobs[i]
  if b.texts[i] then
    local n = #st.old_ids + 1
    st.old_ids[n], st.old_tries[n] = b.ids[i], b.texts[i]
  end
  if job and job.K and not (tries and tries.starts > 0) then
    local keys = s.keys[b.queue] or {}
    s.keys[b.queue], keys[#keys + 1] = keys, job.K
  end
end

-- The job of row i holds its gates, all of which are free for it.
local function take(s, b, i, gates, fence)
  local st, id, first = s.starts, b.ids[i], gates[1]
  local text, gated = first.id, first.gated
  L.take_from(s, first, id, fence)
  for k = 2, #gates do
    text = text .. '\n' .. gates[k].id
    gated = math.max(gated, gates[k].gated)
    L.take_from(s, gates[k], id, fence)
  end
  local n = st.n_held + 1
  st.n_held, st.holds[2 * n - 1], st.holds[2 * n] = n, id, text
  return gated
end

-- -> the number of the first gate that is shut for a job that comes new; nil: none
local function shut_gate(gates)
  for i = 1, #gates do
    local g = gates[i]
    if g.is_awaited ~= false and L.is_awaited(g) or (g.free or L.free_of(g)) <= 0 then
      return i
    end
  end
  return nil
end

-- Row i, which is special, takes its gates or is parked. -> gated, as a group has it; nil: parked
local function pass(s, b, i, fence)
  local gates = b.gates[i]
  local shut = gates and not b.is_in and shut_gate(gates)
  if shut then
    L.park(s, b.queue, b.ids[i], gates, shut, b.dues[i], fence)
    return nil
  end
  if b.texts[i] or b.jobs[i] and b.jobs[i].K then
    note_start(s, b, i)
  end
  return gates and take(s, b, i, gates, fence) or 0
end

-- Start or park the first n rows, until the step has claimed `most`. Rows side by side that begin
-- alike start together. -> how many rows, how many of them were parked
local function handle(s, b, n, most)
  local first, i, parked, k = s.number, 0, 0, 1
  local from, gated -- of the rows from `from` to i, which start; nil: there are none
  s.number, most = first + 2 * n, most - s.claimed
  while i < n and i - parked < most do
    local to, its_gated = i + 1, 0
    if b.special[k] == to then
      its_gated, k = pass(s, b, to, first + 2 * to - 1), k + 1
    else
      to = math.min((b.special[k] or n + 1) - 1, most + parked)
    end
    if from and (its_gated ~= gated or b.tries[from] ~= b.tries[to]) then
      start(s, b, from, i, first + 2 * from - 1, gated)
      from = nil
    end
    if its_gated then
      from, gated = from or i + 1, its_gated
    else
      parked = parked + 1
    end
    i = to
  end
  if from then
    start(s, b, from, i, first + 2 * from - 1, gated)
  end
  for row = i + 1, n do
    s.bytes = s.bytes + #b.records[row]
  end
  return i, parked
end

-- ---- one queue

-- The jobs of the queue that came in start before all others.
local function claim_let_in(s, queue, most)
  local rows = s.let_in[queue]
  if rows[2] then
    table.sort(rows, function(a, b) return a.rank < b.rank end)
  end
  local b = {queue = queue, n = #rows, ids = {}, dues = {}, gates = {}, is_in = true}
  for i = 1, #rows do
    b.ids[i], b.dues[i], b.gates[i] = rows[i].id, rows[i].due, {rows[i].gate}
  end
  if b.n > most - s.claimed then
    L.odd()
  end
  if judge(s, b) < b.n then
    L.odd()
  end
  handle(s, b, b.n, most)
end

-- -> the head of the rows that stay
local function head_behind(b, n, head)
  for i = n + 1, b.n do
    head = math.min(head, b.dues[i])
  end
  return head
end

-- Claim the due jobs of the queue. -> its head
local function claim_due(s, queue, most)
  local key, cut = s.R .. ':q:' .. queue .. ':5', 0
  local until_ms = s.of_queue[queue] and s.now_ms or s.now_ms + s.q.ahead
  local window, head = 0, math.huge
  for round = 1, LOOK_ROUNDS do
    local left = s.bytes > 0 and most - s.claimed or 0
    if s.parked >= PARKED_MAX then
      if round > 1 then
        break
      end
      left = math.min(left, FEW)
    end
    local b = L.new_slice(queue)
    head = L.take_first(key, cut, left > 0 and math.max(left, window) or 0, b, until_ms)
    if b.n == 0 then
      return head
    end
    local n, parked = handle(s, b, judge(s, b), most)
    s.taken[#s.taken + 1] = {key = key, ids = b.ids, dues = b.dues, n = n}
    cut = cut + n
    head, s.parked, window = head_behind(b, n, head), s.parked + parked, LOOK_WINDOW
    if parked == 0 then
      return head
    end
  end
  s.is_more = s.is_more or head <= s.now_ms
  return head
end

-- ---- all queues

local function read_heads(s)
  if #s.names > FEW_NAMES then
    return L.read_heads(s.R, s.names)
  end
  return redis.call('ZMSCORE', s.R .. ':heads', unpack(s.names))
end

-- Is the first job of the queue due then? If not, a key was lost or written by hand.
local function is_first(s, name, told)
  local first = redis.call('ZRANGE', s.R .. ':q:' .. name .. ':5', 0, 0, 'WITHSCORES')
  return first[2] and L.due(first[2]) == told
end

-- -> heads of the queues of which nothing is due, by number, as the reply tells them. Raw members
-- are odd, and jobs that no head tells of.
local function idle_heads(s, told)
  local out, keys, until_ms = {}, {}, s.now_ms + s.q.ahead
  for i = 1, #s.names do
    local name, head = s.names[i], told[i] and tonumber(told[i])
    keys[#keys + 1] = s.R .. ':due:' .. name
    if not head then
      keys[#keys + 1], out[i] = s.R .. ':q:' .. name .. ':5', -1
    elseif not s.let_in[name] and (head > until_ms or s.q.queues[i].room == 0) then
      out[i] = is_first(s, name, head) and head or nil
    end
  end
  if redis.call('EXISTS', unpack(keys)) > 0 then
    L.odd()
  end
  return out
end

-- Claim from one queue: first the jobs that came in, then those that are due; head: what the reply
-- tells of it, nil if something may be due. -> the same
local function claim_queue(s, i, head, told)
  local name = s.names[i]
  local most = s.claimed + math.min(s.q.queues[i].room, s.max - s.claimed)
  if s.let_in[name] then
    claim_let_in(s, name, most)
  end
  if head then
    return head
  end
  head = claim_due(s, name, most)
  s.heads[#s.heads + 1] = {name = name, was = told, now = head}
  return head == math.huge and -1 or head
end

-- Claim from all queues. -> their heads for the reply
function L.claim_rows(s)
  if not s.names[1] then
    return {}
  end
  local told = read_heads(s)
  local heads = idle_heads(s, told)
  s.taken, s.keys, s.heads = {}, {}, {}
  for i = 1, #s.names do
    if not heads[i] or s.let_in[s.names[i]] then
      heads[i] = claim_queue(s, i, heads[i], told[i])
    end
  end
  return heads
end
