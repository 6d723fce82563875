-- later_v1_bulk R EPOCH -> [in_ms, id, changed, failed]
--
-- A worker lets one bulk go on (bulk/advance.lua): of those that may, the one that has waited
-- longest, by at most 100 jobs and about 1 MiB. in_ms: call again in so many ms; 0: none is active.
-- id: '' where none could go on.
-- While another live worker has let any go on less than two seconds ago, this one is told to come
-- back in a second: so one does it, and another as soon as that one stops. One call takes one bulk:
-- two may mean the same jobs, and the second would not see what the first has not written yet.
-- A bulk that cannot go on (a key of a foreign type) says why, and is tried again after a second.
-- Where Redis' clock was set back, a bulk waits until it was made again: a job that it retried and
-- that died meanwhile would look as if it had been dead before.
-- Errors: ELATER_WORKER. Cost: O(bulks), O(log n) a job.

local advance, bulks, beats, syncs, clock, change = use(
  'bulk/advance', 'bulk/bulks', 'calls/beat', 'claim/syncs', 'core/clock', 'txn/change')
local MOST, LEASE_MS, AGAIN_MS = 100, 2000, 1000

-- Does another live worker advance them?
local function is_led(R, active, epoch, now_ms)
  local last, leader = -1, nil
  for _, bulk in ipairs(active) do
    local at = bulk.advanced_ms
    if at and at > last and at <= now_ms then
      last, leader = at, bulk.worker
    end
  end
  return leader and leader ~= epoch and now_ms - last < LEASE_MS and
         beats.worker(R, leader) == 'ok'
end

-- -> in how many ms it may go on
local function wait_ms(bulk, now_ms)
  if now_ms <= bulk.created_ms then
    return bulk.created_ms - now_ms + 1
  elseif bulk.advanced_ms and bulk.advanced_ms > now_ms then
    return 0 -- the clock was set back
  end
  return math.max(bulk.again_ms - now_ms, 0)
end

-- -> the bulk that goes on now; nil if none may, and in how many ms to ask again
local function next_of(active, now_ms)
  local best, wait = nil, AGAIN_MS
  for _, bulk in ipairs(active) do
    local its_wait = wait_ms(bulk, now_ms)
    wait = math.min(wait, its_wait)
    if its_wait == 0 and (not best or (bulk.advanced_ms or 0) < (best.advanced_ms or 0)) then
      best = bulk
    end
  end
  return best, math.max(wait, 1)
end

-- It cannot go on. -> the bulk as it was before, with the reason
local function note_error(R, id, why, epoch, now_ms)
  local bulk = bulks.read(R, id)
  bulk.error = string.sub(syncs.error_text(why), 1, 200)
  bulk.again_ms, bulk.advanced_ms, bulk.worker = now_ms + AGAIN_MS, now_ms, epoch
  bulks.put(R, bulk)
  return bulk
end

register('later_v1_bulk', {'allow-oom'}, function(R, args)
  local epoch, now_us = args[1] or '', clock.now_us()
  local status, now_ms = beats.worker(R, epoch), clock.ms(now_us)
  if status ~= 'ok' then
    fail('ELATER_WORKER', 'worker ' .. quote(epoch) .. ' is ' .. status)
  end
  local active = bulks.active(R)
  if not active[1] then
    return {0, '', 0, 0}
  elseif is_led(R, active, epoch, now_ms) then
    return {AGAIN_MS, '', 0, 0}
  end
  local bulk, wait = next_of(active, now_ms)
  if not bulk then
    return {wait, '', 0, 0}
  end
  local changed, failed = bulk.changed, bulk.failed
  bulk.advanced_ms, bulk.worker = now_ms, epoch
  local ok, why = change.try(advance.run, R, bulk, now_us, MOST)
  if not ok then
    local again = note_error(R, bulk.id, why, epoch, now_ms)
    for i, one in ipairs(active) do
      active[i] = one == bulk and again or one
    end
    changed, failed = bulk.changed, bulk.failed
  end
  local left = {}
  for _, one in ipairs(active) do
    left[#left + 1] = one.status == 'active' and one or nil
  end
  local _, in_ms = next_of(left, now_ms)
  return {left[1] and in_ms or 0, bulk.id, bulk.changed - changed, bulk.failed - failed}
end)
