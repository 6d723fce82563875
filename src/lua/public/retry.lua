-- later_retry R ID [T] [from_start] -> [id, 'retried', due_ms]
--
-- By hand. (A failed attempt is tried again by itself: rows/results.lua, claim/settling.lua.)
--
-- Run a dead job again, at once or at T, which is as for `at`. Its attempts and crashes are counted
-- from 0 again. Its start number goes on rising, so that a late result of an earlier start is
-- refused. It goes on from its checkpoint and has the outputs of its steps; the word from_start
-- forgets both.
-- Errors: ELATER_ARGS NOJOB STATE TIME TYPE UNIQUE (another job has its unique key). Cost:
-- O(log n).

local retries = module 'public/retry'
local membership, clock, events, instant, jobs, resume, uniques, adds = use(
  'batch/membership', 'core/clock', 'core/events', 'core/instant', 'core/jobs', 'core/resume',
  'gates/uniques', 'public/add')

-- The job goes to another queue: its record is the same, but for the name.
local function move(R, id, job, queue)
  local record, more = job.record, #queue - #job.queue
  adds.check_names(R, queue)
  adds.check_payload_size(R, queue, job.big and db('STRLEN', R .. ':big:' .. id) or
                          #record - job.body + 1)
  if job.body - 1 + more > HEADER_MAX then
    fail('ELATER_SIZE', 'its options are too long for queue ' .. queue)
  end
  db('HSET', R .. ':jobs', id, string.sub(record, 1, 1) .. queue ..
     string.sub(record, #job.queue + 2))
  job.queue = queue
end

-- Run a dead job again, then. job, tries: as jobs.find tells them; queue: where, nil: its own
function retries.retry(R, id, job, tries, due, queue)
  local from = job.queue
  if queue and queue ~= from then
    move(R, id, job, queue)
  end
  uniques.retake(R, id, job)
  tries.attempts, tries.crashes = 0, 0
  db('ZREM', R .. ':dead:' .. from, id)
  db('HSET', R .. ':tries', id, jobs.tries_text(tries, due))
  jobs.enqueue(R, id, job, tries, due, job.queue ~= from)
  membership.revive_member(R, job.b, id)
  if events.now then
    events.add('retried', id, job.queue, due, tries.starts)
  end
end

register('later_retry', {'allow-oom'}, function(R, args)
  local id = uniques.check_id(R, args[1])
  local state, job, tries = jobs.find(R, id)
  if state ~= 'dead' then
    fail('ELATER_STATE', 'job ' .. id .. ' is ' .. state .. ', only a dead one can be retried' ..
         (state == 'waiting' and ' (later_run_now makes it due at once)' or ''))
  end
  local is_anew = args[#args] == 'from_start' and #args > 1
  local at, now_ms = args[is_anew and #args - 1 or 2], clock.ms(clock.now_us())
  local due = #args > (is_anew and 2 or 1) and instant.time(at, now_ms, 'time') or now_ms
  if #args > 3 or #args == 3 and not is_anew then
    fail('ELATER_ARGS', 'give ID [T] [from_start]')
  elseif is_anew then
    resume.drop(R, {id})
  end
  retries.retry(R, id, job, tries, due)
  return {id, 'retried', due}
end)
