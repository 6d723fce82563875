-- later_v1_batches R CURSOR -> [CURSOR, [name, state, created_ms, total, live, done, dead,
--   cancelled]...]
--
-- A page of all batches, those that have ended and are not forgotten, too. CURSOR: 0 first, then
-- that of the last reply; 0 in a reply: there are no more. no-writes. Cost: O(log n) a batch.

local batches, membership, txn = use('batch/batches', 'batch/membership', 'txn/txn')
local PAGE = 50

register('later_v1_batches', {'no-writes'}, function(R, args)
  if not whole(args[1]) then
    fail('ELATER_ARGS', 'give CURSOR')
  end
  local page = txn.ask(R .. ':batches', 'hash', 'HSCAN', args[1], 'COUNT', PAGE)
  local out = {page[1]}
  for i = 1, #page[2], 2 do
    local batch = batches.of(R, page[2][i])
    if batch then
      local n = membership.batch_counts(R, batch.name)
      out[#out + 1] = {batch.name, batches.state(batch), batch.created_ms or 0, n.total, n.live,
                       n.done, n.dead, n.cancelled}
    end
  end
  return out
end)
