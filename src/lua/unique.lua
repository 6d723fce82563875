-- Unique jobs: at most one waiting or running job of a queue under one unique key.
--
--   R:uniq:<queue>:<key>  STRING  the job that has the key; with unique_for it stays to its end, an expiry
--
-- The key is freed by the function that ends or buries the job. A job whose key a successor took over in
-- the meantime (replace or move while it ran) frees nothing.

-- The job that has this key, or nil.
function L.unique_owner(R, queue, key)
  return redis.call('GET', R .. ':uniq:' .. queue .. ':' .. key) or nil
end

-- `id` ends: the key is free, at once or when its time is over. name: <queue>:<key>.
function L.free_unique(R, name, id, for_until_ms)
  local key = R .. ':uniq:' .. name
  if redis.pcall('GET', key) ~= id then
    return
  end
  if for_until_ms and for_until_ms > 0 then
    redis.call('PEXPIREAT', key, L.int(for_until_ms))
  else
    redis.call('DEL', key)
  end
end

-- The same for a job whose record is at hand; nil and one without a unique key are fine.
function L.end_unique(R, id, job)
  if job and job.u then
    L.free_unique(R, job.queue .. ':' .. job.u, id, L.whole(job.f))
  end
end

-- A dead job is to run again: it takes its key, or is refused.
function L.retake_unique(R, id, job)
  if not job.u then
    return
  end
  local owner = L.unique_owner(R, job.queue, job.u)
  if owner and owner ~= id then
    L.fail('ELATER_UNIQUE', 'job ' .. owner .. ' has the unique key ' .. L.quote(job.u) .. ' of queue ' .. job.queue ..
           ' now')
  end
  redis.call('SET', R .. ':uniq:' .. job.queue .. ':' .. job.u, id)
end

-- Give a waiting or parked job another payload and other options, under its id.
local function rewrite(R, id, was, state, tries, job, payload, due)
  local book = L.book(R, L.now_us())
  if state == 'parked' then
    L.unpark(book, was.queue, id)
  end
  redis.call('ZREM', L.waiting_key(R, was, tries), id)
  redis.call('DEL', R .. ':big:' .. id)
  L.insert(R, id, job, payload)
  if tries.due then
    redis.call('HSET', R .. ':tries', id, L.tries_text(tries, due))
  end
  L.enqueue(R, id, job, tries, due)
  L.settle_gates(book)
end

-- An add with a unique key. -> the reply when it makes no new job, or nil: it does. Modes: drop leaves the
-- one that is there; replace gives it the new payload and options, at its own due time; move (debounce)
-- gives it the due time as well. A job that runs gets one successor instead, which has the key from then
-- on. After its end, while unique_for lasts, every add is dropped.
function L.add_unique(R, job, payload)
  local owner = L.unique_owner(R, job.queue, job.u)
  if not owner then
    return nil
  end
  local state, was, tries, score = L.locate(R, owner)
  local is_live = state == 'waiting' or state == 'parked' or state == 'running'
  if not is_live and redis.call('PTTL', R .. ':uniq:' .. job.queue .. ':' .. job.u) < 0 then
    return nil -- its job was lost with the data of Redis
  end
  local due = state == 'waiting' and score or state == 'running' and tries.due or job.due
  if state == 'parked' then
    local spot = L.read_spot(redis.call('HGET', R .. ':parked', owner))
    due = spot and spot.due or due
  end
  if (job.mode or 'drop') == 'drop' or not is_live then
    return {owner, 'dropped', due}
  elseif state == 'running' then
    return nil
  end
  L.need(R, 'q:' .. was.queue .. ':' .. L.int(was.priority), 'zset', 'solo:' .. was.queue, 'zset', 'tries', 'hash',
         'timers', 'zset')
  if state == 'parked' then
    L.need_parked(L.book(R, L.now_us()), was.queue, owner)
  end
  due = job.mode == 'move' and job.due or due
  rewrite(R, owner, was, state, tries, job, payload, due)
  local status = job.mode == 'move' and 'moved' or 'replaced'
  if L.events then
    L.event(status, owner, job.queue, due)
  end
  return {owner, status, due}
end
