-- Random calls on a fair queue, with each write of some syncs failing in turn. After every call the rows of its tenants have
-- to fit its jobs; at the end every job must have run or been cancelled, and nothing may be left of any tenant. Then shares:
-- tenants with jobs of different lengths get the run time that their weights say.
--
-- Usage: lua5.1 fair.lua LIBRARY SEED SEEDS     with LUA_PATH, from run
-- Exit status: 0 as it should be, 1 not so: the first fault is printed.
local counter = require 'counter'
local dump = require 'dump'
local server = require 'toy.server'
local ways = require 'ways'

local ROOT, QUEUE = ways.ROOT, 'a'
local CALLS = 160
local WRITES = 60 -- of a sync, at most that many fail in turn
local KEYS = {'', 'acme', 'b', 'c:d', 'e'}

local seed -- of the random numbers, as they go on

local function random(n)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return math.floor(seed / 65536) % n + 1
end

local function one_of(list)
  return list[random(#list)]
end

-- ---- calls

-- {epochs, held: {id, start, epoch, record}*, known: ids that may wait, may_tear, last: what was done}
local world

local function call(name, ...)
  return ways.call(name, ways.words({...}))
end

local function must(name, ...)
  local reply = call(name, ...)
  if type(reply) == 'table' and reply.err then
    error(name .. ' ' .. table.concat({...}, ' ') .. ': ' .. reply.err, 0)
  end
  return reply
end

local function redis(...)
  return server.redis.call(...)
end

local function key(name)
  return ROOT .. ':' .. name
end

local function declare(gates)
  must('later_v1_declare', world.epochs[1], 0, 1, QUEUE, gates)
end

local function register(inst)
  return must('later_v1_register', 0, inst, 1, 0, 3, 'host', 'h', 'queues', QUEUE, 'places', 64, 0, 0)[2]
end

-- A sync of worker `w`. ends, results: of held jobs; results: {job, verb, amount}* -> what starts
local function sync(w, room, ends, results)
  local epoch = world.epochs[w]
  local args = {epoch, 1, 0, 192, #results}
  for _, r in ipairs(results) do
    for _, word in ipairs({r[1].id, r[1].start, r[2], QUEUE, r[3], 1, 'text', ''}) do
      args[#args + 1] = word
    end
  end
  for _, word in ipairs({1, QUEUE, room, 1048576, #ends}) do
    args[#args + 1] = word
  end
  for _, job in ipairs(ends) do
    for _, word in ipairs({QUEUE, job.start, 1, job.id}) do
      args[#args + 1] = word
    end
  end
  args[#args + 1] = 2
  ways.words(args)
  if world.may_tear then
    ways.tear(args, WRITES)
  end
  local reply, started = must('later_v1_sync', unpack(args)), {}
  if reply[7] and reply[7][1] then
    error('the sync could not claim: ' .. dump.text_of(reply[7]), 0)
  end
  for _, group in ipairs(reply[4] or {}) do
    for i = 7, #group, 3 do
      local job = {id = group[i], start = group[3], epoch = epoch, record = group[i + 2]}
      started[#started + 1], world.held[#world.held + 1] = job, job
    end
  end
  return started
end

-- Up to n random jobs of a worker, which run no longer.
local function take_held(w, n)
  local taken = {}
  for i = #world.held, 1, -1 do
    if world.held[i].epoch == world.epochs[w] and #taken < n and random(2) == 1 then
      taken[#taken + 1] = table.remove(world.held, i)
    end
  end
  return taken
end

-- ---- what has to hold

local function rows(command, name, ...)
  return redis(command, key(name), ...)
end

local function pairs_of(list)
  local out = {}
  for i = 1, #list, 2 do
    out[list[i]] = list[i + 1]
  end
  return out
end

-- What waits, by tenant and by priority, in both places.
local function check_jobs()
  local indexed, tenants = {}, {}
  for _, line in ipairs(rows('ZRANGE', 'fair-jobs:' .. QUEUE, 0, -1)) do
    local tenant, digit, due, id = string.match(line, '^(%S*) (%d)(' .. string.rep('%d', 15) .. ')(.*)$')
    indexed[id .. ' ' .. digit .. ' ' .. string.format('%.0f', tonumber(due))] = tenant
    tenants[tenant] = true
  end
  for p = 0, 9 do
    for id, due in pairs(pairs_of(rows('ZRANGE', 'q:' .. QUEUE .. ':' .. p, 0, -1, 'WITHSCORES'))) do
      local at, record = id .. ' ' .. p .. ' ' .. due, rows('HGET', 'jobs', id)
      local tenant = string.match(string.match(record, '^[^\n]*'), ' K=(%S+)') or ''
      if indexed[at] ~= tenant then
        error(at .. ' waits, and its tenant ' .. tenant .. ' has ' .. tostring(indexed[at]), 0)
      end
      indexed[at] = nil
    end
  end
  if next(indexed) then
    error(next(indexed) .. ' does not wait and is one of the tenant ' .. indexed[next(indexed)], 0)
  end
  return tenants
end

local function check()
  local text, state = rows('HGET', 'queues', QUEUE), rows('HGET', 'fair', QUEUE)
  if not state then
    for _, name in ipairs(redis('KEYS', '*')) do
      if string.find(name, ':fair') and not string.find(name, ':fair%-used:') then
        error(name .. ' is left of a queue that is not fair', 0)
      end
    end
    return
  elseif not string.find(text or '', '^fair=1') or string.find(state, ' %l') then
    return -- on its way
  end
  local tenants = check_jobs()
  local active, later = pairs_of(rows('ZRANGE', 'fair:' .. QUEUE, 0, -1, 'WITHSCORES')),
                        pairs_of(rows('ZRANGE', 'fair-next:' .. QUEUE, 0, -1, 'WITHSCORES'))
  local debts = pairs_of(rows('ZRANGE', 'fair-debts:' .. QUEUE, 0, -1, 'WITHSCORES'))
  for tenant in pairs(tenants) do
    if (active[tenant] ~= nil) == (later[tenant] ~= nil) then
      error('tenant ' .. tenant .. ' waits in both or in none of the lists', 0)
    end
    active[tenant], later[tenant] = nil, nil
  end
  for _, list in ipairs({active, later}) do
    if next(list) then
      error('tenant ' .. next(list) .. ' has a row and no job', 0)
    end
  end
  for tenant in pairs(debts) do
    if rows('ZSCORE', 'fair:' .. QUEUE, tenant) then
      error('tenant ' .. tenant .. ' has a debt beside its row', 0)
    end
  end
end

-- ---- random calls

local function options()
  local out, name = {}, one_of(KEYS)
  local function put(word, value)
    out[#out + 1], out[#out + 2] = word, value
  end
  if name ~= '' then
    put('key', name)
  end
  if random(5) == 1 then
    put('priority', random(10) - 1)
  end
  if random(6) == 1 then
    put('lock', one_of({'l', 'm'}))
  end
  if random(4) == 1 then
    put('in', one_of({'50ms', '2s'}))
  end
  return out
end

local moves = {}

function moves.add()
  local args = options()
  args[#args + 1] = 'x'
  world.known[#world.known + 1] = must('later_add', QUEUE, unpack(args))[1]
end

function moves.add_many()
  local args = options()
  args[#args + 1] = '--'
  for _ = 1, random(12) do
    args[#args + 1] = 'x'
  end
  for _, reply in ipairs(must('later_add_many', QUEUE, unpack(args))) do
    world.known[#world.known + 1] = reply[1]
  end
end

function moves.add_raw()
  redis('ZADD', key('due:' .. QUEUE), math.floor(server.now_us / 1000), 'raw ' .. random(1000))
end

function moves.unique()
  local mode = one_of({'move', 'replace', 'drop'})
  call('later_add', QUEUE, 'key', one_of({'acme', 'b'}), 'unique', 'u', 'unique_mode', mode, 'x')
end

function moves.cancel()
  if world.known[1] then
    call('later_cancel', one_of(world.known), 'waiting')
  end
end

function moves.reschedule()
  if world.known[1] then
    call('later_reschedule', one_of(world.known), 'in ' .. one_of({'0ms', '70ms', '3s'}))
  end
end

function moves.purge()
  if random(6) == 1 then
    must('later_v1_purge', QUEUE, one_of({'due', 'parked'}), random(20))
  end
end

function moves.sync()
  local w, results = random(2), {}
  for _, job in ipairs(take_held(w, 3)) do
    results[#results + 1] = {job, one_of({'retry', 'dead', 'done', 'release'}), one_of({'1000', '200'})}
  end
  world.may_tear = random(12) == 1
  sync(w, random(9) - 1, take_held(w, 6), results)
  world.may_tear = false
end
moves.sync2, moves.sync3, moves.sync4 = moves.sync, moves.sync, moves.sync

function moves.wait()
  server.now_us = server.now_us + one_of({3000, 30000, 400000})
end

function moves.reap()
  if random(8) == 1 then
    local old = world.epochs[2]
    must('later_v1_reap', world.epochs[1], old, '1', 3, 100)
    for i = #world.held, 1, -1 do
      if world.held[i].epoch == old then
        table.remove(world.held, i)
      end
    end
    world.epochs[2] = register('two')
  end
end

function moves.turn()
  if random(10) == 1 then
    declare(one_of({'', 'fair=1', 'fair=1 w=3:acme', 'fair=1 lock=z'}))
  end
end

local names = {}
for name in pairs(moves) do
  names[#names + 1] = name
end
table.sort(names)

local function counts()
  local n = #world.held + rows('HLEN', 'parked') + rows('ZCARD', 'due:' .. QUEUE)
  for p = 0, 9 do
    n = n + rows('ZCARD', 'q:' .. QUEUE .. ':' .. p)
  end
  return n + rows('ZCARD', 'solo:' .. QUEUE)
end

-- All that waits runs to its end.
local function drain()
  for _ = 1, 400 do
    for w = 1, 2 do
      local ends = {}
      for i = #world.held, 1, -1 do
        if world.held[i].epoch == world.epochs[w] then
          ends[#ends + 1] = table.remove(world.held, i)
        end
      end
      sync(w, 12, ends, {})
      check()
    end
    if counts() == 0 then
      return
    end
    server.now_us = server.now_us + 100000
  end
  error(counts() .. ' jobs are left: ' .. table.concat(dump.keys(server.redis), '\n'), 0)
end

local function check_end()
  for _, name in ipairs(redis('KEYS', '*')) do
    if string.find(name, ':fair') and not string.find(name, ':fair%-used:') and name ~= key('fair') then
      error(name .. ' is left', 0)
    end
  end
end

local function play(text, first_seed)
  counter.load(text)
  server.now_us, server.met_foreign, seed = ways.START_US, nil, first_seed * 7919 % 2147483648
  world = {epochs = {}, held = {}, known = {}}
  world.epochs[1], world.epochs[2] = register('one'), register('two')
  declare(one_of({'', 'fair=1'}))
  for i = 1, CALLS do
    local move = one_of(names)
    world.last = i .. ' ' .. move
    moves[move]()
    check()
  end
  world.last = 'the drain'
  declare(one_of({'', 'fair=1'}))
  drain()
  check_end()
end

-- ---- one thing at a time

-- A fair queue and two workers, without jobs.
local function new_world(text, gates)
  counter.load(text)
  server.now_us, server.met_foreign, seed = ways.START_US, nil, 1
  world = {epochs = {}, held = {}, known = {}}
  world.epochs[1], world.epochs[2] = register('one'), register('two')
  declare(gates)
  sync(1, 0, {}, {})
end

local function add(...)
  return must('later_add', QUEUE, ...)[1]
end

-- What starts in a sync of worker w, as words of its payloads.
local function payloads(w, room, ends)
  local out = {}
  for i, job in ipairs(sync(w, room, ends or {}, {})) do
    out[i] = string.match(job.record, '\n(.*)$')
  end
  return table.concat(out, ' ')
end

local function need(what, is, wanted)
  if is ~= wanted then
    error(what .. ': ' .. tostring(is) .. ', and it should be ' .. tostring(wanted), 0)
  end
end

local function time_of(tenant)
  return rows('ZSCORE', 'fair:' .. QUEUE, tenant) or rows('ZSCORE', 'fair-debts:' .. QUEUE, tenant)
end

local one = {}

-- Within a tenant: priority, then due time. Tenants in turn.
function one.order(text)
  new_world(text, 'fair=1')
  add('key', 'x', 'x1')
  server.now_us = server.now_us + 5000
  add('key', 'x', 'x2')
  add('key', 'x', 'priority', '3', 'x0')
  add('key', 'y', 'priority', '9', 'y1')
  add('y2') -- of the tenant without a key
  add('key', 'x', 'in', '1h', 'late')
  server.now_us = server.now_us + 5000
  need('the order', payloads(1, 64), 'y2 x0 y1 x1 x2')
end

-- A tenant whose lock is held lets others pass, is charged nothing for that, and goes on where it stood.
function one.held_lock(text)
  new_world(text, 'fair=1')
  must('later_lock', 'l', 'me', 'ttl', '1h')
  for i = 1, 3 do
    add('key', 'x', 'lock', 'l', 'x' .. i)
    add('key', 'y', 'y' .. i)
  end
  need('beside a held lock', payloads(1, 2), 'y1 y2')
  need('its time', time_of('x') or '0', '0')
  must('later_unlock', 'l', 'me')
  need('when the lock is free', payloads(1, 1), 'x1')
  need('beside it', payloads(1, 4), 'y3')
end

-- Tenants of which nothing is due any more leave their places to those before them.
function one.nothing_due(text)
  new_world(text, 'fair=1')
  for i = 1, 3 do
    add('key', 'x', 'x' .. i)
  end
  add('key', 'y', 'y1')
  add('key', 'y', 'y2')
  for _, name in ipairs({'z1', 'z2', 'z3'}) do
    local id = add('key', name, name)
    add('key', name, 'in', '1h', 'late')
    must('later_cancel', id)
  end
  redis('DEL', key('fair-next:' .. QUEUE))
  redis('ZADD', key('fair:' .. QUEUE), '0', 'x', '2000', 'y', '2000', 'z1', '2000', 'z2', '2000', 'z3')
  need('beside tenants without due jobs', payloads(1, 5), 'x1 x2 x3 y1 y2')
end

-- A job that a gate lets in takes no turn: one that comes new begins at the time of those who do, not at that of its tenant.
function one.let_in(text)
  new_world(text, 'fair=1')
  must('later_lock', 'l', 'me', 'ttl', '10h')
  add('key', 'x', 'lock', 'l', 'x0')
  for i = 1, 9 do
    add('key', 'x', 'x' .. i)
    add('key', 'y', 'y' .. i)
  end
  need('the first', payloads(1, 1), 'x1')
  server.now_us = server.now_us + 3600000000
  sync(1, 0, {table.remove(world.held, 1)}, {})
  must('later_unlock', 'l', 'me')
  need('when the lock is free', payloads(1, 3), 'x0 y1 y2')
  add('key', 'z', 'z1')
  need('one that comes new', payloads(1, 2), 'z1 y3')
end

-- A tenant whose many jobs wait at a gate keeps the others from starting for a few syncs only.
function one.shut_gate(text)
  new_world(text, 'fair=1')
  must('later_lock', 'l', 'me', 'ttl', '1h')
  add('key', 'x', 'x1')
  for i = 1, 400 do
    add('key', 'y', 'lock', 'l', 'y' .. i)
  end
  need('the first', payloads(1, 1), 'x1')
  server.now_us = server.now_us + 1000000
  add('key', 'x', 'x2')
  local started, n = payloads(1, 1, {table.remove(world.held, 1)}), 1
  while started == '' and n < 8 do
    started, n = payloads(1, 1), n + 1
  end
  need('within a few syncs', started, 'x2')
end

-- A job whose worker dies is charged once: from its start until it is taken back.
function one.death(text)
  new_world(text, 'fair=1')
  for i = 1, 4 do
    add('key', 'x', 'x' .. i)
    add('key', 'y', 'y' .. i)
  end
  need('the first', payloads(2, 1), 'x1')
  need('its tick', time_of('x'), '1000')
  local started_us = server.now_us
  server.now_us = server.now_us + 10000000
  must('later_v1_reap', world.epochs[1], world.epochs[2], '1', 3, 100)
  need('its run time', time_of('x'), tostring(server.now_us - started_us))
  need('the others catch up', payloads(1, 4), 'y1 y2 y3 y4')
  need('and it goes on', payloads(1, 4), 'x1 x2 x3 x4')
end

-- One that comes back after an hour begins where the others are.
function one.comes_back(text)
  new_world(text, 'fair=1')
  for i = 1, 60 do
    add('key', 'x', 'x' .. i)
  end
  add('key', 'y', 'y1')
  need('both', payloads(1, 2), 'x1 y1')
  for _ = 1, 50 do
    server.now_us = server.now_us + 72000000 -- an hour in all
    sync(1, 1, {table.remove(world.held, 1)}, {})
  end
  for i = 2, 9 do
    add('key', 'y', 'y' .. i)
  end
  local _, n = string.gsub(payloads(1, 6), 'y', '')
  need('of six starts, three are those of the one that came back, one more or less: ' .. n, n >= 2 and n <= 4, true)
end

-- Where new tenants come as fast as jobs end, none of them waits long, whatever its name; and one with many jobs, whose time
-- is above that of all new ones, has its turn.
function one.new_ones(text)
  new_world(text, 'fair=1')
  local n, added, worst, old = 0, {}, 0, 0
  local function add_new()
    n = n + 1
    added['n' .. n] = server.now_us
    add('key', 'k' .. 1000000 - n, 'n' .. n)
  end
  for i = 1, 300 do
    add('key', 'old', 'o' .. i)
  end
  for _ = 1, 40 do
    add_new()
  end
  for _ = 1, 600 do
    server.now_us = server.now_us + 10000
    local ends = world.held
    world.held = {}
    for _ = 1, #ends do
      add_new()
    end
    for _, job in ipairs(sync(1, 8, ends, {})) do
      local name = string.match(job.record, '\n(.*)$')
      worst = math.max(worst, server.now_us - (added[name] or server.now_us))
      added[name] = nil
      old = old + (string.find(name, 'o', 1, true) and 1 or 0)
    end
  end
  for _, since in pairs(added) do
    worst = math.max(worst, server.now_us - since)
  end
  need('nobody waits for half a second: ' .. worst, worst < 500000, true)
  need('the one with many jobs has its turn: ' .. old, old > 10, true)
end

-- Does a job that ends raise the virtual time of its tenant by this much, to a millisecond? A call takes a microsecond.
local function need_charge(what, job, tenant, us)
  local was = time_of(tenant)
  sync(1, 0, {job}, {})
  local rise = time_of(tenant) - was
  need(what, rise - rise % 1000, us)
end

-- What a job ran before tenants shared counts for nothing, whether nobody waited or its own tenant alone.
function one.ran_alone(text)
  for _, more in ipairs({0, 5}) do
    new_world(text, 'fair=1')
    for i = 1, 2 + more do
      add('key', 'x', 'x' .. i)
    end
    need('alone', payloads(1, 2), 'x1 x2')
    local x1, x2 = world.held[1], world.held[2]
    world.held = {}
    server.now_us = server.now_us + 3300000000
    for i = 1, 5 do
      add('key', 'x', 'x' .. 2 + more + i)
      add('key', 'y', 'y' .. i)
    end
    sync(1, 1, {}, {})
    server.now_us = server.now_us + 60000000
    need_charge('one that ran alone', x1, 'x', 60000000)
    server.now_us = server.now_us + 60000000
    need_charge('one that ran on', x2, 'x', 120000000)
    need_charge('one that started then', world.held[1], string.match(world.held[1].record, ' K=(%S+)'), 120000000 - 1000)
  end
end

-- Once nobody waits, tenants share no more.
function one.shares_no_more(text)
  new_world(text, 'fair=1')
  for _, name in ipairs({'x', 'y'}) do
    add('key', name, name)
    add('key', name, name)
  end
  need('some of them', payloads(1, 3), 'x y y')
  server.now_us = server.now_us + 1000000
  need('the rest', payloads(1, 3), 'x')
  server.now_us = server.now_us + 1000000
  for i = 1, 3 do
    add('key', 'x', 'x' .. i)
    add('key', 'y', 'y' .. i)
  end
  need('anew', payloads(1, 2), 'x1 y1')
  server.now_us = server.now_us + 7000
  need_charge('one of the time before', world.held[1], 'x', 7000)
  need_charge('one that started then', world.held[5], 'x', 6000)
end

-- A queue in which each job has a place at once writes nothing of that, and nobody owes anything.
function one.places_for_all(text)
  new_world(text, 'fair=1')
  for i = 1, 5 do
    add('key', 'x', 'x' .. i)
    add('key', 'y', 'y' .. i)
    need('both', payloads(1, 9, {table.remove(world.held), table.remove(world.held)}), 'x' .. i .. ' y' .. i)
    server.now_us = server.now_us + 1000000
    need('its state', rows('HGET', 'fair', QUEUE), '0 0')
    need('debts', rows('ZCARD', 'fair-debts:' .. QUEUE), 0)
  end
  sync(1, 9, {table.remove(world.held), table.remove(world.held)}, {})
  local minute = math.floor(server.now_us / 60000000)
  need('run time', rows('HGET', 'fair-used:' .. QUEUE .. ':' .. minute, 'x'), '5000')
end

-- A job that is forgotten did not wait: its tenant's rows stay as they are.
function one.forgotten(text)
  new_world(text, 'fair=1')
  add('key', 'x', 'x1')
  need('it', payloads(1, 1), 'x1')
  sync(1, 0, {}, {{table.remove(world.held), 'dead', '10000'}})
  redis('ZADD', key('fair-debts:' .. QUEUE), '1000', 'y')
  need('purged', must('later_v1_purge', QUEUE, 'dead', 9)[1], 1)
  need('a debt', rows('ZSCORE', 'fair-debts:' .. QUEUE, 'y'), '1000')
end

-- A tenant that comes while a backlog of another one runs gets its share, and not the places of the hour before.
function one.behind_a_backlog(text)
  new_world(text, 'fair=1')
  for i = 1, 40 do
    add('key', 'x', 'x' .. i)
  end
  sync(1, 8, {}, {})
  server.now_us = server.now_us + 3600000000
  for i = 1, 20 do
    add('key', 'y', 'y' .. i)
  end
  local ended = world.held
  world.held = {}
  local _, n = string.gsub(payloads(1, 8, ended), 'y', '')
  need('of eight starts', n, 5) -- it begins before the other one
end

-- One that seldom has a job comes before a backlog with the next place that is free, whatever its name.
function one.before_a_backlog(text)
  new_world(text, 'fair=1')
  add('key', 'b', 'b')
  for i = 1, 40 do
    add('key', 'a', 'a' .. i)
  end
  sync(1, 1, {}, {})
  for i = 1, 10 do
    server.now_us = server.now_us + 500000
    add('key', 'z' .. i, 'z')
    local ended = world.held
    world.held = {}
    need('beside the backlog, time ' .. i, payloads(1, 1, ended), i == 1 and 'b' or 'z')
    server.now_us = server.now_us + 1000
    ended, world.held = world.held, {}
    need('then the backlog, time ' .. i, string.sub(payloads(1, 1, ended), 1, 1), i == 1 and 'z' or 'a')
    if i == 1 then
      ended, world.held = world.held, {}
      sync(1, 1, ended, {})
    end
  end
end

-- ---- shares

-- Two workers' places are always full. tenants: {name, weight, ms of a job}* -> run time of each, as a share
local function shares(text, tenants, ms)
  counter.load(text)
  server.now_us, seed = ways.START_US, 1
  world = {epochs = {}, held = {}, known = {}}
  world.epochs[1] = register('one')
  local gates, ran, length, all = 'fair=1', {}, {}, 0
  for _, t in ipairs(tenants) do
    gates = gates .. (t[2] > 1 and ' w=' .. t[2] .. ':' .. t[1] or '')
    ran[t[1]], length[t[1]] = 0, t[3]
  end
  declare(gates)
  local function fill(name)
    local args = {}
    for i = 1, 100 do
      args[i] = 'x'
    end
    must('later_add_many', QUEUE, 'key', name, '--', unpack(args))
  end
  local begin, places = server.now_us, {}
  for _, t in ipairs(tenants) do
    fill(t[1])
    fill(t[1])
  end
  while server.now_us < begin + ms * 1000 do
    local ends, left = {}, {}
    for _, p in ipairs(places) do
      local list = p.until_us <= server.now_us and ends or left
      list[#list + 1] = p
    end
    for i, p in ipairs(ends) do
      ran[p.name], all, ends[i] = ran[p.name] + length[p.name], all + length[p.name], p.job
    end
    places = left
    for _, job in ipairs(sync(1, 16 - #left, ends, {})) do
      local name = string.match(job.record, ' K=(%S+)')
      places[#places + 1] = {name = name, job = job, until_us = server.now_us + length[name] * 1000}
    end
    for _, t in ipairs(tenants) do
      if #rows('ZRANGE', 'fair-jobs:' .. QUEUE, '[' .. t[1] .. ' ', '(' .. t[1] .. '!', 'BYLEX', 'LIMIT', 0, 100) < 100 then
        fill(t[1])
      end
    end
    server.now_us = server.now_us + 1000
  end
  for name, n in pairs(ran) do
    ran[name] = n / all
  end
  return ran
end

-- Each share is what the weights say, within 3 %.
local function check_shares(text, tenants)
  local weights, is = 0, shares(text, tenants, 4000)
  for _, t in ipairs(tenants) do
    weights = weights + t[2]
  end
  for _, t in ipairs(tenants) do
    local wanted = t[2] / weights
    if math.abs(is[t[1]] - wanted) > 0.03 then
      error(string.format('tenant %s had %.3f of the run time, and should have had %.3f', t[1], is[t[1]], wanted), 0)
    end
  end
end

local text = ways.read((...))
local first, n = tonumber((select(2, ...))), tonumber((select(3, ...)))
for s = first, first + n - 1 do
  local ok, why = pcall(play, text, s)
  if not ok then
    print('fair: seed ' .. s .. ', ' .. tostring(world and world.last) .. ': ' .. tostring(why))
    os.exit(1)
  end
end
for name, test in pairs(one) do -- in any order: each begins anew
  local ok, why = pcall(test, text)
  if not ok then
    print('fair: ' .. name .. ': ' .. tostring(why))
    os.exit(1)
  end
end
for _, tenants in ipairs({{{'x', 1, 20}, {'y', 1, 20}}, {{'x', 3, 20}, {'y', 1, 20}, {'z', 1, 20}},
                          {{'x', 1, 2}, {'y', 1, 200}}}) do
  local ok, why = pcall(check_shares, text, tenants)
  if not ok then
    print('fair: ' .. tostring(why))
    os.exit(1)
  end
end
print(n .. ' seeds of a fair queue, and shares: as they should be')
