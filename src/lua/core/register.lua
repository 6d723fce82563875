-- How a function of the library is registered and called, and what becomes of its errors.

local events, slot, commit, txn = use('core/events', 'core/slot', 'txn/commit', 'txn/txn')

local known_root -- of the last call: it was checked, and most calls repeat it

-- Decide, then write: fn decides in a transaction, which is written then.
function in_transaction(fn, R, args)
  txn.begin()
  local reply = fn(R, args)
  commit.commit(R)
  return reply
end

-- What a call answers when fn raised this.
local function error_text(R, raised)
  if type(raised) == 'table' and raised.elater then
    return raised.elater
  end
  -- An error of redis.call is text in some versions of Redis and a table in others.
  local text = one_line(tostring(type(raised) == 'table' and raised.err or raised))
  if string.match(text, '^WRONGTYPE ') then
    return 'ELATER_TYPE a key of ' .. R .. ' has a foreign type: rename or delete it (' .. text ..
           ')'
  elseif not string.match(text, '^%u+ ') then
    text = 'ELATER_BUG ' .. text
  end
  return slot.tell(text)
end

-- Register `name` with `flags`; fn(R, args) gets the checked root. An error of fail becomes its
-- error reply, a foreign type that a read met becomes ELATER_TYPE, an error of Lua becomes
-- ELATER_BUG. Other errors of Redis are passed on unchanged.
function register_bare(name, flags, fn)
  local run
  run = function(R, args)
    if slot.need_whole(R) == 'plain server' then
      run = fn -- from the next call on
    end
    return fn(R, args)
  end
  redis.register_function{
    function_name = name,
    flags = flags,
    callback = function(keys, args)
      if not pcall then
        bind()
      end
      -- A namespace has at most 64 characters, as in the programs.
      if #keys ~= 1 or (keys[1] ~= known_root and
                        (#keys[1] > 72 or not string.match(keys[1], '^later:{[%w][%w_.-]*}$'))) then
        return {err = "ELATER_ROOT give one key, the namespace's root, as 1 'later:{default}'"}
      end
      known_root = keys[1]
      events.begin(known_root)
      local ok, reply = pcall(run, keys[1], args)
      if ok then
        if events.now then
          pcall(events.publish, known_root)
        end
        return reply
      end
      return {err = error_text(keys[1], reply)}
    end
  }
end

-- The same for a function that works in a transaction.
function register(name, flags, fn)
  register_bare(name, flags, function(R, args)
    return in_transaction(fn, R, args)
  end)
end
