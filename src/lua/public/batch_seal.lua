-- later_batch_seal R NAME -> [NAME, status]
--
-- Nothing joins the batch from outside any more; its members may still add members. An empty batch
-- ends at once. status: sealed | repeated. Called again it adds callbacks that could not be added
-- before, because of a key of a foreign type or a missing right.
-- Errors: ELATER_BATCH NOBATCH TYPE. Cost: O(log n) in the members.

L.register('later_batch_seal', {'allow-oom'}, function(R, args)
  local batch = L.need_batch(R, args[1])
  local was_open = L.batch_state(batch) == 'open'
  if was_open and L.events then
    L.event('batch-sealed', '-', '-', nil, nil, nil, nil, batch.name)
  end
  L.seal(R, batch, L.ms(L.now_us()))
  return {batch.name, was_open and 'sealed' or 'repeated'}
end)
