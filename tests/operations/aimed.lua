-- Plays scenarios at the borders of a sync over rows, on a library with such syncs and on one without: replies and keys have
-- to be equal, call by call, and a sync whose write fails has to leave every key as it was.
--
-- Usage: lua5.1 aimed.lua LIBRARY [SCENARIO...]     with LUA_PATH, from run
-- Exit status: 0 equal, 1 not so: the first difference of each scenario is printed.
local counter = require 'counter'
local dump = require 'dump'
local keys = require 'toy.keys'
local server = require 'toy.server'
local ways = require 'ways'

local ROOT = ways.ROOT
local WRITES = 40 -- of a sync, at most that many fail in turn

-- ---- one library

local world -- {lines, epoch, may_tear}

local function call(name, ...)
  local args = ways.words({...})
  server.published = {}
  local reply = ways.call(name, args)
  world.lines[#world.lines + 1] = name .. ' ' .. table.concat(args, ' ') .. ' -> ' .. dump.text_of(reply) .. '\n' ..
                                  table.concat(server.published, '\n')
  return reply
end

local function redis(...)
  return server.redis.call(...)
end

local function key(name)
  return ROOT .. ':' .. name
end

local function add(...)
  return call('later_add', ...)[1]
end

-- A sync of the worker. queues: {name, room}*; ends: {queue, start, id*}*; max: 192; results: {job that started, verb,
-- amount, output (nil: out)}*. -> what starts, {id, queue, start}*
local function sync(queues, ends, max, results)
  local args, started = {world.epoch, '1', 5, max or 192, #(results or {})}, {}
  for _, result in ipairs(results or {}) do
    local job = result[1]
    for _, word in ipairs({job.id, job.start, result[2], job.queue, result[3], '1', 'text', result[4] or 'out'}) do
      args[#args + 1] = word
    end
  end
  args[#args + 1] = #queues
  for _, q in ipairs(queues) do
    args[#args + 1], args[#args + 2], args[#args + 3] = q[1], q[2], 1048576
  end
  args[#args + 1] = #(ends or {})
  for _, group in ipairs(ends or {}) do
    args[#args + 1], args[#args + 2], args[#args + 3] = group[1], group[2], #group - 2
    for i = 3, #group do
      args[#args + 1] = group[i]
    end
  end
  args[#args + 1] = 0
  ways.words(args)
  if world.may_tear then
    ways.tear(args, WRITES)
  end
  for _, group in ipairs(call('later_v1_sync', unpack(args))[4] or {}) do
    for i = 7, #group, 3 do
      started[#started + 1] = {id = group[i], start = group[3], queue = group[1]}
    end
  end
  world.lines[#world.lines + 1] = ways.all_keys()
  return started
end

-- Jobs from..to of what started, which are of one queue, end.
local function ends(started, from, to)
  local group = {started[from].queue, started[from].start}
  for i = from, to do
    group[#group + 1] = started[i].id
  end
  return group
end

-- Add n jobs with these options and payload.
local function add_many(n, ...)
  for _ = 1, n do
    add(...)
  end
end

-- ---- scenarios

local scenarios = {}

-- More permits come free than a call offers.
function scenarios.offers()
  call('later_limit_set', 's', 'semaphore', 100)
  add_many(200, 'a', 'sem', 's', 'x')
  local h = sync({{'a', 64}})
  for _, job in ipairs(sync({{'a', 64}})) do
    h[#h + 1] = job
  end
  sync({{'a', 64}})
  sync({{'a', 64}})
  sync({{'a', 128}}, {ends(h, 1, 70)})
  sync({{'a', 64}})
end

-- More gates with waiters lose a holder than a call looks at.
function scenarios.gates()
  for i = 1, 70 do
    call('later_limit_set', 's' .. i, 'semaphore', 1)
    add('a', 'sem', 's' .. i, 'x')
    add('b', 'sem', 's' .. i, 'x')
  end
  local h = sync({{'a', 100}})
  sync({{'b', 100}})
  for i = 1, 70 do
    call('later_limit_set', 's' .. i, 'semaphore', 0)
  end
  sync({{'b', 100}}, {ends(h, 1, 70)})
end

-- Two permits come free, one job waits, another is new.
function scenarios.permits()
  call('later_limit_set', 's', 'semaphore', 2)
  add_many(3, 'a', 'sem', 's', 'x')
  local h = sync({{'a', 9}})
  add('a', 'sem', 's', 'x')
  sync({{'a', 9}}, {ends(h, 1, 2)})
end

-- The bytes of the sync are used up before a job that comes in.
function scenarios.bytes()
  add_many(2, 'b', 'lock', 'x', 'x')
  local h = sync({{'b', 5}})
  add_many(70, 'a', string.rep('p', 16000))
  sync({{'a', 100}, {'b', 5}}, {ends(h, 1, 1)})
  sync({{'a', 100}, {'b', 5}})
end

-- The last waiter comes in, another job is parked: the timer of the lease that was there is none of it.
local function outlive_lease(kind, give)
  add_many(2, 'a', kind, 'g', 'x')
  sync({{'a', 5}})
  call(give, 'g', 'me')
  local h = sync({{'a', 5}})
  add('a', kind, 'g', 'x')
  sync({{'a', 5}}, {ends(h, 1, 1)})
end

function scenarios.lease_of_a_lock()
  call('later_lock', 'g', 'me', 'ttl', '20s')
  outlive_lease('lock', 'later_unlock')
end

function scenarios.lease_of_a_semaphore()
  call('later_limit_set', 'g', 'semaphore', 1)
  call('later_sem_acquire', 'g', 'me', 'ttl', '20s')
  outlive_lease('sem', 'later_sem_release')
end

-- More jobs are parked, and more queues are named, than one command takes arguments.
function scenarios.parked()
  local queues = {}
  for i = 1, 260 do
    add_many(18, 'q' .. i, 'lock', 'x', 'x')
    queues[i] = {'q' .. i, 18}
  end
  add('a', 'lock', 'x', 'x')
  world.may_tear = false
  sync({{'a', 1}})
  sync(queues, {}, 512)
end

function scenarios.queues()
  local queues = {}
  for i = 1, 2000 do
    queues[i] = {'q' .. i, 1}
  end
  add('q2000', 'x')
  world.may_tear = false
  sync(queues)
  sync(queues)
end

function scenarios.parked_in_rounds()
  add('c', 'lock', 'x', 'x')
  sync({{'c', 5}})
  add_many(128, 'a', 'lock', 'x', 'x')
  add_many(40, 'b', 'lock', 'x', 'x')
  add_many(20, 'b', 'x')
  add_many(20, 'a', 'x')
  for _ = 1, 3 do
    sync({{'a', 64}, {'b', 64}, {'c', 3}})
  end
end

-- Jobs of two queues wait for the same gates, by turns and behind each other; two permits are free at once.
function scenarios.two_waiters()
  call('later_limit_set', 'two', 'semaphore', 2)
  for _, gate in ipairs({'lock', 'semaphore'}) do
    local name = gate == 'lock' and 'x' or 'two'
    for _, queue in ipairs({'a', 'a', 'b', 'a', 'b', 'b', 'a'}) do
      add(queue, gate, name, 'x')
      server.now_us = server.now_us + 2000
    end
    local h = sync({{'a', 9}, {'b', 9}})
    sync({{'a', 9}, {'b', 0}})
    for _ = 1, 6 do
      local more = {}
      for i = 1, #h do
        more = sync({{'b', 9}, {'a', 9}}, {ends(h, i, i)})
      end
      h = more
    end
    if h[2] and h[2].queue == h[1].queue then
      sync({{'b', 9}, {'a', 9}}, {ends(h, 1, 2)})
    end
  end
end

-- Ids that come twice; a group without any.
function scenarios.ends()
  add_many(12, 'a', 'x')
  local h = sync({{'a', 20}})
  local group = ends(h, 1, 4)
  group[#group + 1] = h[1].id
  sync({{'a', 20}}, {group})
  group = ends(h, 5, 12)
  group[#group + 1] = h[12].id
  sync({{'a', 20}}, {{'zz', 1}, group})
  sync({{'a', 20}}, {{'zz', 1}})
end

function scenarios.queue_twice()
  add_many(5, 'a', 'lock', 'x', 'x')
  local h = sync({{'a', 2}, {'a', 2}})
  sync({{'a', 2}, {'b', 2}, {'a', 2}}, {ends(h, 1, 1)})
end

-- ---- jobs that failed

-- Of a queue that is idle, that this sync does not name, or that has other jobs, earlier and later.
function scenarios.retries()
  add_many(4, 'a', 'x')
  add_many(2, 'b', 'attempts', 5, 'x')
  local h = sync({{'a', 9}, {'b', 9}})
  sync({{'a', 9}}, {ends(h, 1, 1)}, nil, {{h[2], 'retry', 60000}, {h[5], 'retry', 5000}, {h[3], 'progress', 0}})
  add('a', 'in', '10s', 'x')
  sync({{'a', 9}, {'b', 9}}, {}, nil, {{h[3], 'retry', 20000}, {h[4], 'retry', 3000}, {h[6], 'retry', 1000}})
  add_many(3, 'a', 'x')
  server.now_us = server.now_us + 4000000
  h = sync({{'a', 9}, {'b', 9}})
  sync({{'a', 9}}, {}, nil, {{h[1], 'retry', 3000}, {h[2], 'progress', 0}, {h[3], 'retry', 1}})
end

-- They hold gates for which others wait, and a unique key that they keep.
function scenarios.retries_of_holders()
  call('later_limit_set', 's', 'semaphore', 2)
  add_many(3, 'a', 'lock', 'x', 'x')
  add_many(4, 'b', 'sem', 's', 'unique', 'u', 'unique_mode', 'drop', 'x')
  add_many(3, 'b', 'sem', 's', 'lock', 'y', 'batch', 'all', 'x')
  local h = sync({{'a', 9}, {'b', 9}})
  local results = {}
  for i = 1, #h do
    results[i] = {h[i], 'retry', 1000 * i}
  end
  sync({{'a', 9}, {'b', 9}}, {}, nil, results)
  sync({{'a', 9}, {'b', 9}})
end

-- Others than 5 have marks.
function scenarios.retries_by_priority()
  for priority = 3, 7 do
    add_many(2, 'a', 'priority', priority, 'x')
  end
  local h = sync({{'a', 7}})
  sync({{'a', 2}}, {}, nil, {{h[1], 'retry', 9000}, {h[3], 'retry', 9000}, {h[7], 'retry', 9000}})
  sync({{'a', 0}}, {}, nil, {{h[2], 'retry', 9000}})
  sync({{'b', 5}}, {}, nil, {{h[4], 'retry', 9000}, {h[5], 'retry', 10000}})
  sync({{'a', 9}})
end

-- The same job twice, as an end, too, or not as it was started.
function scenarios.retries_that_are_settled()
  add_many(6, 'a', 'x')
  local h = sync({{'a', 9}})
  sync({{'a', 9}}, {ends(h, 1, 2)}, nil, {{h[2], 'retry', 9000}, {h[3], 'retry', 9000}, {h[3], 'progress', 0}})
  h[4].start = '7'
  sync({{'a', 9}}, {}, nil, {{h[4], 'retry', 9000}, {h[5], 'retry', 9000}})
end

-- Jobs are kept, beside others that fail: with a unique key, a lock for which others wait, followed, large.
function scenarios.kept()
  add_many(9, 'a', 'attempts', 5, 'x')
  add_many(3, 'b', 'unique', 'u', 'unique_mode', 'drop', 'lock', 'x', 'x')
  add_many(3, 'b', 'lock', 'x', 'x')
  local h = sync({{'a', 9}, {'b', 9}})
  local next_of_b = sync({{'b', 9}}, {ends(h, 1, 1)}, nil,
                         {{h[2], 'done', 1000}, {h[3], 'retry', 5000}, {h[4], 'done', 2000}, {h[10], 'done', 5}})
  sync({}, {}, nil, {{h[5], 'progress', 0}, {h[6], 'done', 2500}})
  server.now_us = server.now_us + 2100000
  sync({{'b', 9}}, {}, nil, {{h[5], 'done', 60000}, {h[7], 'retry', 3000}})
  sync({{'b', 9}}, {}, nil, {{next_of_b[1], 'done', 60000}, {h[8], 'done', 0}})
  add('c', 'unique', 'u', 'x')
  sync({{'c', 9}}, {}, nil, {{sync({{'c', 9}})[1], 'done', 60000}})
end

-- Jobs are dead, with a unique key, a lock for which others wait, after earlier failures, told of, and one more than stay.
function scenarios.dead()
  add_many(9, 'a', 'attempts', 5, 'x')
  add_many(2, 'b', 'unique', 'u', 'unique_mode', 'drop', 'lock', 'x', 'x')
  add_many(2, 'b', 'lock', 'x', 'x')
  add('c', 'on_dead', 'told', 'x')
  local h = sync({{'a', 9}, {'b', 9}, {'c', 9}})
  sync({{'b', 9}}, {ends(h, 1, 1)}, nil,
       {{h[2], 'retry', 1500}, {h[3], 'dead', 100}, {h[10], 'dead', 100}, {h[4], 'progress', 0}})
  server.now_us = server.now_us + 2000000
  local again = sync({{'a', 9}})
  sync({{'a', 9}}, {}, nil, {{again[1], 'dead', 100}, {h[4], 'dead', 100}, {h[5], 'retry', 5000}, {h[6], 'done', 5000}})
  sync({{'a', 9}}, {}, nil, {{h[7], 'dead', 4}})
  sync({{'a', 9}}, {}, nil, {{h[8], 'dead', 4}})
  sync({{'c', 9}}, {}, nil, {{h[11], 'dead', 4}})
end

-- Jobs with a key that is taken for some time after their end; one that another one has by now.
function scenarios.unique_for()
  for i = 1, 5 do
    add('a', 'unique', 'u' .. i, 'unique_for', '5s', 'x')
  end
  local h = sync({{'a', 9}})
  redis('SET', key('uniq:a:u2'), h[1].id)
  sync({{'a', 9}}, {ends(h, 1, 2)})
  sync({{'a', 9}}, {}, nil, {{h[3], 'done', 4000}, {h[4], 'dead', 10}})
  add('a', 'unique', 'u3', 'x')
  server.now_us = server.now_us + 9000000
  sync({{'a', 9}}, {ends(h, 5, 5)})
  add('a', 'unique', 'u5', 'x')
end

-- A job that is kept is among those whose time is over; a retry that is due after the last time.
function scenarios.kept_by_hand()
  add_many(6, 'a', 'x')
  local h = sync({{'a', 9}})
  for i = 1, 4 do
    redis('ZADD', key('done:a'), (server.now_us - server.now_us % 1000) / 1000 + i, h[i].id)
  end
  server.now_us = server.now_us + 2000000
  sync({}, {}, nil, {{h[1], 'done', 60000}})
  sync({}, {}, nil, {{h[2], 'retry', 5000}, {h[5], 'done', 60000}})
  sync({}, {ends(h, 3, 3)}, nil, {{h[6], 'done', 60000}})
  sync({}, {}, nil, {{h[4], 'retry', 9007199254740991}})
end

-- A running job is already where its end, its retry or its death puts it.
function scenarios.there_by_hand()
  add_many(4, 'a', 'x')
  local h = sync({{'a', 9}})
  for i, name in ipairs({'q:a:5', 'done:a', 'dead:a'}) do
    redis('ZADD', key(name), 4102444900000 + i, h[i].id)
  end
  sync({}, {}, nil, {{h[1], 'retry', 1500}})
  sync({}, {}, nil, {{h[2], 'done', 5000}})
  sync({}, {}, nil, {{h[3], 'dead', 100}})
  sync({{'a', 9}}, {ends(h, 4, 4)})
end

-- What a kept job has is lost from R:holds.
function scenarios.kept_and_lost()
  call('later_batch', 'all', 'finally', 'c', 'x')
  add('a', 'unique', 'u', 'x')
  add('a', 'batch', 'all', 'x')
  local h = sync({{'a', 9}})
  redis('DEL', key('holds'))
  sync({}, {}, nil, {{h[1], 'done', 60000}, {h[2], 'done', 60000}})
end

-- Each that is kept removes two whose time is over, and no more.
function scenarios.kept_too_long()
  add('a', 'then', 'b', 'x')
  add('a', string.rep('p', 17000))
  add_many(9, 'a', 'x')
  local h = sync({{'a', 20}})
  sync({}, {}, nil, {{h[1], 'done', 1}})
  sync({}, {}, nil, {{h[3], 'retry', 1000}, {h[4], 'done', 1}})
  sync({}, {}, nil, {{h[5], 'done', 1}, {h[6], 'done', 2}, {h[7], 'done', 3}})
  server.now_us = server.now_us + 90000
  sync({{'a', 9}, {'b', 9}}, {}, nil, {{h[8], 'done', 9}})
  sync({{'a', 9}, {'b', 9}}, {}, nil, {{h[2], 'done', 1}, {h[9], 'done', 9000}})
  server.now_us = server.now_us + 90000
  sync({{'a', 9}, {'b', 9}}, {}, nil, {{h[10], 'done', 9000}})
end

-- Members of batches: one that is open, one that ends, one of which a member died, one that is not there any more.
function scenarios.members()
  call('later_batch', 'open', 'finally', 'c', 'x')
  call('later_batch', 'all', 'finally', 'c', 'then', 'c', 'x')
  call('later_batch', 'bad', 'on_dead', 'c', 'finally', 'c', 'x')
  call('later_batch', 'gone', 'finally', 'c', 'x')
  for _, name in ipairs({'open', 'all', 'bad', 'gone'}) do
    add_many(4, 'a', 'batch', name, 'lock', 'l' .. name, 'x')
    add_many(3, 'b', 'batch', name, 'x')
  end
  for _, name in ipairs({'all', 'bad'}) do
    call('later_batch_seal', name)
  end
  redis('HDEL', key('batches'), 'gone')
  local h = sync({{'a', 9}, {'b', 20}})
  local b = {}
  for _, job in ipairs(h) do
    b[#b + 1] = job.queue == 'b' and job or nil
  end
  sync({{'a', 9}}, {ends(b, 1, 2), ends(b, 10, 10)}, nil, {{b[3], 'done', 60000}, {b[4], 'retry', 4000}})
  sync({{'a', 9}}, {ends(b, 5, 6), ends(b, 11, 11)}, nil, {{b[12], 'done', 60000}})
  sync({{'a', 9}}, {}, nil, {{b[7], 'dead', 100}})
  sync({{'a', 9}}, {ends(b, 8, 9)})
  local a = {}
  for i = 1, #h do
    a[#a + 1] = h[i].queue == 'a' and h[i] or nil
  end
  for _ = 1, 20 do
    local first = table.remove(a, 1)
    for _, job in ipairs(first and sync({{'a', 9}, {'b', 9}}, {ends({first}, 1, 1)}) or {}) do
      a[#a + 1] = job
    end
    server.now_us = server.now_us + 500000
  end
end

-- Somebody waits for jobs and cancels others, while those beside them end.
function scenarios.watched()
  local waiting = add('a', 'x')
  add_many(6, 'a', 'x')
  local h = sync({{'a', 7}})
  call('later_v1_await', h[6].id)
  sync({{'a', 0}}, {ends(h, 1, 1)})
  call('later_cancel', h[4].id)
  call('later_cancel', h[5].id)
  sync({{'a', 0}}, {ends(h, 2, 2)}, nil, {{h[3], 'retry', 4000}})
  sync({{'a', 0}}, {}, nil, {{h[6], 'progress', 0}, {h[4], 'retry', 4000}})
  sync({{'a', 9}}, {ends(h, 5, 6)})
  redis('HSET', key('cancel'), waiting, '1') -- it does not run
  sync({{'a', 9}}, {ends(h, 7, 7)})
end

-- Somebody waits for another job, while 80 end that have more bytes than a call moves.
function scenarios.watched_and_large()
  local waited = add('a', 'x')
  add_many(80, 'a', string.rep('p', 16000))
  local h, more = {}, sync({{'a', 81}}, {}, 100)
  while more[1] do
    for i = 1, #more do
      h[#h + 1] = more[i]
    end
    more = sync({{'a', 81}}, {}, 100)
  end
  call('later_v1_await', waited)
  sync({}, {ends(h, 2, 81)})
end

-- The same with a batch; a record that a hand broke.
function scenarios.watched_members()
  call('later_batch', 'b', 'then', 'told', string.rep('p', 16000))
  local waited = add('a', 'x')
  add_many(80, 'a', 'batch', 'b', 'x')
  add('a', 'unique', 'u', 'x')
  local h = sync({{'a', 90}}, {}, 100)
  call('later_v1_await', waited)
  redis('HSET', key('jobs'), h[82].id, 'garbage')
  sync({}, {ends(h, 2, 70)})
  sync({}, {ends(h, 82, 82)})
  local kept = {}
  for i = 71, 81 do
    kept[#kept + 1] = {h[i], 'done', 60000}
  end
  sync({}, {}, nil, kept)
end

-- ---- jobs that go on where they stopped

local function keep(job, name, output)
  call('later_v1_keep', world.epoch, job.id, job.start, name, output)
end

-- A checkpoint and the end of its job in one call, by each verb; then the next attempts, beside others.
function scenarios.checkpoints()
  add_many(6, 'a', 'attempts', 5, 'x')
  add_many(4, 'b', 'x')
  local h = sync({{'a', 9}, {'b', 9}})
  sync({{'a', 9}}, {ends(h, 1, 1)}, nil, {{h[1], 'checkpoint', 0}, {h[2], 'checkpoint', 0, 'c'}, {h[2], 'retry', 1500}})
  sync({{'a', 9}}, {ends(h, 7, 7)}, nil, {{h[3], 'checkpoint', 0}, {h[3], 'progress', 0}, {h[3], 'checkpoint', 0, ''}})
  sync({{'a', 9}}, {}, nil, {{h[3], 'checkpoint', 0}, {h[3], 'dead', 100}, {h[4], 'checkpoint', 0}, {h[4], 'done', 60000}})
  sync({{'a', 9}}, {}, nil,
       {{h[5], 'retry', 1500}, {h[5], 'checkpoint', 0}, {h[6], 'checkpoint', 0}, {h[6], 'release', 1500}})
  sync({{'b', 9}}, {ends(h, 8, 8)}, nil, {{h[9], 'progress', 0}})
  server.now_us = server.now_us + 2000000
  call('later_retry', h[3].id)
  add('a', 'x')
  local again = sync({{'a', 9}, {'b', 9}})
  sync({{'a', 9}, {'b', 9}}, {ends(again, 1, 1)}, nil, {{again[2], 'retry', 5000}})
  sync({{'a', 9}, {'b', 9}}, {ends(again, 3, #again)})
end

-- A job that has kept steps ends among plain ones, each time in another way, while there is nothing else that is rare.
function scenarios.kept_steps()
  add_many(24, 'a', 'attempts', 5, 'x')
  local h = sync({{'a', 99}})
  keep(h[2], 's', 'o')
  sync({{'a', 9}}, {ends(h, 4, 5)})
  sync({{'a', 9}}, {ends(h, 1, 3)})
  keep(h[6], 's', 'o')
  sync({{'a', 9}}, {ends(h, 7, 7)}, nil, {{h[6], 'done', 60000}, {h[8], 'done', 60000}})
  keep(h[9], 's', '')
  keep(h[9], 't', 'o')
  keep(h[10], 's', 'o')
  sync({{'a', 9}}, {ends(h, 11, 11)}, nil, {{h[9], 'dead', 100}, {h[12], 'dead', 100}})
  sync({{'a', 9}}, {ends(h, 13, 13)}, nil, {{h[10], 'retry', 1500}, {h[14], 'retry', 1500}, {h[15], 'progress', 0}})
  sync({{'a', 9}}, {}, nil, {{h[16], 'dead', 2}}) -- the dead have to go
  server.now_us = server.now_us + 2000000
  local again = sync({{'a', 9}})
  keep(again[1], 's', 'o')
  sync({{'a', 9}}, {ends(again, 1, #again)})
  keep(h[17], 's', 'o')
  call('later_cancel', h[17].id)
  sync({{'a', 9}}, {ends(h, 18, 18)}, nil, {{h[17], 'retry', 1500}})
end

-- A job with steps starts again among plain ones, with room for it and without; another one is begun anew.
function scenarios.next_attempts()
  add_many(3, 'a', 'attempts', 5, 'x')
  local h = sync({{'a', 9}})
  for i = 1, 2 do
    keep(h[i], 's', 'o')
  end
  sync({}, {}, nil, {{h[1], 'checkpoint', 0}, {h[1], 'dead', 100}, {h[2], 'dead', 100}})
  add_many(20, 'a', 'x')
  call('later_retry', h[1].id, '+2s')
  call('later_retry', h[2].id, '+2s', 'from_start')
  local plain = sync({{'a', 9}}, {ends(h, 3, 3)})
  server.now_us = server.now_us + 3000000
  sync({{'a', 9}}, {ends(plain, 1, 9)})
  local last = sync({{'a', 3}, {'b', 9}})
  sync({{'a', 9}}, {}, nil, {{last[1], 'progress', 0}})
end

-- A queue beside the others is paused, and a gate lets one of its jobs in.
function scenarios.paused()
  add_many(3, 'a', 'x')
  add_many(2, 'b', 'lock', 'x', 'x')
  add('c', 'x')
  local h = sync({{'a', 2}, {'b', 1}})
  call('later_pause', 'c')
  call('later_pause', 'b', 'for', '10s')
  sync({{'a', 0}, {'b', 1}, {'c', 1}})
  sync({{'c', 9}, {'b', 9}}, {}, nil, {{h[1], 'retry', 4000}})
  sync({{'c', 9}, {'a', 9}, {'b', 9}}, {ends(h, 3, 3)})
  server.now_us = server.now_us + 11000000
  sync({{'c', 9}, {'a', 9}, {'b', 9}})
end

-- The events of a sync are followed; of an odd one they are told once.
function scenarios.events()
  call('later_v1_tail', 60000)
  add_many(4, 'a', 'attempts', 5, 'x')
  add_many(3, 'b', 'lock', 'x', 'x')
  add_many(2, 'a', 'attempts', 5, 'x')
  local h = sync({{'a', 9}, {'b', 9}})
  sync({{'a', 9}, {'b', 9}}, {ends(h, 1, 1)}, nil,
       {{h[2], 'retry', 60000}, {h[3], 'done', 60000}, {h[4], 'progress', 0}, {h[5], 'retry', 5000}})
  sync({{'a', 9}, {'b', 9}}, {ends(h, 7, 7)}, nil, {{h[6], 'dead', 10}})
end

-- ---- somebody's hand

-- No set, and no head, tells of the queue any more.
function scenarios.lost_names()
  add_many(4, 'a', 'x')
  local h = sync({{'a', 9}})
  redis('DEL', key('names'))
  sync({{'a', 9}}, {}, nil, {{h[1], 'retry', 9000}})
  add('a', 'in', '5s', 'x')
  redis('DEL', key('heads'))
  sync({{'a', 9}}, {}, nil, {{h[2], 'retry', 9000}})
  redis('ZADD', key('heads'), 1, 'a')
  sync({{'a', 0}}, {}, nil, {{h[3], 'retry', 9000}})
end

function scenarios.hold_twice()
  call('later_limit_set', 's', 'semaphore', 2)
  add_many(6, 'a', 'sem', 's', 'x')
  local h = sync({{'a', 9}})
  redis('HSET', key('holds'), h[1].id, 'sem:s\nsem:s')
  sync({{'a', 9}}, {ends(h, 1, 1)})
end

function scenarios.spot()
  add('a', 'lock', 'x', 'x')
  local id = add('a', 'lock', 'x', 'x')
  add('a', 'lock', 'x', 'x')
  local h = sync({{'a', 9}})
  redis('HSET', key('parked'), id, (string.gsub(redis('HGET', key('parked'), id), '^%d+', string.rep('9', 17))))
  sync({{'a', 9}}, {ends(h, 1, 1)})
end

function scenarios.timer()
  call('later_limit_set', 's', 'semaphore', 1)
  add_many(3, 'a', 'sem', 's', 'x')
  redis('ZADD', key('timers'), 'inf', 'gate:sem:s')
  sync({{'a', 9}})
end

function scenarios.aside()
  add('a', 'lock', 'x', 'x')
  redis('SADD', key('aside:a'), 'lock:x')
  sync({{'a', 9}})
end

function scenarios.queue_gates()
  add('a', 'x')
  redis('HSET', key('queues'), 'a', 'begin=lock:z lock=q')
  sync({{'a', 9}})
end

function scenarios.unique_twice()
  redis('HSET', key('jobs'), add('a', 'unique', 'u', 'x'), '-a u=u u=v\nx')
  sync({{'a', 9}})
end

function scenarios.key_twice()
  redis('HSET', key('jobs'), add('a', 'key', 'k', 'x'), '-a K=k K=l\nx')
  redis('HSET', key('queues'), 'a', 'lock=l{key}')
  sync({{'a', 9}})
end

function scenarios.clock()
  add_many(2, 'a', 'x')
  redis('PEXPIREAT', key('clock'), 9000000000000)
  sync({{'a', 1}})
  add_many(2, 'b', 'x')
  redis('SET', key('clock'), '4503599627370494') -- near the last number
  sync({{'a', 9}, {'b', 9}})
  sync({{'a', 9}, {'b', 9}})
end

-- Each key in turn is of a foreign type while jobs end, are tried again, wait and start.
function scenarios.foreign_types()
  local names = {'jobs', 'tries', 'errors', 'progress', 'results', 'holds', 'cancel', 'await', 'running', 'parked',
                 'parked:a', 'heads', 'names', 'stats', 'prio', 'paused', 'limits', 'queues', 'q:a:5', 'q:a:3', 'due:a',
                 'solo:a', 'lock:l', 'wait:lock:l', 'timers', 'dead:a', 'done:a', 'granted:a', 'uniq:a:u', 'clock',
                 'notes', 'workers', 'resume'}
  add_many(3, 'a', 'lock', 'l', 'x')
  add('a', 'unique', 'u', 'x')
  add_many(4 * #names, 'a', 'x')
  add_many(#names, 'a', 'priority', 3, 'keep', '1h', 'x')
  local h = sync({{'a', 192}})
  for i, name in ipairs(names) do
    local held = redis('TYPE', key(name)).ok ~= 'none' and keys.copy()
    redis('DEL', key(name))
    redis('SET', key(name), 'x')
    sync({}, {ends(h, #names + 2 + i, #names + 2 + i)}) -- plain jobs: reads less
    sync({}, {}, nil, {{h[i], 'retry', 1500}})
    sync({{'a', 2}}, {ends(h, 2 * #names + 2 + i, 2 * #names + 2 + i)}, nil,
         {{h[#h - 2 * i], 'retry', 1500}, {h[#h - 2 * i - 1], 'done', 5000}})
    redis('DEL', key(name))
    if held then
      keys.restore(held)
    end
  end
  sync({{'a', 9}}, {ends(h, 1, 2)})
end

-- ---- both

-- -> the lines of a scenario; fails where a failed write left something
local function play(text, scenario, may_tear)
  counter.load(text)
  server.now_us = ways.START_US
  server.met_foreign = nil
  world = {lines = {}, may_tear = may_tear}
  world.epoch = call('later_v1_register', 0, 'one', 1, 0, 3, 'host', 'h', 'queues', 'a,b,c', 'places', 64, 0, 0)[2]
  scenario()
  return world.lines
end

-- -> are both equal?
local function compare(name, text, old)
  local ok, lines = pcall(play, text, scenarios[name], true)
  if not ok then
    print(name .. ': ' .. tostring(lines))
    return false
  end
  for i, line in ipairs(play(old, scenarios[name], false)) do
    if lines[i] ~= line then
      print(name .. ', line ' .. i .. ': over rows (<) and in a transaction (>) differ')
      ways.print_diff(lines[i] or '', line)
      return false
    end
  end
  return true
end

local text, old = ways.read((...))
local names, are_equal = {select(2, ...)}, true
if not names[1] then
  for name in pairs(scenarios) do
    names[#names + 1] = name
  end
  table.sort(names)
end
for _, name in ipairs(names) do
  are_equal = compare(name, text, old) and are_equal
end
if not are_equal then
  os.exit(1)
end
print(#names .. ' scenarios: equal')
