-- Phase schedules of later_v1_audit and later_v1_repair (calls/audit.lua): HSCAN of the definitions
-- (no name), and phase cursors of how far they are. A definition must be readable, and so must what
-- is in it: the options of its jobs, for one. A cursor must belong to a schedule, or to one that is
-- gone and will be forgotten.

local audit_schedules = module 'audit/schedules'
local audit, syncs, schedules = use('audit/audit', 'claim/syncs', 'schedule/schedules')
local WORDS = {overlap = {allow = true, skip = true, queue = true, replace = true},
               catch_up = {none = true, last = true, all = true}}

-- -> why no job can be added by this schedule, or nil. The timing is for the workers to read.
local function defect_of(s, now_ms)
  local ok, why = pcall(schedules.job_of, s, now_ms)
  if not ok then
    return syncs.error_text(why)
  end
  for field, words in pairs(WORDS) do
    if not words[s[field] or ''] then
      return field .. ' is ' .. quote(s[field] or '')
    end
  end
  return not string.find(s.when, '^cron .') and not string.find(s.when, '^every .') and
         'when is ' .. quote(s.when) or nil
end

-- What is readable of a schedule is its owner's word: a repair removes only what has no meaning.
local function judge_schedule(ctx, name)
  local R, s = ctx.R, schedules.of(ctx.R, name)
  local why = s and defect_of(s, ctx.now_ms)
  if not s then
    ctx.tell('broken-schedule', name, '', 'its definition is corrupt', function()
      schedules.drop(R, name, 1000 * ctx.now_ms)
    end)
  elseif why then
    ctx.tell('broken-schedule', name, s.queue, 'a part of its definition is corrupt: ' .. why ..
             '; set it again (later schedule add, or its file)')
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
function audit_schedules.each(ctx, phase, cursor, count)
  local page = db('HSCAN', ctx.R .. ':' .. phase, cursor, 'COUNT', count)
  return audit.each(ctx, page, phase == 'schedules' and judge_schedule or judge_cursor)
end
