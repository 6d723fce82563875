-- The queues of a sync over rows: which are idle, and which of their jobs come in or are due
-- (claim/claims.lua has the order).

local row_queues = module 'rows/queue'
local claims, idle, instant, tenants, limits, wanted, row_due, row_judge, row_results, row_starts,
      row_sync, row_tenants, row_turns = use(
  'claim/claims', 'claim/idle', 'core/instant', 'fair/tenants', 'gates/limits', 'gates/wanted',
  'rows/due', 'rows/judge', 'rows/results', 'rows/starts', 'rows/sync', 'rows/tenants',
  'rows/turns')
local FEW_NAMES = 16
local LOOK = claims.LOOK

-- The gates of a queue's jobs, from R:queues; of a fair queue, perhaps none. Mostly there is one:
-- begin, behind: its id before and behind the key, behind is nil where there is no key in it.
local function read_queue_gates(text)
  local common = wanted.queue_gates(text)
  if not common then
    return nil
  elseif common.begin or common.behind then
    row_sync.odd()
  end
  common.fair, common.w = nil, nil -- these are no gates (fair/tenants.lua)
  local kind, name = next(common)
  if kind and kind ~= 'rate' and not next(common, kind) then
    local before, behind = limits.split_key(name)
    common.begin, common.behind = kind .. ':' .. before, behind
  end
  return common
end

-- -> the head that the reply tells of a paused queue, nil: it is not paused. The end of a pause is
-- odd, since it is written.
local function paused_head(s, text)
  local until_ms = text and instant.paused_until(text, s.now_ms)
  if text and not until_ms then
    row_sync.odd()
  end
  return until_ms == 0 and -1 or until_ms or nil
end

-- Read what R has of the queues: their rooms, the gates that all their jobs pass, pauses, and flags
-- of priorities. A queue that has other flags is odd.
function row_queues.load_queues(s)
  local R, queues, names = s.R, s.q.queues, {}
  for i = 1, #queues do
    local name = queues[i].name
    if s.room[name] then
      row_sync.odd()
    end
    names[i], s.room[name] = name, math.min(queues[i].room, s.max)
  end
  s.names, s.of_queue, s.flags = names, {}, {}
  if not names[1] or not s.has_flags then
    return
  end
  s.paused = {}
  local paused, flags = redis.call('HMGET', R .. ':paused', unpack(names)),
                        redis.call('HMGET', R .. ':prio', unpack(names))
  local texts = redis.call('HMGET', R .. ':queues', unpack(names))
  for i = 1, #names do
    local weights = tenants.weights_in(texts[i])
    local f = weights and row_tenants.queue_of(s, names[i], weights)
    if flags[i] and not string.find(flags[i], f and '^%d*f$' or '^%d+$') or f and not flags[i] then
      row_sync.odd()
    elseif f then
      f.digits, f.sets = tenants.digits_in(flags[i]), {}
    end
    s.paused[names[i]] = paused_head(s, paused[i])
    if paused[i] then
      s.room[names[i]] = 0 -- what a gate lets in there is odd
    end
    s.of_queue[names[i]] = texts[i] and read_queue_gates(texts[i]) or nil
    s.flags[names[i]] = flags[i] or nil
  end
end

-- ---- one queue

-- The jobs of the queue that came in start before all others.
local function claim_let_in(s, queue, rows, most)
  if s.fair and s.fair[queue] then
    row_sync.odd()
  elseif rows[2] then
    table.sort(rows, function(a, b) return a.rank < b.rank end)
  end
  local ids, dues, gates = {}, {}, {}
  local b = {queue = queue, n = #rows, ids = ids, dues = dues, gates = gates, is_in = true}
  for i = 1, #rows do
    local row = rows[i]
    local gate = row.gate
    ids[i], dues[i], gates[i] = row.id, row.due, {gate}
    gate.free = gate.free + 1 -- it was kept for this job, which takes it now
  end
  if s.bytes <= 0 or b.n > most - s.claimed or row_judge.judge_rows(s, b) < b.n then
    row_sync.odd()
  end
  row_starts.handle_rows(s, b, b.n, most)
end

-- -> the head of the rows that stay
local function head_behind(b, n, head)
  for i = n + 1, b.n do
    head = math.min(head, b.dues[i])
  end
  return head
end

-- Claim the due jobs of the queue. -> its head, the flags that are still true
local function claim_due(s, queue, most)
  local sets, cut, window = row_due.due_sets(s, queue), {}, 0
  local until_ms = (s.of_queue[queue] or s.flags[queue]) and s.now_ms or s.now_ms + s.q.ahead
  local b, head, flags
  for round = 1, LOOK.rounds do
    local left = s.bytes > 0 and most - s.claimed or 0
    if s.parked >= LOOK.parked_max then
      if round > 1 then
        break
      end
      left = math.min(left, LOOK.few)
    end
    left = left > 0 and math.max(left, window) or 0
    b, head, flags = row_due.gather_due(sets, cut, queue, left, until_ms)
    if b.n == 0 then
      return head, flags
    end
    local n, parked = row_starts.handle_rows(s, b, row_judge.judge_rows(s, b), most)
    row_due.leave_sets(cut, b, n, s.taken)
    head, s.parked, window = head_behind(b, n, head), s.parked + parked, LOOK.window
    if parked == 0 then
      return head, flags
    end
  end
  s.is_more = s.is_more or head <= s.now_ms
  return head, flags
end

-- The same for a fair queue: tenants take turns.
local function claim_turns(s, f, most)
  local left, is_idle = s.bytes > 0 and most - s.claimed or 0, false
  left = s.parked >= LOOK.parked_max and math.min(left, LOOK.few) or left
  if left > 0 then
    local b = row_turns.gather(s, f, left)
    local n, parked = row_starts.handle_rows(s, b, row_judge.judge_rows(s, b), most)
    if parked > 0 then
      row_sync.odd()
    end
    is_idle = row_turns.leave(s, f, b, n, s.taken)
  end
  local head, flags = row_turns.head(s, f)
  if is_idle and head <= s.now_ms then
    row_sync.odd() -- a key was lost or written by hand
  end
  return head, flags
end

-- ---- all queues

local function read_heads(s)
  if #s.names > FEW_NAMES then
    return idle.read_heads(s.R, s.names)
  end
  return redis.call('ZMSCORE', s.R .. ':heads', unpack(s.names))
end

-- Is the first job of the queue due then? If not, a key was lost or written by hand. is_lowered: a
-- retried job is, and none may be before it
local function is_first(s, name, head, is_lowered)
  local first = redis.call('ZRANGE', s.R .. ':q:' .. name .. ':5', 0, 0, 'WITHSCORES')
  local due = first[2] and to_due(first[2])
  return is_lowered and (not due or due >= head) or due == head
end

-- -> heads of the queues of which nothing is due, by number, as the reply tells them. Raw members
-- are odd, jobs that no head tells of, and gates at which a queue stands aside without its flag.
local function idle_heads(s, told)
  local out, keys, until_ms, paused = {}, {}, s.now_ms + s.q.ahead, s.paused
  for i = 1, #s.names do
    local name = s.names[i]
    local head, is_lowered = told[i] and tonumber(told[i]), false
    if s.late and s.late[name] then
      head, is_lowered = row_results.head_with(s.late[name], told[i])
    end
    if paused and paused[name] then
      out[i] = paused[name]
    else
      keys[#keys + 1], keys[#keys + 2] = s.R .. ':due:' .. name, s.R .. ':aside:' .. name
      if s.flags[name] then
        out[i] = nil
      elseif not head then
        keys[#keys + 1], out[i] = s.R .. ':q:' .. name .. ':5', -1
      elseif not s.let_in[name] and (head > until_ms or s.q.queues[i].room == 0) then
        out[i] = is_first(s, name, head, is_lowered) and head or nil
      end
    end
  end
  if keys[1] and redis.call('EXISTS', unpack(keys)) > 0 then
    row_sync.odd()
  end
  return out
end

-- Claim from one queue: first the jobs that came in, then those that are due; head: what the reply
-- tells of it, nil if something may be due. -> the same
local function claim_queue(s, i, head, told)
  local name, claimed = s.names[i], s.claimed
  local most = claimed + math.min(s.q.queues[i].room, s.max - claimed)
  local rows = s.let_in[name]
  if rows then
    claim_let_in(s, name, rows, most)
  end
  if head then
    return head
  end
  local flags
  local f = s.fair and s.fair[name]
  if f then
    head, flags = claim_turns(s, f, most)
  else
    head, flags = claim_due(s, name, most)
  end
  if s.late and s.late[name] then
    head = math.min(head, s.late[name].due)
  end
  local heads, row = s.heads, {name = name, was = told, now = head, flags = flags}
  heads[#heads + 1], heads[name] = row, row
  return head == math.huge and -1 or head
end

-- Claim from all queues. -> their heads for the reply
function row_queues.claim_rows(s)
  local names = s.names
  if not names[1] then
    return {}
  end
  local told = read_heads(s)
  local heads = idle_heads(s, told)
  s.taken, s.keys, s.heads = {}, {}, {}
  for i = 1, #names do
    if not heads[i] or s.let_in[names[i]] then
      heads[i] = claim_queue(s, i, heads[i], told[i])
    end
  end
  return heads
end
