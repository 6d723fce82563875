-- Unique jobs: in a queue at most one job waits under a unique key, and at most one runs.
--
--   R:uniq:<queue>:<key>  STRING  the newest job that has the key; with unique_for it keeps the key
--                                 after its end, until the key expires
--
-- The function that ends or buries a job frees its key. While the job runs, an add with replace or
-- move makes a successor: it has the key from then on, and starts when its predecessor has ended.
-- For that the running job gets the lock ~unique:<queue>:<key>, and the successor (o=1 in its
-- record) has to pass this lock like any other. A predecessor that would wait again ends instead,
-- since its successor stands for it.

-- -> the job that has this key, or nil.
function L.unique_owner(R, queue, key)
  return db('GET', R .. ':uniq:' .. queue .. ':' .. key) or nil
end

-- -> the name of the lock of a unique key, without its kind.
function L.unique_lock(job)
  return '~unique:' .. job.queue .. ':' .. job.u
end

-- Job `id` ends: free its key, at once or at for_until_ms. name: <queue>:<key>.
function L.free_unique(R, name, id, for_until_ms)
  local key = R .. ':uniq:' .. name
  if db('GET', key) ~= id then
    return
  end
  -- If a successor ends before its predecessor, the predecessor gets the key back.
  local lock = L.lock_row(R .. ':lock:~unique:' .. name)
  local runs = lock and lock[1]
  if runs and runs ~= id then
    db('SET', key, runs)
  elseif for_until_ms and for_until_ms > 0 then
    db('PEXPIREAT', key, for_until_ms)
  else
    db('DEL', key)
  end
end

-- The same for many, {name, id, for_until ms}*. A key of a foreign type is left.
function L.free_uniques(R, uniques)
  local locks = {}
  for i, unique in ipairs(uniques) do
    locks[i] = R .. ':lock:~unique:' .. unique[1]
  end
  L.learn_absent(locks)
  for _, unique in ipairs(uniques) do
    L.unless_foreign(L.free_unique, R, unpack(unique))
  end
end

-- The same for a job as L.parse tells it; nil or a job without a unique key is fine. A key of a
-- foreign type is left.
function L.end_unique(R, id, job)
  if job and job.u then
    L.unless_foreign(L.free_unique, R, job.queue .. ':' .. job.u, id, L.whole(job.f))
  end
end

-- A dead job is to run again: it takes its key, or fails with ELATER_UNIQUE if another job has it.
-- With unique_for it may still have the key; then the key must not expire any more.
function L.retake_unique(R, id, job)
  if not job.u then
    return
  end
  local key = R .. ':uniq:' .. job.queue .. ':' .. job.u
  local owner = L.unique_owner(R, job.queue, job.u)
  if owner and owner ~= id then
    L.fail('ELATER_UNIQUE', 'job ' .. owner .. ' has the unique key ' .. L.quote(job.u) ..
           ' of queue ' .. job.queue ..
           ' now')
  end
  if owner then
    db('PERSIST', key)
  else
    db('SET', key, id)
  end
end

-- A running job would wait again. If a successor has its key, the job ends here instead. -> whether
-- it ended
function L.end_replaced(R, id, job, code, start, output, now_ms)
  local ok, owner = pcall(L.unique_owner, R, job.queue, job.u or '')
  -- What is no job stands for nobody: the key was damaged.
  if not job.u or not ok or not owner or owner == id or
     db('HEXISTS', R .. ':jobs', owner) == 0 then
    return false
  end
  local text = 'replaced by ' .. L.one_line(owner)
  L.end_cancelled(R, job, id, L.outcome('cancelled', code, now_ms, start, text, output), now_ms)
  return true
end

-- Give a waiting or parked job this payload, these options and this due time, under its id.
local function rewrite(R, id, was, state, tries, job, payload, due)
  local book = L.book(R, L.now_us())
  job.o = was.o
  if state == 'parked' then
    L.unpark(book, was.queue, id)
  end
  db('ZREM', L.waiting_key(R, was, tries), id)
  if was.big then
    L.drop_key(R .. ':big:' .. id)
  end
  L.insert(R, id, job, payload)
  if tries.due then
    -- A worker that was given up may still run the old job. It cannot get the job back once
    -- its start number is used up.
    tries.starts = tries.starts + (tries.starts > 0 and 1 or 0)
    db('HSET', R .. ':tries', id, L.tries_text(tries, due))
  end
  L.enqueue(R, id, job, tries, due)
  L.hand_on(book)
end

-- Let a new job wait until the owner of its key, which runs, has ended.
local function succeed(R, owner, job)
  local book = L.book(R, L.now_us())
  local g = L.gate(book, 'lock:' .. L.unique_lock(job))
  job.o = '1'
  if L.free_permits(book, g) > 0 then
    local held = db('HGET', R .. ':holds', owner)
    L.take(book, g, owner, L.tick(R, book.now_us, 1))
    db('HSET', R .. ':holds', owner, (held and held .. '\n' or '') .. g.id)
  end
end

-- Does the key of a job that has ended stay taken? Without an expiry its job was lost with the data
-- of Redis. The call may have ended that job itself: then the expiry is only in the draft.
local function stays_taken(key)
  local until_ms = L.draft.entries[key].expire
  if until_ms == nil then
    return redis.call('PTTL', key) >= 0
  end
  return until_ms and until_ms > L.ms(L.now_us())
end

-- An add with a unique key. -> the reply; nil: a new job has to be made. Modes: drop: the present
-- job stays as it is, and the new one is dropped. replace: a waiting job gets the new payload and
-- options, at its own due time. move (debounce): the new due time as well. With replace or move a
-- running job stays as it is and gets one successor, which has the key from then on. After the end
-- of the job, every add is dropped while unique_for lasts.
function L.add_unique(R, job, payload)
  local owner = L.unique_owner(R, job.queue, job.u)
  if not owner then
    return nil
  end
  local state, was, tries, score = L.locate(R, owner)
  local is_live = L.is_live(state)
  if not is_live and not stays_taken(R .. ':uniq:' .. job.queue .. ':' .. job.u) then
    return nil
  end
  local due = state == 'waiting' and score or state == 'running' and tries.due or job.due
  if state == 'parked' then
    local spot = L.read_spot(db('HGET', R .. ':parked', owner))
    due = spot and spot.due or due
  end
  if (job.mode or 'drop') == 'drop' or not is_live then
    return {owner, 'dropped', due}
  elseif state == 'running' then
    succeed(R, owner, job)
    return nil
  end
  due = job.mode == 'move' and job.due or due
  rewrite(R, owner, was, state, tries, job, payload, due)
  local status = job.mode == 'move' and 'moved' or 'replaced'
  if L.events then
    L.event(status, owner, job.queue, due)
  end
  return {owner, status, due}
end
