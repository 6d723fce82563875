-- On a cluster: no function runs while the slot of its namespace moves.
--
-- While a slot moves from one node to another, key by key, a command that names a key which has
-- gone raises an error in the middle of a function; and a client that follows ASK runs the function
-- on the other node, where a command of one key makes that key anew. Either way the namespace would
-- be in two halves, or half of it would be told. There a command of two keys of which one is
-- missing fails, on both nodes. So each function first asks for two keys that never exist. While a
-- function runs, no slot begins to move. Where somebody has made both of them, they tell nothing:
-- then no function runs until one is deleted.

local slot = module 'core/slot'
local rights = use 'core/rights'

-- How servers say that a function has named a key which is not on this node, and what is told.
local MOVES = 'TRYAGAIN the slot of this namespace moves to another node: nothing was done, ' ..
  'call again'
local UNREACHED = {
  {'access a non local key', MOVES},
  {'during rehashing of the slot', MOVES},
  {'the cluster is down', 'CLUSTERDOWN the cluster is down: nothing was done, call again'}
}

local is_cluster -- is this server a node of one? nil: not known. It stays so while the server runs

-- The first call of a user who may ask tells for all. Until then each call asks for the two keys.
local function learn()
  local info = rights.may('INFO', 'cluster') and redis.pcall('INFO', 'cluster')
  local is = type(info) == 'string' and string.match(info, 'cluster_enabled:([01])')
  if is then
    is_cluster = is == '1'
  end
end

-- Fail while the slot moves or the cluster is down: with TRYAGAIN or CLUSTERDOWN (slot.tell), which
-- clients of a cluster answer by another call; with ELATER_TYPE where nobody can tell.
-- -> 'plain server': no call needs to ask
function slot.need_whole(R)
  if is_cluster == nil then
    learn()
  end
  if is_cluster == false then
    return 'plain server'
  elseif is_cluster == nil and not rights.may('EXISTS', R, R .. ':none') then
    return
  end
  local reply = redis.pcall('EXISTS', R, R .. ':none')
  if type(reply) == 'table' and reply.err then
    error(reply, 0)
  elseif reply == 2 then
    fail('ELATER_TYPE', R .. ' and ' .. R .. ':none are keys of others, and hide whether the ' ..
         'slot moves: delete them')
  end
end

-- The text of an error; another for a key that a function did not reach: nothing was done.
function slot.tell(text)
  for _, row in ipairs(UNREACHED) do
    if string.find(text, row[1], 1, true) then
      return row[2]
    end
  end
  return text
end
