-- Members of batches that end well in a sync over rows (batch/membership.lua). Odd is what ends a
-- batch, one of which a member has died, a corrupt definition, and an end of members of more
-- batches than one call may end.
--
-- What the sync knows: members: a list of {name, ids, ended: ids of those that were live}, and
-- name -> the same.

local row_members = module 'rows/members'
local batches, row_sync, writes, txn = use(
  'batch/batches', 'rows/sync', 'rows/writes', 'txn/txn')

local BATCHES_MAX = 16
local LIVE, DONE = '0', '1' -- as Redis tells them

-- Job `id`, which is a member of batch `name`, ends well.
function row_members.note_member(s, name, id)
  s.members, s.is_rare = s.members or {}, true
  local of = s.members[name]
  if not of then
    of = {name = name, ids = {}, ended = {}}
    s.members[name], s.members[#s.members + 1] = of, of
    if s.members[BATCHES_MAX + 1] then
      row_sync.odd()
    end
  end
  if of.ids[#of.ids] == id then
    row_sync.odd() -- once is enough
  end
  of.ids[#of.ids + 1] = id
end

local function load_batch(s, of)
  local key = s.R .. ':members:' .. of.name
  local text = redis.call('HGET', s.R .. ':batches', of.name)
  local batch = text and batches.known(of.name, text)
  if not text then
    return -- it is forgotten
  elseif not batch or batch.dead then
    row_sync.odd()
  end
  for i, score in ipairs(redis.call('ZMSCORE', key, unpack(of.ids))) do
    if score == LIVE then
      of.ended[#of.ended + 1] = of.ids[i]
    elseif score and score ~= DONE then
      row_sync.odd()
    end
  end
  -- As the transaction counts them for jobs that are kept: some of them may have to come later.
  if (s.moved or 0) + #of.ids * #batch.payload >= txn.CALL_BYTES then
    row_sync.odd()
  end
  if batch.sealed_ms and redis.call('ZCOUNT', key, LIVE, LIVE) <= #of.ended then
    row_sync.odd()
  end
end

-- Read these batches, and plan what is written of them.
function row_members.plan_members(s)
  for _, of in ipairs(s.members) do
    load_batch(s, of)
    local write = {names = of.ended, values = LIVE, 'ZADD', s.R .. ':members:' .. of.name}
    for i, id in ipairs(of.ended) do
      write[2 * i + 1], write[2 * i + 2] = DONE, id
    end
    if of.ended[1] then
      writes.add_write(s, write)
    end
  end
end
