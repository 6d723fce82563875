-- Reports for later_explain why a job is parked at a gate: the holders of the gate, when it opens,
-- and who waits before the job. Nothing is changed.

local explain_gates = module 'public/explain_gate'
local gate_calls, instant, jobs, limits, waiters, explain = use(
  'calls/gates', 'core/instant', 'core/jobs', 'gates/limits', 'gates/waiters', 'public/explain')
local HOLDERS = 20
local WAITERS_MAX = 1000
local WAITS_FOR = {lock = 'lock', sem = 'semaphore', rate = 'rate'}

-- The waiters before this ticket that would be offered a permit. -> {{name, how many jobs}...}, how
-- many in all, how many of its own queue, whether only WAITERS_MAX names were read
local function before_ticket(e, g, ticket)
  local below = '(' .. int(ticket)
  local names = redis.call('ZRANGEBYSCORE', g.waiters, '-inf', below, 'LIMIT', 0, WAITERS_MAX)
  local list, all, own = {}, 0, 0
  if #names == 0 then
    return list, all, own
  end
  local spots = {}
  for i, who in ipairs(names) do
    spots[i] = who .. '\n' .. g.id
  end
  local pauses = redis.call('HMGET', e.R .. ':paused', unpack(names))
  spots = redis.call('HMGET', e.R .. ':parked', unpack(spots))
  for i, who in ipairs(names) do
    local n
    if string.match(who, '^[@=]') then
      local until_ms = whole(string.match(spots[i] or '', '^%d+ (%d+)$')) or 0
      n = (until_ms == 0 or until_ms >= e.now_ms) and 1 or 0
    elseif who ~= e.queue and instant.paused_until(pauses[i], e.now_ms) then
      n = 0
    else
      n = redis.call('ZCOUNT', e.R .. ':line:' .. who .. ':' .. g.id, '-inf', below)
    end
    all = all + n
    own = who == e.queue and n or own
    list[#list + 1] = n > 0 and {who, n} or nil
  end
  return list, all, own, #names == WAITERS_MAX
end

-- -> how many wait before this ticket, and a text about them
local function tell_before(e, g, ticket)
  local list, all, own, is_more = before_ticket(e, g, ticket)
  local words = {}
  for _, one in ipairs(list) do
    local who = one[1]
    words[#words + 1] = string.sub(who, 1, 1) == '=' and 'caller ' .. string.sub(who, 2) or
      string.sub(who, 1, 1) == '@' and 'program ' .. who or int(one[2]) .. ' of queue ' .. who
  end
  explain.tell(e, 'ahead', all)
  explain.tell(e, 'ahead_queue', own)
  if all == 0 then
    return all, 'nobody waits before it'
  end
  return all, (is_more and 'at least ' or '') .. int(all) .. (all == 1 and ' waits' or ' wait') ..
         ' before it: ' .. explain.listed(words)
end

-- -> queue and host of a job that holds a permit, and a text about it
local function job_holder(e, id)
  local state, job, _, epoch = jobs.locate(e.R, id)
  local name = 'job ' .. one_line(string.sub(id, 1, 40)) .. (job and ' of queue ' .. job.queue or
                                                             '')
  local queue = job and job.queue or ''
  if state == 'running' then
    local row = redis.call('HMGET', e.R .. ':worker:' .. int(epoch), 'host', 'pid')
    return queue, row[1] or '', name .. ' on ' .. explain.where(row[1], row[2])
  elseif state == 'parked' then
    local spot = waiters.read_spot(redis.call('HGET', e.R .. ':parked', id))
    local next_gate = spot and spot.gates[spot.at]
    return queue, '', name .. (next_gate and ' (reserved, it waits for ' .. next_gate .. ')' or
                               ' (let in, about to start)')
  end
  return queue, '', name .. ' (which does not run: see later fsck)'
end

-- -> queue and host of any holder, and a text about it
local function one_holder(e, who, until_ms)
  local lease = until_ms > 0 and ' (its lease ends in ' .. explain.span(until_ms - e.now_ms) ..
                ')' or ''
  if string.sub(who, 1, 1) == '=' then
    return '', '', 'caller ' .. one_line(string.sub(who, 2)) .. lease
  elseif string.sub(who, 1, 1) == '@' then
    local row = redis.call('HMGET', e.R .. ':worker:' .. string.sub(who, 2), 'host', 'pid')
    return '', row[1] or '', 'a program on ' .. explain.where(row[1], row[2]) .. lease
  end
  return job_holder(e, who)
end

-- Report the holders. -> how many, the first few in words, since_ms and until_ms of the first
local function tell_holders(e, g)
  local n, list = gate_calls.holders(e.ledger, g)
  local flat, words = {}, {}
  for i = 1, math.min(#list, 4 * HOLDERS), 4 do
    local queue, host, text = one_holder(e, list[i], list[i + 2])
    for _, value in ipairs({list[i], queue, host, int(list[i + 2])}) do
      flat[#flat + 1] = value
    end
    words[#words + 1] = text
  end
  explain.tell(e, 'holders', #flat > 0 and flat)
  return n, explain.listed(words, n), list[2], list[3]
end

-- -> why a semaphore or rate lets nobody in (it is not defined, is defined as the other kind, or
-- has the limit 0), or nil. The text has no command with the name in it: a producer chose the name,
-- and a shell might execute parts of it.
local function closed(e, g, kind)
  local other = g.kind == 'sem' and 'rate' or 'sem'
  if not g.limit and limits.limit_of(e.R, other, g.name) then
    return g.name .. ' is defined as a ' .. (other == 'sem' and 'semaphore' or other) ..
           ', and as no ' .. kind
  elseif not g.limit then
    return 'no ' .. kind .. ' ' .. g.name .. ' is defined (later limits set defines one)'
  elseif g.limit.n == 0 then
    return kind .. ' ' .. g.name .. ' is closed: its limit is 0 (later limits set gives it another)'
  end
  return nil
end

local GATES = {}

function GATES.lock(e, g)
  local n, words, since_ms, until_ms = tell_holders(e, g)
  if n == 0 then
    return nil
  end
  explain.tell(e, 'held_since_ms', since_ms > 0 and since_ms)
  explain.tell(e, 'until_ms', until_ms > 0 and until_ms)
  -- Depth 0: the lock is reserved for a caller that has not taken it yet.
  local is_kept = redis.call('HGET', g.key, 'depth') == '0'
  return 'lock ' .. g.name .. (is_kept and ' is kept for ' or ' is held by ') .. words ..
         (since_ms > 0 and ', for ' .. explain.span(e.now_ms - since_ms) or '')
end

function GATES.sem(e, g)
  local n, words = tell_holders(e, g)
  explain.tell(e, 'limit', g.limit and g.limit.n)
  explain.tell(e, 'held', n)
  local text = closed(e, g, 'semaphore')
  if text then
    return text
  elseif n < g.limit.n then
    return nil
  end
  return 'semaphore ' .. g.name .. ' is full, ' .. int(n) .. ' of ' .. explain.plural(g.limit.n,
                                                                                      'permit') ..
         ': ' .. words
end

function GATES.rate(e, g)
  explain.tell(e, 'limit', g.limit and limits.limit_text(g.limit))
  local text = closed(e, g, 'rate')
  if text then
    return text
  end
  local opens_ms, kept = gate_calls.next_pass(e.ledger, g)
  if opens_ms == 0 then
    return nil
  end
  explain.tell(e, 'until_ms', opens_ms)
  return 'rate ' .. g.name .. ' is used up, ' .. (opens_ms and 'the next start passes in ' ..
                                                  explain.span(opens_ms - e.now_ms) or
                                                  'its starts are kept for ' ..
                                                  explain.plural(kept, 'job') ..
                                                  ' let in and not claimed yet')
end

-- -> waits_for, text; nil: the gate is open and nobody waits before the job
function explain_gates.explain_gate(e, g, ticket)
  local text = GATES[g.kind](e, g)
  local before, words = tell_before(e, g, ticket)
  if text then
    return WAITS_FOR[g.kind], text .. '; ' .. words
  elseif before > 0 then
    return WAITS_FOR[g.kind], g.id ..
           ' is free, and those who wait are let in with the next sync of any worker; ' .. words
  end
  return nil
end
