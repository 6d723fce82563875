-- later_batch_show R NAME -> [name, value, name, value, ...]
--
-- Names: batch state created_ms sealed_ms ended_ms until_ms (when it is forgotten) keep_ms then
-- finally on_dead fired (those that were added, with commas between them) total live done dead
-- cancelled (how many members) first_dead (its id) touched_ms (when a job joined last)
-- payload_bytes payload. Names that do not apply are left out.
-- state: open sealed cancelled ended.
-- Errors: ELATER_BATCH NOBATCH TYPE. no-writes. Cost: O(log n) in the members.

local batches, membership = use('batch/batches', 'batch/membership')
local COUNTS = {'total', 'live', 'done', 'dead', 'cancelled'}

register('later_batch_show', {'no-writes'}, function(R, args)
  local batch, out = batches.need(R, args[1]), {}
  put_named(out, 'batch', batch.name)
  put_named(out, 'state', batches.state(batch))
  for _, name in ipairs({'created_ms', 'sealed_ms', 'ended_ms', 'keep_ms', 'then', 'finally',
                         'on_dead', 'fired'}) do
    put_named(out, name, batch[name])
  end
  put_named(out, 'until_ms', batch.ended_ms and batch.ended_ms + batch.keep_ms)
  local counts = membership.batch_counts(R, batch.name)
  for _, name in ipairs(COUNTS) do
    put_named(out, name, counts[name])
  end
  put_named(out, 'first_dead', batch.dead)
  put_named(out, 'touched_ms', batches.touched_ms(R, batch))
  put_named(out, 'payload_bytes', #batch.payload)
  put_named(out, 'payload', batch.payload)
  return out
end)
