-- later_v1_purge R QUEUE STATE MOST -> [removed, left]
--
-- Remove jobs of a queue that are in one state, the first ones first: at most MOST, and no more
-- than one call may (100 waiting, 40 parked, 200 dead or done, about 1 MiB). STATE: due (waiting,
-- raw members included) parked dead done. MOST 0 only counts. All that a job had is removed, too:
-- its payload, its spot and its grant, its unique key (unless unique_for holds it longer).
-- A program that waits for its end is told that it was cancelled. A token stays for its 24 h, as
-- after a cancel. Waiting and parked jobs count as cancelled.
-- Errors: ELATER_ARGS QUEUE TYPE. Cost: O(removed log n).

local purges = module 'calls/purge'
local membership, pins, clock, events, job_sets, jobs, tenants, gate, uniques, waiters,
      commit = use(
  'batch/membership', 'broadcast/pins', 'core/clock', 'core/events', 'core/job_sets', 'core/jobs',
  'fair/tenants', 'gates/gate', 'gates/uniques', 'gates/waiters', 'txn/commit')
local MOST = {due = 100, parked = 40, dead = 200, done = 200}
local BYTES = 1048576

-- These jobs will never run: announce their ends, free their unique keys, tell their batches,
-- forget them.
local function drop(R, queue, ids, records, now_ms)
  local is_awaited = db('EXISTS', R .. ':await') == 1
  for i, id in ipairs(ids) do
    if is_awaited then
      jobs.announce(R, id, jobs.outcome('cancelled', 0, now_ms, 0, 'purged', ''))
    end
    -- A search in the header is cheaper than to parse each one.
    if string.find(string.sub(records[i], 1, HEADER_MAX), ' [ub]=') then
      local job = jobs.parse(records[i])
      uniques.free_of(R, id, job)
      membership.end_member(R, job and job.b, id, 'cancelled', now_ms)
    end
  end
  jobs.forget(R, ids)
  commit.count(R, 'cancelled', queue, #ids)
  for i = 1, events.now and #ids or 0 do
    events.add('cancelled', ids[i], queue, nil, nil, nil, 0, 'purged')
  end
end

-- These waiting jobs leave their set, and their tenants where the queue is fair.
local function leave(R, queue, key, ids, records)
  local dues = tenants.are_kept(R, queue) and db('ZMSCORE', key, unpack(ids)) or {}
  db('ZREM', key, unpack(ids))
  for i, due in pairs(dues) do
    local job = jobs.parse(records[i]) or {queue = queue, priority = 5}
    tenants.remove(R, ids[i], job, due and to_due(due))
  end
end

-- Remove these jobs with ids from a set of the queue. records: as job_sets.read_records returns
-- them, for waiting and parked ones. The caller hands on what parked ones were let in at. Dead and
-- done jobs ended before: their ends were announced then, and a unique key that is still taken has
-- an expiry.
function purges.remove(ledger, queue, state, set, ids, records)
  local R = ledger.R
  if state == 'parked' then
    for _, id in ipairs(ids) do
      waiters.unpark(ledger, queue, id)
    end
  elseif ids[1] then
    leave(R, queue, set.key, ids, records)
  end
  if state == 'parked' or state == 'due' then
    drop(R, queue, ids, records, ledger.now_ms)
  else
    jobs.forget(R, ids)
  end
end

-- Put the flags of the queue right, and its head. A sync would correct the head. Without workers,
-- stats would show a job that is gone. removed: how many jobs in this state were; sets: of it
-- -> how many are left
function purges.after(R, queue, state, sets, removed)
  local left = job_sets.count_in(sets)
  for _, set in ipairs(sets) do
    if set.target then
      pins.drop(R, queue, set.target)
    end
  end
  if sets[#sets].target and pins.flag_of(R, queue) == '' then
    jobs.flag_clear(R, queue, 'p')
  end
  if state == 'due' and removed > 0 and left == 0 and
     db('EXISTS', R .. ':granted:' .. queue) == 0 then
    db('ZREM', R .. ':heads', queue)
  end
  return left
end

-- -> the first ids of a set, as many as a call may read the records of; their records; how many
-- bytes are left. bytes: nil for all that a call may read
local function first_of(R, key, most, bytes)
  local ids = db('ZRANGE', key, 0, most - 1)
  local records, left = job_sets.read_records(R, ids, bytes or BYTES)
  for i = #ids, #records + 1, -1 do
    ids[i] = nil
  end
  return ids, records, left
end

-- The jobs of many targets, each of which may have one only. sets: from number `from` on
local function purge_pinned(ledger, queue, sets, from, most)
  local R, all, records, bytes = ledger.R, {}, {}, BYTES
  most = math.min(most, MOST.due)
  for s = from, #sets do
    if #all >= most or bytes <= 0 then
      break
    end
    local ids, its_records, left = first_of(R, sets[s].key, most - #all, bytes)
    for i, id in ipairs(ids) do
      all[#all + 1], records[#records + 1] = id, its_records[i]
    end
    if ids[1] then
      db('ZREM', sets[s].key, unpack(ids))
    end
    bytes = left
  end
  drop(R, queue, all, records, ledger.now_ms)
  return #all
end

-- The first jobs of a set. -> how many were removed
local function purge_jobs(ledger, queue, state, set, most)
  local ids, records = first_of(ledger.R, set.key, math.min(most, MOST[state]))
  purges.remove(ledger, queue, state, set, ids, records)
  if state == 'parked' then
    waiters.hand_on(ledger)
  end
  return #ids
end

local function purge_waiting(ledger, queue, set, most)
  if set.is_raw then
    local rows, members = job_sets.read_set(set.key, 0, math.min(most, MOST.due), BYTES), {}
    for i = 1, #rows, 2 do
      members[#members + 1] = rows[i]
    end
    db('ZREM', set.key, unpack(members))
    commit.count(ledger.R, 'cancelled', queue, #members)
    return #members
  end
  return purge_jobs(ledger, queue, 'due', set, most)
end

-- Remove from the first of the sets that is not empty, or from all of targets. -> how many were
-- removed
local function purge(R, queue, state, sets, most)
  local ledger = gate.ledger(R, clock.now_us())
  for s, set in ipairs(sets) do
    if db('EXISTS', set.key) == 1 then
      if set.target then
        return purge_pinned(ledger, queue, sets, s, most)
      elseif state == 'due' then
        return purge_waiting(ledger, queue, set, most)
      end
      return purge_jobs(ledger, queue, state, set, most)
    end
  end
  return 0
end

register('later_v1_purge', {'allow-oom'}, function(R, args)
  local queue, state, most = check_queue(args[1]), args[2], whole(args[3])
  local sets = state ~= 'running' and job_sets.sets_of(R, queue, state)
  if not sets or not most then
    fail('ELATER_ARGS', 'give QUEUE STATE (due parked dead done) MOST')
  end
  local removed = most > 0 and purge(R, queue, state, sets, most) or 0
  return {removed, purges.after(R, queue, state, sets, removed)}
end)
