-- later_v1_rights R -> [command the caller may not use here..., COMMAND(renamed)...]
--
-- Tests the caller's ACL without running a command: every command that a daemon and its functions
-- use, with keys and the channel of this namespace (functions that only `later` calls may need
-- others). Functions run with the rights of their caller, so a missing right would show only when a
-- job needs it. A command that the server does not know has lost its name (rename-command): no
-- error of a call would say which. no-writes; empty for a user who may do everything. A server that
-- cannot tell rights: acl_check_cmd(unknown) alone.

local rights = use 'core/rights'

-- Command, and the arguments behind its key. tests/checks/check-lua.sh keeps the list complete, and
-- free of commands that are not used.
local USED = {
  {'BITFIELD', 'INCRBY', 'u8', 0, 1},
  {'DEL'}, {'EXISTS'}, {'GET'}, {'SET', 'v'}, {'SETBIT', 0, 1}, {'STRLEN'}, {'TYPE'}, {'UNLINK'},
  {'PERSIST'}, {'PEXPIRE', 1}, {'PEXPIREAT', 1}, {'PEXPIRETIME'}, {'PFADD', 'm'},
  {'PTTL'},
  {'HDEL', 'f'}, {'HEXISTS', 'f'}, {'HGET', 'f'}, {'HGETALL'}, {'HINCRBY', 'f', 1}, {'HKEYS'},
  {'HLEN'}, {'HMGET', 'f'}, {'HSCAN', 0}, {'HSET', 'f', 'v'},
  {'SADD', 'm'}, {'SCARD'}, {'SISMEMBER', 'm'}, {'SRANDMEMBER'}, {'SREM', 'm'},
  {'ZADD', 1, 'm'}, {'ZCARD'}, {'ZCOUNT', 0, 1}, {'ZMSCORE', 'm'}, {'ZRANGE', 0, 1},
  {'ZRANDMEMBER'}, {'ZRANGEBYSCORE', 0, 1}, {'ZRANK', 'm'},
  {'ZREM', 'm'}, {'ZREMRANGEBYSCORE', 0, 1},
  {'ZSCORE', 'm'},
}

register('later_v1_rights', {'no-writes'}, function(R)
  local missing, told = {}, {}
  if not rights.can_tell_rights() then
    return {'acl_check_cmd(unknown)'}
  end
  local function check(...)
    local command = select(1, ...)
    local is_known, may = pcall(rights.may, ...)
    if not (is_known and may) and not told[command] then
      told[command] = true
      missing[#missing + 1] = command .. (is_known and '' or '(renamed)')
    end
  end
  for _, used in ipairs(USED) do
    check(used[1], R .. ':jobs', unpack(used, 2))
  end
  check('RENAME', R .. ':big:from', R .. ':big:to')
  check('COPY', R .. ':big:from', R .. ':big:to')
  check('PUBLISH', R .. ':wake', 'm')
  check('PUBLISH', R .. ':ended:j00000000000', 'm')
  check('SUBSCRIBE', R .. ':wake')
  check('TIME')
  check('SCAN', 0)
  return missing
end)
