-- The waiters of gates in a sync over rows (gates/waiters.lua has the keys): the first jobs of
-- the first queue that waits come in, and jobs before a shut gate are parked.
--
-- Of a gate: tickets: queue -> {was, now}, texts, false for none: its ticket among the waiters;
-- lines: queue -> {key, out: {ids, tickets} of those that come in, ids, scores: of those that are
-- parked}; is_emptied: all its waiters came in. Of the sync: parked_of: queue -> {ids, scores} of
-- those that are parked, out: queue -> {ids, scores, spots} of those that come in, spots:
-- {id, text}* of those that are parked.

local row_waiters = module 'rows/waiters'
local waiters, row_gates, plans, row_sync = use(
  'gates/waiters', 'rows/gates', 'rows/plan', 'rows/sync')
local OPEN_MAX, PASSED_OVER_MAX = waiters.OPEN_MAX, waiters.PASSED_OVER_MAX

-- May so many more jobs of the queue come in? There is room for more than that, or it is odd: the
-- queue would be put aside.
local function need_room(s, queue, n)
  local has = s.let_in[queue] and #s.let_in[queue] or 0
  if has + n > (s.room[queue] or 0) or s.offers + n > OPEN_MAX then
    row_sync.odd()
  end
  if has == 0 and redis.call('EXISTS', s.R .. ':granted:' .. queue) == 1 then
    row_sync.odd()
  end
end

-- rank: the order of its id among others that begin alike; all eleven digits of an id would not fit
-- into a number.
local function row_of(s, g, id, text)
  local ticket, over, due, rest = string.match(text or '', '^(%d+) (%d+) (%d+) 1\n(.+)$')
  if rest ~= g.id or #ticket > 16 or #due > 15 or #over > 2 or
     tonumber(over) >= PASSED_OVER_MAX then
    row_sync.odd()
  end
  local begin, rank = string.sub(id, 1, 2), tonumber(string.sub(id, 3), 36)
  s.id_begin = s.id_begin or begin
  if begin ~= s.id_begin or not rank then
    row_sync.odd()
  end
  return {id = id, due = tonumber(due), gate = g, rank = rank}
end

-- These parked jobs of the queue come in.
local function let_in(s, g, queue, line)
  local R, ids, list = s.R, line.out.ids, s.let_in[queue] or {}
  local spots = redis.call('HMGET', R .. ':parked', unpack(ids))
  local scores = redis.call('ZMSCORE', R .. ':parked:' .. queue, unpack(ids))
  s.out = s.out or {}
  local out = s.out[queue] or {ids = {}, scores = {}, spots = {}}
  local n = #out.ids
  for i = 1, #ids do
    if not scores[i] then
      row_sync.odd()
    end
    list[#list + 1] = row_of(s, g, ids[i], spots[i])
    out.ids[n + i], out.scores[n + i], out.spots[n + i] = ids[i], scores[i], spots[i]
  end
  s.let_in[queue], s.out[queue], s.offers = list, out, s.offers + #ids
  if g.kind == 'lock' then
    s.number = s.number + #ids -- one for each promise
  end
end

local function line_of(s, g, queue)
  g.lines, g.tickets = g.lines or {}, g.tickets or {}
  local line = g.lines[queue]
  if not line then
    line = {key = s.R .. ':line:' .. queue .. ':' .. g.id, ids = {}, scores = {}}
    g.lines[queue] = line
  end
  return line
end

-- -> how many of the first n jobs of a line, {id, ticket}*, come before this ticket of the second
-- waiter
local function first_of(rows, n, second)
  while n > 1 and tonumber(rows[2 * n]) >= second do
    n = n - 1
  end
  return n
end

-- The first jobs that wait for this gate come in.
local function open(s, g)
  local free = row_gates.free_of(g)
  if free <= 0 then
    return
  end
  local first = g.first
  local queue, second = first[1], first[4]
  if string.find(queue, '^[@=]') then
    row_sync.odd()
  end
  local line = line_of(s, g, queue)
  local most = math.min(free, OPEN_MAX)
  local rows = redis.call('ZRANGE', line.key, 0, most, 'WITHSCORES')
  local n = math.min(#rows / 2, most)
  if second then
    n = first_of(rows, n, tonumber(second))
  end
  local next_ticket = rows[2 * n + 2]
  local stays = next_ticket or second
  if n == 0 or stays and n < free then
    row_sync.odd() -- more may come in: than a call offers, or of another waiter
  end
  need_room(s, queue, n)
  local ids, tickets = {}, {}
  for i = 1, n do
    ids[i], tickets[i] = rows[2 * i - 1], rows[2 * i]
  end
  line.out = {ids = ids, tickets = tickets}
  let_in(s, g, queue, line)
  g.free = free - n
  g.tickets[queue] = {was = first[2], now = next_ticket or false}
  g.is_awaited, g.is_emptied = stays ~= nil, not stays
end

-- Open the gates that lost a holder, the last one first.
function row_waiters.open_gates(s)
  plans.read_clock(s)
  local n = 0
  for i = #s.touched, 1, -1 do
    local g = s.touched[i]
    if row_gates.is_awaited(g) then
      n = n + 1
      if n > OPEN_MAX then
        row_sync.odd()
      end
      open(s, g)
    end
  end
end

-- ---- parking

-- The first job of the queue that is parked at this gate in this sync: look at the keys.
local function begin_line(s, g, queue, line, id)
  local R = s.R
  if redis.call('ZSCORE', line.key, id) or redis.call('HGET', R .. ':parked', id) or
     redis.call('ZSCORE', R .. ':parked:' .. queue, id) then
    row_sync.odd()
  end
  if not g.tickets[queue] then
    local was = redis.call('ZSCORE', g.wait, queue)
    g.tickets[queue] = {was = was, now = was}
  end
end

-- A job waits for gate number `at` of these; its ticket is its fence.
function row_waiters.park(s, queue, id, gates, at, due, fence)
  local g, ticket = gates[at], int(fence)
  if g.kind == 'rate' then
    row_sync.odd() -- its timer says when it opens
  end
  local line = line_of(s, g, queue)
  if not line.ids[1] then
    row_gates.free_of(g) -- a lock with a lease is odd, and a semaphore has a timer
    begin_line(s, g, queue, line, id)
  end
  local n, t = #line.ids + 1, g.tickets[queue]
  line.ids[n], line.scores[n] = id, ticket
  if not t.now or tonumber(t.now) > fence then
    t.now = ticket
  end
  g.is_awaited = true
  s.parked_of, s.spots = s.parked_of or {}, s.spots or {}
  local all, names = s.parked_of[queue] or {ids = {}, scores = {}}, {}
  s.parked_of[queue] = all
  n = #all.ids + 1
  all.ids[n], all.scores[n] = id, ticket
  for i = 1, #gates do
    names[i] = gates[i].id
  end
  s.spots[#s.spots + 1] = id
  s.spots[#s.spots + 1] = ticket .. ' 0 ' .. int(due) .. ' ' .. int(at) .. '\n' ..
    table.concat(names, '\n')
end
