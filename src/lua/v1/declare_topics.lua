-- later_v1_declare_topics R EPOCH READ_MS last|more NQ {NA queue topic*}*NQ -> [[queue, status]...]
--
-- A worker tells which topics its file subscribes these queues to, all of each; none for a queue
-- that has none any more. READ_MS: when the file was read, by Redis' clock. What was read last
-- holds: an older reading changes nothing. What an earlier one had and this one has not is taken
-- away. last and more say the same: a queue that is not named is left as it is.
-- status: declared | older | a refusal. At most 100 queues. Not allow-oom.
-- Errors: ELATER_ARGS WORKER TYPE. Cost: O(topics).

local function declare(R, one, read_ms)
  local queue, names, is_kept = L.check_queue(one[1]), {unpack(one, 2)}, {}
  local was_ms, was = L.file_topics(R, queue)
  if was_ms > read_ms then
    return 'older'
  end
  for _, name in ipairs(names) do
    is_kept[L.check_subscription(name)] = true
  end
  for _, name in ipairs(was) do
    if not is_kept[name] then
      L.unsubscribe(R, name, queue)
    end
  end
  for _, name in ipairs(names) do
    L.subscribe(R, name, queue)
  end
  L.put_file_topics(R, queue, read_ms, names)
  return 'declared'
end

L.register('later_v1_declare_topics', {}, function(R, args)
  local read_ms, _, all = L.read_declared(R, args, L.ms(L.now_us()))
  return L.declare_each(R, all, declare, read_ms)
end)
