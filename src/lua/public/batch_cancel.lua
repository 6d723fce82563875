-- later_batch_cancel R NAME [BEFORE] -> [cancelled, cancelling, BEFORE]
--
-- Cancel the live members of a batch, as later_cancel does, a hundred a call, the newest first: so
-- none gets the place of one that runs and is cancelled. BEFORE is that of the last reply, empty or
-- left out first; empty in a reply: there are no more. cancelled: how many ended; cancelling: how
-- many run and were flagged. The first call seals the batch, and from then on nothing joins it, no
-- children and no next jobs of chains.
-- Errors: ELATER_ARGS BATCH NOBATCH TYPE. Cost: O(log n) a member.

local batches, membership, clock, job_sets, jobs, gate, waiters, cancels = use(
  'batch/batches', 'batch/membership', 'core/clock', 'core/job_sets', 'core/jobs', 'gates/gate',
  'gates/waiters', 'public/cancel')
local PAGE = 100

-- -> how many live members come before this id, before all if it is empty
local function count_before(key, id)
  if id == '' then
    return redis.call('ZCOUNT', key, 0, 0)
  end
  local n = job_sets.rank_behind(key, '0', id)
  return redis.call('ZSCORE', key, id) == '0' and n - 1 or n
end

register('later_batch_cancel', {'allow-oom'}, function(R, args)
  local batch, before = batches.need(R, args[1]), args[2] or ''
  if before ~= '' and not is_id(before) then
    fail('ELATER_ARGS', 'give NAME [BEFORE], the id of the last reply')
  end
  local ledger, key = gate.ledger(R, clock.now_us()), R .. ':members:' .. batch.name
  db('ZCARD', key) -- a key of a foreign type is met here
  local n = count_before(key, before)
  local ids = n > 0 and redis.call('ZRANGE', key, math.max(n - PAGE, 0), n - 1) or {}
  if not batch.cancelled_ms then
    membership.seal(R, batch, ledger.now_ms, 'cancelled_ms')
  end
  local cancelled, cancelling = 0, 0
  for i = #ids, 1, -1 do
    local state, job, tries = jobs.locate(R, ids[i])
    if job and jobs.is_live(state) then
      local answer = cancels.cancel(ledger, ids[i], state, job, tries)
      cancelled = cancelled + (answer == 'cancelled' and 1 or 0)
      cancelling = cancelling + (answer == 'cancelling' and 1 or 0)
    end
  end
  waiters.hand_on(ledger)
  return {cancelled, cancelling, n > PAGE and ids[1] or ''}
end)
