-- later_broadcast R QUEUE [per worker|host] [name value]... PAYLOAD -> [n, [target, id]...]
--
-- Add a job with PAYLOAD for each live worker that serves QUEUE now, or for each host with such a
-- worker. target: the epoch of the worker, or the name of the host. Only that worker, or a worker
-- of that host, runs the job (broadcast/pins.lua). It passes no gates. When its worker goes
-- before it has run, it ends as cancelled: its worker is gone. On a host the next worker takes it.
-- Options, of later_add: in at priority key attempts timeout expire (1h) keep trace token. A worker
-- that was told to claim no more is left out. A token counts for each target.
-- n: how many targets. At most 1000, and 16 MiB for all payloads.
-- Errors: ELATER_ARGS QUEUE OPTION TIME KEY TOKEN SIZE FULL TYPE. Cost: O(workers), and as
-- later_add for each target.

local pins, workers, rooms, clock, job_sets, adds, publishing = use(
  'broadcast/pins', 'calls/register', 'claim/rooms', 'core/clock', 'core/job_sets', 'public/add',
  'public/publish')
local TARGETS_MAX, BYTES_MAX = 1000, 16777216

local KINDS = {worker = true, host = true}

-- -> worker or host, the number of the argument behind that
local function read_per(args)
  if string.lower(args[2] or '') ~= 'per' or #args % 2 == 1 then
    return 'worker', 2
  end
  local kind = string.lower(args[3] or '')
  if not KINDS[kind] then
    fail('ELATER_OPTION', 'per ' .. quote(args[3] or '') .. ' is none of worker host')
  end
  return kind, 4
end

-- -> what the job is pinned to, sorted
local function targets_of(R, queue, kind)
  local targets, is_known = {}, {}
  for _, peer in ipairs(workers.peers(R, {'queues', 'host', 'quiet'})) do
    local queues, host, quiet = peer.row[1] or '', peer.row[2] or '', peer.row[3]
    local name = kind == 'worker' and 'w' .. peer.epoch or 'h' .. host
    local is_name = kind == 'worker' and whole(peer.epoch) or #host <= 255 and
                    string.find(host, '^[%w._-]+$')
    if is_name and peer.counter ~= 'dead' and quiet ~= '1' and not is_known[name] and
       rooms.serves(queues, queue) then
      targets[#targets + 1], is_known[name] = name, true
    end
  end
  table.sort(targets, job_sets.is_before)
  return targets
end

register('later_broadcast', {}, function(R, args)
  local queue, now_us, payload = check_queue(args[1]), clock.now_us(), args[#args]
  local kind, from = read_per(args)
  local job = publishing.read_copied(args, from, 'give QUEUE [per worker|host]', 'broadcast',
                                     clock.ms(now_us))
  job.x = job.x or pins.BROADCAST_EXPIRE_MS
  adds.check_payload(R, queue, payload)
  local targets = targets_of(R, queue, kind)
  if #targets > TARGETS_MAX then
    fail('ELATER_FULL', int(#targets) .. ' targets are more than the ' .. int(TARGETS_MAX) ..
         ' of one call')
  elseif #targets * #payload > BYTES_MAX then
    fail('ELATER_SIZE', int(#targets) .. ' payloads of ' .. int(#payload) ..
         ' bytes are more than the 16 MiB of one call')
  end
  local out = {#targets}
  for i, target in ipairs(targets) do
    local copy = publishing.copy_job(job, queue, target)
    copy.W, copy.origin, copy.is_named = target, 'broadcast to ' .. string.sub(target, 2), true
    out[i + 1] = {string.sub(target, 2), adds.add_ungated(R, copy, payload, now_us)[1]}
  end
  return out
end)
