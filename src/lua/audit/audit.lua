-- What an audit (calls/audit.lua) knows of a job, and how a repair changes it.

local audit = module 'audit/audit'
local audit_gates, jobs = use('audit/gates', 'core/jobs')

audit.LOST = 'lost-found'   -- the queue of a job whose record names none

-- A read; nil where a key has a foreign type.
local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    return nil
  end
  return reply
end

-- A variadic read of many ids, as one array; nil where the key has a foreign type.
local function ask_many(command, key, ids)
  local out = {}
  for from = 1, #ids, 1000 do
    local part = ask(command, key, unpack(ids, from, math.min(from + 999, #ids)))
    if not part then
      return nil
    end
    for i = 1, #part do
      out[from + i - 1] = part[i]
    end
  end
  return out
end

-- Judge each entry of a page of HSCAN or ZSCAN: judge(ctx, field or member, value or score). page:
-- nil where the key has a foreign type -> next cursor, how many entries
function audit.each(ctx, page, judge)
  if not page then
    return '0', 0
  end
  for i = 1, #page[2], 2 do
    judge(ctx, page[2][i], page[2][i + 1])
  end
  return page[1], #page[2] / 2
end

-- The queue that a record names, even a corrupt one; nil when it cannot be told.
local function queue_of(record)
  local queue = string.match(record or '', '^[-+](%w[%w_-]*)[ \n]')
  return queue and #queue <= 64 and queue or nil
end

-- -> whose a running job with this score is: live (a worker), dead (a worker that is being
-- reaped), stranger (a worker whose entry was lost: the reaper takes its jobs) or nobody (the score
-- is no epoch, so no reap would ever take the job); the epoch as text
local function worker_of(ctx, score)
  local epoch = int(tonumber(score))
  if not whole(epoch) or tonumber(epoch) ~= tonumber(score) then
    return 'nobody', tostring(score)
  end
  if ctx.states[epoch] == nil then
    local counter = db('HGET', ctx.R .. ':workers', epoch)
    ctx.states[epoch] = counter == 'dead' and 'dead' or counter and 'live' or 'stranger'
  end
  return ctx.states[epoch], epoch
end

local function is_held(ctx, id)
  local score = db('ZSCORE', ctx.R .. ':running', id)
  return score and worker_of(ctx, score) ~= 'nobody'
end

local LEFT = {live = ': its end puts that right', dead = ': it is being reaped',
              stranger = ': left to the reaper'}

local function left_to(who, epoch)
  return '; worker ' .. epoch .. ' holds it' .. LEFT[who]
end

-- -> why the payload of a big job cannot be read, or nil
local function lost_payload(R, id)
  local is = db('TYPE', R .. ':big:' .. id).ok
  if is == 'string' then
    return nil
  end
  return is == 'none' and 'its payload is missing (the key big:' .. id .. ')' or
         'its payload is missing (the key big:' .. id .. ' is a ' .. is .. ')'
end

local function is_bad_score(score)
  return score ~= score or score > LATEST or score == -math.huge
end

-- Write a new record, for this queue, where the record is missing or corrupt.
local function mend_record(R, id, queue, record)
  db('HSET', R .. ':jobs', id, jobs.mended(R, id, queue, record))
end

-- Remove a job from one set; a parked job also leaves its gate.
local function leave(R, name, id)
  local queue = string.match(name, '^parked:(.*)$')
  if queue then
    audit_gates.unpark(R, queue, id)
  end
  db('ZREM', R .. ':' .. name, id)
end

-- Bury a job that is in the sets `sets` of its queue. All that is wrong with it is handled at
-- once, so that a second audit finds nothing more. No dead job is forgotten for its sake.
local function bury(ctx, queue, id, why, sets)
  local R = ctx.R
  local job = jobs.parse(db('HGET', R .. ':jobs', id) or nil)
  local text = db('HGET', R .. ':tries', id)
  local tries = jobs.tries(text or nil)
  local lost = job and job.big and lost_payload(R, id)
  if lost and not string.find(why, 'its payload is missing', 1, true) then
    why = why .. '; ' .. lost
  end
  if text and not tries.due then
    db('HDEL', R .. ':tries', id)
  end
  for _, set in ipairs(sets) do
    if set.name ~= 'dead:' .. queue then
      leave(R, set.name, id)
    end
  end
  jobs.bury(R, queue, id, jobs.outcome('dead', 0, ctx.now_ms, tries.starts, 'fsck: ' .. why, ''),
            ctx.now_ms, math.huge)
end

audit.ask, audit.ask_many, audit.queue_of, audit.worker_of = ask, ask_many, queue_of, worker_of
audit.is_held, audit.left_to, audit.lost_payload = is_held, left_to, lost_payload
audit.is_bad_score, audit.mend_record = is_bad_score, mend_record
audit.leave, audit.bury = leave, bury
