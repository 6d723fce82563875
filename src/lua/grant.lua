-- Grants: jobs that hold all their gates, to be claimed before all others of their queue (gate_line.lua).
--
-- What the step that is made may claim itself is not written: it stays in book.fresh until it is claimed, and what is
-- not claimed after all is written then.

L.GRANT_MS = 1000           -- a grant that no worker claims within it goes back

-- Set a mark of a queue (L.mark_set), also where the call has read them.
function L.mark(book, queue, what)
  local marks = book.marks[queue]
  if not marks or not string.find(marks, what, 1, true) then
    L.mark_set(book.R, queue, what)
    book.marks[queue] = marks and marks .. what
  end
end

-- What a job holds while it waits.
function L.hold(book, job, gates, n)
  redis.call('HSET', book.R .. ':holds', job, table.concat(gates, '\n', 1, n))
end

local function write_grant(book, queue, job, spot)
  L.hold(book, job, spot.gates, #spot.gates)
  redis.call('HSET', book.R .. ':parked', job, L.spot_text(spot))
  redis.call('ZADD', book.R .. ':granted:' .. queue, L.int(book.now_ms), job)
  L.mark(book, queue, 'g')
  L.arm(book, 'granted:' .. queue, book.now_ms + L.GRANT_MS)
  book.granted[queue] = true
end

-- The step that is made claims next, of a queue where nobody was granted anything before.
local function is_fresh(book, queue)
  return book.claims_next and book.marks[queue] and not string.find(book.marks[queue], 'g', 1, true)
end

function L.grant(book, queue, job, spot)
  spot.at = 0
  if is_fresh(book, queue) then
    book.fresh[queue] = book.fresh[queue] or {}
    table.insert(book.fresh[queue], {id = job, spot = spot})
  else
    write_grant(book, queue, job, spot)
  end
end

-- The grants of a queue that are not written, in the order of R:granted: {id, spot, is_taken} each, or nil.
function L.fresh_grants(book, queue)
  local list = book.fresh[queue]
  if list then
    table.sort(list, function(a, b) return a.id < b.id end)
  end
  return list
end

-- It is claimed.
function L.take_fresh(book, queue, one)
  one.is_taken = true
  redis.call('ZREM', book.R .. ':parked:' .. queue, one.id)
  redis.call('HDEL', book.R .. ':parked', one.id)
end

-- It is not claimed now: write it.
function L.keep_fresh(book, queue, one)
  one.is_taken = true
  write_grant(book, queue, one.id, one.spot)
end

-- Those that nobody took on are written.
function L.keep_all_fresh(book, queue)
  for _, one in ipairs(book.fresh[queue] or {}) do
    if not one.is_taken then
      L.keep_fresh(book, queue, one)
    end
  end
  book.fresh[queue] = nil
end

-- How many of a queue are granted and not claimed.
local function count_granted(book, queue)
  local marks = book.marks[queue]
  if marks and not string.find(marks, 'g', 1, true) then
    return #(book.fresh[queue] or {})
  end
  return redis.call('ZCARD', book.R .. ':granted:' .. queue)
end

-- May one more of it be granted? As many as the caller has room for; when it has none or did not name the queue,
-- one, if any worker would take it, or if it was refused this often enough (is_its_turn): a worker that is busy each
-- time would never come to it, and a grant waits for it for a while. -> 'yes', 'enough': what is granted will do, or
-- 'no': nobody would take it
function L.may_grant(book, queue, is_its_turn)
  local own, granted = book.room[queue] or 0, count_granted(book, queue)
  if own > 0 or granted > 0 then
    return granted < own and 'yes' or 'enough'
  end
  return (is_its_turn or L.has_taker(book, queue)) and 'yes' or 'no'
end
