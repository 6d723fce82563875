-- later_limit_set R NAME semaphore N [on_lost keep|kill] [missing]
-- later_limit_set R NAME rate N/D [burst N] [algorithm gcra|funnel|sliding|fixed] [missing]
--   -> 'set' | 'kept'
-- later_limit_del R NAME -> 1 | 0
-- later_limits R -> [name, definition, ...]
--
-- The definitions of semaphores and rates, shared by all workers. NAME may hold {key} once: then it
-- is a template for every name that fits it, and each name has permits of its own. N: 0 closes the
-- gate. rate 100/1m: 100 in a minute. burst: how many at once (gcra only; 1 without it). algorithm:
-- gcra without it; funnel is another name for gcra. on_lost: what the holders of a semaphore do
-- when their worker loses Redis (keep without it). missing: define it only if there is no
-- definition yet; kept: there was one, and it stays.
-- A change takes effect at once, also for those who wait; a holder keeps its permit. Deleting a
-- definition closes the gate for its waiters, or leaves it to the template that its name fits.
-- definition: `semaphore N keep|kill` or `rate ALGORITHM N PER_MS BURST`.
-- Errors: ELATER_ARGS GATE OPTION TIME FULL TYPE. Cost: O(those it lets in) for a name, O(gates
-- with waiters) for a template.

local limit_calls = module 'public/limit'
local clock, gate, limits, rates, waiters, adds, change, commit = use(
  'core/clock', 'gates/gate', 'gates/limits', 'gates/rates', 'gates/waiters', 'public/add',
  'txn/change', 'txn/commit')
local OPEN_MAX = 64         -- gates that a change opens itself; queues that it wakes at each

-- ---- gates with waiters

-- A definition changed: jobs parked at these gates may start now, or at another time than before.
-- Wake the workers of their queues, which learn the time from their next sync.
local function tell_waiters(ledger, ids)
  local told = {}
  for _, id in ipairs(ids) do
    -- A key of a foreign type must not fail the definition; a sync that parks a job there reports
    -- it.
    local ok, queues = change.try(db, 'ZRANGE', ledger.R .. ':wait:' .. id, 0, OPEN_MAX - 1)
    for _, queue in ipairs(ok and queues or {}) do
      if not told[queue] and not string.match(queue, '^[@=]') then
        told[queue] = true
        commit.wake(ledger.R, queue)
      end
    end
  end
end

-- -> the gates that this definition is for: one for a name; for a template those in R:timers that
-- fit it, since each semaphore and rate with waiters has a timer
local function gates_under(ledger, kind, name)
  if not string.find(name, '{key}', 1, true) then
    return {kind .. ':' .. name}
  end
  local out, prefix = {}, 'gate:' .. kind .. ':'
  ledger.timers = ledger.timers or db('ZRANGE', ledger.R .. ':timers', 0, -1)
  for _, what in ipairs(ledger.timers) do
    if string.sub(what, 1, #prefix) == prefix and
       limits.fits(name, string.sub(what, #prefix + 1)) then
      out[#out + 1] = string.sub(what, 6)
    end
  end
  return out
end

-- A sliding rate keeps its claims for as long as it counted them when they were made. If it became
-- longer, it needs them for longer.
local function keep_claims(ledger, id)
  local g = gate.of(ledger, id)
  if g.kind == 'rate' and g.limit and g.limit.algorithm == 'sliding' and db('ZCARD', g.key) > 0 then
    db('PEXPIREAT', g.key, ledger.now_ms + math.ceil(g.limit.per_us / 1000) + 1000)
  end
end

-- The definition of a name or template changed: waiters.hand_on will see to its waiters. From
-- gate number OPEN_MAX + 1 on a timer makes the next syncs do it. -> the gates
function limit_calls.touch_under(ledger, kind, name)
  local ids = gates_under(ledger, kind, name)
  for i, id in ipairs(ids) do
    if i <= OPEN_MAX then
      gate.touch(ledger, id)
    else
      waiters.arm(ledger, 'gate:' .. id, ledger.now_ms)
    end
  end
  return ids
end

-- The same; free permits are handed on at once, and workers are woken.
function limit_calls.limit_changed(R, kind, name)
  local ledger = gate.ledger(R, clock.now_us())
  local ids = limit_calls.touch_under(ledger, kind, name)
  for i = 1, math.min(#ids, OPEN_MAX) do
    change.unless_foreign(keep_claims, ledger, ids[i])
  end
  waiters.hand_on(ledger)
  tell_waiters(ledger, ids)
end

-- ---- definitions

local function whole_number(what, text, max)
  return check_whole('ELATER_OPTION', what, text or '', 0, max)
end

local function read_options(args, at)
  local given = {}
  while args[at] do
    local name = string.lower(args[at])
    if name == 'missing' then
      given.missing = true
      at = at + 1
    elseif (name == 'burst' or name == 'algorithm' or name == 'on_lost') and args[at + 1] and
           not given[name] then
      given[name] = string.lower(args[at + 1])
      at = at + 2
    else
      fail('ELATER_OPTION', quote(args[at]) .. ' is unknown, given twice or has no value ' ..
           '(there are: burst algorithm on_lost missing)')
    end
  end
  return given
end

local function semaphore_text(value, given)
  local on_lost = given.on_lost or 'keep'
  if given.burst or given.algorithm then
    fail('ELATER_OPTION', 'burst and algorithm belong to a rate')
  elseif on_lost ~= 'keep' and on_lost ~= 'kill' then
    fail('ELATER_OPTION', 'on_lost ' .. quote(on_lost) .. ' is neither keep nor kill')
  end
  return 'semaphore ' .. int(whole_number('semaphore', value, limits.MAX_PERMITS)) .. ' ' .. on_lost
end

local function rate_text(value, given)
  local count, per = string.match(value or '', '^(%d+)/(%w+)$')
  if given.on_lost then
    fail('ELATER_OPTION', 'on_lost belongs to a semaphore')
  elseif not count then
    fail('ELATER_OPTION', 'rate ' .. quote(value or '') .. ' is not like 100/1m')
  end
  local n, per_ms = whole_number('rate', count, limits.MAX_PERMITS), adds.positive('rate', per)
  local algorithm = given.algorithm == 'funnel' and 'gcra' or given.algorithm or 'gcra'
  if not rates.RATES[algorithm] then
    fail('ELATER_OPTION', 'algorithm ' .. quote(algorithm) ..
         ' is none of gcra funnel sliding fixed')
  elseif given.burst and algorithm ~= 'gcra' then
    fail('ELATER_OPTION', 'burst belongs to gcra')
  elseif algorithm == 'sliding' and n > 10000 then
    fail('ELATER_OPTION', 'sliding keeps every start: at most 10000 in its time, use gcra')
  end
  local burst = given.burst and whole_number('burst', given.burst, limits.MAX_PERMITS) or 1
  if burst < 1 then
    fail('ELATER_OPTION', 'burst must be at least 1')
  end
  return 'rate ' .. algorithm .. ' ' .. int(n) .. ' ' .. int(per_ms) .. ' ' .. int(burst)
end

-- Refuse what is no name of a limit. -> the name
function limit_calls.check_limit_name(name)
  limits.check_gate_name('limit', name)
  local _, to = string.find(name, '{key}', 1, true)
  if name == '{}' or name == '{key}' or (to and string.find(name, '{key}', to + 1, true)) then
    fail('ELATER_GATE', quote(name) ..
         ' is no name of a limit: {key} may stand in it once, beside other text')
  end
  return name
end

-- Add these names to the list of templates in R:limits, or remove them. Names without {key} are no
-- templates and are ignored.
function limit_calls.list_templates(R, names, is_in)
  local given, out = {}, {}
  for _, name in ipairs(names) do
    given[name] = string.find(name, '{key}', 1, true) and true or nil
  end
  if not next(given) then
    return
  end
  for template in string.gmatch(db('HGET', R .. ':limits', '{}') or '', '[^\n]+') do
    if not given[template] then
      out[#out + 1] = template
    end
  end
  for _, name in ipairs(is_in and names or {}) do
    out[#out + 1] = given[name] and name
  end
  if #out > 0 then
    db('HSET', R .. ':limits', '{}', table.concat(out, '\n'))
  else
    db('HDEL', R .. ':limits', '{}')
  end
end

register('later_limit_set', {}, function(R, args)
  local name, kind = limit_calls.check_limit_name(args[1]), string.lower(args[2] or '')
  local given = read_options(args, 4)
  local text
  if kind == 'semaphore' then
    text = semaphore_text(args[3], given)
  elseif kind == 'rate' then
    text = rate_text(args[3], given)
  else
    fail('ELATER_ARGS', 'give NAME semaphore N or NAME rate N/D, and options')
  end
  local was = db('HGET', R .. ':limits', name)
  if was and given.missing then
    return 'kept'
  elseif not was and db('HLEN', R .. ':limits') > limits.MAX_LIMITS then
    fail('ELATER_FULL', 'there are ' .. int(limits.MAX_LIMITS) ..
         ' limits already; one with {key} serves many names')
  end
  db('HSET', R .. ':limits', name, text)
  limit_calls.list_templates(R, {name}, true)
  limit_calls.limit_changed(R, limits.parse_limit(text).kind, name)
  return 'set'
end)

register('later_limit_del', {'allow-oom'}, function(R, args)
  local name = limit_calls.check_limit_name(args[1])
  local was = limits.parse_limit(db('HGET', R .. ':limits', name) or nil)
  local gone = db('HDEL', R .. ':limits', name)
  limit_calls.list_templates(R, {name}, false)
  if was then
    limit_calls.limit_changed(R, was.kind, name)
  end
  return gone
end)

register('later_limits', {'no-writes'}, function(R)
  local all, out = db('HGETALL', R .. ':limits'), {}
  for i = 1, #all, 2 do
    if all[i] ~= '{}' then
      out[#out + 1] = all[i]
      out[#out + 1] = all[i + 1]
    end
  end
  return out
end)
