-- Topics: what is published under one goes to each queue that subscribes, as a job of its own.
--
--   R:topics      HASH  subscription -> its queues, with spaces between them
--   R:topic:file  HASH  queue -> what a file subscribes it to: when that was read, ms, and the
--                       subscriptions, with spaces between them
--
-- A topic: letters, digits and _ . -, a letter or digit first; at most 8 dots. A subscription: a
-- topic; PREFIX.*, all topics that begin with `PREFIX.`; or *, all. A publisher reads at most ten
-- fields, whatever the number of topics. R:stats has, for each subscription, how often something
-- was published that it fits (published:<subscription>), and how often there was none (unheard).

local topics = module 'topic/topics'
local adds, commit, txn = use('public/add', 'txn/commit', 'txn/txn')
local TOPIC_MAX, DOTS_MAX = 128, 8
local TOPICS_MAX = 10000
local QUEUES_MAX = 100      -- of one subscription, and of one call that publishes

local function is_topic(name)
  local _, dots = string.gsub(name, '%.', '')
  return #name <= TOPIC_MAX and dots <= DOTS_MAX and
         string.find(name, '^%w[%w_.-]*$') ~= nil
end

-- -> the topic; fails with ELATER_TOPIC if it is none
function topics.check_name(name)
  if not name or not is_topic(name) then
    fail('ELATER_TOPIC', quote(name or '') .. ' is no topic (letters, digits and _ . -, at ' ..
         'most 128, a letter or digit first, at most 8 dots)')
  end
  return name
end

-- -> the subscription; fails with ELATER_TOPIC if it is none
function topics.check_subscription(name)
  local prefix = name and string.match(name, '^(.+%.)%*$')
  if name ~= '*' and not is_topic(prefix or name or '') then
    fail('ELATER_TOPIC', quote(name or '') .. ' is no subscription: a topic, PREFIX.* or *')
  end
  return name
end

-- -> the queues of a value of R:topics; what is no name of a queue is left out
function topics.queues_of(text)
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

-- -> the queues that get a copy, each once, in order; the subscriptions by which they get it
function topics.subscribers(R, topic)
  local queues, is_known, names, received = {}, {}, fitting(topic), {}
  for i, text in ipairs(db('HMGET', R .. ':topics', unpack(names))) do
    received[#received + 1] = text and names[i] or nil
    for _, queue in ipairs(topics.queues_of(text)) do
      queues[#queues + 1] = not is_known[queue] and queue or nil
      is_known[queue] = true
    end
  end
  if #queues > QUEUES_MAX then
    fail('ELATER_FULL', int(#queues) .. ' queues subscribe to topic ' .. quote(topic) ..
         ', at most ' .. int(QUEUES_MAX) .. ' get copies')
  end
  table.sort(queues)
  return queues, received
end

-- Count a message. names: the subscriptions that it fits
function topics.count_published(R, names)
  for _, name in ipairs(names) do
    commit.count(R, 'published', name, 1)
  end
  if not names[1] then
    commit.count_as(R, 'unheard', 1)
  end
end

-- -> how many messages each of these subscriptions was given
function topics.published(R, names)
  local fields = {}
  for i, name in ipairs(names) do
    fields[i] = 'published:' .. name
  end
  local counts = fields[1] and txn.ask(R .. ':stats', 'hash', 'HMGET', unpack(fields)) or {}
  for i = 1, #names do
    counts[i] = whole(counts[i]) or 0
  end
  return counts
end

local function forget_count(R, name)
  if redis.call('HEXISTS', R .. ':topics', name) == 0 then
    redis.call('HDEL', R .. ':stats', 'published:' .. name)
  end
end

-- Write the queues of a subscription. Without any it is gone, and so is its count.
function topics.put_queues(R, name, queues)
  if queues[1] then
    db('HSET', R .. ':topics', name, table.concat(queues, ' '))
  else
    db('HDEL', R .. ':topics', name)
    commit.hint(forget_count, R, name)
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
function topics.subscribe(R, name, queue)
  local text = db('HGET', R .. ':topics', name)
  -- Workers say again and again what is there: a search is cheaper than to read all names.
  if text and string.find(' ' .. text .. ' ', ' ' .. queue .. ' ', 1, true) then
    return 'repeated'
  end
  local queues = topics.queues_of(text)
  if place_of(queues, queue) then
    return 'repeated'
  elseif not text and db('HLEN', R .. ':topics') >= TOPICS_MAX then
    fail('ELATER_FULL', 'there are ' .. int(TOPICS_MAX) .. ' subscriptions already')
  elseif #queues >= QUEUES_MAX then
    fail('ELATER_FULL', int(QUEUES_MAX) .. ' queues have the subscription ' .. quote(name) ..
         ' already')
  end
  adds.check_names(R, queue)
  local at = #queues + 1 -- they are sorted, and a sort of all takes longer than all else
  while at > 1 and queues[at - 1] > queue do
    at = at - 1
  end
  table.insert(queues, at, queue)
  db('SADD', R .. ':names', queue)
  topics.put_queues(R, name, queues)
  return 'subscribed'
end

-- -> unsubscribed | repeated
function topics.unsubscribe(R, name, queue)
  local queues = topics.queues_of(db('HGET', R .. ':topics', name))
  local at = place_of(queues, queue)
  if not at then
    return 'repeated'
  end
  table.remove(queues, at)
  topics.put_queues(R, name, queues)
  return 'unsubscribed'
end

-- ---- what files say

-- -> when the file was read, 0 for never; the subscriptions of a queue that it had
function topics.file_topics(R, queue)
  local read_ms, rest = string.match(db('HGET', R .. ':topic:file', queue) or '', '^(%d+) ?(.*)$')
  local names = {}
  for name in string.gmatch(rest or '', '%S+') do
    names[#names + 1] = name
  end
  return whole(read_ms) or 0, names
end

-- The queue is gone: what a file subscribed it to is no more.
function topics.drop_file_topics(R, queue)
  local _, names = topics.file_topics(R, queue)
  for _, name in ipairs(names) do
    topics.unsubscribe(R, name, queue)
  end
  db('HDEL', R .. ':topic:file', queue)
end

-- names: the subscriptions, checked
function topics.put_file_topics(R, queue, read_ms, names)
  db('SADD', R .. ':names', queue)
  db('HSET', R .. ':topic:file', queue, int(read_ms) .. ' ' .. table.concat(names, ' '))
end
