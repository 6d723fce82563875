-- Which workers could start a job of a queue now: what later_v1_health judges, and later_explain tells.
--
-- A worker says which queues it serves, how many places it has and the limits of its queues (R:worker:<epoch>);
-- how many jobs it holds is counted here. `room` is what it said itself, up to ten seconds ago: it may run a
-- suspect alone, be stopping, or short of processes.

local RUNNING_READ = 1000

-- -> [{epoch, counter, is_live, held, places, row}...]; row: host pid beat_ms places unsent refused skew_ms quiet
-- queues limits room, as they were written
function L.worker_rows(R)
  local rows = {}
  for _, peer in ipairs(L.peers(R, {'host', 'pid', 'beat_ms', 'places', 'unsent', 'refused', 'skew_ms', 'quiet',
                                    'queues', 'limits', 'room'})) do
    local held = L.whole(peer.epoch) and redis.call('ZCOUNT', R .. ':running', peer.epoch, peer.epoch) or 0
    rows[#rows + 1] = {epoch = peer.epoch, held = held, is_live = peer.counter ~= 'dead', row = peer.row,
                       places = L.whole(peer.row[4] or ''), counter = peer.counter}
  end
  return rows
end

-- How many jobs of each queue each worker holds: counts[epoch][queue]; nil where there are too many to read.
local function running_counts(R)
  local rows = redis.call('ZRANGE', R .. ':running', 0, RUNNING_READ, 'WITHSCORES')
  if #rows > 2 * RUNNING_READ then
    return nil
  end
  local counts = {}
  for i = 1, #rows, 2 do
    local job = L.parse(redis.call('HGET', R .. ':jobs', rows[i]))
    local epoch = L.int(tonumber(rows[i + 1]))
    counts[epoch] = counts[epoch] or {}
    if job then
      counts[epoch][job.queue] = (counts[epoch][job.queue] or 0) + 1
    end
  end
  return counts
end

-- -> count(epoch, queue) -> how many jobs of a queue a worker holds, nil where there are too many to read. They
-- are read when it is first asked: most queues have no limit of their own.
function L.job_counter(R)
  local counts, is_read
  return function(epoch, queue)
    if not is_read then
      counts, is_read = running_counts(R), true
    end
    return counts and ((counts[epoch] or {})[queue] or 0)
  end
end

-- The limit of a queue in a worker, nil when it has none of its own. limits: "mail=4,web=2".
local function limit_in(worker, queue)
  for name, limit in string.gmatch(worker.row[10] or '', '([^,=]+)=(%d+)') do
    if name == queue then
      return L.whole(limit)
    end
  end
  return nil
end

function L.serves(worker, queue)
  return string.find(',' .. (worker.row[9] or '') .. ',', ',' .. queue .. ',', 1, true) ~= nil
end

-- Could it start a job of this queue now? -> elsewhere (it does not serve the queue), dead (it was given up),
-- quiet, full (all its places), mute (it said that it has none), limit (those of this queue; too many to count
-- is no room either), new (it has not said yet) or room; with limit: the limit and how many it holds
function L.room_in(worker, queue, count)
  if not L.serves(worker, queue) then
    return 'elsewhere'
  elseif not worker.is_live then
    return 'dead'
  elseif worker.row[8] == '1' then
    return 'quiet'
  elseif worker.places and worker.held >= worker.places then
    return 'full'
  elseif not worker.places or (worker.row[11] and (L.whole(worker.row[11]) or 0) == 0) then
    return 'mute'
  end
  local limit = limit_in(worker, queue)
  local held = limit and count(worker.epoch, queue)
  if limit and (not held or held >= limit) then
    return 'limit', limit, held
  end
  return worker.row[11] and 'room' or 'new'
end
