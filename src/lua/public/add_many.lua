-- later_add_many R QUEUE [name value]... [--] PAYLOAD... -> [[id, status, due_ms], ...]
--
-- One queue, one set of options, many payloads, one call; all or nothing. Options end at the first
-- argument that is no option name, or at `--` (needed only when the first payload reads like an
-- option). token and unique are refused: each names one job. Payloads: 1 to 1000, 16 MiB together.
-- Errors: as later_add. Cost: O(k log n).

local membership, clock, events, jobs, uses, tenants, wanted, adds, at_once, change, commit = use(
  'batch/membership', 'core/clock', 'core/events', 'core/jobs', 'core/uses', 'fair/tenants',
  'gates/wanted', 'public/add', 'public/add_at_once', 'txn/change', 'txn/commit')

-- -> the job from which all are made, the number of the first payload's argument
local function read_options(args, queue, now_ms)
  local job, seen, i = {queue = queue, priority = 5, due = now_ms}, {}, 2
  while args[i] and args[i] ~= '--' and adds.is_option(args[i]) do
    if not args[i + 1] then
      fail('ELATER_ARGS', 'option ' .. quote(args[i]) .. ' has no value')
    end
    adds.option(job, seen, args[i], args[i + 1], now_ms)
    i = i + 2
  end
  if args[i] == '--' then
    i = i + 1
  end
  if job.token or job.u then
    fail('ELATER_OPTION', (job.token and 'token' or 'unique') .. ' names one job: use later_add')
  end
  return job, i
end

-- Check the payloads, args[i] and all behind it. -> how many there are
local function check_payloads(R, queue, args, i)
  local n, bytes = #args - i + 1, 0
  if n < 1 or n > 1000 then
    fail('ELATER_ARGS', 'give 1 to 1000 payloads, not ' .. int(math.max(n, 0)))
  end
  for k = i, #args do
    if #args[k] > LEAST_LIMIT then
      adds.check_payload(R, queue, args[k])
    end
    bytes = bytes + #args[k]
  end
  if bytes > 16777216 then
    fail('ELATER_SIZE', 'the payloads of one call may have 16 MiB together')
  end
  return n
end

-- Write n jobs with the payloads from args[i] on. first: the clock number of the first id; is_fair:
-- they have a tenant
local function put_jobs(R, job, args, i, n, first, is_fair)
  local small, queue, replies = jobs.header(job), job.queue, {}
  uses.put_chain_names(R, job)
  local big = '+' .. string.sub(small, 2)
  local key, flag = jobs.waiting_key(R, job, at_once.NEW)
  for k = 1, n do
    local id, payload = clock.id(first + k - 1), args[i + k - 1]
    local is_big = #payload > BIG
    adds.put_record(R, id, is_big and big or small .. payload, is_big and payload)
    change.is_new(key, 'zset', id)
    db('ZADD', key, job.due, id)
    if is_fair then
      tenants.put(R, id, job, job.due)
    end
    if job.b then
      membership.join(R, job.b, id)
    end
    replies[k] = {id, 'added', job.due}
    if events.now then
      events.add('added', id, queue, job.due)
    end
  end
  if flag then
    jobs.flag_set(R, queue, flag)
  end
  jobs.lower_head(R, queue, job.due)
  commit.count(R, 'added', queue, n)
  return replies
end

register('later_add_many', {}, function(R, args)
  local queue, now_us = check_queue(args[1]), clock.now_us()
  local job, i = read_options(args, queue, clock.ms(now_us))
  local n = check_payloads(R, queue, args, i)
  adds.check_names(R, queue)
  adds.check_gates(R, job, wanted.queue_gates(db('HGET', R .. ':queues', queue)))
  if job.b then
    membership.check_join(R, job, n)
  end
  return put_jobs(R, job, args, i, n, clock.tick(R, now_us, n), tenants.are_kept(R, queue))
end)
