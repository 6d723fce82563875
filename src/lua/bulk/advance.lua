-- A bulk goes on: the next of its jobs are changed, each as the call for one job would.

local advance = module 'bulk/advance'
local bulks, selection, purges, syncs, clock, job_sets, jobs, gate, rates, waiters, cancels, moves,
      retries, change = use(
  'bulk/bulks', 'bulk/selection', 'calls/purge', 'claim/syncs', 'core/clock', 'core/job_sets',
  'core/jobs', 'gates/gate', 'gates/rates', 'gates/waiters', 'public/cancel', 'public/reschedule',
  'public/retry', 'txn/change')
local READS = 4             -- members that are read for each job that may be changed
local PACE_MS = 20          -- a bulk without a rate goes on after this
local BATCH_MS = 100        -- with a rate, so much of it is used at once
local BATCH_MOST = 100
local ERROR_BYTES = 200

-- ---- the rate

local function limit_of(bulk)
  return {n = bulk.rate, per_us = bulk.per_ms * 1000,
          burst = math.max(math.floor(bulk.rate * 1000 / bulk.per_ms), 1)}
end

-- -> how many of a new bulk's rate are used up: all but one
function advance.paced_new(bulk, now_us)
  local limit = limit_of(bulk)
  return rates.gcra_text(now_us, limit.per_us / limit.n * (limit.burst - 1))
end

-- -> how many jobs the rate lets through now
local function allowed(bulk, now_us)
  if not bulk.rate then
    return math.huge
  end
  return rates.gcra_free(rates.read_gcra(limit_of(bulk), bulk.paced, now_us))
end

-- n jobs were changed. -> when it is worth to go on, ms
local function use_rate(bulk, n, now_us)
  local now_ms = clock.ms(now_us)
  if not bulk.rate then
    return now_ms + PACE_MS
  end
  local limit = limit_of(bulk)
  local lead, interval, burst = rates.read_gcra(limit, bulk.paced, now_us)
  lead = lead + n * interval
  bulk.paced = rates.gcra_text(now_us, lead)
  local wanted = math.min(math.max(math.floor(limit.n * BATCH_MS * 1000 / limit.per_us), 1),
                          BATCH_MOST, limit.burst)
  local wait_us = lead - (burst - wanted * interval)
  return now_ms + math.max(math.ceil(wait_us / 1000), PACE_MS / 2)
end

-- ---- one job

local function check_state(id, state, is_fine)
  if not state then
    fail('ELATER_NOJOB', 'job ' .. id .. ' has no record, or a corrupt one')
  elseif not is_fine then
    fail('ELATER_STATE', 'job ' .. id .. ' is ' .. state)
  end
end

-- When a retried job is due. Many that are spread are due one after the other.
local function retry_due(bulk, now_ms)
  local due = bulk.at_ms or bulk.created_ms
  if bulk.spread_ms then
    due = due + math.floor(bulk.spread_ms * (bulk.changed / math.max(bulk.total, 1)))
  end
  return math.min(math.max(due, now_ms), LATEST)
end

local CHANGES = {}

function CHANGES.retry(ledger, bulk, id)
  local state, job, tries = jobs.locate(ledger.R, id)
  check_state(id, state, state == 'dead')
  retries.retry(ledger.R, id, job, tries, retry_due(bulk, ledger.now_ms), bulk.to)
end

function CHANGES.cancel(ledger, _, id)
  local state, job, tries = jobs.locate(ledger.R, id)
  check_state(id, state, state == 'waiting' or state == 'parked')
  cancels.cancel(ledger, id, state, job, tries)
end

function CHANGES.reschedule(ledger, bulk, id)
  local state, job, tries = jobs.locate(ledger.R, id)
  check_state(id, state, state == 'waiting' or state == 'parked')
  moves.move_found(ledger, id, state, job, tries, bulk.at_ms)
end

-- A job whose record is corrupt can be removed, too.
function CHANGES.purge(ledger, bulk, id, set, record)
  local state = jobs.locate(ledger.R, id)
  check_state(id, state or 'lost', state ~= 'running')
  purges.remove(ledger, bulk.queue, bulk.state, set, {id}, {record or ''})
end

-- ---- the bulk

-- Change the next jobs: at most `most`. The bulk is not written. -> whether it has met all
local function change_some(R, bulk, now_us, most, reads)
  local ledger, n = gate.ledger(R, now_us), 0
  local ctx = {changes = math.min(most, allowed(bulk, now_us)), reads = reads}
  local is_over = selection.walk(R, bulk, ctx, function(id, set, record)
    n = n + 1
    local ok, why = change.try(CHANGES[bulk.verb], ledger, bulk, id, set, record)
    if ok then
      bulk.changed = bulk.changed + 1
    else
      bulk.failed = bulk.failed + 1
      bulk.error = string.sub(syncs.error_text(why), 1, ERROR_BYTES)
    end
  end)
  if bulk.state == 'parked' or bulk.verb == 'cancel' then
    change.unless_foreign(waiters.hand_on, ledger)
  end
  if bulk.verb == 'purge' and n > 0 then
    purges.after(R, bulk.queue, bulk.state, job_sets.sets_of(R, bulk.queue, bulk.state), n)
  end
  return is_over, n
end

-- Let a bulk go on, and write it. reads: how many members may be read, nil: some for each job
function advance.run(R, bulk, now_us, most, reads)
  local is_over, n = change_some(R, bulk, now_us, most, reads or READS * most)
  bulk.again_ms = use_rate(bulk, n, now_us)
  if is_over then
    bulks.finish(bulk, 'done', clock.ms(now_us))
  end
  bulks.put(R, bulk)
end
