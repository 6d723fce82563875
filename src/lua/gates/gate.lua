-- Gates: what a job, or a program beside laterd, must pass before it runs. Three kinds (kinds.lua):
--   lock:NAME   one holder           R:lock:NAME  HASH holder until fence depth since token
--   sem:NAME    as many as its limit R:sem:NAME   ZSET holder -> until ms
--   rate:NAME   so many in a time    R:rate:<algorithm>:NAME  what rates.lua needs
--                                    R:rate:granted:NAME  SET of jobs that were granted a permit
--                                    and are not claimed yet
-- `kind:NAME` is the id of a gate. Holders: a job by its id, a program (later lock: a worker) as
-- @EPOCH, a caller of the bare functions as =OWNER. until: when the lease of a holder ends. A
-- holder without a lease has 0 (lock) or gate.LIVES + since (semaphore): it keeps its permit as
-- long as its job or worker lives, and reaping the worker frees it.
--
-- A ledger is what one call knows of the gates that it has met: {R, now_us, now_ms, gates, touched,
-- is_touched, ...}. touched: gates that may have a free permit (they lost a holder, their limit or
-- time has changed, a queue came back), until waiters.hand_on hands it on (waiters.lua). granted:
-- queues with a new grant, until their workers are told. offers: how many permits the call has
-- offered to parked jobs, programs and callers. let_in: queue -> jobs that hold all their gates and
-- are claimed by this sync, if it can (claims_next; grants.lua). timers: what public/limit.lua read
-- of R:timers. peers, takers, count: of claim/rooms.lua. A sync fills in room: queue -> how many
-- jobs it would still claim of it; epoch: of its worker.
--
-- A gate: {id, kind, name, key, waiters, limit, granted, free, is_armed}. waiters: the key of its
-- waiters. free: how many permits are free, nil until it is asked for. is_armed: none is free, and
-- the timer of the gate is set. What a call changes of a gate is in the transaction or is written
-- by change.assign: so if a part of the call fails, all of it is undone.

local gate = module 'gates/gate'
local tidy, clock, kinds, limits, change, txn = use(
  'calls/tidy', 'core/clock', 'gates/kinds', 'gates/limits', 'txn/change', 'txn/txn')

gate.LIVES = 1e15 -- a holder without a lease has this and the ms since when as its score

function gate.ledger(R, now_us)
  return {R = R, now_us = now_us, now_ms = clock.ms(now_us), gates = {}, touched = {},
          is_touched = {}, granted = {}, let_in = {}, offers = 0, room = {}}
end

-- A permit of this gate may be free: waiters.hand_on will see who waits.
function gate.touch(ledger, id)
  if not ledger.is_touched[id] then
    ledger.is_touched[id] = true
    ledger.touched[#ledger.touched + 1] = id
  end
end

-- -> kind, name; nil: this is no id of a gate and was written by hand (`later fsck` reports it)
function gate.read(id)
  local kind, name = string.match(id, '^(%a+):(.+)$')
  if kinds.KINDS[kind or ''] then
    return kind, name
  end
end

local function new_gate(ledger, id)
  local R = ledger.R
  local kind, name = gate.read(id)
  if not kind then
    fail('ELATER_GATE', quote(id) .. ' is no gate')
  end
  local g = {id = id, kind = kind, name = name, key = R .. ':' .. id,
             waiters = R .. ':wait:' .. id, limit = nil, granted = nil, free = nil, is_armed = nil}
  if kind ~= 'lock' then
    g.limit = limits.limit_of(R, kind, name)
  end
  -- Each algorithm has a key of its own: it cannot read the data of another.
  if kind == 'rate' then
    g.key = g.limit and R .. ':rate:' .. g.limit.algorithm .. ':' .. name
    g.granted = R .. ':rate:granted:' .. name
  end
  return g
end

-- -> the gate of this id as the call knows it; fails with ELATER_GATE if it is none.
function gate.of(ledger, id)
  local g = ledger.gates[id]
  if not g then
    g = new_gate(ledger, id)
    ledger.gates[id] = g
  end
  return g
end

-- -> how many permits are free now, less than 0 if the limit has become lower than the number of
-- holders. A semaphore or a rate without a definition is closed, and a note tells `later health`.
function gate.free_permits(ledger, g)
  local free = g.free
  if not free then
    if g.kind ~= 'lock' and not g.limit then
      tidy.note(ledger.R, string.sub('no-limit:' .. g.name, 1, tidy.NOTE_BYTES), ledger.now_ms)
      free = 0
    else
      free = kinds.KINDS[g.kind].free_permits(ledger, g)
    end
    change.assign(g, 'free', free)
  end
  return free
end

-- For a gate without a free permit. -> when one becomes free by itself, ms; nil: only a holder
-- that goes frees one
function gate.opens(ledger, g)
  if g.kind ~= 'lock' and not g.limit then
    return nil
  end
  return kinds.KINDS[g.kind].opens(ledger, g)
end

-- n permits are free from now on.
function gate.set_free(g, n)
  change.assign(g, 'free', n)
  if g.is_armed then
    change.assign(g, 'is_armed', false)
  end
end

-- n more permits are free (fewer if n < 0). If the number was not asked for yet, there is
-- nothing to do.
function gate.add_free(g, n)
  if g.free then
    gate.set_free(g, g.free + n)
  end
end

-- Take a free permit. until_ms: the end of the lease; nil: as long as the holder lives.
-- is_reserved: the holder was not told yet; until then the depth of a lock is 0.
function gate.take(ledger, g, holder, fence, until_ms, is_reserved)
  kinds.KINDS[g.kind].take(ledger, g, holder, fence, until_ms, is_reserved)
end

-- Take a permit for a job that is granted. A rate only reserves a permit, and counts it when
-- the job is claimed (gate.count_claim). So a grant that is taken back costs nothing, and a queue
-- without room saves up no permits.
function gate.promise(ledger, g, job)
  if g.kind == 'rate' then
    gate.add_free(g, -db('SADD', g.granted, job))
  else
    gate.take(ledger, g, job, g.kind == 'lock' and clock.tick(ledger.R, ledger.now_us, 1) or nil)
  end
end

-- Does this gate refuse even jobs that were granted a permit? Only a rate does, when it was closed
-- meanwhile: its limit is 0, or it was deleted. A permit of a lock or a semaphore stays.
function gate.is_closed_rate(g)
  return g.kind == 'rate' and (not g.limit or g.limit.n == 0)
end

-- -> the number of the first rate of a spot that lets nobody in; nil: none.
function gate.closed_rate(ledger, spot)
  for i, id in ipairs(spot and spot.gates or {}) do
    if gate.is_closed_rate(gate.of(ledger, id)) then
      return i
    end
  end
  return nil
end

-- A granted job is claimed: its locks get the fence that its handler is told, its rates count
-- the claim.
function gate.count_claim(ledger, job, gates, fence)
  for _, id in ipairs(gates or {}) do
    local g = gate.of(ledger, id)
    if g.kind == 'lock' then
      kinds.refence(g, job, fence)
    elseif g.kind == 'rate' then
      gate.add_free(g, db('SREM', g.granted, job))
      gate.take(ledger, g, job, fence)
      gate.touch(ledger, id)
    end
  end
end

-- Free the permit of a holder, if it has one. A rate keeps the claims that it has counted. ->
-- whether it had one
function gate.drop(ledger, g, holder)
  return gate.drop_all(ledger, g, {holder})
end

-- The same for many holders of one gate. -> whether any had one
function gate.drop_all(ledger, g, holders)
  if kinds.KINDS[g.kind].drop(ledger, g, holders) then
    gate.touch(ledger, g.id)
    return true
  end
  return false
end

-- Learn of many gates by few reads: mostly nobody waits for them, and nobody has the locks. It only
-- asks which keys exist, so a gate with a key of a foreign type does not stop the others.
function gate.load(ledger, ids)
  local waiters, locks, R = {}, {}, ledger.R
  for i = 1, #ids do
    local id = ids[i]
    waiters[i] = R .. ':wait:' .. id
    locks[#locks + 1] = string.sub(id, 1, 5) == 'lock:' and R .. ':' .. id or nil
  end
  txn.learn_absent(waiters)
  txn.learn_absent(locks)
end
