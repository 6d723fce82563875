-- What a sync over rows writes, planned in the order of writes.lua.

local plans = module 'rows/plan'
local clock, gate, rates, row_members, plan_results, row_results, row_sync, row_tenants, writes =
  use('core/clock', 'gates/gate', 'gates/rates', 'rows/members', 'rows/plan_results',
      'rows/results', 'rows/sync', 'rows/tenants', 'rows/writes')
local NEVER = LATEST
local AT_ONCE = 4000        -- arguments of a command: unpack takes no more than 8,000
local LOCK_FIELDS = writes.LOCK_FIELDS
local add, remove, add_members = writes.add_write, writes.remove_write, writes.add_members
local remove_members, remove_fields = writes.remove_members, writes.remove_fields

-- ---- what ends

local function plan_ends(s)
  local ids, R, freed = s.q.end_ids, s.R, s.freed
  if freed and freed.ids[1] then
    remove_fields(s, R .. ':holds', freed.ids, freed.texts)
  end
  if not ids[1] then
    return
  end
  remove_members(s, R .. ':running', ids, s.epoch_text)
  remove_fields(s, R .. ':tries', ids, s.tries)
  if s.beside then
    for _, had in ipairs(s.beside) do
      writes.remove_there(s, had)
    end
  end
  s.last = {'HDEL', R .. ':jobs', unpack(ids)}
end

-- ---- gates

-- Locks that are free now are deleted by one command.
local function plan_lock(s, g)
  local taken = g.taken
  if taken then
    taken.names, taken.values = g.was and LOCK_FIELDS, g.was
    add(s, taken)
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
    s.lives = s.lives or score_text_of(gate.LIVES + s.now_ms)
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
    add(s, {values = g.was, 'SET', g.key, rates.gcra_text(s.now_us, g.lead), 'PXAT',
            int(rates.rate_expires(s.now_ms, g.lead))})
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
    local ticket = g.tickets[queue]
    if ticket then
      plan_ticket(s, g, queue, ticket)
    end
  end
end

-- Which timer of a gate comes or goes? A semaphore that is shut and awaited has one for ever
-- (waiters.lua); a gate without waiters has none.
local function plan_timer(s, g)
  local wants = g.kind == 'sem' and g.is_awaited and g.free and g.free <= 0
  if not wants and (not g.tickets or g.is_awaited and not g.is_emptied) then
    return
  end
  local key, name = s.R .. ':timers', 'gate:' .. g.id
  local score = redis.call('ZSCORE', key, name)
  if wants and not score then
    add(s, {'ZADD', key, int(NEVER), name})
  elseif score and tonumber(score) ~= NEVER then
    row_sync.odd() -- its waiters have changed, and so may have the time
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

-- Redis keeps a small hash or sorted set as a list and reads it from the start for each id (up to
-- 512 and 128 entries by default). For a hundred jobs that is most of the cost of a call. One value
-- over 64 bytes turns the list into a table, which it stays: so where a key comes to hold many,
-- such a value is written first and removed again.
local MANY, LIST_FIELDS, LIST_MEMBERS = 32, 512, 128
local LONG = '-----------------------------------------------------------------'

-- Will it hold many with n more, and may it be a list still?
local function becomes_many(kind, has, n)
  return has + n >= MANY and has <= (kind == 'hash' and LIST_FIELDS or LIST_MEMBERS)
end

-- Write a value for each of n names: columns, {first, second}* as the command takes them. has: how
-- many names are there.
local function add_many(s, command, key, n, columns, has, names, values)
  local kind = command == 'HSET' and 'hash' or 'zset'
  if becomes_many(kind, has, n) then
    add(s, {names = names, values = values, command, key, kind == 'hash' and LONG or 0, LONG,
            unpack(columns)})
    remove(s, {values = kind == 'hash' and LONG or '0', kind == 'hash' and 'HDEL' or 'ZREM', key,
               LONG})
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

function plans.set_head(s, name, was, now)
  add(s, {names = was and {name}, values = was, 'ZADD', s.R .. ':heads', int(now), name})
end

local function plan_head(s, head)
  local was, late = head.was and tonumber(head.was), s.late and s.late[head.name]
  if late then
    was = row_results.head_with(late, head.was)
  end
  if head.now == math.huge then
    if was then
      remove_members(s, s.R .. ':heads', {head.name}, head.was)
    end
  elseif not was or head.now < was then
    row_sync.odd() -- the workers have to be woken
  elseif head.now ~= was or late then
    plans.set_head(s, head.name, head.was, head.now)
  end
end

-- Flags only become fewer.
local function plan_flags(s, name, was, now)
  local key = s.R .. ':prio'
  if now == '' then
    remove_fields(s, key, {name}, was)
  elseif now ~= was then
    add(s, {names = {name}, values = was, 'HSET', key, name, now})
  end
end

-- Jobs that were handled leave their sets; heads and flags follow.
local function plan_queues(s)
  for _, t in ipairs(s.taken or {}) do
    remove(s, {values = {unpack(t.dues, t.from, t.to)}, 'ZREM', t.key, unpack(t.ids, t.from, t.to)})
  end
  for _, head in ipairs(s.heads or {}) do
    plan_head(s, head)
    if s.flags[head.name] then
      plan_flags(s, head.name, s.flags[head.name], head.flags)
    end
  end
end

-- ---- all

local function plan_clock(s)
  local last = s.number - 1
  if last > CLOCK_MAX then
    row_sync.odd()
  elseif s.number ~= s.first_number then
    add(s, {values = s.clock, 'SET', s.R .. ':clock', clock.told_number(last), 'KEEPTTL'})
  end
end

-- Read R:clock: s.number is the first number that this sync may give out (core/clock.lua).
function plans.read_clock(s)
  s.clock = redis.call('GET', s.R .. ':clock')
  s.number = math.max(s.now_us, clock.last_number(s.clock) + 1)
  s.first_number = s.number
end

local function plan_rare(s)
  if s.answers then -- there were results
    plan_results.plan_results(s)
  end
  if s.members then
    row_members.plan_members(s)
  end
  if s.fair then
    row_tenants.plan_writes(s)
  end
end

function plans.plan_writes(s)
  plan_clock(s)
  plan_ends(s)
  plan_gates(s)
  plan_parked(s)
  plan_starts(s)
  plan_queues(s)
  if s.is_rare then
    plan_rare(s)
  end
end
