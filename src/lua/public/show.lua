-- later_show R ID -> [name, value, name, value, ...]
--
-- Names: id queue state priority added_ms started_ms due_ms attempt attempts_max starts crashes
-- key timeout_ms expire_ms keep_ms trace lock sem rate unique unique_until_ms then (the queues
-- that follow, with commas between them) on_dead parent reason (why the parent died) batch caused
-- (of a kept or dead job: the ids of the jobs that it caused, with commas between them, the last
-- 100 at least) schedule occurrence_ms (that added it, and for which time) topic (under which it
-- was published) pinned (w and the epoch of its worker, or h and its host) callback_of (a batch)
-- gate worker progress cancelling outcome (see jobs.outcome; the last failure of a waiting or dead
-- job, the end of a done one) checkpoint steps (that its attempts have kept: {name, ' ', bytes,
-- LF, output}*) failures (of its last failed attempts, see jobs.keep_failure) payload_bytes
-- payload. Names that do not apply are left out.
-- added_ms: when it got its id (by an add, an import, the claim of a raw member). started_ms: since
-- when it runs; its worker tells that of a job that runs for 5 to 15 s.
-- state: waiting parked running dead done. gate: where a parked job waits (left out: it is
-- granted). due_ms of a running job is when it was due. Dead and done jobs have no due_ms, but
-- died_ms and until_ms (when it is forgotten).
-- Errors: ELATER_ARGS NOJOB. no-writes. Cost: O(log n) and the payload.

local rooms, chains, clock, jobs, resume, uniques, waiters = use(
  'claim/rooms', 'core/chains', 'core/clock', 'core/jobs', 'core/resume', 'gates/uniques',
  'gates/waiters')

-- Put the fields that only jobs in this state have.
local function put_state(put, R, id, state, tries, score)
  if state == 'waiting' then
    put('due_ms', score)
  elseif state == 'parked' then
    local spot = waiters.read_spot(redis.call('HGET', R .. ':parked', id))
    put('due_ms', spot and spot.due)
    put('gate', spot and spot.gates[spot.at])
  elseif state == 'running' then
    put('due_ms', tries.due)
    local since_ms = rooms.run_times(R, int(score), id)
    put('started_ms', since_ms)
    put('worker', score)
    put('progress', redis.call('HGET', R .. ':progress', id))
    put('cancelling', redis.call('HGET', R .. ':cancel', id))
  else
    put(state == 'dead' and 'died_ms' or 'until_ms', score)
  end
end

-- Options: the name in the reply, and the field of the record.
local OPTIONS = {'key', 'K', 'timeout_ms', 't', 'expire_ms', 'x', 'keep_ms', 'k', 'trace', 'T',
                 'lock', 'l', 'sem', 's', 'rate', 'r', 'unique', 'u', 'unique_until_ms', 'f',
                 'then', 'n', 'on_dead', 'd', 'parent', 'p', 'batch', 'b', 'caused', 'c',
                 'schedule', 'S', 'occurrence_ms', 'O', 'topic', 'P', 'pinned', 'W'}

register('later_show', {'no-writes'}, function(R, args)
  local id = uniques.check_id(R, args[1])
  local state, job, tries, score = jobs.find(R, id)
  local out = {}
  local function put(name, value)
    if value then
      out[#out + 1] = name
      out[#out + 1] = type(value) == 'number' and int(value) or value
    end
  end
  local payload = job.big and (redis.call('GET', R .. ':big:' .. id) or '') or
                  string.sub(job.record, job.body)
  put('id', id)
  put('queue', job.queue)
  put('state', state)
  put('priority', job.priority)
  put('added_ms', clock.made_ms(id))
  put_state(put, R, id, state, tries, score)
  put('attempt', tries.attempts)
  put('attempts_max', job.a)
  put('starts', tries.starts)
  put('crashes', tries.crashes)
  for i = 1, #OPTIONS, 2 do
    put(OPTIONS[i], job[OPTIONS[i + 1]])
  end
  put('reason', chains.decode_reason(job.m))
  put('callback_of', job.B and string.match(job.B, '^[^,]+'))
  put('outcome', redis.call('HGET', R .. (state == 'done' and ':results' or ':errors'), id))
  local kept = redis.call('HGET', R .. ':resume', id)
  local _, _, checkpoint = resume.read(kept)
  put('checkpoint', checkpoint)
  put('steps', kept and resume.pack(R, id, kept) or nil)
  put('failures', redis.call('HGET', R .. ':failures', id))
  put('payload_bytes', #payload)
  put('payload', payload)
  return out
end)
