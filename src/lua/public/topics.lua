-- later_subscribe R TOPIC QUEUE -> [TOPIC, QUEUE, 'subscribed' | 'repeated']
-- later_unsubscribe R TOPIC QUEUE -> [TOPIC, QUEUE, 'unsubscribed' | 'repeated']
-- later_topics R [CURSOR] -> [CURSOR, [TOPIC, QUEUE, origin, published]...]
--
-- TOPIC: a topic, PREFIX.* or * (topic/topics.lua). What is published from now on goes to QUEUE,
-- also while no worker serves it; nothing that was published before. A subscription that a file
-- says belongs to no file any more once it is made here. origin: file or call. published: how often
-- something was published that TOPIC fits, since it has a queue. CURSOR: 0 first, then that of the
-- last reply; 0 in a reply: there are no more. As with HSCAN, what is there all
-- the time comes at least once.
-- Errors: ELATER_ARGS TOPIC QUEUE FULL TYPE. Cost: O(queues of the topic); later_topics: a page.

local topics, txn = use('topic/topics', 'txn/txn')
local PAGE = 20             -- subscriptions, each with up to a hundred queues

-- A file does not say this any more: a later reading of it must not take it away.
local function release(R, name, queue)
  local read_ms, names = topics.file_topics(R, queue)
  for i, other in ipairs(names) do
    if other == name then
      table.remove(names, i)
      topics.put_file_topics(R, queue, read_ms, names)
      return
    end
  end
end

register('later_subscribe', {}, function(R, args)
  local name, queue = topics.check_subscription(args[1]), check_queue(args[2])
  release(R, name, queue)
  return {name, queue, topics.subscribe(R, name, queue)}
end)

register('later_unsubscribe', {'allow-oom'}, function(R, args)
  local name, queue = topics.check_subscription(args[1]), check_queue(args[2])
  release(R, name, queue)
  return {name, queue, topics.unsubscribe(R, name, queue)}
end)

-- -> queue -> subscription -> true, of these queues
local function of_files(R, queues)
  local is_of_file = {}
  for _, queue in ipairs(queues) do
    local _, names = topics.file_topics(R, queue)
    is_of_file[queue] = {}
    for _, name in ipairs(names) do
      is_of_file[queue][name] = true
    end
  end
  return is_of_file
end

-- A page of R:topics -> its queues, each once; {topic, queue, nil, published}*
local function read_page(R, page)
  local queues, is_known, rows, names = {}, {}, {}, {}
  for i = 1, #page, 2 do
    names[#names + 1] = page[i]
  end
  for i, published in ipairs(topics.published(R, names)) do
    for _, queue in ipairs(topics.queues_of(page[2 * i])) do
      rows[#rows + 1] = {names[i], queue, nil, published}
      queues[#queues + 1] = not is_known[queue] and queue or nil
      is_known[queue] = true
    end
  end
  return queues, rows
end

register('later_topics', {'no-writes'}, function(R, args)
  if args[1] and not whole(args[1]) then
    fail('ELATER_ARGS', 'give [CURSOR]')
  end
  local page = txn.ask(R .. ':topics', 'hash', 'HSCAN', args[1] or '0', 'COUNT', PAGE)
  local queues, rows = read_page(R, page[2])
  local is_of_file = of_files(R, queues)
  for _, row in ipairs(rows) do
    row[3] = is_of_file[row[2]][row[1]] and 'file' or 'call'
  end
  table.insert(rows, 1, page[1])
  return rows
end)
