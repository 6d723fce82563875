-- later_v1_gate_names R CURSOR COUNT -> [next cursor, gate...]
--
-- The gates (kind:NAME) that matter now, a page a call: those with a limit of their own, those that
-- running jobs and programs hold, and those that somebody waits for. They are found by what is kept
-- of limits, holders and waiters, not by a walk over all keys. CURSOR: '' first, then what the page
-- before returned; '' behind the last page. COUNT: how many entries a call looks at, at most 250;
-- Redis may give a few more. A gate comes once in a page, and may come in several.
-- It misses a lock that a caller of later_lock holds and that nobody waits for; a semaphore that
-- only callers hold and whose limit is that of a template ({key}); and what is held or waited for
-- by damaged data only. `later gates` finds these by the names of all keys.
-- no-writes. Errors: ELATER_ARGS. Cost: O(COUNT). A key of a foreign type counts as empty.

local gate, limits, waiters = use('gates/gate', 'gates/limits', 'gates/waiters')
local COUNT_MAX = 250

-- Each adds the gates of a field and its value.
local function of_limit(add, name, text)
  local limit = limits.parse_limit(text)
  local _, behind = limits.split_key(name)
  if limit and not behind then
    add(limit.kind .. ':' .. name)
  end
end

local function of_holds(add, _, text)
  for line in string.gmatch(text, '[^\n]+') do
    add(line)
  end
end

-- A job with its spot, or "=OWNER LF gate".
local function of_parked(add, who, text)
  local spot = waiters.read_spot(text)
  add(string.match(who, '^[@=][^\n]*\n(.+)$') or spot and spot.gates[spot.at])
end

-- "gate:<gate>" or "wait:<who> LF <gate>"
local function of_timer(add, what)
  add(string.match(what, '^gate:(.+)$') or string.match(what, '^wait:[^\n]*\n(.+)$'))
end

-- -> the next cursor, '0' at the end; {field, value, ...}
local function scan(R, source, cursor, count)
  local page = redis.pcall('HSCAN', R .. source.key, cursor, 'COUNT', count)
  if page.err then
    return '0', {}
  end
  return page[1], page[2]
end

-- Workers that are programs under later lock or later sem name their gate.
local function scan_workers(R, source, cursor, count)
  local behind, fields = scan(R, source, cursor, count)
  for i = 1, #fields, 2 do
    local id = redis.pcall('HGET', R .. ':worker:' .. fields[i], 'gate')
    fields[i + 1] = type(id) == 'string' and id or ''
  end
  return behind, fields
end

local function walk_timers(R, source, cursor, count)
  local from = whole(cursor)
  local rows = redis.pcall('ZRANGE', R .. source.key, from, from + count - 1, 'WITHSCORES')
  if rows.err then
    return '0', {}
  end
  return #rows == 2 * count and int(from + count) or '0', rows
end

local SOURCES = {
  {key = ':limits', read = scan, take = of_limit},
  {key = ':workers', read = scan_workers, take = of_holds},
  {key = ':holds', read = scan, take = of_holds},
  {key = ':parked', read = scan, take = of_parked},
  {key = ':timers', read = walk_timers, take = of_timer},
}

-- -> add(id), which appends a gate to the reply once
local function adder(reply)
  local has = {}
  return function(id)
    if id and not has[id] and gate.read(id) then
      has[id], reply[#reply + 1] = true, id
    end
  end
end

register('later_v1_gate_names', {'no-writes'}, function(R, args)
  local number, cursor = string.match(args[1] == '' and '1:0' or args[1] or '', '^(%d):(%d+)$')
  local count, s = whole(args[2]), whole(number)
  if not s or not SOURCES[s] or not count or count < 1 or count > COUNT_MAX or
     (SOURCES[s].read == walk_timers and not whole(cursor)) then
    fail('ELATER_ARGS', 'give CURSOR COUNT (1 to ' .. int(COUNT_MAX) .. ')')
  end
  local reply = {''}
  local add = adder(reply)
  while SOURCES[s] and count > 0 do
    local behind, fields = SOURCES[s].read(R, SOURCES[s], cursor, count)
    for i = 1, #fields, 2 do
      SOURCES[s].take(add, fields[i], fields[i + 1])
    end
    count, cursor, s = count - #fields / 2, behind, behind == '0' and s + 1 or s
    reply[1] = SOURCES[s] and int(s) .. ':' .. cursor or ''
    count = behind == '0' and count or 0
  end
  return reply
end)
