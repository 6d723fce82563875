-- later_bulk_abort R ID [WHO] -> [id, 'aborted', left]
--
-- End an active bulk. What it has changed stays so, and what it has not met stays as it is. left:
-- how many it has not met, at most.
-- Errors: ELATER_NOBULK STATE OPTION TYPE. Cost: O(1).

local bulks, clock = use('bulk/bulks', 'core/clock')

register('later_bulk_abort', {'allow-oom'}, function(R, args)
  local bulk = bulks.need(R, args[1])
  if bulk.status ~= 'active' then
    fail('ELATER_STATE', 'bulk ' .. bulk.id .. ' is ' .. bulk.status .. ' already')
  end
  bulks.finish(bulk, 'aborted', clock.ms(clock.now_us()))
  bulk.aborted_by = args[2] and args[2] ~= '' and bulks.line('by', args[2], bulks.WHO_MAX) or nil
  bulks.put(R, bulk)
  return {bulk.id, 'aborted', (bulks.left(bulk))}
end)
