-- later_v1_forget R QUEUE -> 'forgotten'
--
-- Remove the name of a queue that is used no more, and all that is kept under it: counters, pause,
-- gates, the largest payload, notes, the topics that a file said. A later add makes it a new queue.
-- Unique keys that unique_for holds stay taken, and so does what later_subscribe said: the next
-- message of its topic makes the queue anew. May be repeated.
-- Errors: ELATER_ARGS QUEUE TYPE, STATE (it has jobs, or a live worker serves it).
-- Cost: O(workers), and running jobs up to 1000.

local tidy, rooms, passes, topics = use(
  'calls/tidy', 'claim/rooms', 'fair/passes', 'topic/topics')

-- A worker may run jobs of a queue that it serves no more. Where more jobs run than are counted,
-- some may be of this queue.
local function may_run(R, queue)
  local running = rooms.running_by_queue(R)
  return not running or running[queue] ~= nil
end

register('later_v1_forget', {'allow-oom'}, function(R, args)
  local queue = check_queue(args[1])
  if tidy.has_jobs(R, queue) then
    fail('ELATER_STATE', 'queue ' .. queue .. ' has jobs')
  elseif tidy.served(R)(queue) then
    fail('ELATER_STATE', 'a worker serves queue ' .. queue)
  elseif may_run(R, queue) then
    fail('ELATER_STATE', 'a job of queue ' .. queue .. ' may run')
  end
  db('SREM', R .. ':names', queue)
  db('ZREM', R .. ':heads', queue)
  passes.drop(R, queue)
  for _, key in ipairs({':prio', ':paused', ':queues', ':unserved'}) do
    db('HDEL', R .. key, queue)
  end
  db('HDEL', R .. ':config', 'max_payload:' .. queue)
  db('HDEL', R .. ':notes', 'unserved-queue:' .. queue)
  topics.drop_file_topics(R, queue)
  tidy.drop_counts(R, queue)
  return 'forgotten'
end)
