-- later_v1_list R QUEUE STATE CURSOR COUNT -> [next cursor or '', row...]
--
-- One page of a queue's jobs. STATE: due (waiting, raw members included) parked running dead done.
-- CURSOR: '' first, then what the last page returned. COUNT: at most 200. Pages may miss or repeat
-- jobs that move meanwhile.
-- row: [id or '' for a raw member, score, priority, tries, first line of the outcome (of a running
-- job: its progress), payload bytes, first 64 bytes of the payload, gate, key]. The last two are ''
-- where there is none. gate: where a parked job waits; '' when it is granted. Its score is its
-- ticket. A running job has four values more: its queue, the host of its worker, since when it runs
-- and its timeout, both ms ('' where that is not known; its worker tells them after five seconds.
-- A timeout of its own is told at once; '' also stands for none). QUEUE * stands for the running
-- jobs of all queues.
-- no-writes. Cost: O(log n + COUNT); for running O(all running jobs / pages).

local rooms, job_sets, jobs, waiters = use(
  'claim/rooms', 'core/job_sets', 'core/jobs', 'gates/waiters')
local RAW_BYTES = 1048576

local function bad_args()
  fail('ELATER_ARGS', 'give QUEUE STATE CURSOR COUNT (1 to 200)')
end

local function job_row(R, id, score, from)
  local record = redis.call('HGET', R .. ':jobs', id)
  local job = jobs.parse(record)
  local outcome = redis.call('HGET', R .. from, id) or ''
  local size, preview = 0, ''
  if job and job.big then
    size = redis.call('STRLEN', R .. ':big:' .. id)
    preview = redis.call('GETRANGE', R .. ':big:' .. id, 0, 63)
  elseif job then
    size = #record - job.body + 1
    preview = string.sub(record, job.body, job.body + 63)
  end
  return {id, score, job and int(job.priority) or '', redis.call('HGET', R .. ':tries', id) or '',
          string.match(outcome, '^[^\n]*'), size, preview, '', job and job.K or ''}, job
end

-- name: of the set at which it begins
local function waiting_page(R, queue, name, offset, count)
  local reply, left, sets = {''}, count, job_sets.sets_of(R, queue, 'due')
  local from, is_same = job_sets.set_number(sets, name)
  offset = is_same and offset or 0
  for s = from or bad_args(), #sets do
    local set = sets[s]
    local rows
    if set.is_raw then -- they may be large
      rows = job_sets.read_set(set.key, offset, left + 1, RAW_BYTES)
    else
      rows = redis.call('ZRANGE', set.key, offset, offset + left, 'WITHSCORES')
    end
    for i = 1, #rows, 2 do
      if left == 0 then
        reply[1] = job_sets.set_name(sets, s) .. ':' .. int(offset + (i - 1) / 2)
        return reply
      end
      left = left - 1
      if set.is_raw then
        reply[#reply + 1] = {'', rows[i + 1], '5', '', '', #rows[i],
                              string.sub(rows[i], 1, 64), '', ''}
      else
        reply[#reply + 1] = job_row(R, rows[i], rows[i + 1], ':errors')
      end
    end
    if set.is_raw and offset + #rows / 2 < redis.call('ZCARD', set.key) then
      reply[1] = job_sets.set_name(sets, s) .. ':' .. int(offset + #rows / 2)
      return reply
    end
    offset = 0
  end
  return reply
end

local function running_page(R, queue, offset, count)
  local ids = redis.call('ZRANGE', R .. ':running', offset, offset + count - 1, 'WITHSCORES')
  local reply = {#ids == 2 * count and '1:' .. int(offset + count) or ''}
  for i = 1, #ids, 2 do
    local one, job = job_row(R, ids[i], ids[i + 1], ':progress')
    if job and (queue == '*' or job.queue == queue) then
      one[10] = job.queue
      one[11] = redis.call('HGET', R .. ':worker:' .. ids[i + 1], 'host') or ''
      local since_ms, timeout_ms = rooms.run_times(R, ids[i + 1], ids[i])
      one[12], one[13] = since_ms or '', timeout_ms or whole(job.t) or ''
      reply[#reply + 1] = one
    end
  end
  return reply
end

local function kept_page(R, key, from, offset, count)
  local ids = redis.call('ZRANGE', key, offset, offset + count - 1, 'WITHSCORES')
  local reply = {#ids == 2 * count and '1:' .. int(offset + count) or ''}
  for i = 1, #ids, 2 do
    reply[#reply + 1] = job_row(R, ids[i], ids[i + 1], from)
  end
  return reply
end

local function parked_page(R, queue, offset, count)
  local reply = kept_page(R, R .. ':parked:' .. queue, ':errors', offset, count)
  for i = 2, #reply do
    local spot = waiters.read_spot(redis.call('HGET', R .. ':parked', reply[i][1]))
    reply[i][8] = spot and spot.gates[spot.at] or ''
  end
  return reply
end

register('later_v1_list', {'no-writes'}, function(R, args)
  local state = args[2]
  local queue = state == 'running' and args[1] == '*' and '*' or check_queue(args[1])
  local count = whole(args[4])
  local name, offset = string.match(args[3] or '', '^(%S+):(%d+)$')
  offset = whole(offset or '0')
  if not count or count < 1 or count > 200 or not offset then
    bad_args()
  end
  if state == 'due' then
    return waiting_page(R, queue, name or '1', offset, count)
  elseif state == 'running' then
    return running_page(R, queue, offset, count)
  elseif state == 'parked' then
    return parked_page(R, queue, offset, count)
  elseif state == 'dead' or state == 'done' then
    return kept_page(R, R .. ':' .. state .. ':' .. queue,
                     state == 'done' and ':results' or ':errors', offset, count)
  end
  fail('ELATER_ARGS', 'unknown state ' .. quote(state or '') .. ' (due parked running dead done)')
end)
