-- later_v1_beat R EPOCH [QUEUES]
--   -> [now_us, status, link, held, quiet, [epoch, counter, ...], schedules, library]
--
-- A worker shows that it lives: its counter rises. QUEUES: the queues that it serves now, comma
-- separated, given where they changed.
-- status: ok | dead | unknown; the rest counts only with ok. link: the current link number. held:
-- how many jobs it holds by Redis' count. quiet: 1 when it was told to claim no more. The list: the
-- other workers, which it watches; an epoch that holds jobs but is no worker has the counter '?'.
-- schedules: the clock number of the last change of a schedule, '' for none. library: its number, 0
-- where it is pinned: two versions that load theirs at the same time see here which one is there.
-- Cost: O(workers + QUEUES).

local beats = module 'calls/beat'
local workers, clock = use('calls/register', 'core/clock')

-- -> status, link of a worker. A worker whose numbers are garbage is unknown: it registers again.
function beats.worker(R, epoch)
  local counter = redis.call('HGET', R .. ':workers', epoch)
  if counter == 'dead' then
    return 'dead'
  end
  if not whole(counter) then
    return 'unknown'
  end
  local link = redis.call('HGET', R .. ':worker:' .. epoch, 'link')
  return whole(link) and 'ok' or 'unknown', link
end

-- Append the epochs that hold running jobs but are not in `known`: the entry of that worker was
-- lost.
local function strangers(R, known, out)
  local from, tries = '-inf', 0
  while tries < 256 do
    local row = db('ZRANGEBYSCORE', R .. ':running', from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if #row == 0 then
      return
    end
    local epoch = int(tonumber(row[2]))
    -- A score that is no epoch is left to `later fsck`: no reap could take its jobs.
    if not known[epoch] and tonumber(epoch) == tonumber(row[2]) and whole(epoch) then
      out[#out + 1] = epoch
      out[#out + 1] = '?'
    end
    from = '(' .. row[2]
    tries = tries + 1
  end
end

register('later_v1_beat', {'allow-oom'}, function(R, args)
  local epoch = args[1] or ''
  local now_us = clock.now_us()
  local status, link = beats.worker(R, epoch)
  if status ~= 'ok' then
    return {now_us, status, 0, 0, 0, {}}
  end
  db('HINCRBY', R .. ':workers', epoch, 1)
  local key, beat_ms = R .. ':worker:' .. epoch, int(clock.ms(now_us))
  if args[2] then
    db('HSET', key, 'beat_ms', beat_ms, 'queues', args[2])
    workers.keep_names(R, args[2])
  else
    db('HSET', key, 'beat_ms', beat_ms)
  end
  local all, others, known = db('HGETALL', R .. ':workers'), {}, {}
  for i = 1, #all, 2 do
    known[all[i]] = true
    -- A field that is no epoch is no worker: no reap could ever remove it, so it must not be
    -- watched.
    if all[i] ~= epoch and whole(all[i]) then
      others[#others + 1] = all[i]
      others[#others + 1] = all[i + 1]
    end
  end
  strangers(R, known, others)
  return {now_us, 'ok', tonumber(link), db('ZCOUNT', R .. ':running', epoch, epoch),
          tonumber(db('HGET', R .. ':worker:' .. epoch, 'quiet') or '0') or 0, others,
          db('HGET', R .. ':schedule:state', 'changed') or '', use('library').number}
end)
