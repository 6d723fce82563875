-- The parts that every function of the library stands on: names, numbers, errors, types. Time:
-- clock.lua and instant.lua; what is kept of a job: record.lua.
--
-- Built by scripts/join-lua into one library named `laterd` (the #!lua line is put in front there).
-- At load time Redis gives this chunk no string, table or cjson: they may be used inside functions
-- only. Everything shared hangs on the one local L: the locals of any other file end with it.
--
-- Rules that every function keeps:
--   * one declared key, the root R = later:{NS}; every other key is R .. ':' .. something;
--   * keys are read and written by db(), which writes when the function has returned (draft.lua):
--     an error changes nothing. Only a plain later_add writes at once, and takes back its writes;
--   * TIME is read once; all times are integers in ms unless a name ends in _us;
--   * a number becomes text by L.int only: tostring and `..` keep 14 digits of it.
--
-- What Redis offers is bound to locals by the first call: a global is looked for in an empty table,
-- in the metatable of that, and only then in the table where it is.
local function offered()
  return redis, string, math, table, tonumber, type, ipairs, unpack, pcall, next, pairs, error
end

local redis, string, math, table, tonumber, type, ipairs, unpack, pcall, next, pairs, error = redis
local L = {}
local db -- db(COMMAND, key, ...): a command through the draft of the call (draft.lua)

L.PROTOCOL = 1
L.MAX_PAYLOAD = 1048576     -- bytes, where R:config says nothing else
L.LEAST_LIMIT = 1024        -- bytes of a payload; no queue takes fewer
L.BIG = 16384               -- a larger payload lives in R:big:<id>
L.MAX_QUEUES = 10000        -- names in one namespace
L.SOLO_CRASHES = 2          -- from so many crashes a job is started alone in its worker
L.SECONDS_FROM = 1e8        -- a "ms" time between these two was meant as seconds
L.SECONDS_TO = 1e11
L.LATEST = 1e14             -- the year 5138
L.TOKEN_TTL_S = 86400
L.CLOCK_MAX = 4503599627370496 -- numbers above are garbage: soon after, two in a row would be one
L.CORRUPT = 'its record is corrupt (what is left of it is its payload)'

-- At what pace the collector works, in percent. After every 50 calls Redis has Lua begin a cycle,
-- which it would put off until the heap has doubled: so it is always at work, by the bytes that are
-- allocated, and was 18 % of an add at 200. At 100 it keeps up as well, and the heap is larger by
-- what some hundred calls leave. All functions of a server share it.
local GC_PACE = 100

local function set_pace()
  collectgarbage('setstepmul', GC_PACE)
end

-- The numbers below a thousand as text, and with three digits.
local SMALL, THREES = {}, {}

local function bind()
  redis, string, math, table, tonumber, type, ipairs, unpack, pcall, next, pairs, error = offered()
  for n = 0, 999 do
    SMALL[n], THREES[n] = string.format('%d', n), string.format('%03d', n)
  end
  pcall(set_pace)
end

-- Raise a coded refusal; the wrapper of L.register turns it into the error reply.
function L.fail(code, text)
  error({elater = code .. ' ' .. text})
end

-- Of times, which have the same first digits for a second or minutes, the rest is put together by
-- threes: to print them costs as much as a small command.
local MILLIONS, millions_text, n_millions = 64, {}, 0
local known_ms, ms_text = false, nil -- the last time in ms: many jobs have one instant

local function first_digits(millions)
  if n_millions == MILLIONS then
    millions_text, n_millions = {}, 0
  end
  local text = string.format('%.0f', millions)
  millions_text[millions], n_millions = text, n_millions + 1
  return text
end

-- Integer -> decimal text, exact up to 2^53.
function L.int(x)
  local text = SMALL[x]
  if text then
    return text
  elseif x == known_ms then
    return ms_text
  elseif x >= 1e9 and x < 9007199254740992 and x % 1 == 0 then
    local rest = x % 1000000
    local last, millions = rest % 1000, (x - rest) / 1000000
    text = (millions_text[millions] or first_digits(millions)) .. THREES[(rest - last) / 1000] ..
           THREES[last]
    if x <= L.LATEST then
      known_ms, ms_text = x, text
    end
    return text
  end
  return string.format('%.0f', x)
end

-- Any score -> text that is the same number.
function L.score(x)
  return x % 1 == 0 and x >= 0 and x < 9007199254740992 and L.int(x) or string.format('%.17g', x)
end

-- What was read of late: most arguments say what those of the call before said.
local WHOLES, known_wholes, n_wholes = 1024, {}, 0

-- Text of a whole number below 2^53 -> the number, else nil. tonumber alone takes nan, inf, 0x10,
-- 1e3 and -1 as well, which would fail, or worse pass, in the middle of the writes.
function L.whole(text)
  local n = known_wholes[text]
  if n then
    return n
  elseif type(text) ~= 'string' or #text > 16 or not string.find(text, '^%d+$') then
    return nil
  end
  n = tonumber(text)
  if n >= 9007199254740992 then
    return nil
  elseif n_wholes == WHOLES then
    known_wholes, n_wholes = {}, 0
  end
  known_wholes[text], n_wholes = n, n_wholes + 1
  return n
end

-- Any score -> the ms when it is due, a whole number from 0 to L.LATEST. Raw writers may have
-- scores with a fraction; a head that keeps it never equals what is stored of it.
function L.due(score)
  local n = tonumber(score)
  if n >= 0 and n <= L.LATEST and n % 1 == 0 then
    return n
  end
  return math.min(math.max(math.ceil(n), 0), L.LATEST)
end

-- Any bytes -> short printable text for an error message.
function L.quote(s)
  s = string.sub(s, 1, 64)
  return "'" .. string.gsub(s, '[^\32-\126]', '?') .. "'"
end

-- Text for one line of a record: control bytes out, bounded.
function L.line(s)
  return (string.gsub(string.sub(s, 1, 512), '[%z\1-\31\127]', ' '))
end

-- Most calls name the same root as the one before, and queues that were named before: those were
-- checked.
local known_root
local known_queues, n_known = {}, 0

-- Who follows the events of which root (v1/tail.lua), and those of this call, false where nobody
-- does. By a hint that nobody hears, nothing may be lost: L.event is called only while L.events is
-- there.
L.tails = {}
L.events = false

-- Decide, then write.
local function call(fn, R, args)
  L.begin()
  local reply = fn(R, args)
  L.commit()
  return reply
end

-- Register `name` with `flags`; fn(R, args) is called with the checked root. Coded refusals become
-- error replies, a foreign type that a read met ELATER_TYPE; other errors of Redis go on as they
-- are.
function L.register(name, flags, fn)
  redis.register_function{
    function_name = name,
    flags = flags,
    callback = function(keys, args)
      if not pcall then
        bind()
      end
      -- 64 characters, as many as the programs take.
      if #keys ~= 1 or (keys[1] ~= known_root and
                        (#keys[1] > 72 or not string.match(keys[1], '^later:{[%w][%w_.-]*}$'))) then
        return {err = "ELATER_ROOT give one key, the namespace's root, as 1 'later:{default}'"}
      end
      known_root = keys[1]
      L.events = L.tails[known_root] and L.watch(known_root) or false
      local ok, reply = pcall(call, fn, keys[1], args)
      if ok then
        if L.events then
          pcall(L.publish, known_root, L.events)
        end
        return reply
      end
      if type(reply) == 'table' and reply.elater then
        return {err = reply.elater}
      end
      -- What redis.call raised is text in one version of Redis and a table in another.
      local text = L.line(tostring(type(reply) == 'table' and reply.err or reply))
      if string.match(text, '^WRONGTYPE ') then
        text = 'ELATER_TYPE a key of ' .. keys[1] .. ' has a foreign type: rename or delete it (' ..
               text .. ')'
      elseif not string.match(text, '^%u+ ') then
        text = 'ELATER_BUG ' .. text
      end
      return {err = text}
    end
  }
end

-- Refuse by name when a key that is about to be written holds a foreign type.
-- Takes name, type pairs (names relative to R).
function L.need(R, ...)
  local want = {...}
  for i = 1, #want, 2 do
    local is = redis.call('TYPE', R .. ':' .. want[i]).ok
    if is ~= 'none' and is ~= want[i + 1] then
      L.fail('ELATER_TYPE', 'key ' .. R .. ':' .. L.line(want[i]) .. ' is a ' .. is ..
             ', laterd needs a ' .. want[i + 1] .. ' there: rename or delete it')
    end
  end
end

-- An id, or QUEUE@UNIQUE -> the id.
function L.check_id(R, id)
  if id == nil then
    L.fail('ELATER_ARGS', 'a job id is missing')
  end
  local queue, key = string.match(id, '^([^@]*)@(.+)$')
  if queue then
    local owner = L.unique_owner(R, L.check_queue(queue), key)
    if not owner then
      L.fail('ELATER_NOJOB', 'no job has the unique key ' .. L.quote(key) .. ' in queue ' .. queue)
    end
    return owner
  end
  if not string.match(id, '^j[0-9a-z]+$') or #id ~= 12 then
    L.fail('ELATER_NOJOB', L.quote(id) .. ' is no job id (j and 11 characters)')
  end
  return id
end

function L.check_queue(queue)
  if known_queues[queue] then
    return queue
  elseif queue == nil or queue == '' then
    L.fail('ELATER_QUEUE', 'the queue is missing')
  end
  if #queue > 64 or not string.match(queue, '^%w[%w_-]*$') then
    L.fail('ELATER_QUEUE', L.quote(queue) ..
           ' is no queue name (letters, digits, _ and -, at most 64,' ..
           ' a letter or digit first)')
  end
  if n_known == L.MAX_QUEUES then
    known_queues, n_known = {}, 0
  end
  known_queues[queue], n_known = true, n_known + 1
  return queue
end
