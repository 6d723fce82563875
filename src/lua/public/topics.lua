-- later_subscribe R TOPIC QUEUE -> [TOPIC, QUEUE, 'subscribed' | 'repeated']
-- later_unsubscribe R TOPIC QUEUE -> [TOPIC, QUEUE, 'unsubscribed' | 'repeated']
-- later_topics R -> [[TOPIC, QUEUE, origin]...]
--
-- TOPIC: a topic, PREFIX.* or * (topic/topic.lua). What is published from now on goes to QUEUE,
-- also while no worker serves it; nothing that was published before. A subscription that a file
-- says belongs to no file any more once it is made here. origin: file or call.
-- Errors: ELATER_TOPIC QUEUE FULL TYPE. Cost: O(queues of the topic); later_topics: O(all).

local PAGE = 1000

-- A file does not say this any more: a later reading of it must not take it away.
local function release(R, name, queue)
  local read_ms, names = L.file_topics(R, queue)
  for i, other in ipairs(names) do
    if other == name then
      table.remove(names, i)
      L.put_file_topics(R, queue, read_ms, names)
      return
    end
  end
end

L.register('later_subscribe', {}, function(R, args)
  local name, queue = L.check_subscription(args[1]), L.check_queue(args[2])
  release(R, name, queue)
  return {name, queue, L.subscribe(R, name, queue)}
end)

L.register('later_unsubscribe', {'allow-oom'}, function(R, args)
  local name, queue = L.check_subscription(args[1]), L.check_queue(args[2])
  release(R, name, queue)
  return {name, queue, L.unsubscribe(R, name, queue)}
end)

-- Call fn(field, value) for each field of a hash; for some perhaps twice.
local function each_field(key, fn)
  local cursor = '0'
  repeat
    local page = L.ask(key, 'hash', 'HSCAN', cursor, 'COUNT', PAGE)
    for i = 1, #page[2], 2 do
      fn(page[2][i], page[2][i + 1])
    end
    cursor = page[1]
  until cursor == '0'
end

-- -> "<subscription> <queue>" -> true
local function of_files(R)
  local is_of_file = {}
  each_field(R .. ':topic:file', function(queue, text)
    for name in string.gmatch(string.match(text, '^%d+ (.*)$') or '', '%S+') do
      is_of_file[name .. ' ' .. queue] = true
    end
  end)
  return is_of_file
end

L.register('later_topics', {'no-writes'}, function(R)
  local rows, is_told, is_of_file = {}, {}, of_files(R)
  each_field(R .. ':topics', function(name, text)
    for queue in string.gmatch(is_told[name] and '' or text, '%S+') do
      rows[#rows + 1] = {name, queue, is_of_file[name .. ' ' .. queue] and 'file' or 'call'}
    end
    is_told[name] = true
  end)
  table.sort(rows, function(a, b)
    return a[1] < b[1] or a[1] == b[1] and a[2] < b[2]
  end)
  return rows
end)
