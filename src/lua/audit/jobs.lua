-- Phase jobs of later_v1_audit and later_v1_repair (calls/audit.lua): HSCAN of the records (no
-- name). Each job must be in exactly one set, and have its payload.

local audit_jobs = module 'audit/jobs'
local audit, audit_gates, audit_tenants, pins, jobs = use(
  'audit/audit', 'audit/gates', 'audit/tenants', 'broadcast/pins', 'core/jobs')
local ask_many, ask, queue_of = audit.ask_many, audit.ask, audit.queue_of
local worker_of, left_to, lost_payload = audit.worker_of, audit.left_to, audit.lost_payload
local is_bad_score, mend_record, leave = audit.is_bad_score, audit.mend_record, audit.leave
local bury, LOST = audit.bury, audit.LOST

-- -> every set where a job of this queue may be that is not pinned, the set of priority p first
local function sets_of(queue, p)
  local names = {'q:' .. queue .. ':' .. int(p)}
  for other = 0, 9 do
    if other ~= p then
      names[#names + 1] = 'q:' .. queue .. ':' .. int(other)
    end
  end
  names[11], names[12], names[13] = 'solo:' .. queue, 'dead:' .. queue, 'done:' .. queue
  names[14] = 'parked:' .. queue
  return names
end

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
    ctx.tell('two-places', row.id, row.queue, text, function()
      for _, set in ipairs(row.sets) do
        leave(R, set.name, row.id)
      end
    end)
  end
  if not row.job then
    ctx.tell('broken-record', row.id, row.queue, 'its record is corrupt' .. left_to(who, epoch))
  elseif row.job.big then
    local why = lost_payload(R, row.id)
    if why then
      ctx.tell('no-payload', row.id, row.queue, why .. left_to(who, epoch))
    end
  end
end

-- The target of a pinned job must be on the list of its queue.
local function judge_target(ctx, row)
  local target = row.job.W
  if target and ask('SISMEMBER', ctx.R .. ':pins:' .. row.queue, target) == 0 then
    ctx.tell('bad-flag', row.id, row.queue, 'its target ' .. target .. ' is not listed', function()
      pins.put(ctx.R, row.queue, target)
      jobs.flag_set(ctx.R, row.queue, 'p')
    end)
  end
end

local function judge_waiting(ctx, row, set)
  local R, id, queue = ctx.R, row.id, row.queue
  local function doomed(kind, why)
    ctx.tell(kind, id, queue, why, function()
      bury(ctx, queue, id, why, row.sets)
    end)
  end
  local tries = jobs.tries(row.tries)
  local why = row.job.big and lost_payload(R, id)
  if why then
    doomed('no-payload', why)
  elseif row.tries and not tries.due then
    doomed('broken-tries', 'its tries are corrupt')
  elseif is_bad_score(set.score) then
    doomed('bad-score', 'it can never be due: its score is ' .. tostring(set.score))
  elseif jobs.waiting_key(R, row.job, tries) ~= R .. ':' .. set.name then
    ctx.tell('wrong-set', id, queue, 'it waits in ' .. set.name .. ', it belongs into ' ..
             string.sub(jobs.waiting_key(R, row.job, tries), #R + 2), function()
      db('ZREM', R .. ':' .. set.name, id)
      jobs.enqueue(R, id, row.job, tries, to_due(set.score))
    end)
  else
    judge_target(ctx, row)
    if string.find(set.name, '^q:') then
      audit_tenants.job(ctx, row, set.score)
    end
  end
end

-- A dead or done job. A done job needs its payload no more. A dead job may need it for a retry: if
-- the payload is lost, the job stays dead, and its outcome says why a retry will fail.
local function judge_kept(ctx, row, set)
  local R, id = ctx.R, row.id
  if is_bad_score(set.score) then
    local text = 'it is kept for ever: its score is ' .. tostring(set.score)
    ctx.tell('bad-score', id, row.queue, text, function()
      db('ZADD', R .. ':' .. set.name, int(ctx.now_ms), id)
    end)
  end
  if set.name ~= 'dead:' .. row.queue then
    return
  end
  if row.tries and not jobs.tries(row.tries).due then
    ctx.tell('broken-tries', id, row.queue, 'its tries are corrupt', function()
      db('HDEL', R .. ':tries', id)
    end)
  end
  local why = row.job.big and lost_payload(R, id)
  local outcome = why and db('HGET', R .. ':errors', id) or ''
  if why and
     not string.find(string.match(outcome, '^[^\n]*'), 'its payload is missing', 1, true) then
    ctx.tell('no-payload', id, row.queue, why, function()
      local _, code, _, start, text, output = jobs.read_outcome(outcome)
      db('HSET', R .. ':errors', id, jobs.outcome('dead', code or '0', ctx.now_ms, whole(start) or
                                                  0, 'fsck: ' .. why ..
                                                  (text and '; it died of: ' .. text or ''),
                                                  output))
    end)
  end
end

local function judge(ctx, row)
  local id, queue = row.id, row.queue or LOST
  if row.score then
    judge_held(ctx, row)
  elseif not row.job then
    local why = CORRUPT
    ctx.tell('broken-record', id, row.queue, why, function()
      mend_record(ctx.R, id, queue, row.record)
      bury(ctx, queue, id, why, row.sets)
    end)
  elseif #row.sets == 1 then
    local set = row.sets[1]
    local is_kept = set.name == 'dead:' .. queue or set.name == 'done:' .. queue
    local check = is_kept and judge_kept or set.name == 'parked:' .. queue and
                  audit_gates.each_parked or judge_waiting
    check(ctx, row, set)
  elseif #row.sets > 1 or not row.unsure then
    local why = #row.sets == 0 and 'it is in no set' or 'it is in ' .. names_of(row.sets)
    ctx.tell(#row.sets == 0 and 'no-place' or 'two-places', id, queue, why, function()
      bury(ctx, queue, id, why, row.sets)
    end)
  end
end

function audit_jobs.each_job(ctx, cursor, count)
  local page = db('HSCAN', ctx.R .. ':jobs', cursor, 'COUNT', count)
  local rows, ids, queues = {}, {}, {}
  for i = 1, #page[2], 2 do
    local row = {id = page[2][i], record = page[2][i + 1], sets = {}}
    row.job = jobs.parse(row.record)
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

audit_jobs.find_sets = find_sets
