-- Grants: jobs that hold all their gates, to be claimed before all others of their queue
-- (waiters.lua). Where the sync that grants a job claims it as well, the grant is not written.

local grants = module 'gates/grants'
local rooms, jobs, gate, waiters, change, txn = use(
  'claim/rooms', 'core/jobs', 'gates/gate', 'gates/waiters', 'txn/change', 'txn/txn')

grants.GRANT_MS = 1000           -- a grant that no worker claims within it goes back

-- Write to R:holds the gates that a waiting job has.
function grants.hold(ledger, job, gates, n)
  db('HSET', ledger.R .. ':holds', job, table.concat(gates, '\n', 1, n))
end

-- Write the grant of a job that has all its gates and waits for none any more.
function grants.grant(ledger, queue, job, spot)
  spot.at = 0
  grants.hold(ledger, job, spot.gates, #spot.gates)
  db('HSET', ledger.R .. ':parked', job, waiters.spot_text(spot))
  db('ZADD', ledger.R .. ':granted:' .. queue, ledger.now_ms, job)
  jobs.flag_set(ledger.R, queue, 'g')
  waiters.arm(ledger, 'granted:' .. queue, ledger.now_ms + grants.GRANT_MS)
  ledger.granted[queue] = true
end

-- A job has all its gates and waits for none any more. Where this sync claims next, it is put
-- into ledger.let_in, from which claim/granted.lua claims it; else its grant is written. So is that
-- of a job with a permit of a rate that was closed since: the next claim takes it back.
function grants.let_in(ledger, queue, job, spot)
  local list = ledger.let_in[queue]
  if not ledger.claims_next or (ledger.room[queue] or 0) == 0 or gate.closed_rate(ledger, spot) or
     not list and db('ZCARD', ledger.R .. ':granted:' .. queue) > 0 then
    grants.grant(ledger, queue, job, spot)
    return
  end
  -- grants.grant_rest may write these keys later, and must not fail then.
  txn.need_types(ledger.R, {'holds', 'hash', 'timers', 'zset', 'prio', 'hash'})
  if not list then
    list = {}
    change.assign(ledger.let_in, queue, list)
  end
  change.assign(list, #list + 1, {id = job, spot = spot, due = spot.due, gates = spot.gates,
                                  high = tonumber(string.sub(job, 2, 7), 36) or 0,
                                  low = tonumber(string.sub(job, 8), 36) or 0})
end

-- Write the grants of jobs that were let in and that this sync has not claimed.
function grants.grant_rest(ledger, queue)
  local list = ledger.let_in[queue]
  change.assign(ledger.let_in, queue, nil)
  for _, row in ipairs(list or {}) do
    if not row.is_claimed then
      grants.grant(ledger, queue, row.id, row.spot)
    end
  end
end

-- May one more job of the queue be granted? As many as the worker of this call has room for. Where
-- it has no room or did not name the queue: one, if some worker has room, or if the job was refused
-- often enough (is_its_turn), since workers that are busy each time would never come to it, and a
-- grant waits for a while. -> 'yes', 'enough' (as many as there is room for), 'no' (no worker has
-- room)
function grants.may_grant(ledger, queue, is_its_turn)
  local own, granted = ledger.room[queue] or 0, db('ZCARD', ledger.R .. ':granted:' .. queue)
  granted = granted + #(ledger.let_in[queue] or {})
  if own > 0 or granted > 0 then
    return granted < own and 'yes' or 'enough'
  end
  return (is_its_turn or rooms.has_taker(ledger, queue)) and 'yes' or 'no'
end
