-- The writes of a step over rows: planned in one order, checked for rights, made, and undone if one
-- fails. Additions come first, since removals undo them; the records of ended jobs, which were not
-- read, are deleted last.
--
-- A write is as redis.call takes it, {command, key, ...}. UNDO has what takes it back. For that a
-- removal has values, those of what is removed: a list, or one text for all; an addition has names
-- and values of what it replaces, nil for nothing.

local NEVER = L.LATEST
local AT_ONCE = 4000        -- arguments of a command: unpack takes no more than 8,000
local LOCK_FIELDS = {'holder', 'until', 'fence', 'depth', 'since'}

-- Write names[first], names[first + 1], ... with their values again.
local function put_back(command, key, names, first, values)
  for i = first, #names do
    local value = type(values) == 'table' and values[i - first + 1] or values
    if command == 'ZADD' then
      redis.pcall(command, key, value, names[i])
    else
      redis.pcall(command, key, names[i], value)
    end
  end
end

-- Take an addition back, of which the first name stands at write[first].
local function take_back(remover, write, first)
  local names = {}
  for i = first, #write, 2 do
    names[#names + 1] = write[i]
  end
  redis.pcall(remover, write[2], unpack(names))
  if write.names then
    put_back(write[1], write[2], write.names, 1, write.values)
  end
end

local UNDO = {}

function UNDO.ZADD(write)
  take_back('ZREM', write, 4)
end

function UNDO.HSET(write)
  take_back('HDEL', write, 3)
end

function UNDO.ZREM(write)
  put_back('ZADD', write[2], write, 3, write.values)
end

function UNDO.HDEL(write)
  put_back('HSET', write[2], write, 3, write.values)
end

function UNDO.SET(write)
  if write.values then
    redis.pcall('SET', write[2], write.values, 'KEEPTTL')
  else
    redis.pcall('DEL', write[2])
  end
end

-- Locks, or unique keys.
function UNDO.DEL(write)
  for i = 1, #write - 1 do
    if write.owners then
      redis.pcall('SET', write[i + 1], write.owners[i])
    else
      put_back('HSET', write[i + 1], LOCK_FIELDS, 1, write.rows[i])
    end
  end
end

local function add(s, write)
  s.adds[#s.adds + 1] = write
end

local function remove(s, write)
  s.removals[#s.removals + 1] = write
end

local function remove_members(s, key, ids, scores)
  remove(s, {values = scores, 'ZREM', key, unpack(ids)})
end

local function remove_fields(s, key, ids, values)
  remove(s, {values = values, 'HDEL', key, unpack(ids)})
end

local function add_members(s, key, ids, scores)
  local write = {'ZADD', key}
  for i = 1, #ids do
    write[2 * i + 1], write[2 * i + 2] = scores[i], ids[i]
  end
  add(s, write)
end

-- ---- what ends

local function plan_ends(s)
  local ids, R = s.q.end_ids, s.R
  if not ids[1] then
    return
  end
  if s.freed.ids[1] then
    remove_fields(s, R .. ':holds', s.freed.ids, s.freed.texts)
  end
  if s.free_uniques then
    remove(s, s.free_uniques)
  end
  remove_members(s, R .. ':running', ids, s.epoch_text)
  remove_fields(s, R .. ':tries', ids, s.tries)
  for _, had in ipairs(s.beside or {}) do
    remove_fields(s, had.key, had.ids, had.values)
  end
  s.last = {'HDEL', R .. ':jobs', unpack(ids)}
end

-- ---- gates

-- Locks that are free now are deleted by one command.
local function plan_lock(s, g)
  if g.taken then
    g.taken.names, g.taken.values = g.was and LOCK_FIELDS, g.was
    add(s, g.taken)
  elseif g.is_dropped then
    local freed = s.freed_locks or {'DEL', rows = {}}
    if not s.freed_locks then
      remove(s, freed)
    end
    s.freed_locks, freed[#freed + 1], freed.rows[#freed.rows + 1] = freed, g.key, g.was
  end
end

local function plan_semaphore(s, g)
  if g.takes then
    s.lives = s.lives or L.score(L.LIVES + s.now_ms)
    local write = {'ZADD', g.key}
    for i = 1, #g.takes do
      write[2 * i + 1], write[2 * i + 2] = s.lives, g.takes[i]
    end
    add(s, write)
  end
  if g.dropped and g.dropped.ids[1] then
    remove_members(s, g.key, g.dropped.ids, g.dropped.scores)
  end
end

-- A key that is undone expires with what was undone: later than it would.
local function plan_rate(s, g)
  if g.is_taken then
    add(s, {values = g.was, 'SET', g.key, L.gcra_text(s.now_us, g.lead), 'PXAT',
            L.int(L.rate_expires(s.now_ms, g.lead))})
  end
end

-- ---- waiters

local function plan_ticket(s, g, queue, t)
  if t.now == t.was then
    return
  elseif t.now then
    add(s, {names = t.was and {queue}, values = t.was, 'ZADD', g.wait, t.now, queue})
  else
    remove_members(s, g.wait, {queue}, t.was)
  end
end

local function plan_lines(s, g)
  for queue, line in pairs(g.lines) do
    if line.ids[1] then
      add_members(s, line.key, line.ids, line.scores)
    end
    if line.out then
      remove_members(s, line.key, line.out.ids, line.out.tickets)
    end
    if g.tickets[queue] then
      plan_ticket(s, g, queue, g.tickets[queue])
    end
  end
end

-- Which timer of a gate comes or goes? A semaphore that is shut and awaited has one for ever
-- (gate_waiters.lua); a gate without waiters has none.
local function plan_timer(s, g)
  local wants = g.kind == 'sem' and g.is_awaited and g.free and g.free <= 0
  if not wants and (not g.tickets or g.is_awaited and not g.is_emptied) then
    return
  end
  local key, name = s.R .. ':timers', 'gate:' .. g.id
  local score = redis.call('ZSCORE', key, name)
  if wants and not score then
    add(s, {'ZADD', key, L.int(NEVER), name})
  elseif score and tonumber(score) ~= NEVER then
    L.odd() -- its waiters have changed, and so may have the time
  elseif score and not wants then
    remove_members(s, key, {name}, score)
  end
end

local function plan_gates(s)
  for _, g in ipairs(s.order) do
    if g.kind == 'lock' then
      plan_lock(s, g)
    elseif g.kind == 'sem' then
      plan_semaphore(s, g)
    else
      plan_rate(s, g)
    end
    if g.lines then
      plan_lines(s, g)
    end
    if g.is_awaited or g.tickets then
      plan_timer(s, g)
    end
  end
end

local function plan_parked(s)
  local key = s.R .. ':parked'
  for queue, out in pairs(s.out or {}) do
    remove_members(s, key .. ':' .. queue, out.ids, out.scores)
    remove_fields(s, key, out.ids, out.spots)
  end
  if s.spots then
    for queue, all in pairs(s.parked_of) do
      add_members(s, key .. ':' .. queue, all.ids, all.scores)
    end
    for from = 1, #s.spots, AT_ONCE do
      add(s, {'HSET', key, unpack(s.spots, from, math.min(from + AT_ONCE - 1, #s.spots))})
    end
  end
end

-- ---- starts

-- Write a value for each of n names: columns, {first, second}* as the command takes them. has: how
-- many names are there.
local function add_many(s, command, key, n, columns, has, names, values)
  local kind = command == 'HSET' and 'hash' or 'zset'
  if L.becomes_many(kind, has, n) then
    add(s, {names = names, values = values, command, key, kind == 'hash' and L.LONG or 0, L.LONG,
            unpack(columns)})
    remove(s, {values = kind == 'hash' and L.LONG or '0', kind == 'hash' and 'HDEL' or 'ZREM', key,
               L.LONG})
  else
    add(s, {names = names, values = values, command, key, unpack(columns)})
  end
end

local function plan_starts(s)
  local R, st = s.R, s.starts
  if st.n == 0 then
    return
  end
  local tries, running, holds = R .. ':tries', R .. ':running', R .. ':holds'
  if st.n_held > 0 then
    add_many(s, 'HSET', holds, st.n_held, st.holds, redis.call('HLEN', holds))
  end
  add_many(s, 'HSET', tries, st.n, st.tries, redis.call('HLEN', tries), st.old_ids, st.old_tries)
  add_many(s, 'ZADD', running, st.n, st.running, redis.call('ZCARD', running))
end

local function plan_head(s, head)
  local key, was = s.R .. ':heads', head.was and tonumber(head.was)
  if head.now == math.huge then
    if was then
      remove_members(s, key, {head.name}, head.was)
    end
  elseif not was or head.now < was then
    L.odd() -- the workers have to be woken
  elseif head.now ~= was then
    add(s, {names = {head.name}, values = head.was, 'ZADD', key, L.int(head.now), head.name})
  end
end

-- Marks only become fewer.
local function plan_marks(s, name, was, now)
  local key = s.R .. ':prio'
  if now == '' then
    remove_fields(s, key, {name}, was)
  elseif now ~= was then
    add(s, {names = {name}, values = was, 'HSET', key, name, now})
  end
end

-- Jobs that were handled leave their sets; heads and marks follow.
local function plan_queues(s)
  for _, t in ipairs(s.taken or {}) do
    remove(s, {values = {unpack(t.dues, t.from, t.to)}, 'ZREM', t.key, unpack(t.ids, t.from, t.to)})
  end
  for _, head in ipairs(s.heads or {}) do
    plan_head(s, head)
    if s.marks[head.name] then
      plan_marks(s, head.name, s.marks[head.name], head.marks)
    end
  end
end

local function plan_clock(s)
  local last = s.number - 1
  if last > L.CLOCK_MAX then
    L.odd()
  elseif s.number ~= s.first_number then
    add(s, {values = s.clock, 'SET', s.R .. ':clock', L.told_number(last), 'KEEPTTL'})
  end
end

-- Read R:clock: s.number is the first number that this step may give out (clock.lua).
function L.read_clock(s)
  s.clock = redis.call('GET', s.R .. ':clock')
  s.number = math.max(s.now_us, L.last_number(s.clock) + 1)
  s.first_number = s.number
end

function L.plan_writes(s)
  plan_clock(s)
  plan_ends(s)
  plan_gates(s)
  plan_parked(s)
  plan_starts(s)
  plan_queues(s)
end

-- ---- writing

-- Make the writes of both lists. -> how many of each were made, the error of the one behind them
local function write(lists)
  local done = {0, 0}
  local ok, why = pcall(function()
    for k = 1, 2 do
      local list = lists[k]
      for i = 1, #list do
        redis.call(unpack(list[i]))
        done[k] = i
      end
    end
  end)
  return done, not ok and why or nil
end

local function undo(list, done)
  for i = done, 1, -1 do
    UNDO[list[i][1]](list[i])
  end
end

-- What follows the writes, and may fail: counters of what ended, and of keys.
local function follow(s)
  for _, group in ipairs(s.q.ends) do
    if group.n > 0 then
      L.write_count(s.R, 'done:' .. group.queue, group.n)
    end
  end
  for queue, keys in pairs(s.keys or {}) do
    pcall(L.count_keys, s.R, queue, keys)
  end
end

function L.write_all(s)
  local adds, removals = s.adds, s.removals
  local lists = {adds, removals}
  removals[#removals + 1] = s.last
  if not L.may_all(lists) then
    L.odd() -- the draft tells which right is missing
  end
  local done, why = write(lists)
  if why then
    undo(removals, done[2])
    undo(adds, done[1])
    error({failed = why}, 0)
  end
  follow(s)
end
