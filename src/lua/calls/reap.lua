-- later_v1_reap R EPOCH VICTIM COUNTER CRASHES DEAD_MAX -> [status, moved]
--
-- Take back the jobs of VICTIM, a worker that died. EPOCH: the caller, which must be alive.
-- COUNTER: the beat counter of the victim that the caller saw stand still. The first call compares
-- it and replaces it by `dead`: from then on beats and syncs of the victim are refused. '?' for an
-- epoch that holds jobs but is no worker.
-- Each call moves up to 128 jobs, or about 1 MiB of what they have, and any worker may go on; when
-- no job is left, the victim's entry is removed. A moved job has a crash counted and its attempt
-- spent; with CRASHES crashes it is dead. DEAD_MAX: most dead jobs kept in a queue. A job that
-- cannot be moved (a key of its queue has a foreign type) stays and does not stop the others. Gates
-- of moved jobs are handed on, and so is the gate that the worker itself held or waited for.
-- status: more | clear | alive (the counter moved: nothing was done) | dead or unknown (the
-- caller).
-- Cost: O(jobs moved * log n).

local reaps = module 'calls/reap'
local beats, workers, clock, events, jobs, gate, holding, waiters, locks, change, commit, txn = use(
  'calls/beat', 'calls/register', 'core/clock', 'core/events', 'core/jobs', 'gates/gate',
  'gates/holding', 'gates/waiters', 'public/lock', 'txn/change', 'txn/commit', 'txn/txn')
local REAP_MAX = 128
local REAP_LOOK = 1024

-- The text of a crash. later_v1_register recognizes a reaped job by it.
function reaps.died(victim)
  return 'worker ' .. victim .. ' died while it ran'
end

local function recover(R, id, victim, now_ms, crashes, dead_max)
  txn.spend(#(db('HGET', R .. ':jobs', id) or '')) -- of a job that ends here, too
  local job, tries = workers.take_from_worker(R, id, 'cancelled; its worker died', now_ms)
  if not job then
    return
  end
  db('HDEL', R .. ':progress', id)
  tries.crashes = tries.crashes + 1
  db('HSET', R .. ':tries', id, jobs.tries_text(tries, tries.due or now_ms))
  local text = reaps.died(victim) .. ' (crash ' .. int(tries.crashes) .. ')'
  jobs.keep_failure(R, id, now_ms, victim, 0, text)
  commit.count(R, 'failed', job.queue, 1)
  if tries.crashes >= crashes then
    jobs.bury(R, job.queue, id, jobs.outcome('dead', 0, now_ms, tries.starts, 'poison pill: ' ..
                                             text, ''), now_ms, dead_max)
    return
  end
  db('HSET', R .. ':errors', id, jobs.outcome('failed', 0, now_ms, tries.starts, text, ''))
  jobs.enqueue(R, id, job, tries, tries.due or now_ms)
  if events.now then
    events.add('failed', id, job.queue, tries.due or now_ms, tries.starts, tries.attempts, nil,
               text)
  end
end

-- Write `dead` for the worker, if its counter is still the one that the caller saw ('?': the worker
-- was lost or dead before). -> nil; or why not: alive, clear (there is nothing to give up)
local function write_off(R, victim, counter)
  local known = db('HGET', R .. ':workers', victim)
  if (counter == '?' and known) and known ~= 'dead' or (counter ~= '?' and not known) then
    return known and 'alive' or 'clear'
  end
  if known and known ~= 'dead' then
    if known ~= counter then
      return 'alive'
    end
    db('HSET', R .. ':workers', victim, 'dead')
  end
  return nil
end

register('later_v1_reap', {'allow-oom'}, function(R, args)
  local epoch, victim, counter = args[1] or '', args[2] or '', args[3]
  local crashes, dead_max = whole(args[4]), whole(args[5])
  -- 007 is no field of R:workers, but as a score it is worker 7, which may live.
  if not (counter and crashes and dead_max and whole(victim)) or int(whole(victim)) ~= victim then
    fail('ELATER_ARGS', 'give EPOCH VICTIM COUNTER CRASHES DEAD_MAX')
  end
  workers.need_worker(R)
  local status = beats.worker(R, epoch)
  if status ~= 'ok' then
    return {status, 0}
  end
  local word = write_off(R, victim, counter)
  if word then
    return {word, 0}
  end
  local ledger = gate.ledger(R, clock.now_us())
  local now_ms, freed = ledger.now_ms, {}
  local ids = db('ZRANGEBYSCORE', R .. ':running', victim, victim, 'LIMIT', 0, REAP_LOOK)
  local moved = 0
  for _, id in ipairs(ids) do
    if moved < REAP_MAX and not txn.is_spent() and change.try(recover, R, id, victim, now_ms,
                                                              crashes, dead_max) then
      moved = moved + 1
      freed[moved] = id
    end
  end
  holding.let_go(ledger, freed)
  if moved < REAP_MAX and moved == #ids then
    locks.leave_gate(ledger, victim)
  end
  waiters.hand_on(ledger)
  if moved == REAP_MAX or moved < #ids then
    return {'more', moved}
  end
  db('HDEL', R .. ':workers', victim)
  change.drop_key(R .. ':worker:' .. victim)
  return {'clear', moved}
end)
