-- later_bulk R VERB QUEUE STATE [option value]... -> [id, status, total]
--
-- Change all jobs of QUEUE in one state, each as the call for one job would. VERB and STATE: retry
-- dead; cancel or reschedule due (waiting) or parked; purge due, parked, dead or done. Which jobs
-- is fixed by this call (bulk/selection.lua); the workers do it bit by bit (calls/bulk.lua).
-- Where the sets have fewer than 200 jobs and there is no rate, this call does it, as long as their
-- records have less than 1 MiB. total: how many jobs there are at most. status: active done.
-- Options: reason TEXT (only jobs that last failed so; bulk/reason.lua), key KEY, to QUEUE (retry
-- there), rate N/D (jobs in a time, as 50/s or 100/1m), at T (retry, reschedule: the new due time),
-- spread D or ms (retry: due evenly over this time), by WHO, why TEXT.
-- At most 16 are active and 100 kept, for a day after their end.
-- Errors: ELATER_ARGS QUEUE OPTION KEY TIME FULL TYPE. Cost: O(log n) a job.

local advance, bulks, reasons, selection, clock, instant, adds = use(
  'bulk/advance', 'bulk/bulks', 'bulk/reason', 'bulk/selection', 'core/clock', 'core/instant',
  'public/add')
local AT_ONCE = 200
local KEY_MAX, JOBS_MAX = 256, 1000000
local STATES = {
  retry = {dead = true},
  cancel = {due = true, parked = true},
  reschedule = {due = true, parked = true},
  purge = {due = true, parked = true, dead = true, done = true},
}
local NOT_FOR = {to = 'retry', spread = 'retry'}

-- N/D, where D without a number is one of its unit.
local function rate(bulk, value)
  local count, per = string.match(value, '^(%d+)/(%w+)$')
  if not count then
    fail('ELATER_OPTION', 'rate ' .. quote(value) .. ' is not like 50/s or 100/1m')
  end
  bulk.rate = check_whole('ELATER_OPTION', 'rate', count, 1, JOBS_MAX)
  bulk.per_ms = adds.positive('rate', (string.find(per, '^%d') and '' or '1') .. per)
end

local OPTIONS = {
  reason = function(bulk, v) bulk.reason = bulks.line('reason', v, reasons.PATTERN_MAX) end,
  key = function(bulk, v) bulk.key = bulks.line('key', v, KEY_MAX) end,
  to = function(bulk, v) bulk.to = check_queue(v) end,
  rate = rate,
  at = function(bulk, v) bulk.at_ms = instant.time(v, bulk.created_ms, 'at') end,
  spread = function(bulk, v)
    bulk.spread_ms = whole(v) and check_whole('ELATER_TIME', 'spread', v, 0, LATEST) or
                     instant.duration(v, 'spread')
  end,
  by = function(bulk, v) bulk.by = bulks.line('by', v, bulks.WHO_MAX) end,
  why = function(bulk, v) bulk.why = bulks.line('why', v, bulks.WHO_MAX) end,
}

-- Do these options go with the verb?
local function check_options(bulk)
  for name, verb in pairs(NOT_FOR) do
    if bulk[name == 'spread' and 'spread_ms' or name] and bulk.verb ~= verb then
      fail('ELATER_OPTION', name .. ' goes with ' .. verb .. ' only')
    end
  end
  if bulk.at_ms and bulk.verb ~= 'retry' and bulk.verb ~= 'reschedule' then
    fail('ELATER_OPTION', 'at goes with retry and reschedule only')
  elseif bulk.verb == 'reschedule' and not bulk.at_ms then
    fail('ELATER_OPTION', 'reschedule needs at: the new due time')
  end
end

local function read_options(bulk, args)
  local seen = {}
  if #args % 2 == 0 then
    fail('ELATER_ARGS', 'an option has no value')
  end
  for i = 4, #args, 2 do
    local name = string.lower(args[i])
    if not OPTIONS[name] then
      fail('ELATER_OPTION', 'unknown option ' .. quote(args[i]) ..
           ' (there are: reason key to rate at spread by why)')
    elseif seen[name] then
      fail('ELATER_OPTION', 'option ' .. name .. ' is given twice')
    end
    seen[name] = true
    OPTIONS[name](bulk, args[i + 1])
  end
  check_options(bulk)
end

local function read_bulk(R, args, now_us)
  local verb, state = string.lower(args[1] or ''), string.lower(args[3] or '')
  local bulk = {verb = verb, state = state, status = 'active', created_ms = clock.ms(now_us),
                seen = 0, changed = 0, failed = 0, set = '1', again_ms = clock.ms(now_us) + 1}
  if not STATES[verb] or not STATES[verb][state] then
    fail('ELATER_ARGS', 'give VERB QUEUE STATE: retry dead, cancel or reschedule due or parked, ' ..
         'purge due, parked, dead or done')
  end
  bulk.queue = check_queue(args[2])
  read_options(bulk, args)
  if bulk.to then
    adds.check_names(R, bulk.to)
  end
  return bulk
end

register('later_bulk', {'allow-oom'}, function(R, args)
  local now_us = clock.now_us()
  local bulk = read_bulk(R, args, now_us)
  bulks.make_room(R)
  bulk.newest = clock.id(clock.tick(R, now_us, 1))
  bulk.id = bulks.id_of(bulk.newest)
  bulk.total = selection.count(R, bulk)
  bulk.paced = bulk.rate and advance.paced_new(bulk, now_us) or nil
  bulks.add(R, bulk)
  if bulk.total < AT_ONCE and not bulk.rate then
    advance.run(R, bulk, now_us, AT_ONCE, math.huge)
  end
  if bulk.status == 'active' then
    bulks.wake(R)
  end
  return {bulk.id, bulk.status, bulk.total}
end)
