-- Phases of later_v1_audit and later_v1_repair (calls/audit.lua) about what is kept beside the
-- jobs.
--   tries errors failures results cancel progress resume   (no name) HSCAN: an entry must have its
--                                                          job
--   workers                                                (no name) a worker must have its fields

local audit_beside = module 'audit/beside'
local audit = use 'audit/audit'

function audit_beside.each_beside(ctx, cursor, count, phase)
  local key = ctx.R .. ':' .. phase
  local is_of_running = phase == 'cancel' or phase == 'progress'
  return audit.each(ctx, ctx.ask('HSCAN', key, cursor, 'COUNT', count), function(_, id)
    if not db('ZSCORE', ctx.R .. ':running', id) and
       (is_of_running or db('HEXISTS', ctx.R .. ':jobs', id) == 0) then
      ctx.tell('leftover', id, '', 'an entry of ' .. phase .. (is_of_running and
           ', and the job is not running' or ', and there is no such job'), function()
        db('HDEL', key, id)
      end)
    end
  end)
end

local function judge_worker(ctx, epoch, counter)
  local R = ctx.R
  local function remove()
    db('HDEL', R .. ':workers', epoch)
  end
  if not whole(epoch) then
    ctx.tell('broken-worker', epoch, '', 'an entry of workers that is no epoch', remove)
  elseif counter ~= 'dead' and not ctx.ask('HGET', R .. ':worker:' .. epoch, 'link') then
    local held = db('ZCOUNT', R .. ':running', epoch, epoch)
    ctx.tell('broken-worker', epoch, '', 'its fields are missing' .. (held > 0 and '; it holds ' ..
                                                                      int(held) ..
                                                                      ' jobs: left to the reaper' or
                                                                      ''), held == 0 and remove or
             nil)
  end
end

function audit_beside.each_worker(ctx, cursor, count)
  return audit.each(ctx, db('HSCAN', ctx.R .. ':workers', cursor, 'COUNT', count), judge_worker)
end
