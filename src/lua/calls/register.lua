-- later_v1_register R SEEN INSTANCE SEQ OLD  NF {field value}*NF  NC {field value}*NC
--     NA {id start}*NA
--   -> [now_us, epoch, link, rewound, [adopted|gone|taken per id], [peer...]]
--
-- A worker registers (or comes back after Redis forgot it) and gets an epoch that was never used.
-- SEEN: the highest clock number that it knows. INSTANCE, SEQ: a name of the process and the number
-- of this registration, so that a delayed older call is refused. OLD: its former epoch or 0.
-- Fields: host, boot, pidns, pid, pstart, version, places, limits ("mail=4,web=2": so many jobs of
-- these queues may run at once), queues (comma separated). Config: max_payload[:queue] in bytes.
-- Adoption: a job that the worker runs is adopted if nobody else can have started it. Either it is
-- still held with this start number, under OLD or an epoch that is not registered. Or it waits:
-- since Redis lost this claim (its start number is one less), or since OLD was reaped during this
-- start. taken: it was started again elsewhere; or the end of this start was taken (a retry whose
-- answer was lost), and it must not end twice; or another has its gates now. gone: there is no such
-- job any more. Jobs under OLD that the worker does not name were claimed for nobody and are
-- released unspent, unless OLD is being reaped.
-- rewound: 1 when Redis lost clock numbers (data loss).
-- peer: epoch, counter, host, boot, pidns, pid, pstart.
-- Errors: ELATER_WORKER ARGS TYPE. Cost: O(workers + queues + jobs adopted).

local workers = module 'calls/register'
local reaps, clock, events, jobs, queue_names, gate, holding, uniques, waiters, locks, change,
      commit, txn = use(
  'calls/reap', 'core/clock', 'core/events', 'core/jobs', 'core/queue_names', 'gates/gate',
  'gates/holding', 'gates/uniques', 'gates/waiters', 'public/lock', 'txn/change', 'txn/commit',
  'txn/txn')

-- Does a waiting job wait because its worker was reaped during this start, not because the start
-- ended?
local function was_reaped(R, id, start, old)
  local state, _, _, of, text = jobs.read_outcome(db('HGET', R .. ':errors', id) or '')
  return state == 'failed' and whole(of) == start and string.find(text, reaps.died(int(old)), 1,
                                                                  true) == 1
end

-- Adopt one job. -> adopted, gone or taken
local function adopt(R, id, start, epoch, old, ledger)
  local now_ms = ledger.now_ms
  local state, job, tries, score = jobs.locate(R, id)
  if state == nil or job == nil then
    return 'gone'
  end
  if state == 'running' and tries.starts == start and
     (score == old or not db('HGET', R .. ':workers', int(score))) then
    db('ZADD', R .. ':running', epoch, id)
    return 'adopted'
  end
  if (state == 'waiting' or state == 'parked') and start and (tries.starts + 1 == start or
                                                              (tries.starts == start and
                                                               was_reaped(R, id, start, old))) and
     waiters.regain_gates(ledger, id, job, state) then
    jobs.leave_waiting(R, id, job, tries)
    tries.attempts = math.max(tries.attempts + start - tries.starts, 1)
    tries.starts = start
    db('HSET', R .. ':tries', id, jobs.tries_text(tries, tries.due or now_ms))
    db('ZADD', R .. ':running', epoch, id)
    return 'adopted'
  end
  return jobs.is_live(state) and 'taken' or 'gone'
end

-- Take a claimed job from its worker, to wait again. A job ends here instead if its record is lost
-- or corrupt, if it was to be cancelled, or if it has a successor. why: the text of the outcome of
-- a cancelled one. -> job, tries; nil: it ended
function workers.take_from_worker(R, id, why, now_ms)
  local record, tries = db('HGET', R .. ':jobs', id), jobs.tries(db('HGET', R .. ':tries', id))
  local job = jobs.parse(record)
  if job == nil then
    jobs.bury_broken(R, id, record, nil, now_ms)
    return nil
  elseif db('HEXISTS', R .. ':cancel', id) == 1 then
    jobs.end_cancelled(R, job, id, jobs.outcome('cancelled', 0, now_ms, tries.starts, why, ''),
                       now_ms)
    return nil
  elseif uniques.end_replaced(R, id, job, 0, tries.starts, '', now_ms) then
    return nil
  end
  db('ZREM', R .. ':running', id)
  return job, tries
end

-- Put a claimed job back as if it had never been claimed; its start number stays used.
function workers.release(R, id, delay_ms, now_ms)
  local job, tries = workers.take_from_worker(R, id, 'cancelled before it started', now_ms)
  if not job then
    return
  end
  tries.attempts = math.max(tries.attempts - 1, 0)
  local due = delay_ms > 0 and now_ms + delay_ms or tries.due or now_ms
  db('HSET', R .. ':tries', id, jobs.tries_text(tries, due))
  db('HDEL', R .. ':progress', id)
  jobs.enqueue(R, id, job, tries, due)
  if events.now then
    events.add('released', id, job.queue, due, tries.starts)
  end
end

-- Release all jobs held under epoch that are not in keep. A job that cannot be put back (a key of
-- its queue has a foreign type) stays held: it must not keep the worker out. -> how many were
-- released
function workers.release_unheard(R, epoch, keep, ledger)
  local held = db('ZRANGEBYSCORE', R .. ':running', int(epoch), int(epoch))
  local freed = {}
  for _, id in ipairs(held) do
    if not keep[id] and change.try(workers.release, R, id, 0, ledger.now_ms) then
      freed[#freed + 1] = id
    end
  end
  holding.let_go(ledger, freed)
  waiters.hand_on(ledger)
  return #freed
end

-- Without these nothing can be decided about running jobs.
local GREAT = {'jobs', 'hash', 'running', 'zset', 'tries', 'hash'}
local RARE = {{'errors', 'failures', 'results', 'cancel', 'progress', 'await'},
              {'parked', 'holds', 'timers', 'limits', 'queues', 'paused'}}

-- Called first by each function that moves running jobs: refuse foreign types of GREAT, and learn
-- which keys of RARE are empty.
function workers.need_worker(R)
  txn.need_types(R, GREAT)
  txn.know_keys(R, RARE[1])
  txn.know_keys(R, RARE[2])
end

-- -> {epoch, counter, row}* of all registered workers; row: the values of `fields`
function workers.peers(R, fields)
  local peers = {}
  local all = db('HGETALL', R .. ':workers')
  for i = 1, #all, 2 do
    local row = redis.pcall('HMGET', R .. ':worker:' .. all[i], unpack(fields))
    -- A worker whose key has a foreign type has no fields; it does not stop the others.
    row = row.err and {} or row
    peers[#peers + 1] = {epoch = all[i], counter = all[i + 1], row = row}
  end
  return peers
end

local NAMES_AT_ONCE = 1000

local function write_names(R, names)
  for from = 1, #names, NAMES_AT_ONCE do
    local some = {unpack(names, from, math.min(from + NAMES_AT_ONCE - 1, #names))}
    if redis.call('SADD', R .. ':names', unpack(some)) > 0 then
      queue_names.index_queues(R, some)
    end
  end
end

-- Write the names of served queues, however many names there are: the limit is for queues that
-- nobody serves. queues: comma separated, as a worker sends them. A foreign type of R:names must
-- not fail a beat.
function workers.keep_names(R, queues)
  local names = {}
  for name in string.gmatch(queues, '[^,]+') do
    if #name <= 64 and string.find(name, '^%w[%w_-]*$') then
      names[#names + 1] = name
    end
  end
  commit.hint(write_names, R, names)
end

-- Read n, then n pairs, from args[i] on. -> the pairs as a flat array, the position behind them
function workers.pairs_at(args, i)
  local n = whole(args[i])
  if n == nil or i + 2 * n > #args then
    fail('ELATER_ARGS', 'a list is shorter than it says')
  end
  local flat = {}
  for k = i + 1, i + 2 * n do
    flat[#flat + 1] = args[k]
  end
  return flat, i + 2 * n + 1
end

local PEER = {'host', 'boot', 'pidns', 'pid', 'pstart', 'inst', 'seq'}

-- Remove earlier registrations of this process; refuse the call if there is a newer one. -> the
-- other workers, as in the reply
local function drop_ghosts(ledger, instance, seq)
  local R, flat, peers = ledger.R, {}, workers.peers(ledger.R, PEER)
  for _, peer in ipairs(peers) do
    peer.is_ghost = peer.row[6] == instance and peer.counter ~= 'dead'
    if peer.is_ghost and (whole(peer.row[7]) or 0) >= seq then
      fail('ELATER_WORKER', 'a newer registration of this process is there')
    end
  end
  for _, peer in ipairs(peers) do
    if peer.is_ghost then
      locks.leave_gate(ledger, peer.epoch)
      db('HDEL', R .. ':workers', peer.epoch)
      change.drop_key(R .. ':worker:' .. peer.epoch)
    else
      flat[#flat + 1], flat[#flat + 2] = peer.epoch, peer.counter
      for i = 1, 5 do
        flat[#flat + 1] = peer.row[i] or ''
      end
    end
  end
  return flat
end

-- Adopt the jobs that the worker runs. held: {id, start}*; old: its former epoch, of which the
-- other jobs are released. -> the answer for each
local function adopt_all(ledger, held, epoch, old)
  local R, answers, keep = ledger.R, {}, {}
  for i = 1, #held, 2 do
    local ok, word = change.try(adopt, R, held[i], whole(held[i + 1]), epoch, old, ledger)
    answers[#answers + 1] = ok and word or 'taken'
    keep[held[i]] = true
  end
  if old ~= 0 and db('HGET', R .. ':workers', int(old)) ~= 'dead' then
    workers.release_unheard(R, old, keep, ledger)
  else
    waiters.hand_on(ledger)
  end
  return answers
end

-- Write the fields of a new worker. fields: {name, value}* that it says of itself
local function put_worker(R, key, instance, seq, fields, now_ms)
  local worker = R .. ':worker:' .. key
  db('HSET', R .. ':workers', key, '1')
  db('HSET', worker, 'link', '1', 'inst', instance, 'seq', int(seq), 'started', int(now_ms),
     'beat_ms', int(now_ms))
  for i = 1, #fields, 2 do
    db('HSET', worker, fields[i], fields[i + 1])
    if fields[i] == 'queues' then
      workers.keep_names(R, fields[i + 1])
    end
  end
end

register('later_v1_register', {'allow-oom'}, function(R, args)
  local seen, instance, seq, old = clock.read_seen(args[1]), args[2], whole(args[3]), whole(args[4])
  if not (seen and instance and seq and old) then
    fail('ELATER_ARGS', 'give SEEN INSTANCE SEQ OLD and three lists')
  end
  local fields, config, held, at
  fields, at = workers.pairs_at(args, 5)
  config, at = workers.pairs_at(args, at)
  held = workers.pairs_at(args, at)
  workers.need_worker(R)
  local ledger = gate.ledger(R, clock.now_us())
  local last = clock.last(R)
  local peers = drop_ghosts(ledger, instance, seq)
  local epoch = clock.tick(R, ledger.now_us, 1, seen)
  local answers = adopt_all(ledger, held, epoch, old)
  put_worker(R, int(epoch), instance, seq, fields, ledger.now_ms)
  for i = 1, #config, 2 do
    db('HSET', R .. ':config', config[i], config[i + 1])
  end
  return {ledger.now_us, int(epoch), 1, last < seen and 1 or 0, answers, peers}
end)
