-- The stages: a namespace with what a function may meet, and what has to become of each job in it.

-- Let a worker claim n jobs of a queue.
local function claim(m, name, queue, n)
  local epoch = m.name[name]
  nth.take_claims(m, epoch, nth.must(unpack(nth.sync_args(m, epoch, nth.count(m.held[epoch]), {}, {queue}, nil, n or 1))))
end

-- Let a worker tell how one of its jobs ended.
local function settle(m, name, tag, verb, amount)
  local epoch, id = m.name[name], m.name[tag]
  local results = {{id, m.held[epoch][id].start, verb, 'mail', amount or 0}}
  nth.take_answers(m, epoch, nth.must(unpack(nth.sync_args(m, epoch, 0, results, {}))), results)
end

local function running(m, name, tag, queue, ...)
  nth.add(m, tag, queue, ...)
  claim(m, name, queue)
end

-- A job whose worker died twice while running it.
local function suspect(m, tag, queue, ...)
  nth.add(m, tag, queue, ...)
  for i = 1, 2 do
    local victim = nth.worker(m, 'victim' .. i)
    claim(m, 'victim' .. i, queue)
    m.live[#m.live] = nil
    nth.must('later_v1_reap', m.name.W1, victim, '1', '5', '100')
    m.held[victim] = nil
  end
end

local function workers(m)
  nth.worker(m, 'W1')
  nth.worker(m, 'W2')
end

local OPEN = {smtp = {'semaphore', '50'}, two = {'semaphore', '50'}, slow = {'rate', '50/1s', 'algorithm', 'sliding'},
              log = {'rate', '50/1s', 'algorithm', 'sliding'}, fix = {'rate', '50/1s', 'algorithm', 'fixed'},
              ['t:{key}'] = {'semaphore', '50'}}

local function limits(m)
  nth.must('later_limit_set', 'smtp', 'semaphore', '1', 'on_lost', 'kill')
  nth.must('later_limit_set', 'two', 'semaphore', '2')
  nth.must('later_limit_set', 'slow', 'rate', '5/1h', 'burst', '2')
  nth.must('later_limit_set', 'log', 'rate', '1/1h', 'algorithm', 'sliding')
  nth.must('later_limit_set', 'fix', 'rate', '1/1h', 'algorithm', 'fixed')
  nth.must('later_limit_set', 't:{key}', 'semaphore', '1')
  m.open = OPEN
end

function nth.stages.empty(m)
  workers(m)
end

-- No gates: every kind of job that a sync may claim or bury.
function nth.stages.plain(m)
  workers(m)
  nth.add(m, 'ret', 'sms')
  claim(m, 'W1', 'sms')
  settle(m, 'W1', 'ret', 'retry', 0)
  for i = 1, 3 do
    nth.add(m, 'p' .. i, 'mail')
  end
  nth.add(m, 'prio0', 'mail', 'priority', '0')
  nth.add(m, 'prio9', 'mail', 'priority', '9')
  nth.add(m, 'opt', 'mail', 'key', 'k', 'attempts', '3', 'timeout', '5s', 'keep', '1h', 'trace', nth.TRACE)
  nth.add(m, 'big', 'mail', 'BIG')
  nth.add(m, 'soon', 'mail', 'in', '500ms')
  nth.add(m, 'later', 'mail', 'in', '1h')
  nth.add(m, 'expired', 'mail', 'expire', '1ms')
  m.fate.expired = 'dead'
  nth.add(m, 'corrupt', 'mail')
  nth.redis('HSET', 'jobs', m.name.corrupt, 'corrupt|no record')
  m.fate.corrupt = 'dead'
  nth.add_raw(m, 'raw1', 'mail', '1')
  nth.add_raw(m, 'raw2', 'sms', nth.now_ms() - 5)
  nth.add_raw(m, 'rawbig', 'mail', '2', 20000)
  nth.add_raw(m, 'rawseconds', 'mail', '1500000000')
  m.fate.rawseconds = 'dead'
  nth.add_raw(m, 'rawinf', 'mail', '+inf')
  m.fate.rawinf = 'dead'
  nth.pass(10)
end

-- Two suspects: a plain one, and one behind a lock.
function nth.stages.solo(m)
  workers(m)
  suspect(m, 'sus', 'mail')
  suspect(m, 'suslock', 'gate', 'lock', 'sus')
  nth.add(m, 'other', 'mail')
  nth.pass(10)
end

-- A worker that holds jobs of every kind; other jobs wait for their gates.
function nth.stages.results(m)
  workers(m)
  limits(m)
  for _, tag in ipairs({'done1', 'done2', 'keep', 'retry', 'dead', 'release', 'progress', 'cdone', 'cretry', 'awaited', 'brdone',
                        'brretry', 'plus'}) do
    running(m, 'W1', tag, 'mail', 'priority', '5')
  end
  running(m, 'W1', 'big', 'mail', 'BIG')
  running(m, 'W1', 'lock', 'gate', 'lock', 'door', 'sem', 'two')
  running(m, 'W1', 'sem', 'gate', 'sem', 'smtp')
  running(m, 'W1', 'uniq', 'uniq', 'unique', 'u')
  for _, tag in ipairs({'cdone', 'cretry', 'plus'}) do
    nth.must('later_cancel', m.name[tag])
    m.fate[tag] = 'any'
  end
  nth.must('later_v1_await', m.name.awaited)
  for _, tag in ipairs({'brdone', 'brretry'}) do
    nth.redis('HSET', 'jobs', m.name[tag], tag .. '|broken')
  end
  m.fate.brretry = 'any'
  nth.add(m, 'door1', 'gate', 'lock', 'door')
  nth.add(m, 'door2', 'gate', 'lock', 'door', 'sem', 'smtp')
  nth.add(m, 'smtp1', 'gate', 'sem', 'smtp', 'rate', 'slow')
  claim(m, 'W1', 'gate', 9)
  nth.add(m, 'next1', 'mail')
  nth.add(m, 'next2', 'mail')
  nth.pass(10)
end

-- So many plain jobs that syncs handle them as lists: some run, some are due.
function nth.stages.many(m)
  workers(m)
  m.running = {}
  for i = 1, 40 do
    nth.add(m, 'run' .. i, 'mail')
    m.running[i] = 'run' .. i
  end
  local epoch = m.name.W1
  nth.take_claims(m, epoch, nth.must(unpack(nth.sync_args(m, epoch, 0, {}, {'mail'}, {0}))))
  for i = 1, 40 do
    nth.add(m, 'due' .. i, i < 30 and 'mail' or 'sms')
  end
  nth.add_raw(m, 'raw', 'sms', '1')
  nth.must('later_pause', 'sms', 'for', '5ms')
  nth.pass(10)
end

-- Running jobs whose results can be told in groups: plain, at their first start.
function nth.stages.short(m)
  workers(m)
  limits(m)
  for i = 1, 6 do
    running(m, 'W1', 's' .. i, i < 5 and 'mail' or 'sms')
  end
  nth.must('later_cancel', m.name.s2)
  m.fate.s2 = 'any'
  nth.must('later_v1_await', m.name.s3)
  nth.add(m, 'n1', 'mail')
  nth.add(m, 'n2', 'mail', 'in', '500ms')
  nth.add(m, 'n3', 'sms', 'priority', '1')
  nth.pass(10)
end

-- A job that was passed over so often that it keeps the first of its gates.
local function reserve(m)
  nth.must('later_limit_set', 'own', 'semaphore', '1')
  nth.must('later_sem_acquire', 'own', 'ann', 'ttl', '1h')
  nth.must('later_lock', 'res1', 'ann')
  nth.add(m, 'res', 'gate', 'lock', 'res1', 'sem', 'own')
  claim(m, 'W1', 'gate', 9)
  local spot = nth.redis('HGET', 'parked', m.name.res)
  nth.redis('HSET', 'parked', m.name.res, (string.gsub(spot, '^(%d+) %d+', '%1 16')))
  nth.must('later_unlock', 'res1', 'ann')
end

-- Callers and programs that hold gates, and others that wait for them.
local function outsiders(m)
  nth.must('later_lock', 'door', 'bob', 'wait', '1h')
  nth.must('later_lock', 'mine', 'ann', 'ttl', '1h')
  nth.must('later_sem_acquire', 't:a', 'ann', 'ttl', '1h')
  nth.must('later_sem_acquire', 't:a', 'bob', 'ttl', '1h', 'wait', '1h')
  m.callers = {{'later_unlock', 'door', 'bob'}, {'later_unlock', 'mine', 'ann'}, {'later_unlock', 'other', 'ann'},
               {'later_unlock', 'turn', 'bob'}, {'later_unlock', 'new', 'ann'}, {'later_sem_release', 't:a', 'ann'},
               {'later_sem_release', 't:a', 'bob'}, {'later_sem_release', 'smtp', 'ann'}, {'later_sem_release', 't:b', 'ann'},
               {'later_unlock', 'door', 'eve'}, {'later_unlock', 'wide', 'ann'}, {'later_sem_release', 'own', 'ann'},
               {'later_unlock', 'over', 'eve'}, {'later_sem_release', 't:a', 'eve'}}
  for _, name in ipairs({'P1', 'P2', 'P3'}) do
    nth.worker(m, name, 0)
    nth.redis('HSET', 'worker:' .. m.name[name], 'queues', '')
    m.live[#m.live] = nil
  end
  nth.must('later_v1_enter', m.name.P1, 'lock:beside')
  nth.must('later_v1_enter', m.name.P2, 'lock:beside', 'wait')
  nth.must('later_v1_enter', m.name.P3, 'lock:door', 'wait')
  m.programs = {m.name.P1, m.name.P2, m.name.P3}
end

-- Gates that are held, waited for, granted or reserved, and jobs that come to them with this sync.
function nth.stages.gates(m)
  workers(m)
  limits(m)
  nth.redis('HSET', 'queues', 'keyed', 'lock=user:{key}')
  running(m, 'W1', 'hold', 'gate', 'lock', 'door', 'sem', 'smtp')
  running(m, 'W2', 'log1', 'gate', 'rate', 'log')
  nth.add(m, 'door1', 'gate', 'lock', 'door')
  nth.add(m, 'door2', 'gate', 'lock', 'door', 'sem', 'two')
  nth.add(m, 'both', 'gate', 'sem', 'smtp', 'rate', 'slow')
  nth.add(m, 'log2', 'gate', 'rate', 'log')
  claim(m, 'W1', 'gate', 9)
  m.gates.key1, m.gates.key2 = {'lock:user:7'}, {'lock:user:7'}
  reserve(m)
  outsiders(m)
  nth.must('later_lock', 'third', 'ann')
  nth.add(m, 'aside', 'aside', 'lock', 'third')
  claim(m, 'W1', 'aside')
  nth.must('later_pause', 'aside')
  nth.must('later_unlock', 'third', 'ann')
  nth.must('later_resume', 'aside')
  -- One job is granted and waits for its claim, so the queue stands aside for the next one.
  nth.must('later_lock', 'other', 'ann')
  nth.must('later_lock', 'other2', 'ann')
  nth.add(m, 'granted', 'gate', 'lock', 'other', 'sem', 'two', 'rate', 'slow')
  nth.add(m, 'enough', 'gate', 'lock', 'other2')
  claim(m, 'W1', 'gate', 9)
  nth.must('later_unlock', 'other', 'ann')
  nth.must('later_unlock', 'other2', 'ann')
  nth.add(m, 'key1', 'keyed', 'key', '7')
  nth.add(m, 'key2', 'keyed', 'key', '7')
  nth.add(m, 'free', 'gate', 'lock', 'free', 'rate', 'fix')
  nth.add(m, 'fix2', 'gate', 'rate', 'fix')
  nth.add(m, 'wide', 'gate', 'lock', 'wide', 'sem', 'smtp')
  nth.add(m, 'plain', 'gate')
  nth.add(m, 'uni', 'gate', 'unique', 'n')
  nth.pass(10)
end

-- The stage `gates` when all its timers are due: unclaimed grants, rates that open, a wait that is
-- over.
function nth.stages.timers(m)
  nth.stages.gates(m)
  nth.pass(3605000)
  m.callers[#m.callers + 1] = {'later_unlock', 'beside', 'x'}
  for _, name in ipairs({'W1', 'W2', 'P1', 'P2', 'P3'}) do
    nth.must('later_v1_beat', m.name[name], name == 'W1' and table.concat(nth.QUEUES, ',') or nil)
  end
end

-- Unique keys of jobs that wait, run, are parked, are dead, or have ended.
function nth.stages.uniq(m)
  workers(m)
  limits(m)
  nth.must('later_lock', 'door', 'ann', 'ttl', '1h')
  m.callers = {{'later_unlock', 'door', 'ann'}}
  running(m, 'W1', 'urun', 'uniq', 'unique', 'run')
  running(m, 'W1', 'udead', 'uniq', 'unique', 'dead')
  settle(m, 'W1', 'udead', 'dead', 100)
  running(m, 'W1', 'ufor', 'uniq', 'unique', 'for', 'unique_for', '1h')
  settle(m, 'W1', 'ufor', 'done')
  nth.add(m, 'upark', 'uniq', 'unique', 'park', 'lock', 'door', 'BIG')
  claim(m, 'W1', 'uniq')
  running(m, 'W1', 'uret', 'uniq', 'unique', 'ret')
  settle(m, 'W1', 'uret', 'retry', 3600000)
  running(m, 'W1', 'ufor2', 'uniq', 'unique', 'for2', 'unique_for', '1h')
  nth.add(m, 'uwait', 'uniq', 'unique', 'wait', 'in', '1h', 'BIG')
  nth.add(m, 'tok', 'mail', 'token', 'used')
  nth.pass(10)
end

-- Jobs in every state, a worker that died, one that comes back.
function nth.stages.life(m)
  workers(m)
  limits(m)
  running(m, 'W1', 'dead1', 'mail')
  settle(m, 'W1', 'dead1', 'dead', 100)
  running(m, 'W1', 'dead2', 'mail', 'BIG')
  settle(m, 'W1', 'dead2', 'dead', 100)
  running(m, 'W1', 'kept1', 'mail', 'keep', '1h')
  settle(m, 'W1', 'kept1', 'done', 3600000)
  running(m, 'W1', 'kept2', 'mail')
  settle(m, 'W1', 'kept2', 'done', 1)
  nth.worker(m, 'V')
  for _, tag in ipairs({'vplain', 'vcancel', 'vpoison', 'vbroken'}) do
    running(m, 'V', tag, 'mail')
  end
  running(m, 'V', 'vbig', 'mail', 'priority', '2', 'BIG')
  running(m, 'V', 'vlock', 'gate', 'lock', 'door', 'sem', 'smtp')
  nth.add(m, 'door1', 'gate', 'lock', 'door')
  nth.add(m, 'smtp1', 'gate', 'sem', 'smtp')
  running(m, 'W1', 'w1a', 'mail')
  running(m, 'W1', 'w1b', 'mail', 'then', 'sms')
  running(m, 'W1', 'w1lock', 'gate', 'lock', 'w1')
  running(m, 'W1', 'w1uniq', 'uniq', 'unique', 'w1')
  running(m, 'W1', 'w1sem', 'gate', 'sem', 'two')
  nth.add(m, 'behind', 'gate', 'lock', 'w1')
  claim(m, 'W1', 'gate', 9)
  nth.must('later_cancel', m.name.vcancel)
  m.fate.vcancel = 'any'
  nth.redis('HSET', 'tries', m.name.vpoison, (string.gsub(nth.redis('HGET', 'tries', m.name.vpoison), '^(%d+) (%d+) %d+',
            '%1 %2 4')))
  m.fate.vpoison = 'dead'
  nth.redis('HSET', 'jobs', m.name.vbroken, 'vbroken|broken')
  m.fate.vbroken = 'any'
  m.victims = {m.name.V}
  table.remove(m.live)
  nth.add(m, 'wait1', 'mail')
  nth.add(m, 'wait2', 'mail', 'priority', '1', 'BIG')
  nth.add(m, 'wait3', 'sms', 'in', '1h')
  nth.add_raw(m, 'raw', 'mail', '1')
  nth.add_raw(m, 'rawinf', 'mail', '+inf')
  m.fate.rawinf = 'dead'
  nth.must('later_pause', 'sms', 'by', 'me')
  nth.redis('HSET', 'unserved', 'mail', '1767225600000')
  nth.must('later_v1_note', 'stray-key', 'x')
  nth.pass(10)
end

-- Jobs with chains in every state, and a worker that died with some.
function nth.stages.chains(m)
  workers(m)
  running(m, 'W1', 'plain', 'mail')
  running(m, 'W1', 'three', 'mail', 'then', 'sms', 'then', 'gate')
  running(m, 'W1', 'two', 'mail', 'then', 'sms', 'key', 'k', 'priority', '3', 'trace', nth.TRACE)
  running(m, 'W1', 'res', 'mail', 'then', 'sms', 'on_dead', 'keyed')
  running(m, 'W1', 'large', 'mail', 'then', 'sms', 'then', 'gate', 'BIG')
  running(m, 'W1', 'large2', 'mail', 'then', 'sms', 'BIG')
  running(m, 'W1', 'large3', 'mail', 'then', 'uniq', 'on_dead', 'sms', 'BIG')
  running(m, 'W1', 'lock', 'gate', 'lock', 'door', 'then', 'sms')
  running(m, 'W1', 'uniq', 'uniq', 'unique', 'u', 'then', 'sms')
  running(m, 'W1', 'fails', 'mail', 'then', 'sms', 'on_dead', 'keyed')
  running(m, 'W1', 'fails2', 'mail', 'on_dead', 'keyed', 'BIG')
  running(m, 'W1', 'stop', 'mail', 'then', 'sms')
  nth.must('later_cancel', m.name.stop)
  m.fate.stop = 'any'
  running(m, 'W1', 'dead', 'aside', 'then', 'sms', 'on_dead', 'keyed', 'BIG')
  settle(m, 'W1', 'dead', 'dead', 100)
  nth.worker(m, 'V')
  running(m, 'V', 'vthen', 'mail', 'then', 'sms')
  for _, tag in ipairs({'vpoison', 'vpoison2'}) do
    running(m, 'V', tag, 'mail', 'on_dead', 'keyed', tag == 'vpoison2' and 'BIG' or nil)
    nth.redis('HSET', 'tries', m.name[tag], '1 1 4 ' .. string.format('%.0f', nth.now_ms()))
    m.fate[tag] = 'dead'
  end
  m.victims = {m.name.V}
  table.remove(m.live)
  nth.add(m, 'door1', 'gate', 'lock', 'door', 'then', 'uniq')
  claim(m, 'W1', 'gate')
  nth.add(m, 'wait', 'mail', 'then', 'sms', 'on_dead', 'keyed')
  nth.add(m, 'wait2', 'mail', 'then', 'sms', 'BIG')
  for _, tag in ipairs({'late', 'late2'}) do
    nth.add(m, tag, 'mail', 'expire', '1ms', 'on_dead', 'mail', 'priority', '3', tag == 'late2' and 'BIG' or nil)
    m.fate[tag] = 'dead'
  end
  nth.pass(10)
end

-- Batches with members in every state, and a worker that died with some. `last` has one live member.
function nth.stages.batches(m)
  workers(m)
  m.fate.cb = 'any' -- the callbacks: fsck knows if one is missing
  nth.must('later_batch', 'b', 'then', 'sms', 'finally', 'sms', 'on_dead', 'keyed', 'cb|')
  nth.must('later_batch', 'last', 'then', 'sms', 'finally', 'sms', 'on_dead', 'keyed', 'cb|')
  nth.must('later_batch', 'open', 'finally', 'sms', 'cb|')
  running(m, 'W1', 'plain', 'mail')
  running(m, 'W1', 'one', 'mail', 'batch', 'b')
  running(m, 'W1', 'two', 'mail', 'batch', 'b', 'then', 'sms')
  running(m, 'W1', 'fails', 'mail', 'batch', 'b')
  running(m, 'W1', 'fails2', 'mail', 'batch', 'b', 'on_dead', 'keyed')
  running(m, 'W1', 'lock', 'gate', 'batch', 'b', 'lock', 'door')
  running(m, 'W1', 'last', 'mail', 'batch', 'last')
  running(m, 'W1', 'stop', 'mail', 'batch', 'b', 'then', 'sms')
  nth.must('later_cancel', m.name.stop)
  m.fate.stop = 'any'
  running(m, 'W1', 'dead', 'aside', 'batch', 'b')
  settle(m, 'W1', 'dead', 'dead', 100)
  nth.worker(m, 'V')
  running(m, 'V', 'vback', 'mail', 'batch', 'b')
  running(m, 'V', 'vdies', 'mail', 'batch', 'b')
  nth.redis('HSET', 'tries', m.name.vdies, '1 1 4 ' .. string.format('%.0f', nth.now_ms()))
  m.fate.vdies = 'dead'
  m.victims = {m.name.V}
  table.remove(m.live)
  nth.add(m, 'door1', 'gate', 'batch', 'b', 'lock', 'door')
  claim(m, 'W1', 'gate')
  nth.add(m, 'wait', 'mail', 'batch', 'b', 'then', 'sms')
  nth.add(m, 'wait2', 'aside', 'batch', 'open')
  nth.add(m, 'late', 'mail', 'batch', 'b', 'expire', '1ms', 'priority', '3')
  m.fate.late = 'dead'
  nth.must('later_batch_seal', 'b')
  nth.must('later_batch_seal', 'last')
  nth.pass(10)
end

-- Subscriptions: of a queue that takes its copy, of one that cannot, and of a file.
function nth.stages.topics(m)
  workers(m)
  m.fate.top = 'any'
  nth.redis('HSET', 'queues', 'sms', 'lock=l-{key}')
  nth.must('later_subscribe', 'news', 'mail')
  nth.must('later_subscribe', 'news', 'sms')
  nth.must('later_v1_declare_topics', m.name.W1, '5', 'last', '1', '3', 'mail', 'filed', 'old')
end

-- A fair queue: tenants with running, due and later jobs, of two priorities, one that holds a lock.
function nth.stages.turns(m)
  workers(m)
  nth.worker(m, 'V')
  nth.must('later_v1_declare', m.name.W1, '0', '1', 'mail', 'fair=1 w=3:acme')
  running(m, 'W1', 'r1', 'mail', 'key', 'acme')
  running(m, 'W1', 'r2', 'mail', 'key', 'b')
  running(m, 'V', 'v1', 'mail', 'key', 'c')
  for i = 1, 4 do
    nth.add(m, 'f' .. i, 'mail', 'key', i % 2 == 0 and 'acme' or 'b')
  end
  nth.add(m, 'first', 'mail', 'key', 'b', 'priority', '2')
  nth.add(m, 'locked', 'mail', 'key', 'd', 'lock', 'l')
  nth.add(m, 'none', 'mail')
  nth.add(m, 'soon', 'mail', 'key', 'e', 'in', '1m')
  m.victims = {m.name.V}
  table.remove(m.live)
end

-- The same with a raw member, so no sync is made over rows.
function nth.stages.fair(m)
  nth.stages.turns(m)
  nth.add_raw(m, 'raw', 'mail', '1')
end

-- Jobs wait, and the queue is to be fair from now on.
function nth.stages.unfair(m)
  workers(m)
  for i = 1, 6 do
    nth.add(m, 'f' .. i, 'mail', 'key', i % 2 == 0 and 'acme' or 'b')
  end
  nth.must('later_v1_declare', m.name.W1, '0', '1', 'mail', 'fair=1')
end

function nth.stages.fair_no_more(m)
  nth.stages.unfair(m)
  nth.must('later_v1_tidy', m.name.W1, '0')
  claim(m, 'W1', 'mail')
  nth.must('later_v1_declare', m.name.W1, '0', '1', 'mail', '')
end

-- Broadcast jobs: one for each worker, one of them given up, and one for a host. They may end in whichever way.
function nth.stages.pinned(m)
  workers(m)
  nth.worker(m, 'V')
  m.fate.pin = 'any'
  for i, row in ipairs(nth.must('later_broadcast', 'mail', 'keep', '1h', 'pin|')) do
    if i > 1 then
      m.name['p' .. row[1]] = row[2]
    end
  end
  m.name.p1, m.name.pv = m.name['p' .. m.name.W1], m.name['p' .. m.name.V]
  claim(m, 'V', 'mail')
  nth.must('later_broadcast', 'mail', 'priority', '3', 'pin|')
  nth.must('later_broadcast', 'sms', 'per', 'host', 'expire', '1ms', 'pin|')
  m.victims = {m.name.V}
  table.remove(m.live)
  nth.pass(10)
end

-- Schedules of each kind of overlap, whose last jobs wait, run, and wait for a retry. Their jobs may
-- end in whichever way.
function nth.stages.schedules(m)
  workers(m)
  m.fate.sch = 'any'
  for _, name in ipairs({'allow', 'skip', 'retry', 'queue', 'replace', 'paused', 'filed'}) do
    local overlap = name == 'retry' and 'skip' or (name == 'paused' or name == 'filed') and 'allow' or name
    nth.must('later_schedule_set', name, 'every', '1s', 'queue', name == 'retry' and 'sms' or 'mail', 'overlap', overlap, 'sch|')
    m.name['r_' .. name] = nth.must('later_schedules', name)[4]
  end
  nth.must('later_schedule_set', 'big', 'every', '1s', 'queue', 'aside', 'priority', '3', 'on_dead', 'sms',
           'sch|' .. string.rep('x', 16000))
  m.name.r_big = nth.must('later_schedules', 'big')[4]
  nth.must('later_schedule_pause', 'paused')
  nth.redis('ZADD', 'schedule:file', 5, 'filed')
  m.name.tried = nth.must('later_schedule_run', 'retry')[1]
  claim(m, 'W1', 'sms')
  settle(m, 'W1', 'tried', 'retry', 60000)
  nth.must('later_schedule_run', 'replace')
  claim(m, 'W1', 'mail')
  nth.must('later_schedule_run', 'queue')
  nth.must('later_schedule_run', 'skip')
end

-- Bloom filters: one with a key, one whose generation is full, one that has forgotten a generation.
function nth.stages.seen(m)
  workers(m)
  nth.must('later_seen', 'keys', 'a', 'for', '1h', 'capacity', '1000')
  for _, key in ipairs({'a', 'b'}) do
    nth.must('later_seen', 'full', key, 'capacity', '1')
  end
  nth.pass(10)
end

-- A job of this worker has kept steps, and a checkpoint.
local function keep(m, name, tag, checkpoint)
  local epoch, id = m.name[name], m.name[tag]
  local start = m.held[epoch][id].start
  nth.must('later_v1_keep', epoch, id, start, 'a', 'output')
  nth.must('later_v1_keep', epoch, id, start, 'b', '')
  if checkpoint then
    nth.must(unpack(nth.sync_args(m, epoch, 0, {{id, start, 'checkpoint', 'mail', 0, checkpoint}}, {})))
  end
end

-- Jobs in every state that have kept steps and checkpoints, beside plain ones, and a worker that died with one.
function nth.stages.kept(m)
  workers(m)
  for _, tag in ipairs({'plain', 'told', 'done', 'keep', 'retry', 'dies', 'release', 'stop', 'dead1', 'dead2', 'wait'}) do
    running(m, 'W1', tag, 'mail')
    if tag ~= 'plain' and tag ~= 'told' then
      keep(m, 'W1', tag, tag ~= 'keep' and tag ~= 'dead2' and 'c' or nil)
    end
  end
  nth.must(unpack(nth.sync_args(m, m.name.W1, 0, {{m.name.told, 1, 'checkpoint', 'mail', 0, 'c'}}, {})))
  settle(m, 'W1', 'dead1', 'dead', 100)
  settle(m, 'W1', 'dead2', 'dead', 100)
  settle(m, 'W1', 'wait', 'retry', 0)
  running(m, 'W1', 'uwait', 'uniq', 'unique', 'u')
  keep(m, 'W1', 'uwait', 'c')
  settle(m, 'W1', 'uwait', 'retry', 3600000)
  nth.must('later_cancel', m.name.stop)
  m.fate.stop = 'any'
  nth.worker(m, 'V')
  running(m, 'V', 'vkept', 'sms')
  keep(m, 'V', 'vkept', 'c')
  m.victims = {m.name.V}
  table.remove(m.live)
  nth.add(m, 'n1', 'mail')
  nth.add(m, 'n2', 'mail', 'in', '500ms')
  nth.pass(10)
end

-- A cancel entry of a job that has ended; a sync removes it.
function nth.stages.flag(m)
  nth.stages.empty(m)
  nth.add(m, 'p1', 'mail')
  nth.redis('HSET', 'cancel', 'j00000000000', '5')
end

-- One thing of each kind that `later fsck --repair` repairs.
function nth.stages.broken(m)
  nth.stages.life(m)
  nth.must('later_lock', 'mine', 'ann', 'ttl', '1h')
  m.callers = {{'later_unlock', 'mine', 'ann'}}
  for _, tag in ipairs({'norecord', 'noplace', 'twoplaces', 'misplaced', 'wrongset', 'nopayload', 'tries', 'badscore', 'corrupt',
                        'lostwaiter', 'owner', 'stranger', 'aside'}) do
    nth.add(m, tag, 'mail', 'in', '1h', tag == 'nopayload' and 'BIG' or nil)
    m.fate[tag] = 'any'
  end
  local id = m.name
  nth.redis('HDEL', 'jobs', id.norecord)
  nth.redis('ZREM', 'q:mail:5', id.noplace, id.misplaced, id.wrongset, id.lostwaiter, id.owner, id.stranger)
  nth.redis('ZADD', 'dead:mail', nth.now_ms(), id.twoplaces)
  nth.redis('ZADD', 'q:sms:5', nth.now_ms(), id.misplaced)
  nth.redis('ZADD', 'q:mail:3', nth.now_ms(), id.wrongset)
  nth.redis('DEL', 'big:' .. id.nopayload)
  nth.redis('HSET', 'tries', id.tries, 'garbage')
  nth.redis('ZADD', 'q:mail:5', '+inf', id.badscore)
  nth.redis('HSET', 'jobs', id.corrupt, 'corrupt|garbage')
  nth.redis('ZADD', 'parked:mail', '1790000000000000', id.lostwaiter)
  nth.redis('HSET', 'parked', id.lostwaiter, '1790000000000000 0 1790000000000 1\nlock:gone')
  nth.redis('ZREM', 'q:mail:5', id.aside)
  nth.redis('ZADD', 'parked:mail', '1790000000000001', id.aside)
  nth.redis('ZADD', 'line:mail:lock:mine', '1790000000000001', id.aside)
  nth.redis('HSET', 'parked', id.aside, '1790000000000001 0 1790000000000 1\nlock:mine', '=gone\nlock:mine', '5 5')
  nth.redis('ZADD', 'running', '1.5', id.owner)
  nth.redis('ZADD', 'running', '77', id.stranger)
  nth.redis('HSET', 'tries', 'j00000000000', '1 1 0 5', id.stranger, '1 1 0 1790000000000')
  nth.redis('HSET', 'errors', 'j00000000000', 'failed 0 5 1 x\n')
  nth.redis('HSET', 'holds', 'j00000000000', 'lock:nobody')
  nth.redis('HSET', 'lock:nobody', 'holder', 'j00000000000', 'fence', '5', 'depth', '1', 'until', '0', 'since', '5')
  nth.redis('ZADD', 'sem:two', '1000000000000005', '@55')
  nth.redis('SADD', 'rate:granted:log', 'j00000000000')
  nth.redis('ZADD', 'granted:mail', '5', 'j00000000000')
  nth.redis('ZADD', 'wait:lock:empty', '5', 'mail')
  nth.redis('ZADD', 'wait:lock:empty', '6', '=nobody')
  nth.redis('HSET', 'worker:66', 'link', '1')
  nth.redis('HSET', 'workers', 'garbage', '1')
  nth.redis('SET', 'big:j00000000001', 'orphan|')
  nth.redis('HDEL', 'prio', 'mail')
  nth.redis('ZREM', 'heads', 'mail')
  nth.redis('SREM', 'names', 'mail')
  nth.redis('HSET', 'seen', 'bad', 'garbage')
  nth.redis('SET', 'seen:gone:5', 'x')
end
