-- later_v1_export R QUEUE STATE SET SCORE MEMBER COUNT -> [SET, SCORE, MEMBER, how many, row...]
--
-- A page of a queue's jobs with everything that Redis has of them. STATE: due (waiting, raw members
-- included) parked running dead done. SET, SCORE, MEMBER: 1 and two empty ones first, then those of
-- the last reply; an empty SET in a reply: there are no more. COUNT: at most 200; a page ends early
-- once it has 1 MiB of payload. A job that stays where it is from the first page to the last is
-- returned exactly once; a job that moves meanwhile may be missed or come twice. how many: jobs in
-- this state now; for running, those of other queues are counted, too.
-- row: [id, score, due ms or '', record, payload of a large one or '', tries, outcome] and, where
-- it has kept something, checkpoint or '', and its steps (core/resume.lua, pack); for a raw member
-- ['', score, due ms or '' if it will be buried, member].
-- no-writes. Cost: O(log n + COUNT).

local clock, job_sets, jobs, resume, waiters = use(
  'core/clock', 'core/job_sets', 'core/jobs', 'core/resume', 'gates/waiters')
local BYTES = 1048576

-- -> when each of these jobs is or was due, as text; '' where it is not known
local function dues_of(R, state, ids, scores, tries)
  local dues = {}
  local spots = state == 'parked' and redis.call('HMGET', R .. ':parked', unpack(ids))
  for i = 1, #ids do
    local due
    if state == 'due' then
      due = to_due(scores[i])
    elseif state == 'parked' then
      local spot = waiters.read_spot(spots[i])
      due = spot and spot.due
    else
      due = jobs.tries(tries[i]).due
    end
    dues[i] = due and int(due) or ''
  end
  return dues
end

-- Is it a record of this queue? A record that names no queue counts as well, so that somebody sees
-- it.
local function is_of(record, queue)
  local name = string.match(record, '^[-+](%w[%w_-]*)[ \n]')
  return name == nil or name == queue
end

-- Append to its row what a job has kept; text: of R:resume, false for nothing. -> bytes
local function put_kept(R, id, text, row)
  if not text then
    return 0
  end
  local _, _, checkpoint = resume.read(text)
  row[8], row[9] = checkpoint or '', resume.pack(R, id, text)
  return #row[8] + #row[9]
end

-- Append the rows of these jobs. -> how many of the jobs were read, bytes
local function put_jobs(R, queue, state, ids, scores, reply)
  local records = job_sets.read_records(R, ids, BYTES)
  local bytes = 0
  for i = #ids, #records + 1, -1 do
    ids[i] = nil
  end
  local tries = redis.call('HMGET', R .. ':tries', unpack(ids))
  local outcomes = redis.call('HMGET', R .. (state == 'done' and ':results' or ':errors'),
                              unpack(ids))
  local resumes = redis.call('HMGET', R .. ':resume', unpack(ids))
  local dues = dues_of(R, state, ids, scores, tries)
  for i, id in ipairs(ids) do
    local record, payload = records[i], ''
    if state ~= 'running' or is_of(record, queue) then
      if string.byte(record) == 43 then -- '+'
        payload = redis.call('GET', R .. ':big:' .. id) or ''
      end
      local outcome = outcomes[i] or ''
      local row = {id, scores[i], dues[i], record, payload, tries[i] or '', outcome}
      reply[#reply + 1] = row
      bytes = bytes + #record + #payload + #outcome + put_kept(R, id, resumes[i], row)
    end
    if bytes >= BYTES then
      return i, bytes
    end
  end
  return #ids, bytes
end

local function page(R, queue, state, sets, at, count)
  local reply = {'', '', '', job_sets.count_in(sets)}
  local bytes, score, member, now_ms = 0, at.score, at.member, clock.ms(clock.now_us())
  for s = at.set, #sets do
    local set = sets[s]
    local rank = job_sets.rank_behind(set.key, score, member)
    local rows
    if set.is_raw then
      rows = job_sets.read_set(set.key, rank, count, BYTES - bytes)
    else
      rows = redis.call('ZRANGE', set.key, rank, rank + count - 1, 'WITHSCORES')
    end
    local ids, scores = {}, {}
    for i = 1, #rows, 2 do
      ids[#ids + 1], scores[#scores + 1] = rows[i], rows[i + 1]
    end
    local all, n, more = #ids, #ids, 0
    if set.is_raw then
      for i, one in ipairs(ids) do
        local due = job_sets.raw_due(scores[i], now_ms)
        reply[#reply + 1] = {'', scores[i], due and int(due) or '', one}
        more = more + #one
      end
    elseif n > 0 then
      n, more = put_jobs(R, queue, state, ids, scores, reply)
    end
    bytes, count = bytes + more, count - n
    if count <= 0 or bytes >= BYTES or n < all then
      reply[1], reply[2], reply[3] = job_sets.set_name(sets, s), scores[n] or '', ids[n] or ''
      return reply
    end
    score, member = '', ''
  end
  return reply
end

register('later_v1_export', {'no-writes'}, function(R, args)
  local queue = check_queue(args[1])
  local sets, count, set, is_same = job_sets.sets_of(R, queue, args[2]), whole(args[6]), nil, nil
  if sets then
    set, is_same = job_sets.set_number(sets, args[3] or '')
  end
  if not set or not args[4] or not args[5] or
     not count or count < 1 or count > 200 or (args[4] ~= '' and not tonumber(args[4])) then
    fail('ELATER_ARGS', 'give QUEUE STATE SET SCORE MEMBER COUNT (1 to 200)')
  end
  return page(R, queue, args[2], sets, {set = set, score = is_same and args[4] or '',
              member = is_same and args[5] or ''}, count)
end)
