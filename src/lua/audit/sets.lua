-- Phase set of later_v1_audit and later_v1_repair (calls/audit.lua): ZSCAN of a set of jobs. Each
-- member must have a record that names the queue of the set.

local audit_sets = module 'audit/sets'
local audit, audit_jobs, jobs = use('audit/audit', 'audit/jobs', 'core/jobs')
local ask_many, ask, queue_of, is_held = audit.ask_many, audit.ask, audit.queue_of, audit.is_held
local mend_record, leave, bury = audit.mend_record, audit.leave, audit.bury
local find_sets = audit_jobs.find_sets

local function no_record_text(R, id)
  return db('EXISTS', R .. ':big:' .. id) == 1 and 'its record is missing' or
         'its record is missing, and so its payload is missing'
end

-- A member whose record is missing. A done job is forgotten, since only its outcome was kept.
local function judge_unknown(ctx, name, queue, id)
  local R = ctx.R
  local why = no_record_text(R, id)
  ctx.tell('no-record', id, queue, why .. ' (it is in ' .. name .. ')', function()
    leave(R, name, id)
    if is_held(ctx, id) then
      return
    elseif name == 'done:' .. queue then
      jobs.forget(R, {id})
    else
      mend_record(R, id, queue, nil)
      bury(ctx, queue, id, why, {})
    end
  end)
end

local function is_in_any(ctx, queue, id, job)
  local row = {id = id, job = job, sets = {}}
  find_sets(ctx, queue, {row})
  return #row.sets > 0 or row.unsure
end

-- Is it a set of pinned jobs, and is this job none of them?
local function is_of_other(name, job)
  local target = string.match(name, '^pin:[^:]+:(.+)$')
  return target and job.W ~= target
end

local function judge_member(ctx, name, queue, id, record)
  local R, job = ctx.R, jobs.parse(record)
  if not record then
    judge_unknown(ctx, name, queue, id)
  elseif job and (job.queue ~= queue or is_of_other(name, job)) then
    local why = 'it was in ' .. name
    local text = 'it is in ' .. name .. ', its record names ' ..
                 (job.queue ~= queue and 'queue ' .. job.queue or 'another target')
    ctx.tell('misplaced', id, job.queue, text, function()
      leave(R, name, id)
      if not is_held(ctx, id) and not is_in_any(ctx, job.queue, id, job) then
        bury(ctx, job.queue, id, why, {})
      end
    end)
  elseif not job and queue_of(record) ~= queue then
    -- If the record names this queue, the phase jobs finds it.
    local why = CORRUPT
    ctx.tell('broken-record', id, queue, why, function()
      if is_held(ctx, id) then
        leave(R, name, id)
      else
        mend_record(R, id, queue, record)
        bury(ctx, queue, id, why, {{name = name}})
      end
    end)
  end
end

function audit_sets.each_job(ctx, cursor, count, names)
  local name = names[1] or ''
  local queue = string.match(name, '^q:(%w[%w_-]*):%d$') or
                string.match(name, '^solo:(%w[%w_-]*)$') or
                string.match(name, '^dead:(%w[%w_-]*)$') or
                string.match(name, '^done:(%w[%w_-]*)$') or
                string.match(name, '^parked:(%w[%w_-]*)$') or
                string.match(name, '^pin:(%w[%w_-]*):[wh][%w._-]+$')
  if #names ~= 1 or not queue or #queue > 64 then
    fail('ELATER_ARGS', 'give the one set to look at')
  end
  local page = ask('ZSCAN', ctx.R .. ':' .. name, cursor, 'COUNT', count)
  if not page then
    return '0', 0
  end
  local ids = {}
  for i = 1, #page[2], 2 do
    ids[#ids + 1] = page[2][i]
  end
  local records = ask_many('HMGET', ctx.R .. ':jobs', ids)
  for i, id in ipairs(ids) do
    judge_member(ctx, name, queue, id, records[i])
  end
  return page[1], #ids
end
