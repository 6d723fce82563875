-- Gates: what a job, or a program beside laterd, must pass before it runs. Three kinds:
--   lock:NAME   one holder           R:lock:NAME  HASH holder fence depth until since
--   sem:NAME    as many as its limit R:sem:NAME   ZSET holder -> until ms
--   rate:NAME   so many in a time    R:rate:<algorithm>:NAME  as the algorithm needs (gate_rate.lua)
--                                    R:rate:granted:NAME  SET of jobs that were let in and not yet claimed
-- `kind:NAME` is the id of a gate. Holders: a job by its id, a worker (later lock) as @EPOCH, a caller
-- of the bare functions as =OWNER. until: when the lease of a holder ends; 0 (locks), L.LIVES + since (semaphores)
-- for one that lives with its job or worker, whose reaper frees it. R:holds HASH: a job or worker -> the
-- gates it holds, a line each, so that whoever ends it knows without its record.
--
-- A book is what one call knows of the gates that it has met: {R, now_us, now_ms, gates, touched, is_touched}.
-- Gates that lost a holder are in `touched`, until L.settle_gates hands their places on (gate_line.lua);
-- queues with a new grant in `granted`, until the workers are told. called: how many of those in line the call has called;
-- timers: of limit.lua. A step fills in room: queue ->
-- how many jobs the step would still claim of it; epoch: who makes it; ended: the jobs of this epoch that end in it;
-- at_once: of L.write_at_once the jobs that end, in lists, how many those are, and how many start.
-- The state of a gate is nowhere but in Redis and the draft of the call, so what is taken out of the draft again is
-- forgotten by everybody.

L.GATE_NAME_MAX = 256
L.LIVES = 1e15              -- the score of a holder without a lease is this and the ms since when it holds
L.MAX_LIMITS = 1000         -- definitions in one namespace
L.MAX_PERMITS = 1000000     -- places of a semaphore, starts of a rate

function L.book(R, now_us)
  return {R = R, now_us = now_us, now_ms = L.ms(now_us), gates = {}, touched = {}, is_touched = {}, granted = {}, called = 0,
          room = {}, ended = {}, at_once = {lists = {}, ended = 0, started = 0}}
end

-- A name that may stand in a record header, in a key and on a terminal.
function L.check_gate_name(what, name)
  if name == nil or #name < 1 or #name > L.GATE_NAME_MAX or string.find(name, '[%z\1-\32\127]') then
    L.fail('ELATER_GATE', what .. ' ' .. L.quote(name or '') .. ' is no name of a gate: 1 to ' ..
           L.int(L.GATE_NAME_MAX) .. ' bytes without spaces and control characters')
  elseif string.byte(name) == 126 then
    L.fail('ELATER_GATE', what .. ' ' .. L.quote(name) .. ' begins with ~: such names are laterd\'s own')
  end
  return name
end

-- ---- limits: R:limits name -> "semaphore <n> <keep|kill>" | "rate <algorithm> <n> <per ms> <burst>".
-- A name with {key} in it is a template for all names that fit. The field `{}` lists the templates.

function L.parse_limit(text)
  local n, on_lost = string.match(text or '', '^semaphore (%d+) (%a+)$')
  if L.whole(n) then
    return {kind = 'sem', n = L.whole(n), on_lost = on_lost}
  end
  local algorithm, count, per_ms, burst = string.match(text or '', '^rate (%a+) (%d+) (%d+) (%d+)$')
  count, per_ms, burst = L.whole(count), L.whole(per_ms), L.whole(burst)
  if count and per_ms and burst and L.RATES[algorithm] and per_ms > 0 then
    return {kind = 'rate', algorithm = algorithm, n = count, per_us = per_ms * 1000, burst = burst}
  end
  return nil
end

-- The definition that L.parse_limit read.
function L.limit_text(limit)
  if limit.kind == 'sem' then
    return 'semaphore ' .. L.int(limit.n) .. ' ' .. limit.on_lost
  end
  return 'rate ' .. limit.algorithm .. ' ' .. L.int(limit.n) .. ' ' .. L.int(limit.per_us / 1000) .. ' ' ..
         L.int(limit.burst)
end

-- Does the name fit the template? -> the length of what stands before {key}, or nil
function L.fits(template, name)
  local from, to = string.find(template, '{key}', 1, true)
  local head, tail = string.sub(template, 1, (from or 1) - 1), string.sub(template, (to or 0) + 1)
  if from and #name > #head + #tail and string.sub(name, 1, #head) == head and
     (tail == '' or string.sub(name, -#tail) == tail) then
    return #head
  end
  return nil
end

-- The template that a name fits, the one with the longest beginning; nil for none.
local function template_of(name, list)
  local best, best_len
  for template in string.gmatch(list or '', '[^\n]+') do
    local len = L.fits(template, name)
    if len and (not best or len > best_len) then
      best, best_len = template, len
    end
  end
  return best
end

-- -> the limit that holds for a name of this kind, or nil, and the name it is defined under
function L.limit_of(R, kind, name)
  local row = db('HMGET', R .. ':limits', name, '{}')
  local under = name
  if not row[1] or name == '{}' then
    under = template_of(name, row[2])
    row[1] = under and db('HGET', R .. ':limits', under)
  end
  local limit = L.parse_limit(row[1])
  return limit and limit.kind == kind and limit or nil, under
end

-- ---- one gate

-- Its line may move: L.settle_gates looks.
function L.touch(book, id)
  if not book.is_touched[id] then
    book.is_touched[id] = true
    book.touched[#book.touched + 1] = id
  end
end

-- -> kind, name; nil for what is no id of a gate: what was written by hand is left to `later fsck`
function L.read_gate(id)
  local kind, name = string.match(id, '^(%a+):(.+)$')
  if L.KINDS[kind or ''] then
    return kind, name
  end
end

-- The gate of this id as this call knows it.
function L.gate(book, id)
  local g = book.gates[id]
  if not g then
    local kind, name = L.read_gate(id)
    if not kind then
      L.fail('ELATER_GATE', L.quote(id) .. ' is no gate')
    end
    g = {id = id, kind = kind, name = name, key = book.R .. ':' .. id, line = book.R .. ':wait:' .. id}
    if kind ~= 'lock' then
      g.limit = L.limit_of(book.R, kind, name)
    end
    -- The state of one algorithm says nothing to another.
    if kind == 'rate' then
      g.key = g.limit and book.R .. ':rate:' .. g.limit.algorithm .. ':' .. name
      g.granted = book.R .. ':rate:granted:' .. name
    end
    book.gates[id] = g
  end
  return g
end

-- -> how many places are free now; with none, when one will be by itself (ms), or nil: by a release only.
-- A semaphore or a rate without a definition is shut, and that is noted for health.
function L.room(book, g)
  if g.kind ~= 'lock' and not g.limit then
    L.note(book.R, string.sub('no-limit:' .. g.name, 1, 200), book.now_ms)
    return 0
  end
  return L.KINDS[g.kind].room(book, g)
end

-- Take a place that is free. until_ms: the end of the lease; nil: as long as the holder lives.
-- is_reserved: it does not know yet (a lock has depth 0 until it does).
function L.take(book, g, holder, fence, until_ms, is_reserved)
  L.KINDS[g.kind].take(book, g, holder, fence, until_ms, is_reserved)
end

-- Take a place for a job that is to be claimed: a start is counted when it is claimed (L.spend), until then
-- the rate only keeps it. So a queue without room saves up no herd, and a grant that is taken back costs
-- nothing.
function L.promise(book, g, job)
  if g.kind == 'rate' then
    db('SADD', g.granted, job)
  else
    L.take(book, g, job, g.kind == 'lock' and L.tick(book.R, book.now_us, 1) or nil)
  end
end

-- Does this gate let nobody in, whoever was promised a place before? A rate is asked again at the start that it counts; who
-- holds a place of a lock or a semaphore keeps it.
function L.is_closed(g)
  return g.kind == 'rate' and (not g.limit or g.limit.n == 0)
end

-- The number of the first gate of a spot that lets nobody in; nil: none.
function L.closed_gate(book, spot)
  for i, id in ipairs(spot and spot.gates or {}) do
    if L.is_closed(L.gate(book, id)) then
      return i
    end
  end
  return nil
end

-- A granted job is claimed: its locks have the fence that its handler is told, its rates count it.
function L.spend(book, job, gates, fence)
  for _, id in ipairs(gates or {}) do
    local g = L.gate(book, id)
    if g.kind == 'lock' and db('HGET', g.key, 'holder') == job then
      db('HSET', g.key, 'fence', L.int(fence))
    elseif g.kind == 'rate' then
      db('SREM', g.granted, job)
      L.take(book, g, job, fence)
      L.touch(book, id)
    end
  end
end

-- Give a place back; nothing happens when `holder` has none. What a rate has counted it keeps. -> whether it did
function L.drop(book, g, holder)
  return L.drop_all(book, g, {holder})
end

-- The same for many holders of one gate. -> whether any had one
function L.drop_all(book, g, holders)
  if L.KINDS[g.kind].drop(g, holders) then
    L.touch(book, g.id)
    return true
  end
  return false
end

L.KINDS = {lock = {}, sem = {}, rate = {}}

local LOCK_FIELDS = {'holder', 'until', 'fence', 'depth', 'since', 'token'}

-- -> holder, until ms (0: it lives with its job or worker), fence, depth; nil: it is free
function L.lock_holder(book, g)
  local row = db('HMGET', g.key, unpack(LOCK_FIELDS))
  local until_ms = L.whole(row[2]) or 0
  if not row[1] or (until_ms > 0 and until_ms <= book.now_ms) then
    return nil
  end
  return row[1], until_ms, L.whole(row[3]) or 0, L.whole(row[4]) or 1
end

function L.KINDS.lock.room(book, g)
  local holder, until_ms = L.lock_holder(book, g)
  if not holder then
    return 1
  end
  return 0, until_ms > 0 and until_ms or nil
end

function L.KINDS.lock.take(book, g, holder, fence, until_ms, is_reserved)
  db('HMGET', g.key, unpack(LOCK_FIELDS))
  db('HDEL', g.key, 'token')
  db('HSET', g.key, 'holder', holder, 'fence', L.int(fence), 'depth', is_reserved and '0' or '1', 'until',
     L.int(until_ms or 0), 'since', L.int(book.now_ms))
  if until_ms then
    db('PEXPIREAT', g.key, until_ms)
  elseif (L.whole(L.was(g.key, 'until')) or 0) > 0 then
    -- The one before had a lease, and the key goes with it.
    db('PERSIST', g.key)
  end
end

-- The key goes with the lease, where there is one.
local function expire_with_lease(key)
  local until_ms = L.whole(redis.call('HGET', key, 'until'))
  if until_ms and until_ms > 0 then
    redis.call('PEXPIREAT', key, L.int(until_ms))
  end
end

function L.KINDS.lock.drop(g, holders)
  local is = db('HMGET', g.key, unpack(LOCK_FIELDS))[1]
  for _, holder in ipairs(holders) do
    if is == holder then
      if (L.whole(L.was(g.key, 'until')) or 0) > 0 then
        L.follow_up(expire_with_lease, g.key)
      end
      db('HDEL', g.key, unpack(LOCK_FIELDS))
      return true
    end
  end
  return false
end

-- Holders whose lease is over have no place, and go behind the writes, however many they are.
local function drop_ended(key, now_text)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now_text)
end

-- The limit may have shrunk under its holders: then there is no place until enough of them have gone.
function L.KINDS.sem.room(book, g)
  if not g.has_dropped then
    g.has_dropped = true
    L.hint(drop_ended, g.key, L.int(book.now_ms))
  end
  local lives = '(' .. L.int(book.now_ms)
  local free = g.limit.n - db('ZCOUNT', g.key, lives, '+inf')
  if free > 0 then
    return free
  end
  local first = db('ZRANGEBYSCORE', g.key, lives, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  local until_ms = tonumber(first[2] or 'inf')
  return 0, until_ms < L.LIVES and until_ms or nil
end

-- The key goes with the last lease, unless somebody has a place without one: callers may come once and never again.
local function expire_with_leases(key)
  local last = tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2] or L.LIVES)
  if last < L.LIVES then
    redis.call('PEXPIREAT', key, L.int(last))
  end
end

function L.KINDS.sem.take(book, g, holder, _, until_ms)
  local last = L.last_score(g.key)
  db('ZADD', g.key, until_ms or L.LIVES + book.now_ms, holder)
  if not until_ms and last and last < L.LIVES then
    db('PERSIST', g.key)
  end
  L.follow_up(expire_with_leases, g.key)
end

function L.KINDS.sem.drop(g, holders)
  if db('ZREM', g.key, unpack(holders)) == 0 then
    return false
  end
  L.follow_up(expire_with_leases, g.key)
  return true
end

function L.KINDS.rate.room(book, g)
  local rate, kept = L.RATES[g.limit.algorithm], db('SCARD', g.granted)
  local free, opens_ms = rate.room(book, g)
  if kept > 0 and free > 0 then
    free = math.max(free - kept, 0)
    -- With nil it opens when one of those is claimed, or loses its grant.
    opens_ms = free == 0 and rate.opens(book, g, kept + 1) or nil
  end
  return free, opens_ms
end

function L.KINDS.rate.take(book, g)
  L.RATES[g.limit.algorithm].take(book, g, 1)
end

function L.KINDS.rate.drop(g, holders)
  return db('SREM', g.granted, unpack(holders)) > 0
end

-- ---- the gates of jobs

local GATE_OPTIONS = {{'l', 'lock'}, {'s', 'sem'}, {'r', 'rate'}}

-- A name with {key} in it -> the name for this key; nil when it needs a key and there is none.
function L.fill_key(name, key)
  local from, to = string.find(name, '{key}', 1, true)
  if not from then
    return name
  end
  return key and string.sub(name, 1, from - 1) .. key .. string.sub(name, to + 1)
end

-- R:queues: queue -> "lock=<name> sem=<name> rate=<name>", those there are.
-- -> {lock, sem, rate}, or nil for a queue without gates
function L.queue_gates(text)
  local out
  if not text then
    return nil
  end
  for kind, name in string.gmatch(text, '(%a+)=(%S+)') do
    out = out or {}
    out[kind] = name
  end
  return out
end

-- The names of one kind, sorted, each once. -> names, why it cannot run
local function names_of(job, kind, own, common)
  local filled = common and L.fill_key(common, job.K)
  local why = common and not filled and 'its queue wants the ' .. kind .. ' ' .. common .. ', and it has no key' or nil
  local names = {}
  for _, name in ipairs({own or false, filled or false, kind == 'lock' and job.o and job.u and L.unique_lock(job) or false}) do
    if name and name ~= names[1] and name ~= names[2] then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names, why
end

-- The gates of a job, its own and its queue's, as ids in the order in which they are taken: by kind and name,
-- so that no two jobs ever wait for each other; rates last, since they open by themselves: nobody else
-- waits for a start that is kept for a job that waits for a lock. -> list, or nil: it has none; and why it
-- cannot run.
function L.gates_of(job, of_queue)
  local out, why = {}, nil
  if not (of_queue or job.l or job.s or job.r or (job.o and job.u)) then
    return nil
  end
  for _, option in ipairs(GATE_OPTIONS) do
    local kind = option[2]
    local names, cannot = names_of(job, kind, job[option[1]], of_queue and of_queue[kind])
    why = why or cannot
    for _, name in ipairs(names) do
      out[#out + 1] = kind .. ':' .. name
    end
  end
  return #out > 0 and out or nil, why
end

-- What R:holds says of a holder -> the gates and unique keys that it lets go into `drops`, gate -> holders
local function read_hold(book, holder, text, is_end, drops, order)
  for id in string.gmatch(text, '[^\n]+') do
    local until_ms, unique = string.match(id, '^uniq:(%d+):(.*)$')
    if not unique and L.read_gate(id) then
      if not drops[id] then
        drops[id] = {}
        order[#order + 1] = id
      end
      table.insert(drops[id], holder)
    elseif unique and is_end then
      L.unless_foreign(L.free_unique, book.R, unique, holder, L.whole(until_ms))
    end
  end
end

local function drop_at(book, id, holders)
  L.drop_all(book, L.gate(book, id), holders)
end

-- These holders (jobs, workers) end or wait again: their places are free, and where `is_end`, so are the
-- unique keys of jobs. One gate with a key of a foreign type does not keep the others.
function L.let_go(book, holders, is_end)
  if #holders == 0 or L.is_known_empty(book.R .. ':holds') then
    return
  end
  local texts = db('HMGET', book.R .. ':holds', unpack(holders))
  local gone, drops, order = {}, {}, {}
  for i, holder in ipairs(holders) do
    if texts[i] then
      gone[#gone + 1] = holder
      read_hold(book, holder, texts[i], is_end, drops, order)
    end
  end
  if #gone > 0 then
    db('HDEL', book.R .. ':holds', unpack(gone))
  end
  for _, id in ipairs(order) do
    L.unless_foreign(drop_at, book, id, drops[id])
  end
end
