-- later_bulk_show R ID -> [name, value, name, value, ...]
-- later_bulk_show R -> [[name, value, ...]...]   of all bulks, the oldest first
--
-- Names: bulk (its id) verb queue state status reason key to rate per_ms (rate jobs in so many ms)
-- at_ms spread_ms by why created_ms advanced_ms ended_ms aborted_by total seen changed failed error
-- (why a job could not be changed, or the bulk not go on, the last time) worker (which advanced it
-- last) left left_ms (how long that takes at its rate). Names that do not apply are left out.
-- status: active done aborted broken; of a broken one only bulk, status and error are there. seen:
-- jobs that were met, total at most: those that went elsewhere meanwhile never are. Those that were
-- met and neither changed nor failed were not meant by reason or key.
-- Errors: ELATER_NOBULK TYPE. no-writes. Cost: O(1).

local bulks = use 'bulk/bulks'

register('later_bulk_show', {'no-writes'}, function(R, args)
  local id, out = args[1], {}
  if id then
    if not bulks.is_listed(R, id) then
      bulks.fail_no_bulk(id)
    end
    return bulks.told(id, bulks.read(R, id))
  end
  for i, one in ipairs(bulks.ids(R)) do
    out[i] = bulks.told(one, bulks.read(R, one))
  end
  return out
end)
