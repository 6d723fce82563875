-- Rights of the caller, asked before anything is written.
--
-- Not every server that has functions can say (redis.acl_check_cmd came with Redis 7.0, and others
-- leave it out). One that cannot, or that fails at it, is taken to allow everything: the command
-- itself tells then.

function L.can_tell_rights()
  return redis.acl_check_cmd ~= nil
end

-- May the caller run this command? Fails for a command that the server does not know: it has lost
-- its name (rename-command), and would fail in the middle of the writes.
function L.may(...)
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

-- May the caller run all of these commands, {command, key, argument...} each? Redis takes no
-- argument that is nil; one more is no matter to it.
function L.may_all(commands)
  local check = redis.acl_check_cmd
  if not check then
    return true
  end
  local ok, may = pcall(function()
    for i = 1, #commands do
      local c = commands[i]
      if not check(c[1], c[2], c[3] or c[2], c[4] or c[2]) then
        return false
      end
    end
    return true
  end)
  return ok and may
end
