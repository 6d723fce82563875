-- The tenants of fair queues in a sync over rows: what its ends charge them with, and what is
-- written of them. Whose turn it is: turns.lua. In a transaction: fair/charges.lua. Odd are a queue
-- that becomes fair or is so no more (fair/passes.lua), and rows that do not fit each other.
--
-- A fair queue, f: {name, weights, was: its text in R:fair, time, since, tenants: name -> t, list
-- of them, more: how many more tenants have due jobs than in Redis, n_woken: how many of these had
-- none before, may_share: as in fair/turns.lua, n_due: how many tenants have due jobs in Redis,
-- part: as in fair/turns.lua, used: name -> ms that its ended jobs ran, gone: name -> score of
-- debts that go, lines: of jobs that were claimed, is_reset: at some time nobody had due jobs, so
-- the debts that are in Redis do not count}
--
-- A tenant, t: {name, tick, score: its text in R:fair:<queue>, false for none; is_active: it has
-- due jobs; time; owed: its text in R:fair-debts:<queue>, false for none; debt: its new one;
-- next_was, next: in R:fair-next:<queue>}

local row_tenants = module 'rows/tenants'
local charges, tenants, usage, row_sync, writes = use(
  'fair/charges', 'fair/tenants', 'fair/usage', 'rows/sync', 'rows/writes')
local DEBTS = 64 -- that an idle queue may still have
local TICK_US = tenants.TICK_US

-- ---- a queue

-- -> the fair queue of this name. weights: of its tenants
local function open(s, queue, weights)
  local was = redis.call('HGET', s.R .. ':fair', queue)
  local time, since, todo = tenants.read_state(was or nil)
  if not whole(time) or not whole(since) or todo ~= '' then
    row_sync.odd()
  end
  local f = {name = queue, weights = weights, was = was, time = whole(time), since = whole(since),
             tenants = {}, list = {}, part = 0, more = 0, n_woken = 0, used = {},
             gone = {}, lines = {}}
  s.fair_list[#s.fair_list + 1], s.is_rare = f, true
  return f
end

-- The same; nil or false: it is not fair. weights: nil: they are not read yet
function row_tenants.queue_of(s, queue, weights)
  s.fair, s.fair_list = s.fair or {}, s.fair_list or {}
  local f = s.fair[queue]
  if f == nil then
    weights = weights or tenants.weights_in(redis.call('HGET', s.R .. ':queues', queue) or nil)
    f = weights and open(s, queue, weights) or false
    s.fair[queue] = f
  end
  return f
end

-- A score, false for none -> the virtual time
local function time_of(score)
  local time = score and tonumber(score)
  if time and time % 1 ~= 0 then
    row_sync.odd()
  end
  return time
end
row_tenants.time_of = time_of

-- -> the row of a tenant of which the sync knew nothing. It has all its fields from the start:
-- then Lua gives it room once.
function row_tenants.new_row(f, name, score)
  local time, n = time_of(score), #f.list + 1
  local t = {name = name, tick = f.weights[name] and tenants.tick(f.weights, name) or TICK_US,
             score = score, is_active = score and true, time = time, owed = false, debt = false,
             next = false, next_was = false, record = false, share = false, lines = false,
             digits = false, rest = false, taken = 0, started = 0}
  f.tenants[name], f.list[n] = t, t
  return t
end

function row_tenants.key_of(s, f, what)
  return s.R .. ':fair' .. what .. ':' .. f.name
end
local key_of = row_tenants.key_of

-- Has no tenant a due job?
local function is_idle(s, f)
  for _, t in ipairs(f.list) do
    if t.is_active then
      return false
    end
  end
  return redis.call('ZCARD', key_of(s, f, '')) + f.more == 0 and
         redis.call('ZCOUNT', key_of(s, f, '-next'), '-inf', s.now_text) - f.n_woken <= 0
end

-- If nobody has due jobs, no debt counts. -> whether it is so
function row_tenants.reset_idle(s, f)
  if not is_idle(s, f) then
    return false
  end
  local rows = redis.call('ZRANGE', key_of(s, f, '-debts'), 0, DEBTS, 'WITHSCORES')
  if #rows > 2 * DEBTS then
    row_sync.odd()
  end
  f.is_reset, f.time, f.since, f.gone = true, 0, 0, {}
  for i = 1, #rows, 2 do
    f.gone[rows[i]] = rows[i + 1]
  end
  for _, t in ipairs(f.list) do
    t.debt = false
  end
  return true
end

-- ---- jobs that end

-- Read the tenants of ended jobs, names.
local function load_ended(s, f, all)
  local names, owing, known = {}, {}, {}
  for i = 1, #all do
    local name = all[i]
    if not known[name] then
      names[#names + 1], known[name] = name, true
    end
  end
  local scores = redis.call('ZMSCORE', key_of(s, f, ''), unpack(names))
  for i = 1, #names do
    local t = row_tenants.new_row(f, names[i], scores[i])
    owing[#owing + 1] = not t.is_active and t or nil
  end
  if not owing[1] or row_tenants.reset_idle(s, f) then
    return
  end
  for i, t in ipairs(owing) do
    names[i] = t.name
  end
  local debts = redis.call('ZMSCORE', key_of(s, f, '-debts'), unpack(names, 1, #owing))
  for i, t in ipairs(owing) do
    t.owed, t.time = debts[i], time_of(debts[i])
  end
end

-- n jobs of a tenant end that started then. began: the virtual time of the queue before
local function charge(s, f, t, n, from_us, began)
  local ran, tick = charges.ran(from_us, f.since, s.now_us, f.weights[t.name], t.tick)
  t.time = (t.time or math.min(began, f.time)) + n * (ran - tick)
  f.part = f.part + n * charges.part(ran, f.n_due)
end

-- Those without due jobs may owe run time.
local function note_debts(f)
  for _, t in ipairs(f.list) do
    t.debt = not t.is_active and t.time
  end
end

-- Jobs end that hold these lines (fair/charges.lua); holders: line -> their ids
function row_tenants.finish(s, lines, holders)
  local ended, queues, now_us = {}, {}, s.now_us
  for i = 1, #lines do
    local from, began, queue, name = charges.read_line(lines[i])
    local f, n = from and row_tenants.queue_of(s, queue), #holders[lines[i]]
    if f then
      local used = f.used
      used[name] = (used[name] or 0) + n * usage.ms(now_us > from and now_us - from or 0)
    end
    if f and f.since > 0 then
      local its = ended[f]
      if not its then
        its = {names = {}, ns = {}, froms = {}, begans = {}}
        ended[f], queues[#queues + 1] = its, f
      end
      local k = #its.names + 1
      its.names[k], its.ns[k], its.froms[k], its.begans[k] = name, n, from, began
    end
  end
  for _, f in ipairs(queues) do
    local its = ended[f]
    load_ended(s, f, its.names)
    if not f.is_reset then
      f.n_due = redis.call('ZCARD', key_of(s, f, ''))
      for i, name in ipairs(its.names) do
        charge(s, f, f.tenants[name], its.ns[i], its.froms[i], its.begans[i])
      end
      note_debts(f)
    end
  end
end

-- ---- writes

-- Of a sorted set: adds: scores and members; names, values: what they replace; gone, scores: what
-- is removed
local function changes()
  return {adds = {}, names = {}, values = {}, gone = {}, scores = {}}
end

-- A member gets the score `now`, nil: it goes. was: false or nil: there was none
local function change(c, name, now, was)
  if now then
    local adds = c.adds
    adds[#adds + 1], adds[#adds + 2] = now, name
    if was then
      c.names[#c.names + 1], c.values[#c.values + 1] = name, was
    end
  elseif was then
    c.gone[#c.gone + 1], c.scores[#c.scores + 1] = name, was
  end
end

local function plan(s, key, c)
  if c.adds[1] then
    writes.add_write(s, {names = c.names, values = c.values, 'ZADD', key, unpack(c.adds)})
  end
  if c.gone[1] then
    writes.remove_members(s, key, c.gone, c.scores)
  end
end

local function plan_queue(s, f)
  local active, later, debts = changes(), changes(), changes()
  for _, t in ipairs(f.list) do
    local score = t.score
    if t.is_active then
      local time = int(t.time)
      if time ~= score then
        change(active, t.name, time, score)
      end
    elseif score then
      change(active, t.name, nil, score)
    end
    if t.next ~= t.next_was then
      change(later, t.name, t.next, t.next_was)
    end
    if t.debt or t.owed then
      change(debts, t.name, t.debt and int(t.debt), t.owed or f.gone[t.name])
      f.gone[t.name] = nil
    end
  end
  for name, score in pairs(f.gone) do
    change(debts, name, nil, score)
  end
  plan(s, key_of(s, f, ''), active)
  plan(s, key_of(s, f, '-next'), later)
  plan(s, key_of(s, f, '-debts'), debts)
  local state = int(f.time) .. ' ' .. int(f.since)
  if state ~= f.was then
    writes.add_write(s, {names = {f.name}, values = f.was, 'HSET', s.R .. ':fair', f.name, state})
  end
  if f.lines[1] then
    writes.remove_members(s, key_of(s, f, '-jobs'), f.lines, '0')
  end
end

function row_tenants.plan_writes(s)
  for _, f in ipairs(s.fair_list) do
    plan_queue(s, f)
  end
end

-- Behind the writes: it may fail.
function row_tenants.count_used(s)
  for _, f in ipairs(s.fair_list) do
    if next(f.used) then
      pcall(usage.count, s.R, f.name, f.used, s.now_us)
    end
  end
end
