-- Phase `queue` of later_v1_audit and later_v1_repair (calls/audit.lua): what is derived from the
-- sets of a queue. NAME: queues. Their flags, heads and names must tell of the jobs in the sets.

local audit_queues = module 'audit/queues'
local jobs = use 'core/jobs'

-- -> flags that are missing, due ms of the first job, whether there is any job. Suspects do not
-- count for the due ms: due ones are left out of the heads on purpose.
local function read_queue(ctx, queue)
  local R = ctx.R
  local flags = ctx.ask('HGET', R .. ':prio', queue) or ''
  local first, lost, any = math.huge, '', false
  for p = 0, 9 do
    local digit = int(p)
    local row = ctx.ask('ZRANGE', R .. ':q:' .. queue .. ':' .. digit, 0, 0, 'WITHSCORES')
    if row and row[1] then
      any, first = true, math.min(first, to_due(row[2]))
      lost = (p == 5 or string.find(flags, digit, 1, true)) and lost or lost .. digit
    end
  end
  for _, set in ipairs({{':solo:', 's'}, {':pins:', 'p'}, {':granted:', 'g'}}) do
    if db('EXISTS', R .. set[1] .. queue) == 1 then
      any, lost = true, string.find(flags, set[2], 1, true) and lost or lost .. set[2]
    end
  end
  if db('EXISTS', R .. ':aside:' .. queue) == 1 then
    lost = string.find(flags, 'a', 1, true) and lost or lost .. 'a'
  end
  any = any or
        db('EXISTS', R .. ':dead:' .. queue, R .. ':done:' .. queue, R .. ':parked:' .. queue) > 0
  return lost, first, any
end

local function judge_queue(ctx, queue)
  local R = ctx.R
  local lost, first, any = read_queue(ctx, queue)
  if lost ~= '' then
    ctx.tell('bad-flag', queue, queue, 'the flag of waiting jobs is missing: ' .. lost, function()
      for flag in string.gmatch(lost, '.') do
        jobs.flag_set(R, queue, flag)
      end
    end)
  end
  local head = tonumber(ctx.ask('ZSCORE', R .. ':heads', queue) or '')
  -- A head in the past already says "now", whichever of the due jobs it was made for.
  if first < math.huge and (not head or (head > first and head > ctx.now_ms)) then
    local text = head and 'its first job is due before its head' or 'it has no head'
    ctx.tell('bad-head', queue, queue, text, function()
      jobs.lower_head(R, queue, first)
    end)
  end
  if any and ctx.ask('SISMEMBER', R .. ':names', queue) == 0 then
    ctx.tell('no-name', queue, queue, 'it has jobs and is not among the names', function()
      db('SADD', R .. ':names', queue)
    end)
  end
end

function audit_queues.each_queue(ctx, names)
  for _, queue in ipairs(names) do
    judge_queue(ctx, check_queue(queue))
  end
  return '0', #names
end
