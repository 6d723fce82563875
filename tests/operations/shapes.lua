-- The shapes of a sync whose cost has a budget (budgets.lua): what scripts/bench gated measures in jobs a second, in calls
-- that are the same each time. Used beside the toy and inside a real server, as worker.lua.
--
-- A shape: name; ends, starts: how many jobs end and start in the sync that is measured; room: for how many starts; told:
-- those that end with a result, {how many, verb, amount}; nil: none; set_up(worker): all that comes before it. Syncs like
-- the measured one come first, since the library remembers what it has read lately.
local FEW, SOME, ALL = 8, 64, 300
local FAILED = {FEW, 'retry', '60000'}
local KEPT = {SOME, 'done', '3600000'}

local function turns(worker, n, ends, room, told)
  for _ = 1, n do
    worker.sync(ends, room, told)
  end
end

-- SOME of many jobs end, and as many start. options: of each job; prepare(worker): what comes before the jobs, nil for
-- nothing; told: as in a shape
local function stream(name, options, prepare, told)
  return {name = name, ends = SOME, starts = SOME, room = SOME, told = told, set_up = function(worker)
    if prepare then
      prepare(worker)
    end
    worker.add(ALL, options)
    turns(worker, 3, SOME, SOME, told)
  end}
end

local function own_lock(i)
  return {'lock', 'L' .. i}
end

local function try_all(worker)
  worker.add(ALL, {'attempts', '5'})
  for _ = 1, ALL, SOME do
    worker.sync(0, SOME)
    worker.retry_all()
  end
  turns(worker, 3, SOME, SOME)
end

local function wait_for_semaphore(worker)
  worker.set_limit('S', 'semaphore', '20')
  worker.add(ALL, {'sem', 'S'})
  worker.sync(0, SOME)
  turns(worker, 8, 10, SOME - 10)
end

local function wait_for_lock(worker)
  worker.add(30, {'lock', 'one'})
  turns(worker, 6, 1, 8)
end

local function be_fair(worker)
  worker.set_gates('fair=1')
  worker.sync(0, 0) -- it is on its way until then
end

local function free_locks(worker)
  worker.add(ALL, own_lock)
  turns(worker, 3, SOME, SOME)
  worker.sync(SOME, 0)
end

return {
  stream('plain jobs'),
  stream('key, priority, attempts, timeout', function(i)
    return {'key', 'k' .. i, 'priority', tostring(4 + i % 3), 'attempts', '5', 'timeout', '30s'}
  end),
  stream('attempts, timeout', {'attempts', '5', 'timeout', '30s'}),
  {name = 'tried before', ends = SOME, starts = SOME, room = SOME, set_up = try_all},
  stream('one in eight fails', {'attempts', '5'}, nil, FAILED),
  stream('kept for an hour', {'attempts', '5'}, nil, KEPT),
  stream('member of a batch', {'batch', 'all'}, function(worker) worker.open_batch('all') end),
  stream('unique key', function(i) return {'unique', 'u' .. i} end),
  stream('unique for a minute', function(i) return {'unique', 'u' .. i, 'unique_for', '60s'} end),
  stream('one of 64 dies', nil, nil, {1, 'dead', '100'}),
  stream('open rate', nil, function(worker)
    worker.set_limit('r', 'rate', '1000000/1s', 'burst', '1000000')
    worker.set_gates('rate=r')
  end),
  stream('lock by {key}, 100 keys', function(i) return {'key', 'k' .. i % 100} end, function(worker)
    worker.set_gates('lock=l:{key}')
  end),
  stream('fair, one tenant', {'key', 'k'}, be_fair),
  stream('fair, 100 tenants', function(i) return {'key', 'k' .. i % 100} end, be_fair),
  stream('fair, a tenant a job', function(i) return {'key', 'k' .. i} end, be_fair),
  {name = 'free locks, starts alone', ends = 0, starts = SOME, room = SOME, set_up = free_locks},
  stream('free locks', own_lock),
  {name = 'semaphore of 20', ends = 10, starts = 10, room = SOME - 10, set_up = wait_for_semaphore},
  {name = 'one lock, handed over', ends = 1, starts = 1, room = 8, set_up = wait_for_lock},
}
