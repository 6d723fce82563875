-- What fsck judges of fair queues: each waiting job is one of its tenant, and the other way round.

local audit_tenants = module 'audit/tenants'
local tenants, change = use('fair/tenants', 'txn/change')
local ROWS = 500 -- of the tenants' jobs, the first ones

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
  local line = tenants.line(tenant, int(job.priority), due, row.id)
  local is_known = db('ZSCORE', R .. ':fair:' .. row.queue, tenant) or
                   db('ZSCORE', R .. ':fair-next:' .. row.queue, tenant)
  if not is_known or not db('ZSCORE', tenants.jobs_key(R, row.queue), line) then
    ctx.tell('lost-turn', row.id, row.queue, 'its queue is fair, and its tenant ' ..
             quote(tenant) .. ' does not have it', function()
      tenants.put(R, row.id, job, due)
    end)
  end
end

-- Does the job of this line wait?
local function judge_line(ctx, key, queue, line)
  local tenant, digit = string.match(line, '^(%S*) (%d)%d+')
  local due, id = tenants.read_line(line, tenant or '')
  local score = digit and db('ZSCORE', ctx.R .. ':q:' .. queue .. ':' .. digit, id)
  if not score or to_due(score) ~= due then
    ctx.tell('leftover', digit and id or line, queue, 'it is one of the tenant ' ..
             quote(tenant or '') .. ', and does not wait', function()
      db('ZREM', key, line)
    end)
  end
end

-- A key fair-jobs:<queue>
function audit_tenants.jobs(ctx, name)
  local key, queue = ctx.R .. ':' .. name, string.match(name, '^fair%-jobs:(%w[%w_-]*)$')
  if not queue or db('HEXISTS', ctx.R .. ':fair', queue) == 0 then
    local text = 'jobs of tenants, and the queue is not fair'
    ctx.tell('leftover', name, queue or '', text, function()
      change.drop_key(key, 'large')
    end)
    return
  end
  for _, line in ipairs(db('ZRANGE', key, 0, ROWS - 1)) do
    judge_line(ctx, key, queue, line)
  end
end
