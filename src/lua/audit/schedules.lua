-- Phase schedules of later_v1_audit and later_v1_repair (v1/audit.lua): HSCAN of the definitions
-- (no name), and phase cursors of how far they are. A definition must be readable. A cursor must
-- belong to a schedule, or to one that is gone and will be forgotten.

local function judge_schedule(ctx, name)
  local R = ctx.R
  if not L.schedule(R, name) then
    ctx.tell('broken-schedule', name, '', 'its definition is corrupt', function()
      L.drop_schedule(R, name, 1000 * ctx.now_ms)
    end)
  end
end

local function judge_cursor(ctx, name)
  local R = ctx.R
  if db('HEXISTS', R .. ':schedules', name) == 0 and
     not db('ZSCORE', R .. ':schedule:gone', name) then
    ctx.tell('leftover', name, '', 'the cursor of a schedule that is not there', function()
      db('HDEL', R .. ':cursors', name)
    end)
  end
end

-- -> next cursor, how many entries
function L.audit_schedules(ctx, phase, cursor, count)
  local page = db('HSCAN', ctx.R .. ':' .. phase, cursor, 'COUNT', count)
  return L.audit.each(ctx, page, phase == 'schedules' and judge_schedule or judge_cursor)
end
