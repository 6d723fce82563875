-- later_v1_audit R PHASE CURSOR COUNT [NAME...] -> [next cursor or '', checked, finding...]
-- later_v1_repair, the same arguments and reply
--
-- The audit of a namespace, a page a call. It checks that every job is in exactly one set, that
-- exactly the jobs that workers hold are running, that every id has its payload, and that derived
-- data (marks, heads, names) agrees. All facts about one id are read in the call that judges it, so
-- a namespace at work gives no false finding. While one of the main keys (GREAT) has a foreign
-- type, both functions check only the types of keys. PHASE, and what NAME is:
--   keys     name, type pairs of keys relative to R (type '': any), big:<id> and worker:<epoch> too
--   set      one q:<queue>:<p>, solo:<queue>, pin:<queue>:<target>, dead:<queue>, done:<queue> or
--            parked:<queue>
--   running jobs   (no name)
--   workers tries errors failures results cancel progress   see audit/beside.lua
--   queue    see audit/queues.lua
--   parked holds gates   see audit/gates.lua
--   batches members      see audit/batches.lua
--   schedules cursors    see audit/schedules.lua
--   topics   see audit/topics.lua
--   seen     see audit/seen.lua
-- CURSOR: '' first, then what the last page returned. COUNT: entries a page, at most 200; a repair
-- takes fewer records at once.
-- finding: [kind, id or name, queue or '', text, 1 when repaired]. Kinds: doc/troubleshooting.md.
-- later_v1_repair buries what cannot be right, with a reason that starts with `fsck: `. It never
-- counts anything as done. It never touches a job that a worker holds, except in other sets: the
-- end of the job, or the reaper, does the rest. Repair in the order of phases above.
-- later_v1_audit: no-writes. later_v1_repair: allow-oom. Cost: O(COUNT * log n), O(COUNT) sets.

local PAGE_MAX = 200
local REPAIRED = 25         -- records, each of which may be buried and told of (on_dead)

-- Add a finding to the reply. A repair also calls fix(), unless it is nil or ctx.blocked says why
-- not. If it was not called or failed, the finding says why.
local function tell(ctx, kind, name, queue, text, fix)
  local repaired = 0
  if ctx.repairs and fix then
    local ok, why = true, ctx.blocked
    if not why then
      ok, why = L.try(fix)
    end
    if ok and not ctx.blocked then
      repaired = 1
    else
      text = text .. '; not repaired: ' .. L.error_text(why)
    end
  end
  ctx.reply[#ctx.reply + 1] = {kind, name, queue or '', text, repaired}
end

-- Without these keys nothing can be judged.
local GREAT = {'jobs', 'hash', 'running', 'zset', 'tries', 'hash', 'workers', 'hash',
               'errors', 'hash', 'parked', 'hash', 'holds', 'hash'}

local SIDES = {tries = true, errors = true, failures = true, results = true, cancel = true,
               progress = true}

local function look(ctx, phase, cursor, count, names)
  if phase == 'keys' then
    return L.audit_keys(ctx, names)
  elseif ctx.is_dark then
    return '0', 0
  elseif phase == 'set' then
    return L.audit_set(ctx, cursor, count, names)
  elseif phase == 'running' then
    return L.audit_running(ctx, cursor, count)
  elseif phase == 'jobs' then
    return L.audit_jobs(ctx, cursor, count)
  elseif phase == 'workers' then
    return L.audit_workers(ctx, cursor, count)
  elseif phase == 'queue' then
    return L.audit_queues(ctx, names)
  elseif phase == 'gates' then
    return L.audit_gates(ctx, names)
  elseif phase == 'parked' then
    return L.audit_spots(ctx, cursor, count)
  elseif phase == 'holds' then
    return L.audit_holds(ctx, cursor, count)
  elseif phase == 'batches' then
    return L.audit_batches(ctx, cursor, count)
  elseif phase == 'members' then
    return L.audit_members(ctx, cursor, count, names)
  elseif phase == 'schedules' or phase == 'cursors' then
    return L.audit_schedules(ctx, phase, cursor, count)
  elseif phase == 'topics' then
    return L.audit_topics(ctx, cursor, count)
  elseif phase == 'seen' then
    return L.audit_seen(ctx, cursor, count)
  elseif SIDES[phase] then
    return L.audit_side(ctx, cursor, count, phase)
  end
  L.fail('ELATER_ARGS', 'unknown phase ' .. L.quote(phase))
end

local function page_of(R, args, repairs)
  local phase, cursor, count = args[1], args[2], L.whole(args[3])
  local names = {unpack(args, 4)}
  cursor = cursor == '' and '0' or cursor
  if not count or count < 1 or count > PAGE_MAX or
     not string.match(cursor, '^%d+$') or #cursor > 20 or
     #names > (phase == 'keys' and 2 or 1) * count or (phase == 'keys' and #names % 2 == 1) then
    L.fail('ELATER_ARGS', 'give PHASE CURSOR COUNT (1 to 200) and at most COUNT names')
  end
  local ctx = {R = R, now_ms = L.ms(L.now_us()), repairs = repairs, states = {}, reply = {'', 0}}
  ctx.ask = L.audit.ask
  ctx.tell = function(...)
    tell(ctx, ...)
  end
  ctx.is_dark = not pcall(L.need, R, unpack(GREAT))
  if repairs then
    local ok, why = pcall(L.need_worker, R)
    ctx.blocked = not ok and why or nil
  end
  if repairs and phase == 'jobs' then
    count = math.min(count, REPAIRED)
  end
  local behind, checked = look(ctx, phase, cursor, L.int(count), names)
  ctx.reply[1], ctx.reply[2] = behind == '0' and '' or behind, checked
  return ctx.reply
end

L.register('later_v1_audit', {'no-writes'}, function(R, args)
  return page_of(R, args, false)
end)

L.register('later_v1_repair', {'allow-oom'}, function(R, args)
  return page_of(R, args, true)
end)
