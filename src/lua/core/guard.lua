-- The guard of a cluster: no function writes while the slot of its namespace moves.
--
-- While a slot moves from one node to another, key by key, a command that names a key which has
-- gone raises an error in the middle of a function; and a client that follows ASK runs the function
-- on the other node, where a command of one key makes that key anew. Either way the namespace would
-- be in two halves. There a command of two keys of which one is missing fails, on both nodes. So
-- each function that may write first asks for two keys that never exist. While a function runs, no
-- slot begins to move.

local guard = module 'core/guard'
local rights = use 'core/rights'

local MOVES = 'the slot of this namespace moves to another node: nothing was done, call again'
-- How servers say that a function has named a key which is not on this node.
local UNREACHED = {'access a non local key', 'during rehashing of the slot'}

local is_cluster -- is this server a node of one? nil: not known. It stays so while the server runs

-- The first call of a user who may ask tells for all. Until then each call takes the guard's way.
local function learn()
  local info = rights.may('INFO', 'cluster') and redis.pcall('INFO', 'cluster')
  local is = type(info) == 'string' and string.match(info, 'cluster_enabled:([01])')
  if is then
    is_cluster = is == '1'
  end
end

-- Fail with TRYAGAIN while the slot moves, with CLUSTERDOWN while the cluster is down: nothing was
-- done, and clients of a cluster call again. -> 'plain server': no call needs to ask
function guard.need_whole(R)
  if is_cluster == nil then
    learn()
  end
  if is_cluster == false then
    return 'plain server'
  elseif is_cluster == nil and not rights.may('EXISTS', R, R) then
    return
  end
  local reply = redis.pcall('EXISTS', R, R .. ':none')
  local why = type(reply) == 'table' and reply.err
  if not why then
    return
  elseif string.find(why, 'NOPERM', 1, true) or string.find(why, 'ACL failure', 1, true) then
    error(reply, 0)
  elseif string.find(why, 'cluster is down', 1, true) then
    fail('CLUSTERDOWN', 'the cluster is down: nothing was done, call again')
  end
  fail('TRYAGAIN', MOVES)
end

-- The text of an error, or another for a key that a function did not reach since its slot moves.
-- Only a function that writes nothing gets so far.
function guard.tell(text)
  for _, words in ipairs(UNREACHED) do
    if string.find(text, words, 1, true) then
      return 'TRYAGAIN ' .. MOVES
    end
  end
  return text
end

-- May a function of these flags write?
function guard.may_write(flags)
  for i = 1, #flags do
    if flags[i] == 'no-writes' then
      return false
    end
  end
  return true
end
