-- later_add_many R QUEUE [name value]... [--] PAYLOAD... -> [[id, status, due_ms], ...]
--
-- One queue, one set of options, many payloads, one call; all or nothing. Options end at the first
-- argument that is no option name, or at `--` (needed only when the first payload reads like an
-- option). token is refused: it names one job. Payloads: 1 to 1000, 16 MiB together.
-- Errors: as later_add. Cost: O(k log n).

L.register('later_add_many', {}, function(R, args)
  local queue = L.check_queue(args[1])
  local now_us = L.now_us()
  local now_ms = L.ms(now_us)
  local job, seen, i = {queue = queue, priority = 5, due = now_ms}, {}, 2
  while args[i] and args[i] ~= '--' and L.is_option(args[i]) do
    if not args[i + 1] then
      L.fail('ELATER_ARGS', 'option ' .. L.quote(args[i]) .. ' has no value')
    end
    L.option(job, seen, args[i], args[i + 1], now_ms)
    i = i + 2
  end
  if args[i] == '--' then
    i = i + 1
  end
  if job.token or job.u then
    L.fail('ELATER_OPTION', (job.token and 'token' or 'unique') .. ' names one job: use later_add')
  end
  local n, bytes = #args - i + 1, 0
  if n < 1 or n > 1000 then
    L.fail('ELATER_ARGS', 'give 1 to 1000 payloads, not ' .. L.int(math.max(n, 0)))
  end
  for k = i, #args do
    if #args[k] > L.LEAST_LIMIT then
      L.check_payload(R, queue, args[k])
    end
    bytes = bytes + #args[k]
  end
  if bytes > 16777216 then
    L.fail('ELATER_SIZE', 'the payloads of one call may have 16 MiB together')
  end
  L.check_room(R, queue)
  L.need(R, 'jobs', 'hash', 'heads', 'zset', 'prio', 'hash', 'q:' .. queue .. ':' .. L.int(job.priority), 'zset')
  L.check_gates(R, job, L.queue_gates(redis.call('HGET', R .. ':queues', queue)))
  local first = L.tick(R, now_us, n)
  local replies, scored, records, due = {}, {}, {}, L.int(job.due)
  local small = L.header(job)
  local big = '+' .. string.sub(small, 2)
  for k = 1, n do
    local id, payload = L.id(first + k - 1), args[i + k - 1]
    if #payload > L.BIG then
      redis.call('SET', R .. ':big:' .. id, payload)
      records[2 * k] = big
    else
      records[2 * k] = small .. payload
    end
    records[2 * k - 1] = id
    scored[2 * k - 1], scored[2 * k] = due, id
    replies[k] = {id, 'added', job.due}
  end
  redis.call('HSET', R .. ':jobs', unpack(records))
  local key, mark = L.waiting_key(R, job, L.tries(nil))
  redis.call('ZADD', key, unpack(scored))
  if mark then
    L.mark_set(R, queue, mark)
  end
  L.lower_head(R, queue, job.due)
  for k = 1, L.events and n or 0 do
    L.event('added', replies[k][1], queue, job.due)
  end
  return replies
end)
