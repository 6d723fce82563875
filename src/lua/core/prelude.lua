-- The base of every function of the library: names, numbers, errors, types. Time is in clock.lua
-- and instant.lua, the data of a job in jobs.lua.
--
-- scripts/join-lua joins all files into one library named `laterd`, with the #!lua line in front.
-- Redis runs the files once, when it loads the library. At that time `string`, `table` and `cjson`
-- do not exist, so only the bodies of functions may use them. The locals of a file end with it, but
-- for those of this one, which every file has. What a file shares is in its module: `module` names
-- its own, `use` those of others, by the path of the file.
--
-- Rules for every function:
--   * It declares one key, the root R = later:{NS}. Every other key is R .. ':' .. something.
--   * It reads and writes keys with db(), which writes after the function has returned
--     (txn/txn.lua): an error changes nothing. Only a plain later_add writes directly, and undoes
--     it on an error, and later_seen, which has one write only.
--   * It reads TIME once. All times are integers in ms, unless a name ends in _us.
--   * It turns a number into text with int only: tostring and `..` keep just 14 digits.
--   * What the library keeps in its memory may be lost at any moment, by a restart of Redis or by a
--     newer library, and has a limit.
--   * Its header has the codes of its errors. The prefix of the first is meant for all that follow.
--
-- The first call binds what Redis offers to locals. A global would cost three lookups: in an empty
-- table, in its metatable, then in the table that has it.
local function offered()
  return redis, string, math, table, tonumber, type, ipairs, unpack, pcall, next, pairs, error
end

local redis, string, math, table, tonumber, type, ipairs, unpack, pcall, next, pairs, error = redis
local db -- db(COMMAND, key, ...): a command in the transaction of the call (txn/txn.lua)
local register, register_bare, in_transaction -- register.lua

local modules = {}

-- The module of this file.
local function module(path)
  local m = modules[path]
  if not m then
    m = {}
    modules[path] = m
  end
  return m
end

-- The modules of these files. One that is not loaded yet gets its functions later, so files may use
-- each other in a circle, but for what they read while they are loaded.
local function use(path, ...)
  if path then
    return module(path), use(...)
  end
end

local PROTOCOL = 1
local MAX_PAYLOAD = 1048576     -- bytes, where R:config says nothing else
local LEAST_LIMIT = 1024        -- bytes of a payload; no queue takes fewer
local BIG = 16384               -- a larger payload is kept in R:big:<id>
local HEADER_MAX = 2048         -- bytes of a record before its payload, with the LF
local MAX_QUEUES = 10000        -- names in one namespace
local DEAD_MAX = 10000          -- dead jobs of a queue, where nothing says another number
local SOLO_CRASHES = 2          -- from so many crashes on, a job runs solo
local SECONDS_FROM = 1e8        -- a "ms" time between these two was meant as seconds
local SECONDS_TO = 1e11
local LATEST = 1e14             -- the year 5138
local TOKEN_TTL_S = 86400
local CLOCK_MAX = 4503599627370496 -- 2^52; above it is garbage: from 2^53 on, n + 1 may equal n
local CORRUPT = 'its record is corrupt (what is left of it is its payload)'

local NAME_MAX = 128        -- bytes of the name of a batch or a schedule

-- Pace of the garbage collector, in percent of the bytes allocated. After every 50 calls Redis
-- begins a cycle, while Lua alone would wait until the heap has doubled. So the collector always
-- runs. At 200 it took 18 % of an add. At 100 it still keeps up, and the heap is larger by the
-- garbage of some hundred calls. All functions of a server share this setting.
local GC_PACE = 100

local function set_pace()
  collectgarbage('setstepmul', GC_PACE)
end

-- The numbers 0 to 999 as text: in SMALL as they are, in THREES with three digits.
local SMALL, THREES = {}, {}

local function bind()
  redis, string, math, table, tonumber, type, ipairs, unpack, pcall, next, pairs, error = offered()
  for n = 0, 999 do
    SMALL[n], THREES[n] = string.format('%d', n), string.format('%03d', n)
  end
  pcall(set_pace)
end

-- Raise an error with a code; register turns it into the error reply.
local function fail(code, text)
  error({elater = code .. ' ' .. text})
end

-- Printing a time costs as much as a small command. Its first digits stay the same for a second
-- (us) or for minutes (ms), so their text is kept; the other six digits come from THREES.
local MILLIONS, millions_text, n_millions = 64, {}, 0
local known_ms, ms_text = false, nil -- the last time in ms: many jobs share one

local function first_digits(millions)
  if n_millions == MILLIONS then
    millions_text, n_millions = {}, 0
  end
  local text = string.format('%.0f', millions)
  millions_text[millions], n_millions = text, n_millions + 1
  return text
end

-- Integer -> decimal text, exact up to 2^53.
local function int(x)
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
    if x <= LATEST then
      known_ms, ms_text = x, text
    end
    return text
  end
  if x >= 1000 and x < 1e9 and x % 1 == 0 then
    local last = x % 1000
    local rest = (x - last) / 1000
    local middle = rest % 1000
    return rest < 1000 and SMALL[rest] .. THREES[last] or
           SMALL[(rest - middle) / 1000] .. THREES[middle] .. THREES[last]
  end
  return string.format('%.0f', x)
end

-- Any score -> text that reads back as the same number.
local function score_text_of(x)
  return x % 1 == 0 and x >= 0 and x < 9007199254740992 and int(x) or string.format('%.17g', x)
end

-- Numbers that were read lately: most arguments repeat those of the call before.
local WHOLES, known_wholes, n_wholes = 1024, {}, 0

-- Text of a whole number below 2^53 -> the number, else nil. tonumber alone also takes nan, inf,
-- 0x10, 1e3 and -1. These would fail, or worse pass, in the middle of the writes.
local function whole(text)
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

-- Any bytes -> short printable text for an error message.
local function quote(s)
  s = string.sub(s, 1, 64)
  return "'" .. string.gsub(s, '[^\32-\126]', '?') .. "'"
end

-- Any text -> its first 512 bytes, with spaces for control characters.
local function one_line(s)
  return (string.gsub(string.sub(s, 1, 512), '[%z\1-\31\127]', ' '))
end

-- Text of a whole number from min to max -> the number; any other text fails with this code. name:
-- of the option.
local function check_whole(code, name, text, min, max)
  local n = whole(text)
  if not n or n < min or n > max then
    fail(code, name .. ' ' .. quote(text) .. ' is not a whole number from ' .. int(min) ..
           ' to ' .. int(max))
  end
  return n
end

-- Any score -> its due time in ms, a whole number from 0 to LATEST. Scores of raw members may
-- have a fraction. It is rounded up: a head with a fraction would never equal what is stored of it.
local function to_due(score)
  local n = tonumber(score)
  if n >= 0 and n <= LATEST and n % 1 == 0 then
    return n
  end
  return math.min(math.max(math.ceil(n), 0), LATEST)
end

-- The queue names of earlier calls. They were checked, and most calls repeat them.
local known_queues, n_known = {}, 0

-- Fail with ELATER_TYPE if one of these keys has a foreign type. Takes pairs of name and type;
-- names are relative to R.
local function need_kinds(R, ...)
  local want = {...}
  for i = 1, #want, 2 do
    local is = redis.call('TYPE', R .. ':' .. want[i]).ok
    if is ~= 'none' and is ~= want[i + 1] then
      fail('ELATER_TYPE', 'key ' .. R .. ':' .. one_line(want[i]) .. ' is a ' .. is ..
             ', laterd needs a ' .. want[i + 1] .. ' there: rename or delete it')
    end
  end
end

-- Is this a job id?
local function is_id(id)
  return #id == 12 and string.find(id, '^j[0-9a-z]+$') ~= nil
end

-- -> the queue name; fails with ELATER_QUEUE if it is none.
local function check_queue(queue)
  if known_queues[queue] then
    return queue
  elseif queue == nil or queue == '' then
    fail('ELATER_QUEUE', 'the queue is missing')
  end
  if #queue > 64 or not string.match(queue, '^%w[%w_-]*$') then
    fail('ELATER_QUEUE', quote(queue) ..
           ' is no queue name (letters, digits, _ and -, at most 64,' ..
           ' a letter or digit first)')
  end
  if n_known == MAX_QUEUES then
    known_queues, n_known = {}, 0
  end
  known_queues[queue], n_known = true, n_known + 1
  return queue
end

-- -> the name of a batch or a schedule, which `what` says; fails with code if it is none.
local function check_name_of(code, what, name)
  if not name or #name > NAME_MAX or not string.find(name, '^%w[%w_.:-]*$') then
    fail(code, quote(name or '') .. ' is no name of a ' .. what ..
           ' (letters, digits and _ . : -, at most ' .. int(NAME_MAX) ..
           ', a letter or digit first)')
  end
  return name
end

-- -> "<name>=<value>" for each of these fields that t has, in their order. numbers: name -> true
-- where the value is a number
local function fields_text(t, fields, numbers, between)
  local words = {}
  for _, field in ipairs(fields) do
    local value = t[field]
    if value and value ~= '' then
      words[#words + 1] = field .. '=' .. (numbers[field] and int(value) or value)
    end
  end
  return table.concat(words, between)
end

-- Append a name and its value, a number or a text, to a reply of names and values; nothing where
-- the value is empty or not there.
local function put_named(reply, name, value)
  if value and value ~= '' then
    reply[#reply + 1] = name
    reply[#reply + 1] = type(value) == 'number' and int(value) or value
  end
end
