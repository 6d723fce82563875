-- Grants: jobs that hold all their gates, to be claimed before all others of their queue
-- (gate_waiters.lua). Where the step that grants a job claims it as well, the grant is not written.

L.GRANT_MS = 1000           -- a grant that no worker claims within it goes back

-- Write to R:holds the gates that a waiting job has.
function L.hold(book, job, gates, n)
  db('HSET', book.R .. ':holds', job, table.concat(gates, '\n', 1, n))
end

-- Write the grant of a job that has all its gates and waits for none any more.
function L.grant(book, queue, job, spot)
  spot.at = 0
  L.hold(book, job, spot.gates, #spot.gates)
  db('HSET', book.R .. ':parked', job, L.spot_text(spot))
  db('ZADD', book.R .. ':granted:' .. queue, book.now_ms, job)
  L.mark_set(book.R, queue, 'g')
  L.arm(book, 'granted:' .. queue, book.now_ms + L.GRANT_MS)
  book.granted[queue] = true
end

-- A job has all its gates and waits for none any more. Where this step claims next, it is put
-- into book.let_in, from which granted.lua claims it; else its grant is written. So is that of a
-- job with a permit of a rate that was closed since: the next claim takes it back.
function L.let_in(book, queue, job, spot)
  local list = book.let_in[queue]
  if not book.claims_next or (book.room[queue] or 0) == 0 or L.closed_rate(book, spot) or
     not list and db('ZCARD', book.R .. ':granted:' .. queue) > 0 then
    L.grant(book, queue, job, spot)
    return
  end
  -- L.grant_rest may write these keys later, and must not fail then.
  L.need_types(book.R, {'holds', 'hash', 'timers', 'zset', 'prio', 'hash'})
  if not list then
    list = {}
    L.assign(book.let_in, queue, list)
  end
  L.assign(list, #list + 1, {id = job, spot = spot, due = spot.due, gates = spot.gates,
                             high = tonumber(string.sub(job, 2, 7), 36) or 0,
                             low = tonumber(string.sub(job, 8), 36) or 0})
end

-- Write the grants of jobs that were let in and that this step has not claimed.
function L.grant_rest(book, queue)
  local list = book.let_in[queue]
  L.assign(book.let_in, queue, nil)
  for _, row in ipairs(list or {}) do
    if not row.is_claimed then
      L.grant(book, queue, row.id, row.spot)
    end
  end
end

-- May one more job of the queue be granted? As many as the worker of this call has room for. Where
-- it has no room or did not name the queue: one, if some worker has room, or if the job was refused
-- often enough (is_its_turn), since workers that are busy each time would never come to it, and a
-- grant waits for a while. -> 'yes', 'enough' (as many as there is room for), 'no' (no worker has
-- room)
function L.may_grant(book, queue, is_its_turn)
  local own, granted = book.room[queue] or 0, db('ZCARD', book.R .. ':granted:' .. queue)
  granted = granted + #(book.let_in[queue] or {})
  if own > 0 or granted > 0 then
    return granted < own and 'yes' or 'enough'
  end
  return (is_its_turn or L.has_taker(book, queue)) and 'yes' or 'no'
end
