-- later_batch_seal R NAME -> [NAME, status]
--
-- Nothing joins the batch from outside any more; its members may still add members. An empty batch
-- ends at once. status: sealed | repeated. Called again it adds callbacks that could not be added
-- before, because of a key of a foreign type or a missing right.
-- Errors: ELATER_BATCH NOBATCH TYPE. Cost: O(log n) in the members.

local batches, membership, clock, events = use(
  'batch/batches', 'batch/membership', 'core/clock', 'core/events')

register('later_batch_seal', {'allow-oom'}, function(R, args)
  local batch = batches.need(R, args[1])
  local was_open = batches.state(batch) == 'open'
  if was_open and events.now then
    events.add('batch-sealed', '-', '-', nil, nil, nil, nil, batch.name)
  end
  membership.seal(R, batch, clock.ms(clock.now_us()))
  return {batch.name, was_open and 'sealed' or 'repeated'}
end)
