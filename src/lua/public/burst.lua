-- What a burst of adds knows: adds to one root in one millisecond, between which no other function of ours ran. The first
-- one to a queue finds that it has no gates and sees to its head; the others need not do it again, 7 % of what an add
-- costs. Whatever could change that is another function, which ends the burst, or leaves another clock behind (an emptied
-- database, or one of another number). What is changed by hand is met a millisecond later.

local root, instant, heads

-- -> a time by which the head of a queue without gates is due; nil: not known
function L.burst_head(R, queue, now_ms)
  if not L.was_burst or R ~= root or now_ms ~= instant then
    root, instant, heads = R, now_ms, {}
  end
  return heads[queue]
end

-- The clock does not say that this is the database that it knows: none begins with this call.
function L.forget_burst()
  heads = nil
end

-- The call has added to this queue, which has no gates, and its head is not later than `due`.
function L.go_on_with_burst(queue, due)
  if not heads then
    return
  end
  L.is_burst = true
  local head = heads[queue]
  if not head or due < head then
    heads[queue] = due
  end
end
