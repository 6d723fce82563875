-- Topics: what is published under one goes to each queue that subscribes, as a job of its own.
--
--   R:topics      HASH  subscription -> its queues, with spaces between them
--   R:topic:file  HASH  queue -> what a file subscribes it to: when that was read, ms, and the
--                       subscriptions, with spaces between them
--
-- A topic: letters, digits and _ . -, a letter or digit first; at most 8 dots. A subscription: a
-- topic; PREFIX.*, all topics that begin with `PREFIX.`; or *, all. A publisher reads at most ten
-- fields, whatever the number of topics.

local TOPIC_MAX, DOTS_MAX = 128, 8
local TOPICS_MAX = 10000
local QUEUES_MAX = 100      -- of one subscription, and of one call that publishes

local function is_topic(name)
  local _, dots = string.gsub(name, '%.', '')
  return #name <= TOPIC_MAX and dots <= DOTS_MAX and
         string.find(name, '^%w[%w_.-]*$') ~= nil
end

-- -> the topic; fails with ELATER_TOPIC if it is none
function L.check_topic(name)
  if not name or not is_topic(name) then
    L.fail('ELATER_TOPIC', L.quote(name or '') .. ' is no topic (letters, digits and _ . -, at ' ..
           'most 128, a letter or digit first, at most 8 dots)')
  end
  return name
end

-- -> the subscription; fails with ELATER_TOPIC if it is none
function L.check_subscription(name)
  local prefix = name and string.match(name, '^(.+%.)%*$')
  if name ~= '*' and not is_topic(prefix or name or '') then
    L.fail('ELATER_TOPIC', L.quote(name or '') .. ' is no subscription: a topic, PREFIX.* or *')
  end
  return name
end

-- -> the queues of a value of R:topics; what is no name of a queue is left out
function L.topic_queues(text)
  local queues = {}
  for queue in string.gmatch(text or '', '%S+') do
    local is_name = #queue <= 64 and string.find(queue, '^%w[%w_-]*$')
    queues[#queues + 1] = is_name and queue or nil
  end
  return queues
end

-- The subscriptions that a topic fits.
local function fitting(topic)
  local names, at = {topic, '*'}, string.find(topic, '.', 1, true)
  while at do
    names[#names + 1] = string.sub(topic, 1, at) .. '*'
    at = string.find(topic, '.', at + 1, true)
  end
  return names
end

-- -> the queues that get a copy, each once, in order
function L.subscribers(R, topic)
  local queues, is_known = {}, {}
  for _, text in ipairs(db('HMGET', R .. ':topics', unpack(fitting(topic)))) do
    for _, queue in ipairs(L.topic_queues(text)) do
      queues[#queues + 1] = not is_known[queue] and queue or nil
      is_known[queue] = true
    end
  end
  if #queues > QUEUES_MAX then
    L.fail('ELATER_FULL', L.int(#queues) .. ' queues subscribe to topic ' .. L.quote(topic) ..
           ', at most ' .. L.int(QUEUES_MAX) .. ' get copies')
  end
  table.sort(queues)
  return queues
end

local function put_queues(R, name, queues)
  if queues[1] then
    db('HSET', R .. ':topics', name, table.concat(queues, ' '))
  else
    db('HDEL', R .. ':topics', name)
  end
end

local function place_of(queues, queue)
  for i, other in ipairs(queues) do
    if other == queue then
      return i
    end
  end
end

-- Subscribe a queue. Both names were checked. -> subscribed | repeated
function L.subscribe(R, name, queue)
  local text = db('HGET', R .. ':topics', name)
  local queues = L.topic_queues(text)
  if place_of(queues, queue) then
    return 'repeated'
  elseif not text and db('HLEN', R .. ':topics') >= TOPICS_MAX then
    L.fail('ELATER_FULL', 'there are ' .. L.int(TOPICS_MAX) .. ' subscriptions already')
  elseif #queues >= QUEUES_MAX then
    L.fail('ELATER_FULL', L.int(QUEUES_MAX) .. ' queues have the subscription ' .. L.quote(name) ..
           ' already')
  end
  L.check_names(R, queue)
  queues[#queues + 1] = queue
  table.sort(queues)
  db('SADD', R .. ':names', queue)
  put_queues(R, name, queues)
  return 'subscribed'
end

-- -> unsubscribed | repeated
function L.unsubscribe(R, name, queue)
  local queues = L.topic_queues(db('HGET', R .. ':topics', name))
  local at = place_of(queues, queue)
  if not at then
    return 'repeated'
  end
  table.remove(queues, at)
  put_queues(R, name, queues)
  return 'unsubscribed'
end

-- ---- what files say

-- -> when the file was read, 0 for never; the subscriptions of a queue that it had
function L.file_topics(R, queue)
  local read_ms, rest = string.match(db('HGET', R .. ':topic:file', queue) or '', '^(%d+) ?(.*)$')
  local names = {}
  for name in string.gmatch(rest or '', '%S+') do
    names[#names + 1] = name
  end
  return L.whole(read_ms) or 0, names
end

-- names: the subscriptions, checked
function L.put_file_topics(R, queue, read_ms, names)
  db('SADD', R .. ':names', queue)
  db('HSET', R .. ':topic:file', queue, L.int(read_ms) .. ' ' .. table.concat(names, ' '))
end
