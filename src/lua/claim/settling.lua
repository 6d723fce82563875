-- One result of a job of which something stays: it is kept, retried, dead or released, or this is
-- its progress or its checkpoint. A sync over rows has rows/results.lua.
--
-- A result: {id, start, verb, queue, a, code, text, output, result}. verb: done (a: keep ms) |
-- retry (a: delay ms) | dead (a: most dead jobs kept) | release (a: delay ms; counts no attempt) |
-- progress (text) | checkpoint (output: the text). code: exit status; text: one line; output: its
-- last bytes; result: what the handler gave to the next job of the chain, nil for nothing;
-- children: jobs to add if it is done, {args, {first, last}*}, nil for none.

local settling = module 'claim/settling'
local membership, workers, syncs, chains, events, jobs, resume, holding, uniques, calendar, change,
      commit, txn = use(
  'batch/membership', 'calls/register', 'claim/syncs', 'core/chains', 'core/events', 'core/jobs',
  'core/resume', 'gates/holding', 'gates/uniques', 'schedule/calendar', 'txn/change', 'txn/commit',
  'txn/txn')

local function apply_retry(R, r, job, tries, epoch, now_ms)
  local due = now_ms + r.a
  if uniques.end_replaced(R, r.id, job, r.code, tries.starts, r.output, now_ms) then
    return
  end
  db('ZREM', R .. ':running', r.id)
  db('HSET', R .. ':tries', r.id, jobs.tries_text(tries, due))
  db('HSET', R .. ':errors', r.id, jobs.outcome('failed', r.code, now_ms, tries.starts, r.text,
                                                r.output))
  jobs.keep_failure(R, r.id, now_ms, epoch, r.code, r.text)
  db('HDEL', R .. ':progress', r.id)
  jobs.enqueue(R, r.id, job, tries, due)
  commit.count(R, 'failed', job.queue, 1)
  if events.now then
    events.add('failed', r.id, job.queue, due, tries.starts, tries.attempts, whole(r.code), r.text)
  end
end

-- job: with its record
local function apply_done(R, r, job, tries, now_ms)
  local caused = {}
  db('ZREM', R .. ':running', r.id)
  if r.children then
    uniques.free_of(R, r.id, job) -- a child may have the same key
    caused = chains.add_children(R, r, job.b, now_ms)
  end
  caused[#caused + 1] = chains.add_next(R, r.id, job, r.result, r.a > 0, now_ms)
  jobs.finish(R, job, r.id, jobs.outcome('done', r.code, now_ms, tries.starts, r.text, r.output),
              now_ms, r.a)
  chains.keep_caused(R, r.id, caused)
  calendar.mark_end(R, job, 'ok')
  commit.count(R, 'done', job.queue, 1)
end

-- The record of a held job is missing or corrupt. A job that is done ends well; any other end needs
-- the record, and so does a next job: then the job is buried.
local function apply_broken(R, r, record, tries, now_ms)
  local hold = db('HGET', R .. ':holds', r.id)
  if r.verb ~= 'done' or holding.has_next(hold) then
    jobs.bury_broken(R, r.id, record, string.match(r.queue, '^%w[%w_-]*$'), now_ms)
    return
  end
  db('ZREM', R .. ':running', r.id)
  jobs.finish(R, nil, r.id, jobs.outcome('done', r.code, now_ms, tries.starts, r.text, r.output),
              now_ms, 0)
  membership.end_member(R, holding.batch_of(hold), r.id, 'done', now_ms)
  commit.count(R, 'done', r.queue, 1)
end

local VERBS = {done = true, retry = true, dead = true, release = true, progress = true,
               checkpoint = true}
-- After these the job runs on.
local RUNS_ON = {progress = true, checkpoint = true}

local function keep_checkpoint(R, r)
  if #r.output > resume.CHECKPOINT_MAX then
    fail('ELATER_SIZE', 'the checkpoint has ' .. int(#r.output) .. ' bytes, a job may keep ' ..
         int(resume.CHECKPOINT_MAX))
  end
  resume.put_checkpoint(R, r.id, r.output)
end

-- Apply the result of a held job.
local function apply(R, r, tries, cancelled, epoch, now_ms)
  if not VERBS[r.verb] then
    fail('ELATER_ARGS', 'unknown verb ' .. quote(r.verb))
  elseif not r.a then
    fail('ELATER_ARGS', 'no amount')
  elseif r.verb == 'progress' then
    db('HSET', R .. ':progress', r.id, one_line(r.text))
    return
  elseif r.verb == 'checkpoint' then
    txn.spend(#r.output)
    keep_checkpoint(R, r)
    return
  end
  local record = db('HGET', R .. ':jobs', r.id)
  local job = jobs.parse(record)
  txn.spend(#(record or '') + #r.output)
  if job == nil then
    apply_broken(R, r, record, tries, now_ms)
  elseif cancelled and r.verb ~= 'done' then
    -- It is cancelled and did not end well: it ends, whatever the worker's verdict is.
    local outcome = jobs.outcome('cancelled', r.code, now_ms, tries.starts,
                                 'cancelled while running', r.output)
    jobs.end_cancelled(R, job, r.id, outcome, now_ms)
  elseif r.verb == 'done' then
    job.record = record
    apply_done(R, r, job, tries, now_ms)
  elseif r.verb == 'retry' then
    apply_retry(R, r, job, tries, epoch, now_ms)
  elseif r.verb == 'dead' then
    db('ZREM', R .. ':running', r.id)
    jobs.keep_failure(R, r.id, now_ms, epoch, r.code, r.text)
    commit.count(R, 'failed', job.queue, 1)
    jobs.bury(R, job.queue, r.id, jobs.outcome('dead', r.code, now_ms, tries.starts, r.text,
                                               r.output), now_ms, r.a)
  else
    workers.release(R, r.id, r.a, now_ms)
  end
end

-- epoch: of the worker that tells the result. -> answer, whether the job has left its worker.
-- later: the call has moved as many bytes as it may.
function settling.settle_one(R, r, tries, flag, epoch, ledger)
  if txn.is_spent() then
    return 'later', false
  end
  local ok, what = change.try(apply, R, r, jobs.tries(tries), flag, epoch, ledger.now_ms)
  if not ok and type(what) == 'table' and what.refused then
    return 'refused ' .. what.refused, false
  elseif not ok then
    return 'error ' .. syncs.error_text(what), false
  elseif not RUNS_ON[r.verb] then
    return 'ok', true
  end
  return 'ok', false
end
