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
--   workers tries errors failures results cancel progress   see v1/audit_beside.lua
--   queue    see v1/audit_queues.lua
--   parked holds gates   see v1/audit_gates.lua
--   batches members      see v1/audit_batches.lua
--   schedules cursors    see v1/audit_schedules.lua
--   topics   see v1/audit_topics.lua
--   seen     see v1/audit_seen.lua
-- CURSOR: '' first, then what the last page returned. COUNT: entries a page, at most 200.
-- finding: [kind, id or name, queue or '', text, 1 when repaired]. Kinds: doc/troubleshooting.md.
-- later_v1_repair buries what cannot be right, with a reason that starts with `fsck: `. It never
-- counts anything as done. It never touches a job that a worker holds, except in other sets: the
-- end of the job, or the reaper, does the rest. Repair in the order of phases above.
-- later_v1_audit: no-writes. later_v1_repair: allow-oom. Cost: O(COUNT * log n), O(COUNT) sets.

local PAGE_MAX = 200
local LOST = 'lost-found'   -- the queue of a job whose record names none

-- A read; nil where a key has a foreign type.
local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    return nil
  end
  return reply
end

-- A variadic read of many ids, as one array; nil where the key has a foreign type.
local function ask_many(command, key, ids)
  local out = {}
  for from = 1, #ids, 1000 do
    local part = ask(command, key, unpack(ids, from, math.min(from + 999, #ids)))
    if not part then
      return nil
    end
    for i = 1, #part do
      out[from + i - 1] = part[i]
    end
  end
  return out
end

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

-- ---- what a job is

-- The queue that a record names, even a corrupt one; nil when it cannot be told.
local function queue_of(record)
  local queue = string.match(record or '', '^[-+](%w[%w_-]*)[ \n]')
  return queue and #queue <= 64 and queue or nil
end

-- -> whose a running job with this score is: live (a worker), dead (a worker that is being
-- reaped), stranger (a worker whose entry was lost: the reaper takes its jobs) or nobody (the score
-- is no epoch, so no reap would ever take the job); the epoch as text
local function worker_of(ctx, score)
  local epoch = L.int(tonumber(score))
  if not L.whole(epoch) or tonumber(epoch) ~= tonumber(score) then
    return 'nobody', tostring(score)
  end
  if ctx.states[epoch] == nil then
    local counter = db('HGET', ctx.R .. ':workers', epoch)
    ctx.states[epoch] = counter == 'dead' and 'dead' or counter and 'live' or 'stranger'
  end
  return ctx.states[epoch], epoch
end

local function is_held(ctx, id)
  local score = db('ZSCORE', ctx.R .. ':running', id)
  return score and worker_of(ctx, score) ~= 'nobody'
end

local LEFT = {live = ': its end puts that right', dead = ': it is being reaped',
              stranger = ': left to the reaper'}

local function left_to(who, epoch)
  return '; worker ' .. epoch .. ' holds it' .. LEFT[who]
end

-- -> why the payload of a big job cannot be read, or nil
local function lost_payload(R, id)
  local is = db('TYPE', R .. ':big:' .. id).ok
  if is == 'string' then
    return nil
  end
  return is == 'none' and 'its payload is missing (the key big:' .. id .. ')' or
         'its payload is missing (the key big:' .. id .. ' is a ' .. is .. ')'
end

local function is_bad_score(score)
  return score ~= score or score > L.LATEST or score == -math.huge
end

-- -> every set where a job of this queue may be that is not pinned, the set of priority p first
local function sets_of(queue, p)
  local names = {'q:' .. queue .. ':' .. L.int(p)}
  for other = 0, 9 do
    if other ~= p then
      names[#names + 1] = 'q:' .. queue .. ':' .. L.int(other)
    end
  end
  names[11], names[12], names[13] = 'solo:' .. queue, 'dead:' .. queue, 'done:' .. queue
  names[14] = 'parked:' .. queue
  return names
end

-- Write a new record, for this queue, where the record is missing or corrupt.
local function mend_record(R, id, queue, record)
  db('HSET', R .. ':jobs', id, L.mended(R, id, queue, record))
end

local function no_record_text(R, id)
  return db('EXISTS', R .. ':big:' .. id) == 1 and 'its record is missing' or
         'its record is missing, and so its payload is missing'
end

-- Remove a job from one set; a parked job also leaves its gate.
local function leave(R, name, id)
  local queue = string.match(name, '^parked:(.*)$')
  if queue then
    L.audit_unpark(R, queue, id)
  end
  db('ZREM', R .. ':' .. name, id)
end

-- Bury a job that is in the sets `sets` of its queue. All that is wrong with it is handled at
-- once, so that a second audit finds nothing more. No dead job is forgotten for its sake.
local function bury(ctx, queue, id, why, sets)
  local R = ctx.R
  local job = L.parse(db('HGET', R .. ':jobs', id) or nil)
  local text = db('HGET', R .. ':tries', id)
  local tries = L.tries(text or nil)
  local lost = job and job.big and lost_payload(R, id)
  if lost and not string.find(why, 'its payload is missing', 1, true) then
    why = why .. '; ' .. lost
  end
  if text and not tries.due then
    db('HDEL', R .. ':tries', id)
  end
  for _, set in ipairs(sets) do
    if set.name ~= 'dead:' .. queue then
      leave(R, set.name, id)
    end
  end
  L.bury(R, queue, id, L.outcome('dead', 0, ctx.now_ms, tries.starts, 'fsck: ' .. why, ''),
         ctx.now_ms, math.huge)
end

-- ---- jobs: the records, and in which sets each job is

-- A pinned job is also looked for in the set of its target.
local function find_pin(ctx, queue, row)
  local name = row.job and row.job.W and 'pin:' .. queue .. ':' .. row.job.W
  local scores = name and ask_many('ZMSCORE', ctx.R .. ':' .. name, {row.id})
  if name and not scores then
    row.unsure = true
  elseif scores and scores[1] then
    row.sets[#row.sets + 1] = {name = name, score = tonumber(scores[1])}
  end
end

-- Fill row.sets for the rows of one queue; row.unsure where a set could not be read. Most sets do
-- not exist, and often only the first one does: so EXISTS comes before a read of all ids.
local function find_sets(ctx, queue, rows)
  local names, keys, ids = sets_of(queue, rows[1].job and rows[1].job.priority or 5), {}, {}
  for i, name in ipairs(names) do
    keys[i] = ctx.R .. ':' .. name
  end
  for i, row in ipairs(rows) do
    ids[i] = row.id
    find_pin(ctx, queue, row)
  end
  local left = db('EXISTS', unpack(keys))
  for k = 1, #keys do
    if left == 0 then
      return
    elseif db('EXISTS', keys[k]) == 1 then
      left = left - 1
      local scores = ask_many('ZMSCORE', keys[k], ids)
      for i, row in ipairs(rows) do
        if not scores then
          row.unsure = true
        elseif scores[i] then
          row.sets[#row.sets + 1] = {name = names[k], score = tonumber(scores[i])}
        end
      end
    end
  end
end

local function names_of(sets)
  local names = {}
  for i, set in ipairs(sets) do
    names[i] = set.name
  end
  return table.concat(names, ' and ')
end

-- A running job: a repair only removes it from other sets.
local function judge_held(ctx, row)
  local R, who, epoch = ctx.R, worker_of(ctx, row.score)
  if who == 'nobody' then
    return  -- reported by the phase running
  end
  if #row.sets > 0 then
    local text = 'it is running and in ' .. names_of(row.sets)
    tell(ctx, 'two-places', row.id, row.queue, text, function()
      for _, set in ipairs(row.sets) do
        leave(R, set.name, row.id)
      end
    end)
  end
  if not row.job then
    tell(ctx, 'broken-record', row.id, row.queue, 'its record is corrupt' .. left_to(who, epoch))
  elseif row.job.big then
    local why = lost_payload(R, row.id)
    if why then
      tell(ctx, 'no-payload', row.id, row.queue, why .. left_to(who, epoch))
    end
  end
end

-- The target of a pinned job must be on the list of its queue.
local function judge_target(ctx, row)
  local target = row.job.W
  if target and ask('SISMEMBER', ctx.R .. ':pins:' .. row.queue, target) == 0 then
    tell(ctx, 'bad-mark', row.id, row.queue, 'its target ' .. target .. ' is not listed', function()
      L.put_pin(ctx.R, row.queue, target)
      L.mark_set(ctx.R, row.queue, 'p')
    end)
  end
end

local function judge_waiting(ctx, row, set)
  local R, id, queue = ctx.R, row.id, row.queue
  local function doomed(kind, why)
    tell(ctx, kind, id, queue, why, function()
      bury(ctx, queue, id, why, row.sets)
    end)
  end
  local tries = L.tries(row.tries)
  local why = row.job.big and lost_payload(R, id)
  if why then
    doomed('no-payload', why)
  elseif row.tries and not tries.due then
    doomed('broken-tries', 'its tries are corrupt')
  elseif is_bad_score(set.score) then
    doomed('bad-score', 'it can never be due: its score is ' .. tostring(set.score))
  elseif L.waiting_key(R, row.job, tries) ~= R .. ':' .. set.name then
    tell(ctx, 'wrong-set', id, queue, 'it waits in ' .. set.name .. ', it belongs into ' ..
         string.sub(L.waiting_key(R, row.job, tries), #R + 2), function()
      db('ZREM', R .. ':' .. set.name, id)
      L.enqueue(R, id, row.job, tries, L.due(set.score))
    end)
  else
    judge_target(ctx, row)
  end
end

-- A dead or done job. A done job needs its payload no more. A dead job may need it for a retry: if
-- the payload is lost, the job stays dead, and its outcome says why a retry will fail.
local function judge_kept(ctx, row, set)
  local R, id = ctx.R, row.id
  if is_bad_score(set.score) then
    local text = 'it is kept for ever: its score is ' .. tostring(set.score)
    tell(ctx, 'bad-score', id, row.queue, text, function()
      db('ZADD', R .. ':' .. set.name, L.int(ctx.now_ms), id)
    end)
  end
  if set.name ~= 'dead:' .. row.queue then
    return
  end
  if row.tries and not L.tries(row.tries).due then
    tell(ctx, 'broken-tries', id, row.queue, 'its tries are corrupt', function()
      db('HDEL', R .. ':tries', id)
    end)
  end
  local why = row.job.big and lost_payload(R, id)
  local outcome = why and db('HGET', R .. ':errors', id) or ''
  if why and
     not string.find(string.match(outcome, '^[^\n]*'), 'its payload is missing', 1, true) then
    tell(ctx, 'no-payload', id, row.queue, why, function()
      local _, code, _, start, text, output = L.read_outcome(outcome)
      db('HSET', R .. ':errors', id, L.outcome('dead', code or '0', ctx.now_ms, L.whole(start) or 0,
                 'fsck: ' .. why .. (text and '; it died of: ' .. text or ''), output))
    end)
  end
end

local function judge(ctx, row)
  local id, queue = row.id, row.queue or LOST
  if row.score then
    judge_held(ctx, row)
  elseif not row.job then
    local why = L.CORRUPT
    tell(ctx, 'broken-record', id, row.queue, why, function()
      mend_record(ctx.R, id, queue, row.record)
      bury(ctx, queue, id, why, row.sets)
    end)
  elseif #row.sets == 1 then
    local set = row.sets[1]
    local is_kept = set.name == 'dead:' .. queue or set.name == 'done:' .. queue
    local check = is_kept and judge_kept or
                 set.name == 'parked:' .. queue and L.audit_parked or judge_waiting
    check(ctx, row, set)
  elseif #row.sets > 1 or not row.unsure then
    local why = #row.sets == 0 and 'it is in no set' or 'it is in ' .. names_of(row.sets)
    tell(ctx, #row.sets == 0 and 'no-place' or 'two-places', id, queue, why, function()
      bury(ctx, queue, id, why, row.sets)
    end)
  end
end

local function audit_jobs(ctx, cursor, count)
  local page = db('HSCAN', ctx.R .. ':jobs', cursor, 'COUNT', count)
  local rows, ids, queues = {}, {}, {}
  for i = 1, #page[2], 2 do
    local row = {id = page[2][i], record = page[2][i + 1], sets = {}}
    row.job = L.parse(row.record)
    row.queue = row.job and row.job.queue or queue_of(row.record)
    rows[#rows + 1], ids[#ids + 1] = row, row.id
    if row.queue then
      queues[row.queue] = queues[row.queue] or {}
      table.insert(queues[row.queue], row)
    end
  end
  local scores = ask_many('ZMSCORE', ctx.R .. ':running', ids)
  local tries = ask_many('HMGET', ctx.R .. ':tries', ids)
  for queue, of_queue in pairs(queues) do
    find_sets(ctx, queue, of_queue)
  end
  for i, row in ipairs(rows) do
    row.score, row.tries = scores[i], tries[i]
    judge(ctx, row)
  end
  return page[1], #rows
end

-- ---- sets: members without a record of this queue

-- A member whose record is missing. A done job is forgotten, since only its outcome was kept.
local function judge_unknown(ctx, name, queue, id)
  local R = ctx.R
  local why = no_record_text(R, id)
  tell(ctx, 'no-record', id, queue, why .. ' (it is in ' .. name .. ')', function()
    leave(R, name, id)
    if is_held(ctx, id) then
      return
    elseif name == 'done:' .. queue then
      L.forget(R, {id})
    else
      mend_record(R, id, queue, nil)
      bury(ctx, queue, id, why, {})
    end
  end)
end

local function is_in_any(ctx, queue, id, job)
  local row = {id = id, job = job, sets = {}}
  find_sets(ctx, queue, {row})
  return #row.sets > 0 or row.unsure
end

-- Is it a set of pinned jobs, and is this job none of them?
local function is_of_other(name, job)
  local target = string.match(name, '^pin:[^:]+:(.+)$')
  return target and job.W ~= target
end

local function judge_member(ctx, name, queue, id, record)
  local R, job = ctx.R, L.parse(record)
  if not record then
    judge_unknown(ctx, name, queue, id)
  elseif job and (job.queue ~= queue or is_of_other(name, job)) then
    local why = 'it was in ' .. name
    local text = 'it is in ' .. name .. ', its record names ' ..
                 (job.queue ~= queue and 'queue ' .. job.queue or 'another target')
    tell(ctx, 'misplaced', id, job.queue, text, function()
      leave(R, name, id)
      if not is_held(ctx, id) and not is_in_any(ctx, job.queue, id, job) then
        bury(ctx, job.queue, id, why, {})
      end
    end)
  elseif not job and queue_of(record) ~= queue then
    -- If the record names this queue, the phase jobs finds it.
    local why = L.CORRUPT
    tell(ctx, 'broken-record', id, queue, why, function()
      if is_held(ctx, id) then
        leave(R, name, id)
      else
        mend_record(R, id, queue, record)
        bury(ctx, queue, id, why, {{name = name}})
      end
    end)
  end
end

local function audit_set(ctx, cursor, count, names)
  local name = names[1] or ''
  local queue = string.match(name, '^q:(%w[%w_-]*):%d$') or
                string.match(name, '^solo:(%w[%w_-]*)$') or
                string.match(name, '^dead:(%w[%w_-]*)$') or
                string.match(name, '^done:(%w[%w_-]*)$') or
                string.match(name, '^parked:(%w[%w_-]*)$') or
                string.match(name, '^pin:(%w[%w_-]*):[wh][%w._-]+$')
  if #names ~= 1 or not queue or #queue > 64 then
    L.fail('ELATER_ARGS', 'give the one set to look at')
  end
  local page = ask('ZSCAN', ctx.R .. ':' .. name, cursor, 'COUNT', count)
  if not page then
    return '0', 0
  end
  local ids = {}
  for i = 1, #page[2], 2 do
    ids[#ids + 1] = page[2][i]
  end
  local records = ask_many('HMGET', ctx.R .. ':jobs', ids)
  for i, id in ipairs(ids) do
    judge_member(ctx, name, queue, id, records[i])
  end
  return page[1], #ids
end

-- ---- running

-- Bury a running job that no worker can hold: neither a worker nor a reap would ever take it.
local function bury_unheld(ctx, id, why)
  local R = ctx.R
  local record = db('HGET', R .. ':jobs', id) or nil
  local queue = queue_of(record) or LOST
  if not L.parse(record) then
    mend_record(R, id, queue, record)
  end
  db('ZREM', R .. ':running', id)
  bury(ctx, queue, id, why, {})
end

local function judge_running(ctx, id, score)
  local R, who, epoch = ctx.R, worker_of(ctx, score)
  if who == 'nobody' then
    local why = 'it is running, and ' .. L.one_line(epoch) .. ' is no worker'
    tell(ctx, 'bad-owner', id, queue_of(db('HGET', R .. ':jobs', id) or nil), why, function()
      bury_unheld(ctx, id, why)
    end)
    return
  end
  if who == 'stranger' then
    tell(ctx, 'stranger', id, queue_of(db('HGET', R .. ':jobs', id) or nil), 'worker ' .. epoch ..
         ' holds it and is not registered: the next reap takes it back')
  end
  if db('HEXISTS', R .. ':jobs', id) == 0 then
    tell(ctx, 'no-record', id, '', 'its record is missing' .. left_to(who, epoch))
  end
  if L.tries(db('HGET', R .. ':tries', id)).starts < 1 then
    tell(ctx, 'no-start', id, '', 'its start number is missing' .. left_to(who, epoch))
  end
end

local function audit_running(ctx, cursor, count)
  local page = db('ZSCAN', ctx.R .. ':running', cursor, 'COUNT', count)
  for i = 1, #page[2], 2 do
    judge_running(ctx, page[2][i], page[2][i + 1])
  end
  return page[1], #page[2] / 2
end

-- ---- keys of their own

-- Judge a key big:<id>. If no job uses the payload, it is removed; without any record it is all
-- that is left of a job, and is buried as one.
local function judge_big(ctx, id)
  local R = ctx.R
  local record = db('HGET', R .. ':jobs', id) or nil
  local job = L.parse(record)
  if (job and job.big) or db('ZSCORE', R .. ':running', id) then
    return
  elseif record then
    local text = 'a payload beside a record that has its own'
    tell(ctx, 'orphan-payload', id, queue_of(record), text, function()
      L.drop_key(R .. ':big:' .. id)
    end)
    return
  end
  local why = 'its payload is all that is left of it'
  tell(ctx, 'orphan-payload', id, '', why, function()
    mend_record(R, id, LOST, nil)
    bury(ctx, LOST, id, why, {})
  end)
end

local function audit_keys(ctx, pairs_of)
  local R = ctx.R
  for i = 1, #pairs_of, 2 do
    local name, want = pairs_of[i], pairs_of[i + 1]
    local is = db('TYPE', R .. ':' .. name).ok
    local id, epoch = string.match(name, '^big:(.*)$'), string.match(name, '^worker:(.*)$')
    if is ~= 'none' and want ~= '' and is ~= want then
      tell(ctx, 'wrong-type', name, '', 'this key is a ' .. is .. ', laterd needs a ' .. want ..
           ' there: rename or delete it')
    elseif is ~= 'none' and id and not ctx.is_dark then
      judge_big(ctx, id)
    elseif is ~= 'none' and epoch and not ctx.is_dark and
           db('HEXISTS', R .. ':workers', epoch) == 0 then
      tell(ctx, 'leftover', epoch, '', 'fields of a worker that is not registered', function()
        L.drop_key(R .. ':worker:' .. epoch)
      end)
    elseif is ~= 'none' and string.find(name, '^seen:') then
      L.audit_generation(ctx, name)
    end
  end
  return '0', #pairs_of / 2
end

-- ---- the call

-- Without these keys nothing can be judged.
local GREAT = {'jobs', 'hash', 'running', 'zset', 'tries', 'hash', 'workers', 'hash',
               'errors', 'hash', 'parked', 'hash', 'holds', 'hash'}

local SIDES = {tries = true, errors = true, failures = true, results = true, cancel = true,
               progress = true}

local function audit(ctx, phase, cursor, count, names)
  if phase == 'keys' then
    return audit_keys(ctx, names)
  elseif ctx.is_dark then
    return '0', 0
  elseif phase == 'set' then
    return audit_set(ctx, cursor, count, names)
  elseif phase == 'running' then
    return audit_running(ctx, cursor, count)
  elseif phase == 'jobs' then
    return audit_jobs(ctx, cursor, count)
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
  ctx.ask = ask
  ctx.tell = function(...)
    tell(ctx, ...)
  end
  ctx.is_dark = not pcall(L.need, R, unpack(GREAT))
  if repairs then
    local ok, why = pcall(L.need_worker, R)
    ctx.blocked = not ok and why or nil
  end
  local behind, checked = audit(ctx, phase, cursor, L.int(count), names)
  ctx.reply[1], ctx.reply[2] = behind == '0' and '' or behind, checked
  return ctx.reply
end

L.register('later_v1_audit', {'no-writes'}, function(R, args)
  return page_of(R, args, false)
end)

L.register('later_v1_repair', {'allow-oom'}, function(R, args)
  return page_of(R, args, true)
end)
