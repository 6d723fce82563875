-- later_v1_declare_topics R EPOCH READ_MS last|more NQ {NA queue topic*}*NQ -> [[queue, status]...]
--
-- A worker tells which topics its file subscribes these queues to, all of each; none for a queue
-- that has none any more. READ_MS: when the file was read, by Redis' clock. What was read last
-- holds: an older reading changes nothing, and neither does the same one again. What an earlier one
-- had and this one has not is taken away, but for what a call has said. last and more say the same:
-- a queue that is not named is left as it is.
-- status: declared | older | a refusal. At most 100 queues. Not allow-oom.
-- Errors: ELATER_ARGS WORKER TYPE. Cost: O(topics).

local clock, declared, adds, topics = use(
  'core/clock', 'core/declared', 'public/add', 'topic/topics')

-- Subscribe the queue. -> the names that are the file's: not those that a call has said
local function subscribe_all(R, queue, names, is_of_file)
  local out = {}
  for _, name in ipairs(names) do
    if topics.subscribe(R, name, queue) == 'subscribed' or is_of_file[name] then
      out[#out + 1], is_of_file[name] = name, nil
    end
  end
  return out
end

local function declare(R, one, read_ms, now_ms)
  local queue, names, is_kept, is_of_file = check_queue(one[1]), {unpack(one, 2)}, {}, {}
  local was_ms, was = topics.file_topics(R, queue)
  if declared.is_older(was_ms, read_ms, now_ms) then
    return 'older'
  end
  for _, name in ipairs(names) do
    is_kept[topics.check_subscription(name)] = true
  end
  if was_ms == read_ms then
    return 'declared'
  end
  adds.check_names(R, queue)
  for _, name in ipairs(was) do
    is_of_file[name] = true
    if not is_kept[name] then
      topics.unsubscribe(R, name, queue)
    end
  end
  topics.put_file_topics(R, queue, read_ms, subscribe_all(R, queue, names, is_of_file))
  return 'declared'
end

register('later_v1_declare_topics', {}, function(R, args)
  local now_ms = clock.ms(clock.now_us())
  local read_ms, _, all = declared.read_declared(R, args, now_ms)
  return declared.declare_each(R, all, declare, read_ms, now_ms)
end)
