-- later_v1_metrics R CURSOR [FIELD...]
--   -> [now_ms, next cursor, running, records, [queue...], [value of each FIELD...],
--       [more of each queue...]]
--
-- The counts for `later stats --prometheus`, a page of about 64 queues a call: the first CURSOR is
-- 0, and the last page returns 0. A queue may come twice. queue: [name, scheduled, due, parked,
-- raw, dead, kept, oldest_ms, paused, done, died, cancelled]. scheduled and due: waiting jobs whose
-- time has not come and has come, raw members among them; parked: waiting for a gate; raw: how many
-- of scheduled and due are raw; kept: outcomes of done jobs; oldest_ms: due time of the first due
-- one ('' none); paused: 1 or 0; the last three since the namespace began. more: [parked_ms, 0, 0,
-- adopted, tenants] of the queue at the same place: when its first parked job was parked ('' none);
-- two values that earlier programs read; how many members of a foreign queue became jobs; how many
-- tenants have due jobs ('' in a queue that is not fair).
-- FIELD: counters of R:stats, '0' where there is none. no-writes.
-- Cost: O(queues of the page), constant in jobs.

local pins, clock, instant, job_sets, tenants = use(
  'broadcast/pins', 'core/clock', 'core/instant', 'core/job_sets', 'fair/tenants')
local PAGE = 64

-- Add the scheduled and due jobs of a set, and the first due time, to `seen`. now_ms: given for a
-- set of raw members. -> how many are in the set
local function count_set(key, now_text, seen, now_ms)
  local n = redis.pcall('ZCARD', key)
  if type(n) ~= 'number' or n == 0 then
    return 0
  end
  local due = redis.call('ZCOUNT', key, '-inf', now_text)
  if due > 0 then
    local score = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
    -- The score of a raw member may be anything.
    local first = now_ms and (job_sets.raw_due(score, now_ms) or now_ms) or to_due(score)
    seen.oldest = math.min(seen.oldest or first, first)
  end
  seen.due = seen.due + due
  seen.scheduled = seen.scheduled + n - due
  return n
end

local function card(key)
  local n = redis.pcall('ZCARD', key)
  return type(n) == 'number' and n or 0
end

-- -> when the first parked job of a queue was parked, '' for none. Tickets are times in us.
local function first_parked(R, queue)
  local row = redis.pcall('ZRANGE', R .. ':parked:' .. queue, 0, 0, 'WITHSCORES')
  local ticket = row[2] and whole(row[2])
  return ticket and clock.ms(ticket) or ''
end

-- -> how many tenants of a fair queue have due jobs; '' if it is not fair. A key of a foreign type
-- counts as none.
local function due_tenants(R, queue, now_ms)
  local ok, n = pcall(function()
    return tenants.are_kept(R, queue) and tenants.count_due(R, queue, now_ms) or ''
  end)
  return ok and n or ''
end

-- -> the values of a queue, and more of them
local function row(R, queue, now_ms)
  local now_text, seen = int(now_ms), {due = 0, scheduled = 0}
  local raw = count_set(R .. ':due:' .. queue, now_text, seen, now_ms)
  count_set(R .. ':q:' .. queue .. ':5', now_text, seen)
  for flag in string.gmatch(redis.call('HGET', R .. ':prio', queue) or '', '[%ds]') do
    count_set(flag == 's' and R .. ':solo:' .. queue or R .. ':q:' .. queue .. ':' .. flag,
              now_text, seen)
  end
  for _, target in ipairs(pins.readable(R, queue)) do
    count_set(pins.key_of(R, queue, target), now_text, seen)
  end
  local counts = redis.call('HMGET', R .. ':stats', 'done:' .. queue, 'dead:' .. queue,
                            'cancelled:' .. queue, 'adopted:' .. queue)
  local paused = instant.paused_until(redis.call('HGET', R .. ':paused', queue), now_ms)
  return {queue, seen.scheduled, seen.due, card(R .. ':parked:' .. queue), raw,
          card(R .. ':dead:' .. queue), card(R .. ':done:' .. queue), seen.oldest or '',
          paused and 1 or 0, counts[1] or '0', counts[2] or '0', counts[3] or '0'},
         {first_parked(R, queue), '0', '0', counts[4] or '0', due_tenants(R, queue, now_ms)}
end

register('later_v1_metrics', {'no-writes'}, function(R, args)
  if not whole(args[1]) then
    fail('ELATER_ARGS', 'give CURSOR')
  end
  need_kinds(R, 'names', 'set', 'stats', 'hash', 'prio', 'hash', 'paused', 'hash')
  local now_ms = clock.ms(clock.now_us())
  local page = redis.call('SSCAN', R .. ':names', args[1], 'COUNT', PAGE)
  local queues, values, more = {}, {}, {}
  for _, queue in ipairs(page[2]) do
    if #queue <= 64 and string.match(queue, '^%w[%w_-]*$') then
      queues[#queues + 1], more[#more + 1] = row(R, queue, now_ms)
    end
  end
  if #args > 1 then
    values = redis.call('HMGET', R .. ':stats', unpack(args, 2))
    for i = 1, #args - 1 do
      values[i] = values[i] or '0'
    end
  end
  return {now_ms, page[1], card(R .. ':running'), redis.call('HLEN', R .. ':jobs'), queues, values,
          more}
end)
