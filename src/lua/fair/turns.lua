-- Whose turn it is in a fair queue: the rows that a step looks at (claim/waiting.lua), in the order
-- of the virtual times of their tenants; those of one tenant by priority, then by due time.

local turns = module 'fair/turns'
local waiting, tenants = use('claim/waiting', 'fair/tenants')
local WOKEN = 256  -- tenants that a step looks at since their first job is due
local PAID = 64    -- debts that it drops since the queue is past them

-- Tenants whose first job is due come to the others. -> whether there may be more of them
local function wake(R, queue, now_ms)
  local later, debts = R .. ':fair-next:' .. queue, R .. ':fair-debts:' .. queue
  local names = db('ZRANGEBYSCORE', later, '-inf', int(now_ms), 'LIMIT', 0, WOKEN)
  if not names[1] then
    return false
  end
  local of_queue = tenants.state(R, queue)
  local runs = db('HMGET', R .. ':fair-runs:' .. queue, unpack(names))
  local owed = db('ZMSCORE', debts, unpack(names))
  for i, name in ipairs(names) do
    local _, time = tenants.runs(runs[i])
    db('ZADD', R .. ':fair:' .. queue, math.max(time, owed[i] or 0, of_queue), name)
  end
  db('ZREM', later, unpack(names))
  db('ZREM', debts, unpack(names))
  return #names == WOKEN
end

-- Drop debts that do not count any more.
local function forgive(R, queue)
  local key = R .. ':fair-debts:' .. queue
  local names = db('ZRANGEBYSCORE', key, '-inf', int((tenants.state(R, queue))), 'LIMIT', 0, PAID)
  if names[1] then
    db('ZREM', key, unpack(names))
  end
end

-- Append those of these rows {id, score}* of a tenant that are due and wait, as R:q says. The
-- others leave the tenant.
local function append_waiting(R, t, digit, rows, now_ms, out)
  local ids, key = {}, R .. ':q:' .. t.queue .. ':' .. digit
  for i = 1, #rows, 2 do
    if to_due(rows[i + 1]) > now_ms then
      break
    end
    ids[#ids + 1] = rows[i]
  end
  local dues = ids[1] and db('ZMSCORE', key, unpack(ids)) or {}
  for i, id in ipairs(ids) do
    if not dues[i] then
      db('ZREM', tenants.jobs_key(R, t.queue, digit, t.name), id)
    elseif to_due(dues[i]) > now_ms then
      db('ZADD', tenants.jobs_key(R, t.queue, digit, t.name), to_due(dues[i]), id)
    else
      out[#out + 1] = {id = id, due = to_due(dues[i]), key = key, digit = digit}
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
    local rows = db('ZRANGE', tenants.jobs_key(R, t.queue, digit, t.name), 0, left - 1,
                    'WITHSCORES')
    if append_waiting(R, t, digit, rows, now_ms, t.rows) == left then
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
    b.ids[b.n], b.dues[b.n], b.tenants[b.n], b.digits[b.n] = row.id, row.due, t.name, row.digit
  end
  t.taken = t.taken + n
  return n
end

-- Put a tenant where it belongs among those from number `from` on, behind those with its time.
local function insert(line, from, t)
  local low, high = from, #line + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if line[middle].time <= t.time then
      low = middle + 1
    else
      high = middle
    end
  end
  table.insert(line, low, t)
end

-- -> the rows of the queue whose turn it is, up to `room`; whether more may be due
function turns.gather(R, queue, room, weights, ctx)
  local b, digits, now_ms = waiting.new_chunk(queue), tenants.digits(R, queue), ctx.now_ms
  b.tenants, b.digits, b.met = {}, {}, {}
  local is_more, line = wake(R, queue, now_ms), {}
  forgive(R, queue)
  local rows = db('ZRANGE', R .. ':fair:' .. queue, 0, room - 1, 'WITHSCORES')
  for i = 1, #rows, 2 do
    line[#line + 1] = {name = rows[i], time = tonumber(rows[i + 1]), queue = queue, rows = {},
                       taken = 0}
  end
  local first = 1
  while b.n < room and line[first] do
    local t, behind = line[first], line[first + 1]
    local tick, most = tenants.tick(weights, t.name), room - b.n
    if behind then
      most = math.min(most, math.floor((behind.time - t.time) / tick) + 1)
    end
    local n = take(R, b, t, digits, most, now_ms)
    t.time, first = t.time + n * tick, first + 1
    b.met[t.name] = true
    if n == most and b.n < room then
      insert(line, first, t)
    end
  end
  return b, is_more or #rows == 2 * room
end

-- The first n rows were started, parked or buried.
function turns.leave(R, b, n, ctx)
  local queue, digits, gone = b.queue, tenants.digits(R, b.queue), {}
  for i = 1, n do
    local key = tenants.jobs_key(R, queue, b.digits[i], b.tenants[i])
    gone[key] = gone[key] or {}
    table.insert(gone[key], b.ids[i])
  end
  for key, ids in pairs(gone) do
    db('ZREM', key, unpack(ids))
  end
  for name in pairs(b.met) do
    tenants.settle(R, queue, name, tenants.first_due(R, queue, digits, name), ctx.now_ms)
  end
  tenants.reset_idle(R, queue)
end
