-- later_batch_show R NAME -> [name, value, name, value, ...]
--
-- Names: batch state created_ms sealed_ms ended_ms until_ms (when it is forgotten) keep_ms then
-- finally on_dead fired (those that were added, with commas between them) total live done dead
-- cancelled (how many members) first_dead (its id) touched_ms (when a job joined last)
-- payload_bytes payload. Names that do not apply are left out.
-- state: open sealed cancelled ended.
-- Errors: ELATER_BATCH NOBATCH TYPE. no-writes. Cost: O(log n) in the members.

local COUNTS = {'total', 'live', 'done', 'dead', 'cancelled'}

L.register('later_batch_show', {'no-writes'}, function(R, args)
  local batch, out = L.need_batch(R, args[1]), {}
  local function put(name, value)
    if value and value ~= '' then
      out[#out + 1] = name
      out[#out + 1] = type(value) == 'number' and L.int(value) or value
    end
  end
  put('batch', batch.name)
  put('state', L.batch_state(batch))
  for _, name in ipairs({'created_ms', 'sealed_ms', 'ended_ms', 'keep_ms', 'then', 'finally',
                         'on_dead', 'fired'}) do
    put(name, batch[name])
  end
  put('until_ms', batch.ended_ms and batch.ended_ms + batch.keep_ms)
  local counts = L.batch_counts(R, batch.name)
  for _, name in ipairs(COUNTS) do
    put(name, counts[name])
  end
  put('first_dead', batch.dead)
  put('touched_ms', L.touched_ms(R, batch))
  put('payload_bytes', #batch.payload)
  put('payload', batch.payload)
  return out
end)
