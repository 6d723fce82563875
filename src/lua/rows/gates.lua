-- The gates of a sync over rows: locks without a lease, semaphores all of whose holders have none,
-- and token buckets that let a job in and of which no permit is granted.
--
-- A gate: {id, kind (lock, sem, rate), key, wait: the key of its waiters, free: how many permits
-- are free, nil until it is asked for, is_awaited: nil until it is asked for, gated: what a job
-- that passes it is told (claim/starting.lua)}. Of a lock: was: what is there (holder until fence
-- depth since token, false for none), is_dropped: its holder ends, taken: the write of a new
-- holder. Of a semaphore: limit, is_held, dropped: {ids, scores} of the holders that end, takes:
-- ids. Of a rate: limit, was: the text that is there, lead, interval, burst (rates.read_gcra),
-- is_taken. Of the waiters: waiters.lua.

local row_gates = module 'rows/gates'
local gate, limits, rates, row_sync = use('gates/gate', 'gates/limits', 'gates/rates', 'rows/sync')
local FIELDS = {'holder', 'until', 'fence', 'depth', 'since', 'token'}

-- A rate whose key has to be written anew is odd, and so are grants.
local function read_rate(s, g, name)
  local is_less
  g.key = s.R .. ':rate:gcra:' .. name
  if g.limit.algorithm ~= 'gcra' or g.limit.n == 0 or
     redis.call('EXISTS', s.R .. ':rate:granted:' .. name) == 1 then
    row_sync.odd()
  end
  g.was = redis.call('GET', g.key)
  g.lead, g.interval, g.burst, is_less = rates.read_gcra(g.limit, g.was, s.now_us)
  if is_less then
    row_sync.odd()
  end
  g.free = rates.gcra_free(g.lead, g.interval, g.burst)
end

local function read_limit(s, g, kind, name)
  local row = redis.call('HMGET', s.R .. ':limits', name, '{}')
  local limit = row[1] and name ~= '{}' and limits.parse_limit(row[1]) or row[2] and
                limits.limit_of(s.R, kind, name)
  if not limit or limit.kind ~= kind then
    row_sync.odd()
  end
  g.kind, g.limit, g.gated = kind, limit, limit.on_lost == 'kill' and 2 or 1
  if kind == 'rate' then
    read_rate(s, g, name)
  end
end

-- -> the gate of this id; what is none is odd
function row_gates.row_gate(s, id)
  local g = s.gates[id]
  if g then
    return g
  end
  local R = s.R
  g = {id = id, kind = 'lock', key = R .. ':' .. id, wait = R .. ':wait:' .. id, gated = 2}
  s.gates[id], s.order[#s.order + 1] = g, g
  if string.sub(id, 1, 5) ~= 'lock:' then
    local kind, name = string.match(id, '^(%a+):(.+)$')
    if kind ~= 'sem' and kind ~= 'rate' then
      row_sync.odd()
    end
    read_limit(s, g, kind, name)
  end
  return g
end

-- The row of a lock. One with a lease, or that a caller holds, is odd.
local function read_lock(g)
  if g.was == nil then
    local row = redis.call('HMGET', g.key, unpack(FIELDS))
    if row[1] and (row[2] ~= '0' or row[6]) then
      row_sync.odd()
    end
    g.was = row[1] and row or false
  end
  return g.was
end

-- Has a semaphore holders? One with a lease is odd: when its key expires depends on them.
local function is_held(g)
  if g.is_held == nil then
    local first = redis.call('ZRANGE', g.key, 0, 0, 'WITHSCORES')
    if first[2] and tonumber(first[2]) < gate.LIVES then
      row_sync.odd()
    end
    g.is_held = first[1] ~= nil
  end
  return g.is_held
end

-- -> how many permits are free, less than 0 if the limit was lowered
function row_gates.free_of(g)
  if g.free then
    return g.free
  elseif g.kind == 'lock' then
    g.free = read_lock(g) and 0 or 1
    return g.free
  end
  local held = is_held(g) and redis.call('ZCARD', g.key) or 0
  g.free = g.limit.n - held + (g.dropped and #g.dropped.ids or 0)
  return g.free
end

local function none_exists(keys)
  return keys[2] and redis.call('EXISTS', unpack(keys)) == 0
end

-- Which of these gates does nobody hold and nobody await? Mostly all, and two EXISTS tell. One gate
-- is asked by itself.
function row_gates.load_gates(gates)
  if not gates[2] then
    return
  end
  local waits, locks = {}, {}
  for i = 1, #gates do
    local g = gates[i]
    waits[i] = g.wait
    locks[#locks + 1] = g.kind == 'lock' and g.was == nil and g.key or nil
  end
  local is_calm, are_free = none_exists(waits), none_exists(locks)
  for i = 1, (is_calm or are_free) and #gates or 0 do
    local g = gates[i]
    if is_calm then
      g.is_awaited = false
    end
    if are_free and g.kind == 'lock' and g.was == nil then
      g.was, g.free = false, 1
    end
  end
end

-- Does anybody wait for it?
function row_gates.is_awaited(g)
  if g.is_awaited == nil then
    g.first = redis.call('ZRANGE', g.wait, 0, 1, 'WITHSCORES')
    g.is_awaited = g.first[1] ~= nil
  end
  return g.is_awaited
end

-- These jobs, which end, hold the gate.
function row_gates.drop_from(g, ids)
  if g.kind == 'lock' then
    local was = read_lock(g)
    for i = 1, was and #ids or 0 do
      if was[1] == ids[i] then
        g.is_dropped, g.free = true, 1
      end
    end
    return
  elseif g.kind == 'rate' then
    row_sync.odd() -- nobody holds one
  end
  local dropped = {ids = {}, scores = {}}
  for i, score in ipairs(is_held(g) and redis.call('ZMSCORE', g.key, unpack(ids)) or {}) do
    if score then
      local n = #dropped.ids + 1
      dropped.ids[n], dropped.scores[n] = ids[i], score
    end
  end
  g.dropped = dropped
end

-- A job starts, and takes a permit, with this fence.
function row_gates.take_from(s, g, id, fence)
  if g.kind == 'lock' then
    g.taken = {'HSET', g.key, 'holder', id, 'until', '0', 'fence', int(fence), 'depth', '1',
               'since', s.now_text}
    g.free = 0
  elseif g.kind == 'rate' then
    g.lead, g.free, g.is_taken = math.min(g.lead, g.burst) + g.interval, g.free - 1, true
  else
    local takes = g.takes or {}
    g.takes, takes[#takes + 1], g.free = takes, id, g.free - 1
  end
end
