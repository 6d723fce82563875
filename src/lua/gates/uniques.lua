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

local uniques = module 'gates/uniques'
local clock, events, jobs, resume, gate, waiters, adds, change, lock_rows, txn = use(
  'core/clock', 'core/events', 'core/jobs', 'core/resume', 'gates/gate', 'gates/waiters',
  'public/add', 'txn/change', 'txn/lock_rows', 'txn/txn')

-- -> the job that has this key, or nil.
function uniques.owner(R, queue, key)
  return db('GET', R .. ':uniq:' .. queue .. ':' .. key) or nil
end

-- -> the name of the lock of a unique key, without its kind.
function uniques.lock_of(job)
  return '~unique:' .. job.queue .. ':' .. job.u
end

-- Job `id` ends: free its key, at once or at for_until_ms. name: <queue>:<key>.
function uniques.free(R, name, id, for_until_ms)
  local key = R .. ':uniq:' .. name
  if db('GET', key) ~= id then
    return
  end
  -- If a successor ends before its predecessor, the predecessor gets the key back.
  local lock = lock_rows.lock_row(R .. ':lock:~unique:' .. name)
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
function uniques.free_all(R, names)
  local locks = {}
  for i, unique in ipairs(names) do
    locks[i] = R .. ':lock:~unique:' .. unique[1]
  end
  txn.learn_absent(locks)
  for _, unique in ipairs(names) do
    change.unless_foreign(uniques.free, R, unpack(unique))
  end
end

-- The same for a job as jobs.parse tells it; nil or a job without a unique key is fine. A key of a
-- foreign type is left.
function uniques.free_of(R, id, job)
  if job and job.u then
    change.unless_foreign(uniques.free, R, job.queue .. ':' .. job.u, id, whole(job.f))
  end
end

-- A dead job is to run again: it takes its key, or fails with ELATER_UNIQUE if another job has it.
-- With unique_for it may still have the key; then the key must not expire any more.
function uniques.retake(R, id, job)
  if not job.u then
    return
  end
  local key = R .. ':uniq:' .. job.queue .. ':' .. job.u
  local owner = uniques.owner(R, job.queue, job.u)
  if owner and owner ~= id then
    fail('ELATER_UNIQUE', 'job ' .. owner .. ' has the unique key ' .. quote(job.u) ..
         ' of queue ' .. job.queue .. ' now')
  end
  if owner then
    db('PERSIST', key)
  else
    db('SET', key, id)
  end
end

-- A running job would wait again. If a successor has its key, the job ends here instead. -> whether
-- it ended
function uniques.end_replaced(R, id, job, code, start, output, now_ms)
  local ok, owner = pcall(uniques.owner, R, job.queue, job.u or '')
  -- What is no job stands for nobody: the key was damaged.
  if not job.u or not ok or not owner or owner == id or
     db('HEXISTS', R .. ':jobs', owner) == 0 then
    return false
  end
  local text = 'replaced by ' .. one_line(owner)
  jobs.end_cancelled(R, job, id, jobs.outcome('cancelled', code, now_ms, start, text, output),
                     now_ms)
  return true
end

-- Give a waiting or parked job this payload, these options and this due time, under its id. What
-- its attempts have kept was of the old payload.
local function rewrite(R, id, was, state, tries, job, payload, due)
  local ledger = gate.ledger(R, clock.now_us())
  job.o = was.o
  if state == 'parked' then
    waiters.unpark(ledger, was.queue, id)
  end
  jobs.leave_waiting(R, id, was, tries)
  if was.big then
    change.drop_key(R .. ':big:' .. id)
  end
  resume.drop(R, {id})
  adds.insert(R, id, job, payload)
  if tries.due then
    -- A worker that was given up may still run the old job. It cannot get the job back once
    -- its start number is used up.
    tries.starts = tries.starts + (tries.starts > 0 and 1 or 0)
    db('HSET', R .. ':tries', id, jobs.tries_text(tries, due))
  end
  jobs.enqueue(R, id, job, tries, due)
  waiters.hand_on(ledger)
end

-- Let a new job wait until the owner of its key, which runs, has ended.
local function succeed(R, owner, job)
  local ledger = gate.ledger(R, clock.now_us())
  local g = gate.of(ledger, 'lock:' .. uniques.lock_of(job))
  job.o = '1'
  if gate.free_permits(ledger, g) > 0 then
    local held = db('HGET', R .. ':holds', owner)
    gate.take(ledger, g, owner, clock.tick(R, ledger.now_us, 1))
    db('HSET', R .. ':holds', owner, (held and held .. '\n' or '') .. g.id)
  end
end

-- Does the key of a job that has ended stay taken? Without an expiry its job was lost with the data
-- of Redis. The call may have ended that job itself: then the expiry is only in the transaction.
local function stays_taken(key)
  local until_ms = txn.entries[key].expire
  if until_ms == nil then
    return redis.call('PTTL', key) >= 0
  end
  return until_ms and until_ms > clock.ms(clock.now_us())
end

-- An add with a unique key. -> the reply; nil: a new job has to be made. Modes: drop: the present
-- job stays as it is, and the new one is dropped. replace: a waiting job gets the new payload and
-- options, at its own due time. move (debounce): the new due time as well. With replace or move a
-- running job stays as it is and gets one successor, which has the key from then on. After the end
-- of the job, every add is dropped while unique_for lasts.
function uniques.add(R, job, payload)
  local owner = uniques.owner(R, job.queue, job.u)
  if not owner then
    return nil
  end
  local state, was, tries, score = jobs.locate(R, owner)
  local is_live = jobs.is_live(state)
  if not is_live and not stays_taken(R .. ':uniq:' .. job.queue .. ':' .. job.u) then
    return nil
  end
  local due = state == 'waiting' and score or state == 'running' and tries.due or job.due
  if state == 'parked' then
    local spot = waiters.read_spot(db('HGET', R .. ':parked', owner))
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
  if events.now then
    events.add(status, owner, job.queue, due)
  end
  return {owner, status, due}
end

-- A job id or QUEUE@UNIQUE -> the id. Fails if it is neither, or if no job has the unique key.
function uniques.check_id(R, id)
  if id == nil then
    fail('ELATER_ARGS', 'a job id is missing')
  end
  local queue, key = string.match(id, '^([^@]*)@(.+)$')
  if queue then
    local owner = uniques.owner(R, check_queue(queue), key)
    if not owner then
      fail('ELATER_NOJOB', 'no job has the unique key ' .. quote(key) .. ' in queue ' .. queue)
    end
    return owner
  end
  if not is_id(id) then
    fail('ELATER_NOJOB', quote(id) .. ' is no job id (j and 11 characters)')
  end
  return id
end
