-- Phases of later_v1_audit and later_v1_repair (v1/audit.lua) about what is kept beside the jobs.
--   tries errors failures results cancel progress   (no name) HSCAN: an entry must have its job
--   workers                                         (no name) a worker must have its fields

function L.audit_side(ctx, cursor, count, phase)
  local key = ctx.R .. ':' .. phase
  local page = ctx.ask('HSCAN', key, cursor, 'COUNT', count)
  if not page then
    return '0', 0
  end
  local is_of_running = phase == 'cancel' or phase == 'progress'
  for i = 1, #page[2], 2 do
    local id = page[2][i]
    if not db('ZSCORE', ctx.R .. ':running', id) and
       (is_of_running or db('HEXISTS', ctx.R .. ':jobs', id) == 0) then
      ctx.tell('leftover', id, '', 'an entry of ' .. phase .. (is_of_running and
           ', and the job is not running' or ', and there is no such job'), function()
        db('HDEL', key, id)
      end)
    end
  end
  return page[1], #page[2] / 2
end

function L.audit_workers(ctx, cursor, count)
  local R = ctx.R
  local page = db('HSCAN', R .. ':workers', cursor, 'COUNT', count)
  for i = 1, #page[2], 2 do
    local epoch = page[2][i]
    local function remove()
      db('HDEL', R .. ':workers', epoch)
    end
    if not L.whole(epoch) then
      ctx.tell('broken-worker', epoch, '', 'an entry of workers that is no epoch', remove)
    elseif page[2][i + 1] ~= 'dead' and not ctx.ask('HGET', R .. ':worker:' .. epoch, 'link') then
      local held = db('ZCOUNT', R .. ':running', epoch, epoch)
      ctx.tell('broken-worker', epoch, '', 'its fields are missing' ..
               (held > 0 and '; it holds ' .. L.int(held) .. ' jobs: left to the reaper' or ''),
               held == 0 and remove or nil)
    end
  end
  return page[1], #page[2] / 2
end
