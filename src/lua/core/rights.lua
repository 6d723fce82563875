-- Rights of the caller, asked before anything is written.
--
-- Not every server that has functions can say (redis.acl_check_cmd came with Redis 7.0, and others
-- leave it out). One that cannot, or that fails at it, is taken to allow everything: the command
-- itself tells then.

local rights = module 'core/rights'

function rights.can_tell_rights()
  return redis.acl_check_cmd ~= nil
end

-- May the caller run this command? Fails for a command that the server does not know: it has lost
-- its name (rename-command), and would fail in the middle of the writes.
function rights.may(...)
  if not redis.acl_check_cmd then
    return true
  end
  local is_told, may = pcall(redis.acl_check_cmd, ...)
  if is_told then
    return may
  end
  if string.find(type(may) == 'table' and may.err or tostring(may), 'Invalid command', 1, true) then
    error(may, 0)
  end
  return true
end

-- May the caller run all commands, {command, key, argument...}, of these lists? Redis takes no
-- argument that is nil; one more is no matter to it.
function rights.may_all(lists)
  local check = redis.acl_check_cmd
  if not check then
    return true
  end
  local ok, may = pcall(function()
    for k = 1, #lists do
      local commands = lists[k]
      for i = 1, #commands do
        local c = commands[i]
        local key = c[2]
        if not check(c[1], key, c[3] or key, c[4] or key) then
          return false
        end
      end
    end
    return true
  end)
  return ok and may
end
