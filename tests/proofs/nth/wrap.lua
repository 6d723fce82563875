-- Wraps the calls of the library to Redis: counts them, and lets the armed one raise before its
-- command is executed.
--
-- The test rewrites `redis.call(` of the library to `redis.call(SITE, ` (test_nth.c), so each call
-- in the source has a number. The armed redis.call raises what Redis 7 raises for a missing right;
-- redis.pcall returns it. TIME is the clock of the test (nth.now_us), which stands still. A time of
-- that clock at which a key expires is given to Redis as a duration.

nth.fn = {}
nth.now_us = 0
nth.hit = {}        -- site -> true, in this call of nth_run
nth.wrote = nil     -- key -> true: what the call under test may have written; nil: nothing

-- The library registers its functions with this, so that they can be called here, too.
function nth.register(fn)
  nth.fn[fn.function_name] = fn.callback
  redis.register_function(fn)
end

local NO_RIGHT = 'NOPERM nth: this user has no permissions to run that command'

local READS = {}

local function read_names()
  for _, name in ipairs({'TIME', 'TYPE', 'EXISTS', 'GET', 'STRLEN', 'PTTL', 'HGET', 'HMGET', 'HGETALL', 'HKEYS', 'HLEN',
                         'HEXISTS', 'HSTRLEN', 'HSCAN', 'SCARD', 'SISMEMBER', 'SMEMBERS', 'SRANDMEMBER', 'SSCAN', 'ZCARD',
                         'ZCOUNT', 'ZRANGE', 'ZRANGEBYSCORE', 'ZREVRANGEBYSCORE', 'ZRANK', 'ZSCORE', 'ZMSCORE', 'ZSCAN',
                         'LRANGE'}) do
    READS[name] = true
  end
end

-- Does this call fail? Modes: 'once': the N-th of all calls; 'right': all calls of nth.missing.
local function is_bad(site, command, is_ours)
  if not nth.is_counting then
    return false
  end
  nth.hit[site] = true
  -- A read in the transaction fails in the call to Redis that it makes, if it makes one.
  if is_ours and (READS[command] or nth.mode == 'right') then
    return false
  elseif nth.mode == 'right' then
    if not nth.met[command] then
      nth.met[command] = true
      table.insert(nth.met, command)
    end
  else
    nth.n = nth.n + 1
  end
  local is_armed = nth.mode == 'right' and command == nth.missing or nth.n == nth.armed
  if is_armed then
    nth.raised = nth.raised or {site = site, command = command}
  end
  return is_armed
end

-- Note the keys of a writing command: the arguments that begin like a key.
local function note_keys(...)
  nth.wrote = nth.wrote or {}
  for _, arg in ipairs({...}) do
    if type(arg) == 'string' and string.sub(arg, 1, #nth.ROOT) == nth.ROOT then
      nth.wrote[arg] = true
    end
  end
end

-- The duration until this time of the test's clock.
local function from_now(at_ms)
  return string.format('%.0f', math.max(tonumber(at_ms) - math.floor(nth.now_us / 1000), 1))
end

-- Execute a command of the library with the clock of the test.
local function execute(how, command, ...)
  if not READS[command] then
    note_keys(...)
  end
  if command == 'TIME' then
    return {string.format('%.0f', math.floor(nth.now_us / 1000000)), string.format('%.0f', nth.now_us % 1000000)}
  elseif command == 'PEXPIREAT' then
    local key, at_ms = ...
    return redis[how]('PEXPIRE', key, from_now(at_ms))
  elseif command == 'SET' and select(3, ...) == 'PXAT' then
    local key, value, _, at_ms = ...
    return redis[how]('SET', key, value, 'PX', from_now(at_ms))
  end
  return redis[how](command, ...)
end

-- A command of the transaction (txn/) fails there like one for Redis.
function nth.db(site, db, ...)
  if is_bad(site, (...), true) then
    error({err = NO_RIGHT})
  end
  return db(...)
end

local function face(how)
  return function(site, ...)
    -- A call that was not rewritten (through a local name for redis.call) has no number.
    if type(site) ~= 'number' then
      return nth.face[how](0, site, ...)
    elseif is_bad(site, (...)) then
      if how == 'pcall' then
        return {err = NO_RIGHT}
      end
      error({err = NO_RIGHT})
    end
    return execute(how, ...)
  end
end

-- What the library gets as `redis`.
function nth.offered(real)
  read_names()
  nth.face = {}
  for name, value in pairs(real) do
    nth.face[name] = value
  end
  nth.face.call, nth.face.pcall = face('call'), face('pcall')
  nth.face.acl_check_cmd = function(command, ...)
    if nth.is_counting and command == nth.missing then
      nth.raised = nth.raised or {site = 0, command = command}
      return false
    end
    return real.acl_check_cmd(command, ...)
  end
  return nth.face
end

-- ---- calls

local function texts(list)
  local out = {}
  for i, value in ipairs(list) do
    out[i] = type(value) == 'number' and string.format('%.0f', value) or value
  end
  return out
end

-- Call a function of the library; its calls are not counted. -> its reply, an error or nil
function nth.call(name, ...)
  local ok, reply = pcall(nth.fn[name], {nth.ROOT}, texts({...}))
  if not ok then
    return nil, type(reply) == 'table' and reply.err or tostring(reply)
  end
  if type(reply) == 'table' and reply.err then
    return nil, reply.err
  end
  return reply
end

-- The same; an error is one of the test.
function nth.must(name, ...)
  local reply, why = nth.call(name, ...)
  if why then
    error({err = 'ERR ' .. name .. ' ' .. table.concat(texts({...}), ' ') .. ': ' .. why})
  end
  return reply
end

-- The call under test: its N-th call to Redis fails, or all calls of the N-th command that it uses
-- (commands: those it used when none failed). 0: none fails. -> reply, error
function nth.call_armed(args, n, mode, commands)
  nth.n, nth.raised, nth.wrote, nth.met, nth.mode = 0, nil, nil, {}, mode
  nth.armed, nth.missing = mode == 'once' and n > 0 and n or nil, mode == 'right' and (commands or {})[n] or nil
  nth.is_counting = true
  local reply, why = nth.call(unpack(args))
  nth.is_counting = false
  return reply, why
end
