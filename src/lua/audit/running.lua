-- Phase running of later_v1_audit and later_v1_repair (calls/audit.lua): ZSCAN of the running jobs
-- (no name). Each must belong to a worker, and have a record and a start number.

local audit_running = module 'audit/running'
local audit, jobs = use('audit/audit', 'core/jobs')
local queue_of, worker_of, left_to = audit.queue_of, audit.worker_of, audit.left_to
local mend_record, bury, LOST = audit.mend_record, audit.bury, audit.LOST

-- Bury a running job that no worker can hold: neither a worker nor a reap would ever take it.
local function bury_unheld(ctx, id, why)
  local R = ctx.R
  local record = db('HGET', R .. ':jobs', id) or nil
  local queue = queue_of(record) or LOST
  if not jobs.parse(record) then
    mend_record(R, id, queue, record)
  end
  db('ZREM', R .. ':running', id)
  bury(ctx, queue, id, why, {})
end

local function judge_running(ctx, id, score)
  local R, who, epoch = ctx.R, worker_of(ctx, score)
  if who == 'nobody' then
    local why = 'it is running, and ' .. one_line(epoch) .. ' is no worker'
    ctx.tell('bad-owner', id, queue_of(db('HGET', R .. ':jobs', id) or nil), why, function()
      bury_unheld(ctx, id, why)
    end)
    return
  end
  if who == 'stranger' then
    ctx.tell('stranger', id, queue_of(db('HGET', R .. ':jobs', id) or nil), 'worker ' .. epoch ..
         ' holds it and is not registered: the next reap takes it back')
  end
  if db('HEXISTS', R .. ':jobs', id) == 0 then
    ctx.tell('no-record', id, '', 'its record is missing' .. left_to(who, epoch))
  end
  if jobs.tries(db('HGET', R .. ':tries', id)).starts < 1 then
    ctx.tell('no-start', id, '', 'its start number is missing' .. left_to(who, epoch))
  end
end

function audit_running.each_job(ctx, cursor, count)
  return audit.each(ctx, db('ZSCAN', ctx.R .. ':running', cursor, 'COUNT', count), judge_running)
end
