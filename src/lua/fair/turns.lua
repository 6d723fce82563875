-- Whose turn it is in a fair queue: the rows that a sync looks at (claim/waiting.lua), in the order
-- of the virtual times of their tenants; those of one tenant by priority, then by due time.

local turns = module 'fair/turns'
local waiting, tenants, change = use('claim/waiting', 'fair/tenants', 'txn/change')
turns.WOKEN = 256  -- tenants that a sync looks at since their first job is due

-- Put a tenant where it belongs among those from number `from` on, which are sorted by time. name:
-- and by name among those of one time, in the order of the server's locale, since any order does;
-- nil: behind those with its time
function turns.insert(line, from, t, name)
  local low, high, time = from, #line + 1, t.time
  while low < high do
    local middle = math.floor((low + high) / 2)
    local other = line[middle]
    local its = other.time
    if its < time or its == time and (not name or other.name < name) then
      low = middle + 1
    else
      high = middle
    end
  end
  table.insert(line, low, t)
end

-- Take up to `room` jobs of these tenants, {time, tick}*, sorted by time, in turn; their times
-- rise. One is left aside where those before it fill the room, if each of them has a job more.
-- take(t, most): takes some of one -> how many, fewer than most if it has no more
function turns.take_turns(line, room, take)
  local first, n, aside = 1, 0, {}
  while n < room and line[first] do
    local t, behind, most = line[first], line[first + 1], room - n
    local last = line[first + most] -- behind those who get one each
    if behind then
      most = math.min(most, math.floor((behind.time - t.time) / t.tick) + 1)
    end
    local taken = take(t, most)
    n, t.time, first = n + taken, t.time + taken * t.tick, first + 1
    if taken < most then
      for i = 1, #aside do
        turns.insert(line, first, aside[i])
      end
      aside = {}
    elseif last and last.time <= t.time then
      aside[#aside + 1] = t
    elseif n < room then
      turns.insert(line, first, t)
    end
  end
end

-- Tenants whose first job is due come to the others. -> whether there may be more of them
local function wake(R, queue, now_ms)
  local later, debts = R .. ':fair-next:' .. queue, R .. ':fair-debts:' .. queue
  local names = db('ZRANGEBYSCORE', later, '-inf', int(now_ms), 'LIMIT', 0, turns.WOKEN)
  if not names[1] then
    return false
  end
  local first = tenants.first_time((tenants.state(R, queue)))
  local owed = db('ZMSCORE', debts, unpack(names))
  for i, name in ipairs(names) do
    db('ZADD', R .. ':fair:' .. queue, math.max(owed[i] or 0, first), name)
  end
  db('ZREM', later, unpack(names))
  db('ZREM', debts, unpack(names))
  return #names == turns.WOKEN
end

-- ---- the jobs of one tenant

-- Append those of these lines of a tenant that are due and wait, as R:q says, to t.rows. The others
-- leave it. -> how many of the lines are due
local function append_waiting(R, t, digit, lines, now_ms)
  local ids, dues, key = {}, {}, R .. ':q:' .. t.queue .. ':' .. digit
  for i = 1, #lines do
    local due, id = tenants.read_line(lines[i], t.name)
    if due > now_ms then
      break
    end
    ids[i], dues[i] = id, due
  end
  local scores = ids[1] and db('ZMSCORE', key, unpack(ids)) or {}
  for i, id in ipairs(ids) do
    local due = scores[i] and to_due(scores[i])
    if due == dues[i] then
      t.rows[#t.rows + 1] = {id = id, due = due, key = key, line = lines[i]}
    else
      db('ZREM', tenants.jobs_key(R, t.queue), lines[i])
      if due then
        tenants.put(R, id, {queue = t.queue, priority = tonumber(digit), K = t.name}, due)
      end
    end
  end
  return #ids
end

-- Read the first `most` due jobs of a tenant.
local function read(R, t, digits, most, now_ms)
  t.rows, t.is_all = {}, true
  for _, digit in ipairs(digits) do
    local left = most - #t.rows
    if left <= 0 then
      t.is_all = false
      return
    end
    local from, to = tenants.range(t.name, digit)
    local lines = db('ZRANGE', tenants.jobs_key(R, t.queue), from, to, 'BYLEX', 'LIMIT', 0, left)
    if append_waiting(R, t, digit, lines, now_ms) == left then
      t.is_all = false
    end
  end
end

-- Append up to `most` rows of a tenant to the chunk. -> how many
local function take(R, b, t, digits, most, now_ms)
  if #t.rows < t.taken + most and not t.is_all then
    read(R, t, digits, math.max(t.taken + most, 2 * t.taken), now_ms)
  end
  local n = math.min(most, #t.rows - t.taken)
  for i = t.taken + 1, t.taken + n do
    local row = t.rows[i]
    waiting.add_rows(b, row.key, 1)
    b.ids[b.n], b.dues[b.n], b.lines[b.n] = row.id, row.due, row.line
  end
  t.taken = t.taken + n
  return n
end

-- ---- all

-- The virtual time of the queue follows what its jobs have run, for each tenant with due jobs its
-- part, up to the highest time of those that ran: so where new tenants come all the time, those
-- before them have their turn. paid: of the jobs that end in this call (charges.lua)
local function follow(R, queue, paid)
  local time, todo, since = tenants.state(R, queue)
  if not paid or since == 0 then
    return
  end
  local top = time
  for name in pairs(paid.tenants) do
    top = math.max(top, db('ZSCORE', R .. ':fair:' .. queue, name) or
                        db('ZSCORE', R .. ':fair-debts:' .. queue, name) or 0)
  end
  tenants.set_state(R, queue, math.min(time + paid.part, top), todo)
  change.assign(paid, 'part', 0)
end

-- -> the rows of the queue whose turn it is, up to `room`; whether more may be due
function turns.gather(R, queue, room, weights, ctx)
  local b, digits, now_ms = waiting.new_chunk(queue), tenants.digits(R, queue), ctx.now_ms
  b.lines, b.met = {}, {}
  follow(R, queue, ctx.ledger.paid and ctx.ledger.paid[queue])
  local is_more, line = wake(R, queue, now_ms), {}
  b.may_share = tenants.may_share(R, queue)
  local rows = db('ZRANGE', R .. ':fair:' .. queue, 0, room - 1, 'WITHSCORES')
  for i = 1, #rows, 2 do
    line[#line + 1] = {name = rows[i], time = tonumber(rows[i + 1]), queue = queue, rows = {},
                       tick = tenants.tick(weights, rows[i]), taken = 0}
  end
  turns.take_turns(line, room, function(t, most)
    b.met[#b.met + 1], b.met[t.name] = not b.met[t.name] and t.name or nil, true
    return take(R, b, t, digits, most, now_ms)
  end)
  return b, is_more or #rows == 2 * room
end

-- The first n rows were started, parked or buried.
function turns.leave(R, b, n, ctx)
  local queue, digits = b.queue, tenants.digits(R, b.queue)
  if n > 0 then
    db('ZREM', tenants.jobs_key(R, queue), unpack(b.lines, 1, n))
  end
  for _, name in ipairs(b.met) do
    tenants.settle(R, queue, name, tenants.first_due(R, queue, digits, name), ctx.now_ms)
  end
  if not tenants.reset_idle(R, queue, ctx.now_ms) and b.may_share then
    tenants.share(R, queue, ctx.now_us)
  end
end
