-- Plays random calls on a library whose syncs go over rows where they can, and the same on one that makes all syncs in a
-- transaction: replies and keys have to be equal, call by call. And on the first one each sync, each retry and each kept
-- step of a job is tried with a failing write before it is made: then every key is as before.
--
-- Usage: lua5.1 beside.lua LIBRARY SEED SEEDS     with LUA_PATH, from run
-- Exit status: 0 equal, 1 not so: the seed and the first difference are printed.
local counter = require 'counter'
local dump = require 'dump'
local keys = require 'toy.keys'
local server = require 'toy.server'
local ways = require 'ways'

local ROOT = ways.ROOT
local QUEUES = {'a', 'b', 'c'}
local WORKERS = 2
-- Keys of jobs: those of the tenants of fair queues, too.
local PLAIN = {'k1', 'k2', 'k3'}
local ODD = {'k1', 'k2', 'k3', 'k1', 'a"b', "it's", 'x:y', 'a:', '9:', 'lock:x', 'K=x', 'w=3:k1', '[', '(', '!', '[a', '(b',
             'k1!', '%s', '-', '+', '~', '0', '00', '5', 'fair', '\1\2', 'a\0b', '\127', '\255\254', string.rep('n', 128),
             string.rep('n', 127) .. 'o'}
local GATES = {'', 'lock=q', 'sem=s', 'sem=u{key}', 'lock=l{key} sem=t', 'rate=r'}
local FAIR = {'fair=1', 'fair=1', 'fair=1 w=3:k1', 'fair=1 w=2:k2 sem=v{key}', 'fair=1 w=2:a: w=9:\255\254',
              'fair=1 w=1000:k1 w=7:a"b w=2:[ w=3:' .. string.rep('n', 128), 'fair=1 w=5:w=3:k1 sem=big',
              'fair=1 lock=l{key}', 'fair=1 sem=s', 'fair=1 sem=t', 'fair=1 rate=r'}
local VERBS = {{'done', 'retry', 'retry', 'dead', 'release', 'progress', 'result'}, {'retry', 'retry', 'progress'},
               {'done', 'done', 'retry'}}
local CHECKPOINTS = {'', 'line=1', 'line=2', 'a b\nc', string.rep('c', 4096), string.rep('c', 4097)}
local OUTPUTS = {'', 'out', 'two\nlines\0', string.rep('o', 16384), string.rep('o', 16385)}

-- Seeds are of three kinds: 1 anything; 2 fair queues; 3 fair queues of which most syncs go over rows. For each kind: the
-- values of which a seed takes one, in percent unless told.
local KINDS = {1, 2, 1, 3} -- of a seed and those behind it
local SETTINGS = {
  {'calls', {120}, {140}, {140}},
  {'keys', {PLAIN}, {ODD}, {ODD}},
  {'keyed', {30}, {30, 90, 100}, {30, 90, 100}},
  {'most_added', {40}, {40, 90}, {40, 90}},
  {'first_priority', {3}, {0}, {0}},
  {'fair', {0, 50, 100}, {50, 100, 100, 100}, {50, 100, 100, 100}},
  {'gated', {0, 30, 100}, {0, 0, 5, 30}, {0, 0, 2}},
  {'rare', {0, 0, 10, 60}, {0, 0, 10, 60}, {0, 0, 0, 10}},
  {'ranked', {0, 0, 5, 60}, {0, 5, 60, 100}, {0, 5, 60, 100}},
  {'unique', {0, 0, 5, 60}, {0, 0, 5, 60}, {0, 0, 0, 20}},
  {'batched', {0, 0, 20, 90}, {0, 0, 20, 90}, {0, 0, 0, 90}},
  {'kept', {20, 50, 90}, {20, 50, 90}, {20, 50, 90}},
  {'plain', {100, 100, 90, 40, 0}, {100, 100, 90, 40, 0}, {100, 100, 95}},
  {'verbs', VERBS, VERBS, {{'done', 'dead', 'progress'}, {'done'}}},
  {'delay', {0, 1500, 1500}, {0, 1500, 1500}, {0, 1500, 1500}}, -- ms
  {'resumed', {0, 0, 5, 40}, {0, 0, 5, 40}, {0, 0, 0, 5}},
  {'size', {1, 1, 1, 1, 1, 1, 1, 16000}, {1, 1, 1, 1, 1, 12000}, {1, 1, 1, 1, 1, 16000}} -- of a payload
}

-- Each move with its weight for each kind; those behind the first four only where the seed has them.
local WEIGHTS = {{'sync', 50, 50, 60}, {'add', 25, 25, 20}, {'wait', 15, 15, 15}, {'beat', 2, 2, 1}, {'cancel', 4, 4, 3},
                 {'move', 4, 4, 3}, {'lock', 6, 6, 1}, {'limit', 4, 4, 1}, {'gates', 4, 4, 1}, {'pause', 2, 2, 0},
                 {'batch', 3, 3, 0}, {'tail', 1, 1, 1}, {'await', 3, 3, 0}, {'damage', 3, 3, 0}, {'foreign', 3, 3, 0},
                 {'keep', 8, 8, 4}, {'retry', 4, 4, 4}}

local random = math.random

local function chance(percent)
  return random(100) <= percent
end

local function one_of(list)
  return list[random(#list)]
end

-- ---- what happens

local world -- {call(name, ...) -> reply or {err}, ids: of all jobs, workers: {epoch, held: {id, start, queue}*}*, settings}

local function add(args, ...)
  for _, word in ipairs({...}) do
    args[#args + 1] = tostring(word)
  end
end

local function put_gates(args)
  if chance(40) then
    add(args, 'lock', one_of({'x', 'y', 'z'}))
  end
  if chance(25) then
    add(args, 'sem', one_of({'s', 't', 'none'}))
  end
  if chance(10) then
    add(args, 'rate', one_of({'r', 'f'}))
  end
end

local function put_rare(args)
  if chance(5) then
    add(args, 'expire', random(1, 40) .. 's')
  end
  if chance(5) then
    add(args, 'keep', '10m')
  end
  if chance(3) then
    add(args, 'on_dead', one_of(QUEUES))
  end
  if chance(3) then
    add(args, 'token', 'k' .. random(100))
  end
end

local moves = {}

function moves.add()
  for _ = 1, one_of({1, 1, 2, 8, world.most_added}) do
    local args = {one_of(QUEUES)}
    if chance(world.keyed) then
      add(args, 'key', one_of(world.keys))
    end
    if chance(world.gated) then
      put_gates(args)
    end
    if chance(world.ranked) then
      add(args, 'priority', random(world.first_priority, 9 - world.first_priority))
    end
    if chance(world.unique) then
      add(args, 'unique', 'u' .. random(40), 'unique_mode', one_of({'drop', 'replace', 'move'}))
      if chance(20) then
        add(args, 'unique_for', '5s')
      end
    end
    if chance(world.rare) then
      put_rare(args)
    end
    if chance(world.batched) then
      add(args, 'batch', one_of({'m', 'n'}))
    end
    if chance(25) then
      add(args, 'in', one_of({random(0, 3000), random(0, 3000), 60000}) .. 'ms')
    end
    if chance(30) then
      add(args, 'attempts', random(1, 4))
    end
    add(args, string.rep('p', chance(world.rare / 10) and 17000 or world.size))
    local reply = world.call('later_add', unpack(args))
    world.ids[#world.ids + 1] = reply[1]
  end
end

-- Some running jobs of the worker end; some tell a checkpoint, and end or run on. -> {ends by queue and start}, results,
-- each a list of words
local function endings(worker)
  local held, groups, results = {}, {}, {}
  local told = chance(30) and world.resumed or 0 -- no sync with a checkpoint is one over rows
  for _, job in ipairs(worker.held) do
    if chance(told) then
      results[#results + 1] = {job.id, job.start, 'checkpoint', job.queue, 0, '0', '', one_of(CHECKPOINTS)}
    end
    if chance(world.kept) then
      held[#held + 1] = job
    elseif chance(world.plain) and not job.is_large then -- see NG of the sync
      local group = groups[#groups]
      if not group or group.start ~= job.start or group.queue ~= job.queue then
        group = {queue = job.queue, start = job.start, ids = {}}
        groups[#groups + 1] = group
      end
      group.ids[#group.ids + 1] = job.id
    else
      local verb = one_of(world.verbs)
      if verb == 'progress' then
        held[#held + 1] = job
      end
      local amount = verb == 'dead' and 100 or world.delay + random(0, 3) * 500
      results[#results + 1] = {job.id, job.start, verb, job.queue, amount, '1', 'text', 'out'}
    end
  end
  worker.held = held
  return groups, results
end

local function sync_args(worker)
  local groups, results = endings(worker)
  local args = {worker.epoch, worker.link, #worker.held, one_of({3, 64, 192}), #results}
  for _, result in ipairs(results) do
    add(args, unpack(result))
  end
  local queues = {}
  for _, queue in ipairs(QUEUES) do
    queues[#queues + 1] = chance(80) and queue or nil
  end
  add(args, #queues)
  for _, queue in ipairs(queues) do
    add(args, queue, one_of({0, 1, 3, 8, 64}), 1048576)
  end
  add(args, #groups)
  for _, group in ipairs(groups) do
    add(args, group.queue, group.start, #group.ids, unpack(group.ids))
  end
  add(args, one_of({0, 2, 1000}))
  for i, word in ipairs(args) do
    args[i] = tostring(word)
  end
  return args
end

function moves.sync()
  local worker = one_of(world.workers)
  local reply = world.write('later_v1_sync', unpack(sync_args(worker)))
  for _, group in ipairs(reply[4] or {}) do
    for i = 7, #group, 3 do
      worker.held[#worker.held + 1] = {id = group[i], start = group[3], queue = group[1],
                                         is_large = string.sub(group[i + 2], 1, 1) == '+'}
    end
  end
end

-- The step of a running job is kept, or asked for; perhaps it is one that the worker does not hold.
function moves.keep()
  local held = one_of(world.workers).held
  if held[1] then
    local job, worker = one_of(held), one_of(world.workers)
    local args = {worker.epoch, job.id, chance(90) and job.start or '7', 's' .. random(4)}
    if chance(80) then
      add(args, one_of(OUTPUTS))
    end
    world.write('later_v1_keep', unpack(args))
  end
end

-- A dead job is tried again.
function moves.retry()
  local dead = ROOT .. ':dead:' .. one_of(QUEUES)
  local ids = server.redis.call('TYPE', dead).ok == 'zset' and server.redis.call('ZRANGE', dead, 0, -1) or world.ids
  local args = {one_of(ids)}
  if chance(40) then
    add(args, '+' .. random(3) .. 's')
  end
  if chance(40) then
    add(args, 'from_start')
  end
  world.write('later_retry', unpack(args))
end

function moves.wait()
  server.now_us = server.now_us + one_of({1, 999, 20000, 1000000, 5000000})
end

function moves.beat()
  world.call('later_v1_beat', one_of(world.workers).epoch)
end

function moves.cancel()
  world.call('later_cancel', one_of(world.ids))
end

function moves.await()
  world.call('later_v1_await', one_of(world.ids))
end

function moves.move()
  local id = one_of(world.ids)
  if chance(50) then
    world.call('later_run_now', id)
  else
    world.call('later_reschedule', id, '+' .. random(5) .. 's')
  end
end

function moves.lock()
  local name, owner, ttl = one_of({'x', 'y'}), one_of({'me', 'you'}), random(1, 20) .. 's'
  if chance(30) then
    world.call('later_lock', name, owner, 'ttl', ttl, 'wait', random(0, 5) .. 's')
  elseif chance(40) then
    world.call('later_sem_acquire', one_of({'s', 't'}), owner, 'ttl', ttl, 'wait', random(0, 5) .. 's')
  elseif chance(50) then
    world.call('later_unlock', name, owner)
  else
    world.call('later_sem_release', one_of({'s', 't'}), owner)
  end
end

function moves.limit()
  if chance(70) then
    world.call('later_limit_set', one_of({'s', 't', 'u{key}'}), 'semaphore', tostring(random(0, 4)), 'on_lost',
               one_of({'keep', 'kill'}))
  else
    world.call('later_limit_set', 'r', 'rate', random(20) .. '/1s', 'burst', tostring(random(5)))
  end
end

function moves.gates()
  local gates = chance(world.fair) and FAIR or GATES
  world.call('later_v1_declare', world.workers[1].epoch, '0', '1', one_of(QUEUES), one_of(gates))
end

function moves.batch()
  local name = one_of({'m', 'n'})
  if chance(50) then
    world.call('later_batch', name, 'finally', one_of(QUEUES), 'on_dead', one_of(QUEUES), 'x')
  elseif chance(80) then
    world.call('later_batch_seal', name)
  else
    world.call('later_batch_cancel', name)
  end
end

function moves.tail()
  world.call('later_v1_tail', '60000')
end

function moves.pause()
  if chance(50) then
    world.call('later_pause', one_of(QUEUES), 'for', random(3) .. 's')
  else
    world.call('later_resume', one_of(QUEUES))
  end
end

local GARBAGE = {'', 'x', '-a\nx', '9 9 9 9', '1 0 5 1\nlock:x', 'lock:q\nsem:t', '-a l=x\n'}

-- Somebody's hand.
function moves.damage()
  local id, redis = one_of(world.ids), server.redis
  local hash = one_of({'jobs', 'tries', 'parked', 'holds'})
  if redis.call('TYPE', ROOT .. ':' .. hash).ok == 'hash' and redis.call('HGET', ROOT .. ':' .. hash, id) then
    redis.call('HSET', ROOT .. ':' .. hash, id, one_of(GARBAGE))
  end
end

-- Not these: without the first three no sync in a transaction is made, and one over rows needs them only where it reads
-- them; a timer that was lost is made anew by a sync that looks at its gate, which one in a transaction does more often; and
-- whoever looks at a gate of a foreign type passes over its queue.
local function is_spared(key)
  local name = string.sub(key, #ROOT + 2)
  return name == 'jobs' or name == 'running' or name == 'tries' or name == 'timers' or string.find(name, '^lock:') or
         string.find(name, '^sem:')
end

-- A key gets a foreign type; a while later it is gone.
function moves.foreign()
  local redis, key = server.redis, one_of(server.redis.call('KEYS', '*'))
  if world.foreign then
    redis.call('DEL', world.foreign)
    world.foreign = nil
  elseif not is_spared(key) then
    world.foreign = key
    world.lost[key] = string.find(key, ':parked:', 1, true) and true
    redis.call('DEL', world.foreign)
    redis.call('SET', world.foreign, 'foreign')
  end
end

local function choose(weights)
  local total = 0
  for _, w in ipairs(weights) do
    total = total + w[2]
  end
  local at = random(total)
  for _, w in ipairs(weights) do
    at = at - w[2]
    if at <= 0 then
      return w[1]
    end
  end
end

local function weights_of_seed(kind)
  local out = {}
  for i, w in ipairs(WEIGHTS) do
    if i <= 4 or chance(35) then
      out[#out + 1] = {w[1], w[1 + kind]}
    end
  end
  return out
end

-- ---- one library

-- All keys but when they expire, which an undo does not bring back, and rows of parked jobs of which some were lost: the
-- transaction removes them unread, so its undo brings back the lost ones, too.
local function keys_of_undo()
  local lines = {}
  for _, line in ipairs(dump.keys(server.redis)) do
    if not world.lost[string.match(line, '^%S+')] then
      lines[#lines + 1] = string.gsub(line, '^(%S+) %S+', '%1')
    end
  end
  return table.concat(lines, '\n')
end

-- Try a call of which write number n fails: every key has to stay. Then forget that.
local function try_torn(name, args)
  local was, before = keys.copy(), keys_of_undo()
  world.tried = world.tried + 1
  server.fail_write(world.tried % 25 + 1) -- no dice: the other library is not tried
  local reply = server.functions[name]({ROOT}, args)
  if server.fail_write(nil) then
    local after = keys_of_undo()
    if reply.err and before ~= after then
      ways.print_diff(before, after)
      error('a failed write left something (< before, > behind it): ' .. reply.err, 0)
    end
  end
  keys.restore(was)
end

-- Register a worker. -> {epoch, link, held}
local function new_worker(i)
  local reply = world.call('later_v1_register', '0', 'inst' .. i, '1', '0', '3', 'host', 'h', 'queues', 'a,b,c', 'places',
                           '64', '0', '0')
  return {epoch = reply[2], link = '1', held = {}}
end

-- Play this seed. see(line): told of each call, its reply and the keys behind it
local function play(seed, text, see, is_torn)
  counter.load(text)
  math.randomseed(seed)
  server.now_us = ways.START_US
  world = {ids = {'j00000000000'}, workers = {}, lost = {}, tried = 0}
  local kind = KINDS[seed % #KINDS + 1]
  for _, values in ipairs(SETTINGS) do
    world[values[1]] = one_of(values[1 + kind])
  end
  function world.call(name, ...)
    server.now_us, server.published = server.now_us + 7, {}
    local reply = server.functions[name]({ROOT}, {...})
    see(name .. ' ' .. table.concat({...}, ' ') .. ' -> ' .. dump.text_of(reply) .. '\n' ..
        table.concat(server.published, '\n'))
    return reply
  end
  function world.write(name, ...)
    if is_torn then
      try_torn(name, {...})
    end
    return world.call(name, ...)
  end
  local weights = weights_of_seed(kind)
  for i = 1, WORKERS do
    world.workers[i] = new_worker(i)
  end
  world.call('later_limit_set', 's', 'semaphore', '2')
  world.call('later_limit_set', 't', 'semaphore', '3', 'on_lost', 'kill')
  world.call('later_limit_set', 'u{key}', 'semaphore', '2')
  world.call('later_limit_set', 'v{key}', 'semaphore', '20')
  world.call('later_limit_set', 'big', 'semaphore', '200')
  world.call('later_batch', 'm', 'finally', 'a', 'x')
  for _ = 1, world.fair == 100 and #QUEUES or 0 do
    moves.gates()
  end
  for _ = 1, world.calls do
    local move = choose(weights)
    moves[move]()
    see(move, dump.keys(server.redis))
  end
end

-- ---- both

-- -> are they equal?
local function compare(seed, text, old)
  local lines, at, last = {}, 0, ''
  play(seed, text, function(line, all)
    lines[#lines + 1] = all and line .. '\n' .. table.concat(all, '\n') or line
  end, true)
  local ok, why = pcall(play, seed, old, function(line, all)
    at = at + 1
    line = all and line .. '\n' .. table.concat(all, '\n') or line
    if line ~= lines[at] then
      print('after ' .. last)
      print('seed ' .. seed .. ', line ' .. at .. ': over rows (<) and in a transaction (>) differ')
      ways.print_diff(lines[at] or '', line)
      error('differ', 0)
    end
    last = all and last or line
  end, false)
  if not ok and why ~= 'differ' then
    error(why, 0)
  end
  return ok
end

local path, first, n = ...
local text, old = ways.read(path)
for seed = tonumber(first), tonumber(first) + tonumber(n) - 1 do
  if not compare(seed, text, old) then
    os.exit(1)
  end
end
print(n .. ' seeds: equal')
