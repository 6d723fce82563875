-- Who belongs to a batch (batches.lua), and what the end of a member causes.
--
-- A job names its batch in its record (b), and while it runs in R:holds (gates/holding.lua).
-- A callback names the batch that it tells of, and its counts (B).

local membership = module 'batch/membership'
local batches, tidy, chains, events, change, commit, txn = use(
  'batch/batches', 'calls/tidy', 'core/chains', 'core/events', 'txn/change', 'txn/commit',
  'txn/txn')
local LIVE, DONE, DEAD, CANCELLED = 0, 1, 2, 3
local STATES = {live = LIVE, done = DONE, dead = DEAD, cancelled = CANCELLED}
local MEMBERS_MAX = 1000000

membership.MEMBER_STATES = STATES

local function members_key(R, name)
  return R .. ':members:' .. name
end

-- ---- joining

-- May n new jobs join the batch of this definition, those that will follow them included? size: how
-- many members it has; inside: the batch of the job that adds them, nil: none does. Its name was
-- checked.
function membership.check_batch_size(name, text, size, n, inside)
  local batch = batches.known(name, text) or batches.fail_no_batch(name, text)
  if batch.cancelled_ms then
    fail('ELATER_BATCH', 'batch ' .. quote(name) .. ' is cancelled: nothing joins it any more')
  elseif batch.sealed_ms and inside ~= name then
    fail('ELATER_BATCH', 'batch ' .. quote(name) .. ' is sealed: only its members add to it')
  elseif size + n > MEMBERS_MAX then
    fail('ELATER_FULL', 'batch ' .. quote(name) .. ' has more than ' .. int(MEMBERS_MAX) ..
         ' members')
  end
end

-- May n new jobs like this one join its batch? For a call that writes through its transaction.
function membership.check_join(R, job, n)
  membership.check_batch_size(job.b, db('HGET', R .. ':batches', job.b),
                              db('ZCARD', members_key(R, job.b)), n * chains.chain_length(job),
                              job.inside)
end

-- The next job of a chain is to join. Chains that were added before it may have filled the batch:
-- then the attempt has failed, as with a child that is refused.
function membership.check_room(R, name)
  if db('ZCARD', members_key(R, name)) >= MEMBERS_MAX then
    error({refused = 'batch ' .. quote(name) .. ' has ' .. int(MEMBERS_MAX) ..
           ' members: the next job of the chain cannot join'})
  end
end

-- -> the batch of which a job is a member, nil for none: the batch that its record names may be
-- forgotten, and there may be another one of that name. name: in its record, nil for none
function membership.member_batch(R, id, name)
  return name and db('ZSCORE', members_key(R, name), id) and batches.of(R, name) or nil
end

-- A new job joins the batch of its record, if that is still there.
function membership.join(R, name, id)
  if db('HEXISTS', R .. ':batches', name) == 1 then
    change.is_new(members_key(R, name), 'zset', id)
    db('ZADD', members_key(R, name), LIVE, id)
  end
end

-- ---- callbacks

-- -> {total, done, dead, cancelled, live} of a batch
function membership.batch_counts(R, name)
  local key, counts = members_key(R, name), {total = 0}
  for state, score in pairs(STATES) do
    counts[state] = db('ZCOUNT', key, score, score)
    counts.total = counts.total + counts[state]
  end
  return counts
end

local function has_fired(batch, what)
  return string.find(',' .. batch.fired .. ',', ',' .. what .. ',', 1, true) ~= nil
end

-- Add the callback `what` of a batch, once. What hinders it must not keep a member from ending:
-- then the next end of a member adds it, or later_batch_seal, when it is called again.
local function fire(R, batch, what, now_ms)
  local queue = batch[what]
  if not queue or has_fired(batch, what) then
    return
  end
  local n = membership.batch_counts(R, batch.name)
  local told = batch.name .. ',' .. int(n.total) .. ',' .. int(n.done) .. ',' .. int(n.dead) ..
               ',' .. int(n.cancelled)
  local fields = {queue = queue, priority = 5, has_options = true, B = told}
  if change.unless_hindered(chains.add_due_now, R, fields, batch.payload, now_ms) then
    batch.fired = (batch.fired ~= '' and batch.fired .. ',' or '') .. what
  end
end

-- Add the callbacks that are due: that of the first death, and those of a sealed batch that has no
-- live member. -> whether it has ended
local function end_batch(R, batch, now_ms)
  local key = members_key(R, batch.name)
  if batch.dead then
    fire(R, batch, 'on_dead', now_ms)
  end
  if not batch.sealed_ms or db('ZCOUNT', key, LIVE, LIVE) > 0 then
    return false
  end
  fire(R, batch, 'finally', now_ms)
  if db('ZCOUNT', key, DEAD, CANCELLED) == 0 then
    fire(R, batch, 'then', now_ms)
  end
  if not batch.ended_ms then
    batch.ended_ms = now_ms
    commit.say(R .. ':ended:batch:' .. batch.name, batches.state(batch))
    if events.now then
      events.add('batch-ended', '-', '-', nil, nil, nil, nil, batch.name)
    end
    batches.trim(R, now_ms, 2)
  end
  return true
end

-- Has a sealed batch no live member, and yet not ended with all its callbacks?
function membership.lacks_callbacks(R, batch)
  local n = membership.batch_counts(R, batch.name)
  local is_whole = batch.ended_ms and (not batch.finally or has_fired(batch, 'finally')) and
                   (not batch['then'] or n.done < n.total or has_fired(batch, 'then')) and
                   (not batch.on_dead or not batch.dead or has_fired(batch, 'on_dead'))
  return n.live == 0 and not is_whole
end

-- Members have ended, `id` the first of them: do what is to be done about it.
local function after_end(R, batch, state, id, now_ms)
  local died = state == DEAD and not batch.dead
  if died then
    batch.dead = id
  end
  local fired = batch.fired
  txn.spend(#batch.payload)
  if end_batch(R, batch, now_ms) or died or fired ~= batch.fired then
    batches.put(R, batch)
  end
end

-- ---- ends

-- Of a batch that cannot be read, the members are counted all the same: the rest is done when it is
-- mended.
local function end_all(R, name, ids, state, now_ms)
  local key, first = members_key(R, name), nil
  local batch, is_corrupt = batches.of(R, name)
  local scores = (batch or is_corrupt) and db('ZMSCORE', key, unpack(ids)) or {}
  for i, id in ipairs(ids) do
    if scores[i] and scores[i] ~= state then
      db('ZADD', key, state, id)
      first = first or id
    end
  end
  if first and batch then
    after_end(R, batch, state, first, now_ms)
  elseif first then
    tidy.note(R, 'bad-batch:' .. name .. ' its definition is corrupt', now_ms)
  end
end

-- These jobs have ended. name: their batch; state: done, dead or cancelled
function membership.end_members(R, name, ids, state, now_ms)
  change.unless_hindered(end_all, R, name, ids, STATES[state], now_ms)
end

-- A job has ended. name: its batch, nil for none
function membership.end_member(R, name, id, state, now_ms)
  if name then
    membership.end_members(R, name, {id}, state, now_ms)
  end
end

-- A dead member is tried again: it is live, and so is its batch.
function membership.revive_member(R, name, id)
  local batch = name and batches.of(R, name)
  if not batch or not db('ZSCORE', members_key(R, name), id) then
    return
  end
  db('ZADD', members_key(R, name), LIVE, id)
  if batch.ended_ms then
    batch.ended_ms = nil
    batches.put(R, batch)
  end
end

-- Seal a batch, which may end it. why: the field that gets the time, beside sealed_ms
function membership.seal(R, batch, now_ms, why)
  batch.sealed_ms = batch.sealed_ms or now_ms
  if why then
    batch[why] = now_ms
  end
  end_batch(R, batch, now_ms)
  batches.put(R, batch)
end
