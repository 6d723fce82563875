-- later_v1_health R GRACE_MS
--   -> [now_ms, [worker...], [late queue...], notes, names, names_max, [broken queue...],
--       [unsealed batch...], [open batches, ended batches]]
--
-- The facts that `later health` judges. worker: [epoch, counter, held, host, pid, beat_ms, places,
-- unsent, refused, skew_ms, quiet]; '' where the worker has not said. beat_ms: when Redis last took
-- a beat of it; places: jobs at once; unsent: results that it could not send yet; refused: results
-- that Redis did not take; skew_ms: its wall clock minus Redis'.
-- late queue: [name, due_ms, epoch of a live worker that has room for it]. A queue is late if its
-- first job that is no suspect has been due for GRACE_MS, it is not paused, and a worker that
-- serves it has room. Workers report every ten seconds whether they have room, so GRACE_MS has to
-- be longer than that. At most 100 queues are checked, those with the earliest heads; fewer, but
-- ten, where there are more than 100 workers: each queue is compared with each of them.
-- broken queue: [name, due_ms, epoch, why]. It is due and not paused as a late one, no worker has
-- room for it, and this worker said that it cannot run its jobs (rooms.defect_in); or all workers
-- that serve it are quiet.
-- unsealed batch: [name, touched_ms], see batches.unsealed.
-- notes: as in later_stats, of the last ten minutes; no-limit only while it holds. names: how many
-- queues have a name; from names_max on a new queue that nobody serves is refused. no-writes.
-- Cost: O(workers + late queues), and running jobs up to 1000 where a worker runs fewer of a late
-- queue at once than it has places.

local batches, tidy, rooms, clock, instant, limits, change = use(
  'batch/batches', 'calls/tidy', 'claim/rooms', 'core/clock', 'core/instant', 'gates/limits',
  'txn/change')
local LATE_QUEUES, LATE_LEAST, LATE_PAIRS = 100, 10, 10000

-- -> the due time of the first job of a queue that is no suspect, in any of its sets. One command
-- tells how many of these exist: most queues use one.
local function first_due(R, queue)
  local q, first, i = R .. ':q:' .. queue .. ':', math.huge, 1
  local keys = {q .. '5', R .. ':due:' .. queue, q .. '0', q .. '1', q .. '2', q .. '3', q .. '4',
                q .. '6', q .. '7', q .. '8', q .. '9'}
  local left = redis.call('EXISTS', unpack(keys))
  while left > 0 do
    local row = redis.pcall('ZRANGE', keys[i], 0, 0, 'WITHSCORES')
    if row[2] then
      first = math.min(first, to_due(row[2]))
    end
    left, i = left - ((row[2] or row.err) and 1 or 0), i + 1
  end
  return first
end

-- Does a job wait at a semaphore or rate of this name that is not defined? A name that the note has
-- cut cannot be asked for.
local function is_shut(R, name)
  if #name >= tidy.NOTE_BYTES - #'no-limit:' then
    return true
  end
  for _, kind in ipairs({'sem', 'rate'}) do
    local ok, limit = change.try(limits.limit_of, R, kind, name)
    if not (ok and limit) and
       redis.call('EXISTS', R .. ':wait:' .. kind .. ':' .. name) == 1 then
      return true
    end
  end
  return false
end

-- -> the notes of the last ten minutes that hold: of a gate without a definition only while it has
-- none. Where no worker tidies, nothing else removes older ones.
local function fresh_notes(R, now_ms)
  local all, fresh = redis.call('HGETALL', R .. ':notes'), {}
  for i = 1, #all, 2 do
    local seen, gate = whole(all[i + 1]), string.match(all[i], '^no%-limit:(.*)$')
    if seen and seen >= now_ms - 600000 and seen <= now_ms + 600000 and
       (not gate or is_shut(R, gate)) then
      fresh[#fresh + 1] = all[i]
      fresh[#fresh + 1] = all[i + 1]
    end
  end
  return fresh
end

-- Put {queue, due_ms} into late or broken, with the worker that it is about; or into neither.
local function put_queue(R, row, live, count, late, broken)
  local defective, why, quiet, others
  for _, worker in ipairs(live) do
    local defect = worker.is_live and rooms.defect_in(R, worker, row[1])
    local word = not defect and rooms.room_in(worker, row[1], count)
    if defect then
      defective, why = worker, defect
    elseif word == 'room' then
      row[3] = worker.epoch
      late[#late + 1] = row
      return
    elseif word == 'quiet' then
      quiet = worker
    else
      others = others or word ~= 'elsewhere' and word ~= 'dead'
    end
  end
  if defective or quiet and not others then
    row[3] = (defective or quiet).epoch
    row[4] = why or 'it was told to be quiet (later quiet ' .. row[3] .. ' --off ends that)'
    broken[#broken + 1] = row
  end
end

register('later_v1_health', {'no-writes'}, function(R, args)
  local grace = whole(args[1])
  if not grace then
    fail('ELATER_ARGS', 'give GRACE_MS')
  end
  local now_ms = clock.ms(clock.now_us())
  local live, late, broken, out = rooms.worker_rows(R), {}, {}, {}
  local count = rooms.job_counter(R)
  local most = math.max(math.min(LATE_QUEUES, math.floor(LATE_PAIRS / #live)), LATE_LEAST)
  local due = redis.call('ZRANGEBYSCORE', R .. ':heads', '-inf', int(now_ms - grace), 'LIMIT', 0,
                         most)
  for _, queue in ipairs(due) do
    local first = first_due(R, queue)
    if first <= now_ms - grace and not instant.paused_until(redis.call('HGET', R .. ':paused',
                                                                       queue), now_ms) then
      put_queue(R, {queue, first}, live, count, late, broken)
    end
  end
  for i, worker in ipairs(live) do
    out[i] = {worker.epoch, worker.counter, worker.held}
    for k = 1, 8 do
      out[i][3 + k] = worker.row[k] or ''
    end
  end
  return {now_ms, out, late, fresh_notes(R, now_ms), redis.call('SCARD', R .. ':names'), MAX_QUEUES,
          broken, batches.unsealed(R, now_ms), {redis.call('ZCARD', R .. ':batch:open'),
                                                redis.call('ZCARD', R .. ':batch:ended')}}
end)
