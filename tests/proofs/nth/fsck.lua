-- The checks of `later fsck` in their order (src/cli/verbs/cmd_fsck.c), here without a process for
-- each of thousands of runs.

local ALONE = {jobs = 'hash', running = 'zset', workers = 'hash', tries = 'hash', errors = 'hash', failures = 'hash',
  results = 'hash',
  heads = 'zset', names = 'set', prio = 'hash', paused = 'hash', clock = 'string', config = 'hash', stats = 'hash',
  cancel = 'hash', progress = 'hash', await = 'hash', notes = 'hash', unserved = 'hash', limits = 'hash',
  queues = 'hash', parked = 'hash', timers = 'zset', holds = 'hash', batches = 'hash',
  schedules = 'hash', cursors = 'hash', ['schedule:file'] = 'zset', ['schedule:gone'] = 'zset', ['schedule:paused'] = 'hash',
  ['schedule:state'] = 'hash', topics = 'hash', ['topic:file'] = 'hash', pinned = 'set', series = 'hash',
  seen = 'hash', index = 'zset', ['index:state'] = 'hash', recents = 'zset', bulks = 'zset', fair = 'hash',
  resume = 'hash'}

local MORE = {{'due:', 'zset'}, {'q:', 'zset'}, {'solo:', 'zset'}, {'dead:', 'zset'}, {'done:', 'zset'}, {'big:', 'string'},
  {'worker:', 'hash'}, {'token:', 'string'}, {'lock:', 'hash'}, {'sem:', 'zset'}, {'rate:sliding:', 'zset'},
  {'rate:gcra:', 'string'}, {'rate:fixed:', 'string'}, {'wait:', 'zset'}, {'line:', 'zset'}, {'parked:', 'zset'},
  {'rate:granted:', 'set'}, {'granted:', 'zset'}, {'aside:', 'set'}, {'uniq:', 'string'},
  {'members:', 'zset'}, {'batch:', 'zset'}, {'cal:', 'string'}, {'pin:', 'zset'}, {'pins:', 'set'}, {'bodyless:', 'zset'},
  {'m:', 'string'}, {'h:', 'string'}, {'total:', 'string'}, {'keys:', 'string'}, {'top:', 'zset'},
  {'seen:', 'string'}, {'recent:', 'list'}, {'bulk:', 'hash'}, {'fair:', 'zset'}, {'fair-next:', 'zset'},
  {'fair-debts:', 'zset'}, {'fair-used:', 'hash'}, {'fair-jobs:', 'zset'}, {'steps:', 'hash'}}

local PHASES = {'running', 'jobs', 'tries', 'errors', 'failures', 'results', 'cancel', 'progress', 'resume', 'workers', 'parked',
                'holds', 'batches', 'schedules', 'cursors', 'topics', 'seen'}
local GATES = {'lock:', 'sem:', 'rate:granted:', 'wait:', 'granted:'}

local function type_of(rest)
  for _, row in ipairs(MORE) do
    if string.sub(rest, 1, #row[1]) == row[1] then
      return row[2]
    end
  end
  return ALONE[rest]
end

local function queue_of(rest)
  return string.match(rest, '^q:(.+):%d$') or string.match(rest, '^solo:(.+)$') or string.match(rest, '^dead:(.+)$') or
         string.match(rest, '^done:(.+)$') or string.match(rest, '^parked:(.+)$') or string.match(rest, '^pin:(.+):[wh]')
end

local function is_gate(rest)
  for _, prefix in ipairs(GATES) do
    if string.sub(rest, 1, #prefix) == prefix then
      return true
    end
  end
  return false
end

local function phase(found, how, ...)
  local args = {...}
  repeat
    local reply, why = nth.call(how, unpack(args))
    if why then
      found['audit ' .. args[1]] = why
      return
    end
    for i = 3, #reply do
      local f = reply[i]
      found[f[1] .. ' ' .. f[2]] = f[1] .. ' ' .. f[2] .. ' (' .. f[3] .. '): ' .. f[4]
    end
    args[2] = reply[1]
  until reply[1] == ''
end

local function sorted(set)
  local out = {}
  for name in pairs(set) do
    out[#out + 1] = name
  end
  table.sort(out)
  return out
end

-- -> "kind name" -> text of each finding; repairs: repair what can be repaired
function nth.fsck(repairs)
  local how = repairs and 'later_v1_repair' or 'later_v1_audit'
  local found, names, bigs, gates, sets, queues, members = {}, {}, {}, {}, {}, {}, {}
  for _, key in ipairs(sorted(nth.content_keys())) do
    local rest = string.sub(key, #nth.ROOT + 2)
    local kind = type_of(rest)
    if not kind then
      found['stray ' .. key] = 'stray ' .. key
    elseif string.sub(rest, 1, 4) == 'big:' then
      bigs[#bigs + 1], bigs[#bigs + 2] = rest, kind
    else
      names[#names + 1], names[#names + 2] = rest, kind
      if queue_of(rest) then
        sets[rest], queues[queue_of(rest)] = true, true
      end
      if string.sub(rest, 1, 8) == 'members:' then
        members[#members + 1] = rest
      end
      if is_gate(rest) then
        gates[#gates + 1] = rest
      end
    end
  end
  phase(found, how, 'keys', '', '200', unpack(names))
  for _, set in ipairs(sorted(sets)) do
    phase(found, how, 'set', '', '200', set)
  end
  for _, what in ipairs(PHASES) do
    phase(found, how, what, '', '200')
  end
  for _, name in ipairs(members) do
    phase(found, how, 'members', '', '200', name)
  end
  phase(found, how, 'gates', '', '200', unpack(gates))
  phase(found, how, 'queue', '', '200', unpack(sorted(queues)))
  phase(found, how, 'keys', '', '200', unpack(bigs))
  return found
end

-- Leave out keys that expire within 1 ms, as a call does with keys that it drops: Redis' clock
-- stands still while a function runs, so they would still be seen.
function nth.content_keys()
  local out = {}
  for _, key in ipairs(redis.call('KEYS', '*')) do
    local ttl = redis.call('PTTL', key)
    out[key] = ttl < 0 or ttl > 1 or nil
  end
  return out
end
