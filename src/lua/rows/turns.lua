-- Whose turn it is in a fair queue, in a sync over rows (in a transaction: fair/turns.lua). Odd are
-- jobs that are parked or let in there, and rows of R:fair-jobs that do not wait.
--
-- A chunk of a fair queue has of: the tenant of each row (tenants.lua), and sets: the number of its
-- priority, nil if there is one only. Beside what is told there, a tenant has record (how its
-- records begin, where they have no other option), share (its line of R:holds); lines: of
-- R:fair-jobs, its first jobs and one more, digits: their priorities, if there are several, rest:
-- when the first job is due that is not due yet; taken: how many of them are in the chunk, started:
-- how many of these start. f has digits: the priorities of the queue; sets: what the chunk has of
-- each, {key, ids, dues, to: how many of them start}; met: the tenants of the chunk; share_begin:
-- how their lines begin.

local row_turns = module 'rows/turns'
local waiting, charges, tenants, turns, row_sync, row_tenants = use(
  'claim/waiting', 'fair/charges', 'fair/tenants', 'fair/turns', 'rows/sync', 'rows/tenants')
local key_of = row_tenants.key_of

-- ---- who has due jobs

-- A tenant gets due jobs. owed: its debt in Redis, false for none
local function awake(f, t, owed, due)
  if t.is_active then
    row_sync.odd() -- it is in both lists
  end
  local debt = t.debt or row_tenants.time_of(owed) or 0
  t.time, t.owed = math.max(debt, tenants.first_time(f.time)), owed
  t.is_active, t.next_was, t.debt = true, due, false
  f.more, f.n_woken = f.more + 1, f.n_woken + 1
end

-- Tenants whose first job is due come to the others.
local function wake(s, f)
  local rows = redis.call('ZRANGEBYSCORE', key_of(s, f, '-next'), '-inf', s.now_text, 'WITHSCORES',
                          'LIMIT', 0, turns.WOKEN)
  local names = {}
  for i = 1, #rows, 2 do
    names[#names + 1] = rows[i]
  end
  if not names[1] then
    return
  end
  local owed = redis.call('ZMSCORE', key_of(s, f, '-debts'), unpack(names))
  local scores = redis.call('ZMSCORE', key_of(s, f, ''), unpack(names))
  for i, name in ipairs(names) do
    local t = f.tenants[name] or row_tenants.new_row(f, name, scores[i])
    awake(f, t, owed[i], rows[2 * i])
  end
end

-- -> the first `room` tenants with due jobs, sorted
local function line_up(s, f, room)
  local line, known, list, n, insert = {}, f.tenants, f.list, #f.list, turns.insert
  local rows = redis.call('ZRANGE', key_of(s, f, ''), 0, room + n - 1, 'WITHSCORES')
  for i = 1, #rows, 2 do
    local name = rows[i]
    if not known[name] and #line < room then
      line[#line + 1] = row_tenants.new_row(f, name, rows[i + 1])
    end
  end
  for i = 1, n do
    local t = list[i]
    if t.is_active then
      insert(line, 1, t, t.name)
      line[room + 1] = nil
    end
  end
  return line
end

-- Have two tenants due jobs? line: of line_up
local function are_several(s, f, line, room)
  return #line > 1 or room < 2 and redis.call('ZCARD', key_of(s, f, '')) + f.more > 1
end

-- ---- the jobs of one tenant

-- The sync meets a tenant.
local function meet(f, t)
  t.record = f.record_begin .. (t.name ~= '' and ' K=' .. t.name or '') .. '\n'
  t.share = f.share_begin .. t.name
  f.met[#f.met + 1] = t
end

-- Read the lines of its due jobs in a queue with several priorities, up to n.
local function read_sorted(s, f, t, n)
  t.lines, t.digits, t.rest = {}, {}, math.huge
  for k = 1, #f.digits do
    local from, to = tenants.range(t.name, f.digits[k])
    for _, line in ipairs(redis.call('ZRANGE', f.jobs_key, from, to, 'BYLEX', 'LIMIT', 0, n)) do
      local due, at = tenants.read_line(line, t.name), #t.lines + 1
      if due > s.now_ms then
        t.rest = math.min(t.rest, due)
        break
      elseif at > n then
        return
      end
      t.lines[at], t.digits[at] = line, k
    end
  end
end

-- Read the first n lines of a tenant.
local function read(s, f, t, n)
  if f.digits[2] then
    read_sorted(s, f, t, n)
  else
    local from, to = tenants.range(t.name, f.digits[1])
    t.lines = redis.call('ZRANGE', f.jobs_key, from, to, 'BYLEX', 'LIMIT', 0, n)
  end
end

-- Append up to `most` rows of a tenant to the chunk. -> how many
local function take(s, f, b, t, most)
  local at, n, name = t.taken, b.n, t.name
  if not t.record then
    meet(f, t)
  end
  if not t.lines or t.lines[at + 1] and not t.lines[at + most + 1] then
    read(s, f, t, math.max(at + most, 2 * at) + 1)
  end
  for i = at + 1, math.min(at + most, #t.lines) do
    local due, id = tenants.read_line(t.lines[i], name)
    if due > s.now_ms then
      break
    end
    n = n + 1
    b.ids[n], b.dues[n], b.of[n], t.taken = id, due, t, i
    if b.sets then
      b.sets[n] = t.digits[i]
    end
  end
  b.n = n
  return t.taken - at
end

-- ---- the chunk

-- Sort the rows by their priorities.
local function sort_out(s, f, b)
  for k, digit in ipairs(f.digits) do
    f.sets[k] = {key = s.R .. ':q:' .. f.name .. ':' .. digit, ids = {}, dues = {}, to = 0}
  end
  if not b.sets then
    f.sets[1].ids, f.sets[1].dues = b.ids, b.dues
    return
  end
  for i = 1, b.n do
    local set = f.sets[b.sets[i]]
    set.ids[#set.ids + 1], set.dues[#set.dues + 1] = b.ids[i], b.dues[i]
  end
end

-- The rows wait, as R:q says, since then.
local function need_waiting(f)
  for _, set in ipairs(f.sets) do
    local dues, known, text = set.dues, nil, nil
    local scores = dues[1] and redis.call('ZMSCORE', set.key, unpack(set.ids)) or {}
    for i = 1, #dues do
      if dues[i] ~= known then
        known = dues[i]
        text = int(known)
      end
      if scores[i] ~= text and (not scores[i] or to_due(scores[i]) ~= known) then
        row_sync.odd()
      end
    end
  end
end

-- As in fair/turns.lua; the sync knows only those that ran.
local function follow(f)
  local top = f.time
  for _, t in ipairs(f.list) do
    top = t.time and t.time > top and t.time or top
  end
  f.time, f.part = math.min(f.time + f.part, top), 0
end

-- -> a chunk of up to `room` rows whose turn it is
function row_turns.gather(s, f, room)
  local b = waiting.new_chunk(f.name)
  b.of, b.keys, b.held, b.sets = {}, {}, {}, f.digits[2] and {}
  b.first_held, f.met, f.jobs_key = s.starts.n_held + 1, {}, key_of(s, f, '-jobs')
  if f.since > 0 and f.part > 0 then
    follow(f)
  end
  f.share_begin, f.record_begin = charges.line_begin(f.name, f.time, s.now_us), '-' .. f.name
  wake(s, f)
  local line = line_up(s, f, room)
  f.may_share = f.since == 0 and are_several(s, f, line, room)
  turns.take_turns(line, room, function(t, most)
    return take(s, f, b, t, most)
  end)
  if b.n == 0 and line[1] then
    row_sync.odd()
  end
  sort_out(s, f, b)
  need_waiting(f)
  return b
end

-- -> when the job behind those of a tenant that start is due; math.huge: there is none
local function due_behind(t)
  local line = t.lines[t.started + 1]
  local due = line and tenants.read_line(line, t.name)
  return t.rest and math.min(t.rest, due or math.huge) or due or math.huge
end

-- Some rows of a tenant have started: it is charged, and stays with those that have due jobs, or
-- not.
local function settle(s, f, t)
  local started, lines, due = t.started, f.lines, due_behind(t)
  t.time = t.time - (t.taken - started) * t.tick
  if started > 0 and t.time - t.tick > f.time then
    f.time = t.time - t.tick
  end
  if due > s.now_ms then
    t.is_active, t.next = false, due < math.huge and int(due)
    f.more = f.more - 1
  end
  for i = 1, started do
    lines[#lines + 1] = t.lines[i]
  end
end

-- The first n rows of the chunk have started: append to taken what leaves the waiting sets.
-- -> whether no tenant has due jobs any more
function row_turns.leave(s, f, b, n, taken)
  local sets, of, number = f.sets, b.of, b.sets
  for i = 1, n do
    local t, set = of[i], sets[number and number[i] or 1]
    t.started, set.to = t.started + 1, set.to + 1
  end
  for _, set in ipairs(sets) do
    set.from = 1
    taken[#taken + 1] = set.to > 0 and set or nil
  end
  for _, t in ipairs(f.met) do
    settle(s, f, t)
  end
  for _, t in ipairs(f.met) do
    t.debt = not t.is_active and t.time > f.time and t.time
  end
  local is_idle = row_tenants.reset_idle(s, f)
  if not is_idle and f.may_share then
    f.since = s.now_us
  end
  return is_idle
end

-- -> when the first job of a set is due that the sync has not taken; nil: there is none
local function first_left(set)
  local is_taken = {}
  for i = 1, set.to do
    is_taken[set.ids[i]] = true
  end
  for _, last in ipairs({0, set.to}) do
    for _, id in ipairs(redis.call('ZRANGE', set.key, 0, last)) do
      if not is_taken[id] then
        return to_due(redis.call('ZSCORE', set.key, id))
      end
    end
  end
  return nil
end

-- -> the head of the queue behind what was taken, the flags that are still true
function row_turns.head(s, f)
  local head, kept = math.huge, ''
  for k, digit in ipairs(f.digits) do
    local first = first_left(f.sets[k] or {key = s.R .. ':q:' .. f.name .. ':' .. digit, to = 0})
    head = first and math.min(head, first) or head
    kept = first and digit ~= '5' and kept .. digit or kept
  end
  return head, kept .. 'f'
end
