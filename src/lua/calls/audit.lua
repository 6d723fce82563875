-- later_v1_audit R PHASE CURSOR COUNT [NAME...] -> [next cursor or '', checked, finding...]
-- later_v1_repair, the same arguments and reply
--
-- The audit of a namespace, a page a call. It checks that every job is in exactly one set, that
-- exactly the jobs that workers hold are running, that every id has its payload, and that derived
-- data (flags, heads, names) agrees. All facts about one id are read in the call that judges it, so
-- a namespace at work gives no false finding. While one of the main keys (GREAT) has a foreign
-- type, both functions check only the types of keys. PHASE, and what NAME is:
--   keys     name, type pairs of keys relative to R (type '': any), big:<id> and worker:<epoch> too
--   set      one q:<queue>:<p>, solo:<queue>, pin:<queue>:<target>, dead:<queue>, done:<queue> or
--            parked:<queue>
--   running jobs   (no name)
--   workers tries errors failures results cancel progress resume   see audit/beside.lua
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

local audit, audit_batches, audit_beside, audit_gates, audit_jobs, audit_keys, audit_queues,
      audit_running, audit_schedules, audit_seen, audit_sets, audit_topics, workers, syncs, clock,
      change = use(
  'audit/audit', 'audit/batches', 'audit/beside', 'audit/gates', 'audit/jobs', 'audit/keys',
  'audit/queues', 'audit/running', 'audit/schedules', 'audit/seen', 'audit/sets', 'audit/topics',
  'calls/register', 'claim/syncs', 'core/clock', 'txn/change')
local PAGE_MAX = 200
local REPAIRED = 25         -- records, each of which may be buried and told of (on_dead)

-- Add a finding to the reply. A repair also calls fix(), unless it is nil or ctx.blocked says why
-- not. If it was not called or failed, the finding says why.
local function tell(ctx, kind, name, queue, text, fix)
  local repaired = 0
  if ctx.repairs and fix then
    local ok, why = true, ctx.blocked
    if not why then
      ok, why = change.try(fix)
    end
    if ok and not ctx.blocked then
      repaired = 1
    else
      text = text .. '; not repaired: ' .. syncs.error_text(why)
    end
  end
  ctx.reply[#ctx.reply + 1] = {kind, name, queue or '', text, repaired}
end

-- Without these keys nothing can be judged.
local GREAT = {'jobs', 'hash', 'running', 'zset', 'tries', 'hash', 'workers', 'hash',
               'errors', 'hash', 'parked', 'hash', 'holds', 'hash'}

local SIDES = {tries = true, errors = true, failures = true, results = true, cancel = true,
               progress = true, resume = true}

local function look(ctx, phase, cursor, count, names)
  if phase == 'keys' then
    return audit_keys.each_key(ctx, names)
  elseif ctx.is_dark then
    return '0', 0
  elseif phase == 'set' then
    return audit_sets.each_job(ctx, cursor, count, names)
  elseif phase == 'running' then
    return audit_running.each_job(ctx, cursor, count)
  elseif phase == 'jobs' then
    return audit_jobs.each_job(ctx, cursor, count)
  elseif phase == 'workers' then
    return audit_beside.each_worker(ctx, cursor, count)
  elseif phase == 'queue' then
    return audit_queues.each_queue(ctx, names)
  elseif phase == 'gates' then
    return audit_gates.each_gate(ctx, names)
  elseif phase == 'parked' then
    return audit_gates.each_spot(ctx, cursor, count)
  elseif phase == 'holds' then
    return audit_gates.each_hold(ctx, cursor, count)
  elseif phase == 'batches' then
    return audit_batches.each_batch(ctx, cursor, count)
  elseif phase == 'members' then
    return audit_batches.each_member(ctx, cursor, count, names)
  elseif phase == 'schedules' or phase == 'cursors' then
    return audit_schedules.each(ctx, phase, cursor, count)
  elseif phase == 'topics' then
    return audit_topics.each(ctx, cursor, count)
  elseif phase == 'seen' then
    return audit_seen.each(ctx, cursor, count)
  elseif SIDES[phase] then
    return audit_beside.each_beside(ctx, cursor, count, phase)
  end
  fail('ELATER_ARGS', 'unknown phase ' .. quote(phase))
end

local function page_of(R, args, repairs)
  local phase, cursor, count = args[1], args[2], whole(args[3])
  local names = {unpack(args, 4)}
  cursor = cursor == '' and '0' or cursor
  if not count or count < 1 or count > PAGE_MAX or
     not string.match(cursor, '^%d+$') or #cursor > 20 or
     #names > (phase == 'keys' and 2 or 1) * count or (phase == 'keys' and #names % 2 == 1) then
    fail('ELATER_ARGS', 'give PHASE CURSOR COUNT (1 to 200) and at most COUNT names')
  end
  local ctx = {R = R, now_ms = clock.ms(clock.now_us()), repairs = repairs, states = {},
               reply = {'', 0}}
  ctx.ask = audit.ask
  ctx.tell = function(...)
    tell(ctx, ...)
  end
  ctx.is_dark = not pcall(need_kinds, R, unpack(GREAT))
  if repairs then
    local ok, why = pcall(workers.need_worker, R)
    ctx.blocked = not ok and why or nil
  end
  if repairs and phase == 'jobs' then
    count = math.min(count, REPAIRED)
  end
  local behind, checked = look(ctx, phase, cursor, int(count), names)
  ctx.reply[1], ctx.reply[2] = behind == '0' and '' or behind, checked
  return ctx.reply
end

register('later_v1_audit', {'no-writes'}, function(R, args)
  return page_of(R, args, false)
end)

register('later_v1_repair', {'allow-oom'}, function(R, args)
  return page_of(R, args, true)
end)
