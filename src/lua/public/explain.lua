-- later_explain R ID -> [name, value, name, value, ...]
--
-- The one thing that a job waits for now. The first five names are id, queue, state (as in
-- later_show), waits_for and text: an English sentence about the job ("it ...") with relative
-- times, which reads by itself. Then now_ms (by Redis' clock, as all instants) and those of the
-- following that apply.
-- The values that each waits_for brings:
--   time        it is not due: due_ms
--   pause       its queue is paused: since_ms until_ms (left out: until later_resume) paused_by
--               reason
--   lock        held_since_ms until_ms (the end of a lease) holders gate ahead ahead_queue
--   semaphore   limit (left out: not defined) held holders gate ahead ahead_queue
--   rate        limit (its definition; left out: not defined) until_ms (when the next start passes;
--               left out: not by itself) gate ahead ahead_queue
--   worker      no live worker serves its queue: workers_live, unserved_since_ms defect
--   room        workers serve it, none can start it now (busy, quiet, full, silent): workers ahead
--               defect
--   alone       its worker died twice under it: it waits for a worker that runs nothing else:
--               workers ahead
--   turn        workers have room, due jobs of its queue or tenant are before it: ahead
--   handler     it runs: worker host pid since_ms (its worker tells it after a while) beat_ms
--               progress cancelling_ms
--   retry       it is dead: died_ms code reason unique_owner (that job has its unique key: a retry
--               is refused)
--   nothing     it is about to start, or to be buried; or it is done or cancelled:
--               ended_ms until_ms (when it is forgotten)
-- The first that applies is reported, in this order: not due; expired; paused; its gate; worker,
-- room, alone; turn.
-- added_ms: of all jobs: when it got its id. due_ms: of all jobs that wait or run. granted_ms:
-- since when the job is granted. aside: 1 where its queue stands aside at its gate: the job is
-- offered no permit until a worker has room for it.
-- gate: kind:NAME. ahead: with a gate, the jobs and callers whose turn is before it, without
-- those of paused queues and callers whose wait is over, and ahead_queue: those of its own queue;
-- otherwise the due jobs of its queue before it, in a fair one those of its tenant.
-- holders: four values each, at most 20: a job's id, @EPOCH of a program or =OWNER of a caller; its
-- queue ('' for no job); its host ('' unknown); until_ms of its lease (0: none).
-- workers: six values each, at most 20: epoch, host, pid, why it cannot start the job (quiet full
-- mute limit silent busy broken), held, places.
-- defect: why a worker cannot run jobs of the queue, in its own words of up to ten seconds ago: its
-- handler is no executable, its stream process does not greet.
-- Errors: ELATER_ARGS NOJOB TYPE. no-writes. Cost: O(log n), the workers, the waiters before it (at
-- most 1000), 20 holders; and running jobs up to 1000 where its queue has a limit in a worker.
-- Measured with 20 holders: 0.6 ms behind 100,000 jobs of one queue, 1.4 ms behind jobs of 300 more
-- queues.

local explain = module 'public/explain'
local pins, rooms, clock, instant, jobs, standing, tenants, gate, uniques, waiters, wanted,
      explain_gates = use(
  'broadcast/pins', 'claim/rooms', 'core/clock', 'core/instant', 'core/jobs', 'fair/standing',
  'fair/tenants', 'gates/gate', 'gates/uniques', 'gates/waiters', 'gates/wanted',
  'public/explain_gate')
local LISTED = 20
local TOLD = 3              -- how many of them the text names

-- e: what one call knows {R, id, ledger, now_ms, state, job, queue, tries, score, out, granted_ms}

-- A length of time for people.
function explain.span(ms)
  ms = math.max(ms, 0)
  local s = math.floor(ms / 1000)
  if ms < 1000 then
    return int(ms) .. ' ms'
  elseif s < 60 then
    return string.format('%.1f s', math.floor(ms / 100) / 10)
  end
  for _, unit in ipairs({{86400, 'd', 3600, 'h'}, {3600, 'h', 60, 'm'}, {60, 'm', 1, 's'}}) do
    if s >= unit[1] then
      local rest = math.floor(s % unit[1] / unit[3])
      return int(math.floor(s / unit[1])) .. ' ' .. unit[2] .. (rest > 0 and ' ' .. int(rest) ..
                                                                ' ' .. unit[4] or '')
    end
  end
end

function explain.plural(n, one, many)
  return int(n) .. ' ' .. (n == 1 and one or many or one .. 's')
end

-- -> the first TOLD words, and how many more there are. all: how many there are; nil: #words
function explain.listed(words, all)
  local rest = (all or #words) - math.min(#words, TOLD)
  local first = table.concat(words, ', ', 1, math.min(#words, TOLD))
  return rest > 0 and first .. ' and ' .. int(rest) .. ' more' or first
end

function explain.since(e, ms)
  return explain.span(e.now_ms - ms)
end

-- Add a name and a value to the reply; nothing for nil and false.
function explain.tell(e, name, value)
  if value then
    e.out[#e.out + 1] = name
    e.out[#e.out + 1] = type(value) == 'number' and int(value) or value
  end
end

-- -> "web1 (pid 7)" of a worker. Its fields may be missing or garbage.
function explain.where(host, pid)
  host = host and host ~= '' and one_line(string.sub(host, 1, 255)) or 'an unknown host'
  return whole(pid or '') and host .. ' (pid ' .. pid .. ')' or host
end

-- ---- it runs, or has ended

local function of_running(e)
  local epoch = int(e.score)
  local counter = redis.call('HGET', e.R .. ':workers', epoch)
  local row = redis.call('HMGET', e.R .. ':worker:' .. epoch, 'host', 'pid', 'beat_ms')
  local beat_ms, from_ms = whole(row[3]), rooms.run_times(e.R, epoch, e.id)
  local cancelling = whole(redis.call('HGET', e.R .. ':cancel', e.id))
  local progress = redis.call('HGET', e.R .. ':progress', e.id)
  local text = 'it runs on ' .. explain.where(row[1], row[2])
  if from_ms then
    text = text .. ' for ' .. explain.since(e, from_ms)
  end
  if not counter then
    text = 'its worker ' .. epoch ..
           ' is not registered: it comes back in about 25 s, while some worker lives'
  elseif counter == 'dead' then
    text = 'its worker on ' .. explain.where(row[1], row[2]) ..
           ' was given up: it is being put back'
  elseif beat_ms and e.now_ms - beat_ms >= rooms.SILENT_MS then
    text = text .. ', which has been silent for ' .. explain.since(e, beat_ms) ..
           ' (after 20 to 25 s others take it back)'
  end
  text = text .. '; attempt ' .. int(e.tries.attempts)
  text = progress and text .. '; it says: ' .. one_line(progress) or text
  text = cancelling and text .. '; a cancel has been under way for ' ..
         explain.since(e, cancelling) or text
  explain.tell(e, 'due_ms', e.tries.due)
  explain.tell(e, 'worker', epoch)
  explain.tell(e, 'host', row[1])
  explain.tell(e, 'pid', row[2])
  explain.tell(e, 'since_ms', from_ms)
  explain.tell(e, 'beat_ms', beat_ms)
  explain.tell(e, 'progress', progress)
  explain.tell(e, 'cancelling_ms', cancelling)
  return 'handler', text
end

-- -> " (exit status 7): text" of an outcome, without the parts that it has not. A text may begin
-- with the exit status itself.
local function how(code, text)
  local status = 'exit status ' .. code
  local is_said = string.sub(text, 1, #status) == status
  local out = (whole(code) or 0) > 0 and not is_said and ' (' .. status .. ')' or ''
  return text ~= '' and out .. ': ' .. one_line(text) or out
end

local function of_done(e)
  local outcome = redis.call('HGET', e.R .. ':results', e.id) or ''
  local state, code, when, start, text = jobs.read_outcome(outcome)
  explain.tell(e, 'ended_ms', whole(when))
  explain.tell(e, 'until_ms', e.score)
  if not state then
    return 'nothing', 'it is done'
  end
  local what = state == 'cancelled' and 'it was cancelled ' or 'it was done '
  return 'nothing', what .. explain.since(e, whole(when) or e.now_ms) .. ' ago' ..
         (start ~= '0' and ', start ' .. start or '') .. how(code, text) ..
         '; it is forgotten in ' .. explain.span(e.score - e.now_ms)
end

local function of_dead(e)
  local _, code, _, _, text = jobs.read_outcome(redis.call('HGET', e.R .. ':errors', e.id) or '')
  local owner = e.job.u and uniques.owner(e.R, e.queue, e.job.u)
  owner = owner ~= e.id and owner or nil
  explain.tell(e, 'died_ms', e.score)
  explain.tell(e, 'code', code)
  explain.tell(e, 'reason', text)
  explain.tell(e, 'unique_owner', owner)
  return 'retry', 'it died ' .. explain.since(e, e.score) .. ' ago, after ' ..
         explain.plural(e.tries.attempts, 'attempt') .. how(code or '', text or '') .. '; ' ..
         (owner and 'later retry is refused while job ' .. owner .. ' has its unique key' or
          'later retry runs it again at once, its attempts counted anew')
end

-- ---- it waits for a worker

-- -> {serving, live, is_solo, free, gone}. serving: the workers of its queue, each with why it
-- cannot start this job (nil: it can); live: how many live workers have places; free: a worker that
-- can start it; gone: one that served the queue and was given up; defect, defective: what a worker
-- says of this queue, and that worker
local function servers(e)
  local count, is_solo = rooms.job_counter(e.R), e.tries.crashes >= SOLO_CRASHES
  local found = {serving = {}, live = 0, is_solo = is_solo}
  for _, w in ipairs(rooms.worker_rows(e.R)) do
    local word, limit, held = rooms.room_in(w, e.queue, count)
    local beat_ms = whole(w.row[3])
    local defect = word ~= 'dead' and rooms.defect_in(e.R, w, e.queue)
    if defect and not found.defect then
      found.defect, found.defective = defect, w
    end
    local row = {defect = defect, w = w, limit = limit, held = held, why = word ~= 'room' and
                 word ~= 'new' and word or nil, silent_ms = beat_ms and e.now_ms - beat_ms or 0}
    -- A worker that is a `later lock` has no places.
    found.live = found.live + (w.is_live and w.places and 1 or 0)
    if word == 'dead' then
      found.gone = w
    elseif word ~= 'elsewhere' then
      if row.silent_ms >= rooms.SILENT_MS then
        row.why = 'silent'
      elseif defect then
        row.why = 'broken'
      elseif is_solo and w.held > 0 and row.why ~= 'quiet' then
        row.why = 'busy'
      end
      found.serving[#found.serving + 1] = row
      found.free = found.free or not row.why and w or nil
    end
  end
  return found
end

-- -> the suspect that a worker without room runs alone, and its tries; nil: it runs none, or more
local function lone_suspect(R, w)
  local id = w.held == 1 and
             db('ZRANGEBYSCORE', R .. ':running', w.epoch, w.epoch, 'LIMIT', 0, 1)[1]
  local tries = id and jobs.tries(redis.call('HGET', R .. ':tries', id))
  if tries and tries.crashes >= SOLO_CRASHES then
    return id, tries
  end
end

-- -> why the worker does not start the job, in words
local function excuse(R, row)
  local w = row.w
  if row.why == 'quiet' then
    return 'was told to be quiet'
  elseif row.why == 'silent' then
    return 'is silent for ' .. explain.span(row.silent_ms)
  elseif row.why == 'broken' then
    return 'cannot run them: ' .. row.defect
  elseif row.why == 'full' then
    -- It may have claimed more than it has places.
    return 'is full: ' .. int(math.min(w.held, w.places)) .. ' of ' .. int(w.places) ..
           ' places are taken'
  elseif row.why == 'busy' then
    return 'runs ' .. explain.plural(w.held, 'job')
  elseif row.why == 'limit' then
    return (row.held and 'runs ' .. int(row.held) or 'runs too many jobs to count') .. ' of ' ..
           int(row.limit) .. ' jobs of this queue'
  end
  local suspect, tries = lone_suspect(R, w)
  if suspect then
    return 'runs only job ' .. suspect .. ', under which its worker died ' ..
           explain.plural(tries.crashes, 'time')
  end
  return 'said within ten seconds that it has none ' ..
         '(it stops, is short of processes, or runs a suspect alone)'
end

local function no_server(e, found)
  local unserved_ms = whole(redis.call('HGET', e.R .. ':unserved', e.queue))
  explain.tell(e, 'workers_live', found.live)
  explain.tell(e, 'unserved_since_ms', unserved_ms)
  local text = 'no live worker serves queue ' .. e.queue
  if found.gone then
    return text .. ': the one on ' .. explain.where(found.gone.row[1], found.gone.row[2]) ..
           ' did, and was given up'
  end
  if found.defect then
    explain.tell(e, 'defect', found.defect)
    return text .. ': ' .. explain.where(found.defective.row[1], found.defective.row[2]) ..
           ' says: ' .. found.defect
  end
  text = unserved_ms and text .. ', for ' .. explain.since(e, unserved_ms) .. ' at least' or text
  return found.live == 0 and text .. ': there is no live worker at all' or text .. ' (' ..
         explain.plural(found.live, 'other worker') .. ' in the namespace)'
end

local function list_workers(e, found)
  local flat, words = {}, {}
  for i = 1, math.min(#found.serving, LISTED) do
    local row = found.serving[i]
    local w = row.w
    for _, value in ipairs({
      w.epoch, w.row[1] or '', w.row[2] or '', row.why or '', w.held, w.places or 0,
    }) do
      flat[#flat + 1] = value
    end
    words[i] = explain.where(w.row[1], w.row[2]) .. ' ' .. excuse(e.R, row)
  end
  explain.tell(e, 'workers', flat)
  return explain.listed(words, #found.serving)
end

-- Where its tenant stands, if the queue is fair.
local function its_turn(e)
  local is_one = e.state == 'waiting' and e.tries.crashes < SOLO_CRASHES
  return is_one and standing.text(e.R, e.queue, e.job.K or '', e.now_ms) or ''
end

-- -> how many due jobs of its queue, or of its tenant in a fair one, are claimed before it; whose
-- they are
local function due_before(e)
  if e.state ~= 'waiting' then
    return 0
  elseif e.tries.crashes >= SOLO_CRASHES then
    return redis.call('ZRANK', e.R .. ':solo:' .. e.queue, e.id) or 0, 'of the queue'
  end
  local now, n = int(e.now_ms), redis.call('ZCARD', e.R .. ':granted:' .. e.queue)
  if tenants.are_kept(e.R, e.queue) then
    return standing.due_before(e.R, e.id, e.job, e.now_ms),
           e.job.K and 'of its tenant' or 'without a key'
  end
  for p = 0, e.job.priority - 1 do
    n = n + redis.call('ZCOUNT', e.R .. ':q:' .. e.queue .. ':' .. int(p), '-inf', now)
  end
  if e.job.priority >= 5 then
    n = n + redis.call('ZCOUNT', e.R .. ':due:' .. e.queue, '-inf', e.job.priority == 5 and '(' ..
                       int(e.score) or now)
  end
  return n + (redis.call('ZRANK', jobs.waiting_key(e.R, e.job, e.tries), e.id) or 0),
         'of the queue'
end

-- The job needs nothing but a worker. -> waits_for, text; nil and a worker, when that could start
-- it now
local function for_worker(e)
  local found = servers(e)
  if #found.serving == 0 then
    return 'worker', no_server(e, found)
  elseif found.free then
    return nil, found.free
  end
  local before, whose = due_before(e)
  local words = list_workers(e, found)
  explain.tell(e, 'ahead', before)
  explain.tell(e, 'defect', found.defect)
  if found.is_solo then
    return 'alone', 'its worker died ' .. explain.plural(e.tries.crashes, 'time') ..
           ' under it, so it starts only where nothing else runs: ' .. words ..
           '; a worker that keeps it waiting for ten seconds empties itself'
  end
  return 'room', 'no worker that serves queue ' .. e.queue .. ' has room: ' .. words ..
         (before > 0 and '; ' .. explain.plural(before, 'due job') .. ' ' .. whose ..
          ' before it' or '') .. its_turn(e)
end

-- -> waits_for, text of a job that is due, passes its gates and may run
local function startable(e, due_ms)
  local waits_for, what = for_worker(e)
  if waits_for then
    return waits_for, what
  end
  local before, whose = due_before(e)
  local where = explain.where(what.row[1], what.row[2])
  if before > 0 then
    whose = whose == 'of the queue' and 'of queue ' .. e.queue or whose
    explain.tell(e, 'ahead', before)
    return 'turn', explain.plural(before, 'due job') .. ' ' .. whose .. ' stand' ..
           (before == 1 and 's' or '') .. ' before it; ' .. where .. ' has room' .. its_turn(e)
  elseif e.state ~= 'waiting' then
    return 'nothing', 'it is about to start, ' .. where .. ' has room'
  end
  local text = 'it is about to start: due for ' .. explain.since(e, due_ms) .. ', and ' .. where ..
               ' has room'
  -- The queue may have been resumed just now: so the text says "if that stays so".
  return 'nothing', e.now_ms - due_ms < rooms.SILENT_MS and text or text ..
         '; if that stays so, that worker is in trouble, and its log says which'
end

-- ---- it waits

-- -> why a claim would bury the job instead of starting it, or nil
local function doom(e, due_ms)
  local expire_ms = e.tries.starts == 0 and whole(e.job.x)
  if expire_ms and due_ms + expire_ms < e.now_ms then
    return 'it was not started within ' .. explain.span(expire_ms) ..
           ' of its due time: it has expired, and is buried when its turn comes'
  end
  if e.state ~= 'waiting' then
    return nil
  end
  local _, why = wanted.gates_of(e.job, wanted.queue_gates(redis.call('HGET', e.R .. ':queues',
                                                                      e.queue)))
  return why and why .. ': it is buried when its turn comes'
end

-- -> waits_for, text; nil: its queue is not paused
local function by_pause(e)
  local row = redis.call('HGET', e.R .. ':paused', e.queue)
  local until_ms = instant.paused_until(row, e.now_ms)
  if not until_ms then
    return nil
  end
  local from, who, reason = string.match(row, '^%d+ (%d+) (%S+) ?(.*)$')
  local text = 'its queue ' .. e.queue .. ' is paused'
  who = who ~= '-' and who or nil
  reason = reason ~= '' and reason or nil
  explain.tell(e, 'since_ms', whole(from))
  explain.tell(e, 'until_ms', until_ms > 0 and until_ms)
  explain.tell(e, 'paused_by', who)
  explain.tell(e, 'reason', reason)
  text = who and text .. ' by ' .. one_line(who) or text
  text = whole(from) and text .. ' for ' .. explain.since(e, whole(from)) or text
  text = text .. (until_ms > 0 and ', for another ' .. explain.span(until_ms - e.now_ms) or
                  ', until later resume')
  return 'pause', reason and text .. ' (' .. one_line(reason) .. ')' or text
end

-- The job may run only in one worker, or on one host. -> waits_for, text; nil: it is not pinned
local function by_pin(e, due_ms)
  local kind, name = string.match(e.job.W or '', '^([wh])(.+)$')
  if not kind then
    return nil
  end
  if pins.is_target(e.ledger, e.job.W, e.queue) then
    local row = kind == 'w' and redis.call('HMGET', e.R .. ':worker:' .. name, 'host', 'pid')
    return 'room', 'it was broadcast to ' .. (row and explain.where(row[1], row[2]) or 'host ' ..
                                              name) .. ' and is due for ' ..
           explain.since(e, due_ms) .. ': ' .. (row and 'that worker has' or 'its workers have') ..
           ' no room, or not looked yet'
  end
  return 'worker', kind == 'w' and 'it was broadcast to worker ' .. name ..
         ', which is gone or serves queue ' .. e.queue .. ' no more: it is about to be cancelled' or
         'it was broadcast to host ' .. name .. ', where no worker serves queue ' .. e.queue ..
         ' now'
end

-- What keeps the job from a start whatever workers do: it will be buried, or its queue is paused.
local function stopped(e, due_ms)
  local why = doom(e, due_ms)
  if why then
    return 'nothing', why
  end
  return by_pause(e)
end

local function of_waiting(e)
  local due_ms = to_due(e.score)
  explain.tell(e, 'due_ms', due_ms)
  if due_ms > e.now_ms then
    local outcome = redis.call('HGET', e.R .. ':errors', e.id) or ''
    local state, code, when, _, text = jobs.read_outcome(outcome)
    return 'time', 'it is not due for ' .. explain.span(due_ms - e.now_ms) ..
           (state == 'failed' and whole(when) and
            '; attempt ' .. int(e.tries.attempts) .. ' failed ' .. explain.since(e, whole(when)) ..
            ' ago' .. how(code, text) or '')
  end
  local waits_for, text = stopped(e, due_ms)
  if waits_for then
    return waits_for, text
  end
  waits_for, text = by_pin(e, due_ms)
  if waits_for then
    return waits_for, text
  end
  return startable(e, due_ms)
end

-- A granted job: within a second it is claimed, or it waits for its first gate again.
local function of_granted(e, spot)
  e.granted_ms = tonumber(redis.call('ZSCORE', e.R .. ':granted:' .. e.queue, e.id) or e.now_ms)
  explain.tell(e, 'granted_ms', e.granted_ms)
  local waits_for, text = startable(e, spot.due)
  return waits_for, 'it was let in at ' .. table.concat(spot.gates, ', ') .. ' ' ..
         explain.since(e, e.granted_ms) .. ' ago; ' .. text
end

local function of_parked(e)
  local spot = waiters.read_spot(redis.call('HGET', e.R .. ':parked', e.id))
  if not spot then
    return 'nothing', 'it waits for a gate, and its spot is lost: later fsck puts that right'
  end
  explain.tell(e, 'due_ms', spot.due)
  local waits_for, text = stopped(e, spot.due)
  if waits_for then
    return waits_for, text
  elseif spot.at == 0 then
    return of_granted(e, spot)
  end
  local id = spot.gates[spot.at]
  explain.tell(e, 'gate', id)
  if redis.call('SISMEMBER', e.R .. ':aside:' .. e.queue, id) == 1 then
    explain.tell(e, 'aside', 1)
    waits_for, text = for_worker(e)
    if waits_for then
      return waits_for, 'its queue stands aside at ' .. id ..
             ' until a worker has room for it; ' .. text
    end
  end
  waits_for, text = explain_gates.explain_gate(e, gate.of(e.ledger, id), spot.ticket)
  if waits_for then
    return waits_for, text
  end
  waits_for, text = startable(e, spot.due)
  return waits_for, id .. ' is free again, and nobody waits before it; ' .. text
end

local STATES = {waiting = of_waiting, parked = of_parked, running = of_running, done = of_done,
                dead = of_dead}

register('later_explain', {'no-writes'}, function(R, args)
  local id = uniques.check_id(R, args[1])
  local ledger = gate.ledger(R, clock.now_us())
  local state, job, tries, score = jobs.find(R, id)
  local e = {R = R, id = id, ledger = ledger, now_ms = ledger.now_ms, state = state, job = job,
             queue = job.queue, tries = tries, score = score, out = {}}
  local waits_for, text = STATES[state](e)
  local reply = {'id', id, 'queue', job.queue, 'state', state, 'waits_for', waits_for, 'text', text,
                 'now_ms', int(ledger.now_ms), 'added_ms', int(clock.made_ms(id))}
  for _, value in ipairs(e.out) do
    reply[#reply + 1] = value
  end
  return reply
end)
