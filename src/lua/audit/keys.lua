-- Phase keys of later_v1_audit and later_v1_repair (calls/audit.lua): the types of the keys of the
-- namespace, and those of one job, worker, filter or bulk each.

local audit_keys = module 'audit/keys'
local audit, audit_bulks, audit_seen, audit_tenants, jobs, resume, change = use(
  'audit/audit', 'audit/bulks', 'audit/seen', 'audit/tenants', 'core/jobs', 'core/resume',
  'txn/change')
local queue_of, mend_record, bury, LOST = audit.queue_of, audit.mend_record, audit.bury, audit.LOST

-- Judge a key big:<id>. If no job uses the payload, it is removed; without any record it is all
-- that is left of a job, and is buried as one.
local function judge_big(ctx, id)
  local R = ctx.R
  local record = db('HGET', R .. ':jobs', id) or nil
  local job = jobs.parse(record)
  if (job and job.big) or db('ZSCORE', R .. ':running', id) then
    return
  elseif record then
    local text = 'a payload beside a record that has its own'
    ctx.tell('orphan-payload', id, queue_of(record), text, function()
      change.drop_key(R .. ':big:' .. id)
    end)
    return
  end
  local why = 'its payload is all that is left of it'
  ctx.tell('orphan-payload', id, '', why, function()
    mend_record(R, id, LOST, nil)
    bury(ctx, LOST, id, why, {})
  end)
end

-- Judge a key steps:<id>. What tells of it is removed with its job.
local function judge_steps(ctx, id)
  if not ctx.is_dark and resume.read(db('HGET', ctx.R .. ':resume', id)) == 0 then
    ctx.tell('leftover', id, '', 'steps of a job that has kept none', function()
      change.drop_key(ctx.R .. ':steps:' .. id, 'large')
    end)
  end
end

function audit_keys.each_key(ctx, pairs_of)
  local R = ctx.R
  for i = 1, #pairs_of, 2 do
    local name, want = pairs_of[i], pairs_of[i + 1]
    local is = db('TYPE', R .. ':' .. name).ok
    local id, epoch = string.match(name, '^big:(.*)$'), string.match(name, '^worker:(.*)$')
    if is ~= 'none' and want ~= '' and is ~= want then
      ctx.tell('wrong-type', name, '', 'this key is a ' .. is .. ', laterd needs a ' .. want ..
           ' there: rename or delete it')
    elseif is ~= 'none' and id and not ctx.is_dark then
      judge_big(ctx, id)
    elseif is ~= 'none' and epoch and not ctx.is_dark and
           db('HEXISTS', R .. ':workers', epoch) == 0 then
      ctx.tell('leftover', epoch, '', 'fields of a worker that is not registered', function()
        change.drop_key(R .. ':worker:' .. epoch)
      end)
    elseif is ~= 'none' and string.find(name, '^steps:') then
      judge_steps(ctx, string.sub(name, 7))
    elseif is ~= 'none' and string.find(name, '^seen:') then
      audit_seen.generation(ctx, name)
    elseif is ~= 'none' and string.find(name, '^fair%-jobs:') then
      audit_tenants.jobs(ctx, name)
    elseif is ~= 'none' and name == 'bulks' then
      audit_bulks.list(ctx)
    elseif is ~= 'none' and string.find(name, '^bulk:') then
      audit_bulks.fields(ctx, string.sub(name, 6))
    end
  end
  return '0', #pairs_of / 2
end
