-- A sync over rows: what most syncs do, in a straight line.
--
-- It loads a row of each thing that the sync touches (the jobs that end, their gates, the first
-- waiters, the jobs that are due), by one command a key; decides on these rows; and writes each key
-- once. What it does not know is odd: row_sync.odd ends it before anything is written, and
-- syncs.sync makes the sync anew in a transaction, which knows every case. Both have the same
-- outcome, to the key.
--
-- Odd are: results but plain ends, progress, retries, deaths and jobs that are kept; jobs that are
-- cancelled, waited for or followed when they end; batches that end or lost a member; unique keys
-- with a successor; rates that are shut or no token buckets; leases; programs and callers among the
-- waiters, permits for two waiters at once, spots with several gates; pauses that end; queues that
-- are flagged (suspects, pinned and granted jobs, those aside) or have raw members; jobs of a fair
-- queue that fail, are parked or let in; jobs that tell a checkpoint, or start or end and have kept
-- something (core/resume.lua); timers that are due; large payloads; and whatever is corrupt or of a
-- foreign type.
--
-- s, what one such sync knows:
--   R, q (the request), now_us, now_ms, now_text, number (the next one of the clock), first_number,
--   clock (the text that is there)
--   has_flags, has_left, is_watched, has_resume: see note_rare; cancels: ids, as the reply tells
--   them
--   gates: id -> gate (gates.lua), order: the same as a list
--   names, of_queue, flags, paused, taken, keys, heads (queue.lua), room: queue -> how many jobs it
--   may still claim; claimed, bytes, parked, max: as in claim/claims.lua
--   let_in: queue -> rows (waiters.lua), offers
--   retried, progress, had, gone, waiting, late, counts, host, answers: results.lua; kept:
--   kept.lua; members: members.lua; shares (ends.lua), fair: queue -> f, fair_list: tenants.lua;
--   is_rare: one of these; woken: queues whose workers are woken
--   starts: {n, running, tries, n_held, holds, old_ids, old_tries}, groups: as in
--   claim/starting.lua
--   adds, removals, last: the writes (writes.lua)

local row_sync = module 'rows/sync'
local claims, syncs, clock, events, row_ends, plans, row_queues, row_waiters, writes = use(
  'claim/claims', 'claim/syncs', 'core/clock', 'core/events', 'rows/ends', 'rows/plan',
  'rows/queue', 'rows/waiters', 'rows/writes')
local ODD = {}
local NEVER, SYNC_BYTES, CLAIMS_MAX = LATEST, claims.SYNC_BYTES, claims.CLAIMS_MAX

-- This sync is none for rows.
function row_sync.odd()
  error(ODD, 0)
end

-- -> the jobs of this worker that are to be cancelled. A flag of a job that does not run is odd.
local function read_cancels(s)
  local mine, ids = {}, redis.call('HKEYS', s.R .. ':cancel')
  local n = math.min(#ids, syncs.CANCELS_MAX)
  local owners = n > 0 and redis.call('ZMSCORE', s.R .. ':running', unpack(ids, 1, n)) or {}
  for i = 1, n do
    if not owners[i] then
      row_sync.odd()
    elseif owners[i] == s.epoch_text then
      mine[#mine + 1] = ids[i]
    end
  end
  return mine
end

-- n of the keys that need_common asks for are there. has_flags: of jobs or queues; has_left: what
-- earlier attempts left.
local function note_rare(s, n)
  local R = s.R
  local cancel, await, resume = R .. ':cancel', R .. ':await', R .. ':resume'
  local flags = redis.call('EXISTS', cancel, await, resume, R .. ':paused', R .. ':prio',
                           R .. ':queues')
  s.has_flags, s.has_left = flags > 0, flags < n
  if flags > 0 and redis.call('EXISTS', cancel, await, resume) > 0 then
    s.is_watched, s.cancels = true, read_cancels(s)
    s.has_resume = redis.call('EXISTS', resume) > 0
  end
end

-- No timer is due. One EXISTS tells, mostly, that nothing else is rare.
local function need_common(s)
  local R = s.R
  local n = redis.call('EXISTS', R .. ':cancel', R .. ':await', R .. ':paused', R .. ':prio',
                       R .. ':queues', R .. ':progress', R .. ':errors', R .. ':failures',
                       R .. ':results', R .. ':resume')
  if n > 0 then
    note_rare(s, n)
  end
  local first = redis.call('ZRANGE', R .. ':timers', 0, 0, 'WITHSCORES')
  s.timer_ms = tonumber(first[2]) or NEVER
  if s.timer_ms <= s.now_ms then
    row_sync.odd()
  end
end

local function new_sync(R, q)
  local now_us = q.now_us
  local now_ms = clock.ms(now_us)
  local starts = {n = 0, n_held = 0, running = {}, tries = {}, holds = {}, old_ids = {},
                  old_tries = {}}
  return {R = R, q = q, epoch_text = q.epoch_text, now_us = now_us, now_ms = now_ms,
          now_text = int(now_ms), gates = {}, order = {}, room = {}, claimed = 0,
          bytes = SYNC_BYTES, parked = 0, max = math.min(q.max, CLAIMS_MAX), let_in = {},
          offers = 0, groups = {}, adds = {}, removals = {}, starts = starts}
end

local function run(R, q)
  local s = new_sync(R, q)
  need_common(s)
  row_queues.load_queues(s)
  row_ends.load_ends(s)
  row_waiters.open_gates(s)
  local heads = row_queues.claim_rows(s)
  plans.plan_writes(s)
  writes.write_all(s)
  return {now_us = s.now_us, status = 'ok', answers = s.answers or {}, refused = {},
          groups = s.groups, heads = heads, errors = {}, cancels = s.cancels or {}, solo_due = 0,
          timer_ms = s.is_more and s.now_ms or s.timer_ms < NEVER and s.timer_ms or -1}
end

-- -> the reply of a sync; nil: it is odd, and nothing was changed
function row_sync.run(R, q)
  local ok, reply = pcall(run, R, q)
  if ok then
    return reply
  elseif type(reply) == 'table' and reply.failed then
    error(reply.failed, 0) -- a write, and all was undone
  elseif type(reply) == 'string' and not string.find(reply, '^%u+ ') then
    error(reply, 0) -- an error of Lua
  end
  -- It is odd, or a key that it read has a foreign type. Redis makes text of its errors in pcall.
  if events.now then
    events.begin(R)
  end
  return nil
end
