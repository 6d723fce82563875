-- What keeps the name of a queue that has no jobs and that nobody serves: subscriptions, schedules,
-- batches that have not ended, and chains. A name is refused where one of these is given, and is
-- reserved there: what they add later is never refused for its name.
--
-- R:index (queue_names.lua) has a member "use:<queue> <what>:<name>" for each: what is schedule,
-- topic or batch. Jobs of chains may be a million, so all that name a queue share the member
-- "use:<queue> chain:<week>", which holds until the end of the next week.

local uses = module 'core/uses'
local clock, queue_names, adds, commit, txn = use(
  'core/clock', 'core/queue_names', 'public/add', 'txn/commit', 'txn/txn')
local CHAIN_MS = 604800000

-- These queues, each once. Any of them may be nil.
local function each_once(...)
  local queues, is_there = {}, {}
  for i = 1, select('#', ...) do
    local queue = (select(i, ...))
    if queue and not is_there[queue] then
      queues[#queues + 1], is_there[queue] = queue, true
    end
  end
  return queues
end

-- -> the queues that a schedule adds jobs to: its own, and those of its chain
function uses.queues_of(s)
  local queues = {s.queue}
  for name, value in string.gmatch(s.options or '', '(%S+) (%S+)') do
    if name == 'then' or name == 'on_dead' then
      queues[#queues + 1] = value
    end
  end
  return each_once(unpack(queues))
end

-- -> the queues that get callbacks of a batch
function uses.batch_queues(batch)
  return each_once(batch['then'] or false, batch.finally or false, batch.on_dead or false)
end

-- -> the queues that follow a job
function uses.chain_queues(job)
  local queues = {}
  for queue in string.gmatch((job.n or '') .. ',' .. (job.d or ''), '[^,]+') do
    queues[#queues + 1] = queue
  end
  return each_once(unpack(queues))
end

-- -> members of R:index: the name of what uses queues, and one for each of them
function uses.use_members(what, name, queues)
  local members, source = {what .. ':' .. name}, what .. ':' .. name
  for _, queue in ipairs(queues) do
    members[#members + 1] = 'use:' .. queue .. ' ' .. source
  end
  return members
end

-- ---- names are reserved

-- Refuse these queues if their names are too many. -> those that are new
function uses.new_names(R, queues)
  local new = {}
  for _, queue in ipairs(queues) do
    if db('SISMEMBER', R .. ':names', queue) == 0 then
      new[#new + 1] = queue
    end
  end
  if new[1] and db('SCARD', R .. ':names') + #new > MAX_QUEUES then
    adds.fail_full()
  end
  return new
end

function uses.put_names(R, queues)
  for _, queue in ipairs(queues) do
    db('SADD', R .. ':names', queue)
  end
end

local function week()
  return math.floor(clock.last_ms() / CHAIN_MS)
end

local function hold(R, queues)
  local args = {}
  for _, queue in ipairs(queues) do
    args[#args + 1], args[#args + 2] = 0, 'use:' .. queue .. ' chain:' .. int(week())
  end
  redis.call('ZADD', R .. ':index', unpack(args))
end

-- A job was checked: reserve what follows it.
function uses.put_chain_names(R, job)
  if job.n or job.d then
    local queues = uses.chain_queues(job)
    uses.put_names(R, queues)
    commit.hint(hold, R, queues)
  end
end

-- The same for a call without a transaction. -> the names that are new
function uses.add_chain_names(R, job)
  local queues, new = uses.chain_queues(job), {}
  for _, queue in ipairs(queues) do
    if redis.call('SADD', R .. ':names', queue) == 1 then
      new[#new + 1] = queue
    end
  end
  commit.hint(hold, R, queues)
  return new
end

-- ---- names are kept

-- Does a member of R:index, without its kind, tell of a chain that still holds a name?
function uses.is_chain_use(name)
  local at = whole(string.match(name, ' chain:(%d+)$'))
  return at ~= nil and at >= week() - 1
end

-- Is the name of a queue to stay though it is idle? Where the index is full, some uses are in none.
function uses.is_used(R, queue)
  local key = R .. ':index'
  return txn.ask(key, 'zset', 'ZCARD') >= queue_names.INDEX_MAX or txn.ask(key, 'zset', 'ZRANGE',
                                                                           '[use:' .. queue .. ' ',
                                                                           '(use:' .. queue .. '!',
                                                                           'BYLEX', 'LIMIT', 0,
                                                                           1)[1] ~= nil
end
