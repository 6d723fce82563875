-- later_batch_jobs R NAME [live|done|dead|cancelled] [CURSOR] -> [CURSOR, [id, state]...]
--
-- A page of the members of a batch, of all or of those in one state. CURSOR: 0 first, then that of
-- the last reply; 0 in a reply: there are no more. A page may be empty. As with ZSCAN, a member
-- that is there all the time comes at least once.
-- Errors: ELATER_ARGS BATCH NOBATCH TYPE. no-writes. Cost: O(1) a page.

local batches, membership, txn = use('batch/batches', 'batch/membership', 'txn/txn')
local PAGE = 500

register('later_batch_jobs', {'no-writes'}, function(R, args)
  local batch = batches.need(R, args[1])
  local state, cursor = args[2], args[3]
  if not cursor and state and whole(state) then
    state, cursor = nil, state
  end
  if state and not membership.MEMBER_STATES[state] or cursor and not whole(cursor) then
    fail('ELATER_ARGS', 'give NAME [live|done|dead|cancelled] [CURSOR]')
  end
  local page = txn.ask(R .. ':members:' .. batch.name, 'zset', 'ZSCAN', cursor or '0', 'COUNT',
                       PAGE)
  local names, out = {}, {page[1]}
  for name, score in pairs(membership.MEMBER_STATES) do
    names[score] = name
  end
  for i = 1, #page[2], 2 do
    local name = names[tonumber(page[2][i + 1])]
    if not state or name == state then
      out[#out + 1] = {page[2][i], name or 'unknown'}
    end
  end
  return out
end)
