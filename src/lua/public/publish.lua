-- later_publish R TOPIC [name value]... PAYLOAD -> [n, [queue, id, status]...]
--
-- Add a job with PAYLOAD to each queue that subscribes to TOPIC (topic/topics.lua), all or none.
-- Options, of later_add: in at priority key attempts timeout expire keep trace token. A queue that
-- cannot take its copy (its max_payload is smaller, or its gates need a key) has it among its dead,
-- with the reason: it cannot fail the publisher. The name of the queue is reserved by its
-- subscription. A token counts for each queue and one topic: of a
-- call that is repeated, a queue that has subscribed meanwhile gets its copy.
-- n: how many queues. status: added | repeated | buried. At most 100 queues, 16 MiB for all copies.
-- Errors: ELATER_ARGS TOPIC OPTION TIME KEY TOKEN SIZE FULL TYPE. Cost: as a later_add for each.

local publishing = module 'public/publish'
local clock, adds, topics, change = use('core/clock', 'public/add', 'topic/topics', 'txn/change')
local BYTES_MAX = 16777216

-- The options of a job that is added more than once, for other queues or workers.
local OPTIONS = {['in'] = true, at = true, priority = true, key = true, attempts = true,
                 timeout = true, expire = true, keep = true, trace = true, token = true}

-- What a queue may refuse without failing the publisher.
local OF_QUEUE = {ELATER_SIZE = true, ELATER_KEY = true, ELATER_GATE = true}

-- Read the options of such a job, which begin at args[from], and its payload behind them. what: of
-- the call, for a refusal; before: what to give before the options. -> the job
function publishing.read_copied(args, from, before, what, now_ms)
  local n, job, seen = #args, {priority = 5, due = now_ms, shared = {}}, {}
  if n < from or (n - from) % 2 == 1 then
    fail('ELATER_ARGS', before .. ' [name value]... PAYLOAD')
  end
  for i = from, n - 1, 2 do
    if not OPTIONS[string.lower(args[i])] then
      fail('ELATER_OPTION', 'option ' .. quote(args[i]) .. ' does not go with a ' .. what ..
           ' (in at priority key attempts timeout expire keep trace token do)')
    end
    adds.option(job, seen, args[i], args[i + 1], now_ms)
  end
  return job
end

-- -> a copy of the job, for this queue. Its token, if it has one, is that of this receiver: none
-- that an add could have, which has no spaces.
function publishing.copy_job(job, queue, receiver)
  local copy = {}
  for name, value in pairs(job) do
    copy[name] = value
  end
  copy.queue, copy.has_options = queue, true
  copy.token = job.token and job.token .. ' ' .. receiver
  return copy
end

-- -> a row of the reply
local function deliver(R, job, payload, now_us)
  local ok, answer = change.try(adds.add_in_transaction, R, job, payload, now_us)
  if not ok then
    local why = type(answer) == 'table' and answer.elater
    if not why or not OF_QUEUE[string.match(why, '^%S+')] then
      error(answer, 0)
    end
    local print
    answer, print = adds.repeated(R, job, payload, db)
    if not answer then
      local id = adds.bury_new(R, job, payload, string.match(why, '^%S+ (.*)$'), now_us)
      answer = {id, 'buried', job.due}
      adds.put_token(R, job, answer, print, now_us)
    end
  end
  return {job.queue, answer[1], answer[2]}
end

register('later_publish', {}, function(R, args)
  local now_us = clock.now_us()
  local topic, payload = topics.check_name(args[1]), args[#args]
  local job = publishing.read_copied(args, 2, 'give TOPIC', 'topic', clock.ms(now_us))
  local queues, subscriptions = topics.subscribers(R, topic)
  if #queues * #payload > BYTES_MAX then
    fail('ELATER_SIZE', int(#queues) .. ' copies of ' .. int(#payload) ..
         ' bytes are more than the 16 MiB of one call')
  end
  local out, is_new = {#queues}, #queues == 0
  for i, queue in ipairs(queues) do
    local copy = publishing.copy_job(job, queue, queue)
    copy.P, copy.origin, copy.is_named = topic, 'topic ' .. topic, true
    out[i + 1] = deliver(R, copy, payload, now_us)
    is_new = is_new or out[i + 1][3] ~= 'repeated'
  end
  if is_new then
    topics.count_published(R, subscriptions)
  end
  return out
end)
