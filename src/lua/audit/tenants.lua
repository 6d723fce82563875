-- What fsck judges of fair queues: each waiting job is one of its tenant, and the other way round.

local audit_tenants = module 'audit/tenants'
local tenants, change = use('fair/tenants', 'txn/change')
local ROWS = 500 -- of a tenant's jobs, the first ones

-- Do all waiting jobs of the queue have their tenants?
local function is_whole(R, queue)
  local _, todo = tenants.state(R, queue)
  return todo == '' and tenants.are_kept(R, queue)
end

-- A job waits with this score, in the set of its priority.
function audit_tenants.job(ctx, row, score)
  local R, job = ctx.R, row.job
  if not is_whole(R, row.queue) then
    return
  end
  local tenant, due = job.K or '', to_due(score)
  local known = db('ZSCORE', tenants.jobs_key(R, row.queue, int(job.priority), tenant), row.id)
  if known ~= due or not (db('ZSCORE', R .. ':fair:' .. row.queue, tenant) or
                          db('ZSCORE', R .. ':fair-next:' .. row.queue, tenant)) then
    ctx.tell('lost-turn', row.id, row.queue, 'its queue is fair, and its tenant ' ..
             quote(tenant) .. ' does not have it', function()
      tenants.put(R, row.id, job, due)
    end)
  end
end

-- A key fair-jobs:<queue>:<priority>:<tenant>
function audit_tenants.jobs(ctx, name)
  local R = ctx.R
  local queue, priority, tenant = string.match(name, '^fair%-jobs:(%w[%w_-]*):(%d):(.*)$')
  if not queue or db('HEXISTS', R .. ':fair', queue) == 0 then
    local text = 'jobs of a tenant, and the queue is not fair'
    ctx.tell('leftover', name, queue or '', text, function()
      change.drop_key(R .. ':' .. name, 'large')
    end)
    return
  end
  local ids = db('ZRANGE', R .. ':' .. name, 0, ROWS - 1)
  local dues = ids[1] and db('ZMSCORE', R .. ':q:' .. queue .. ':' .. priority, unpack(ids)) or {}
  for i, id in ipairs(ids) do
    if not dues[i] then
      ctx.tell('leftover', id, queue, 'it is one of the tenant ' .. quote(tenant) ..
               ', and does not wait', function()
        db('ZREM', R .. ':' .. name, id)
      end)
    end
  end
end
