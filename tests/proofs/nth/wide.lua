-- Scenarios: workers, calls about many jobs, repairs, readers.

-- ---- workers

nth.words('life', 'later_v1_beat $W1 mail,sms,gate,keyed,aside,uniq')
nth.words('life', 'later_v1_beat $W1')
nth.words('life', 'later_v1_await $kept1')
nth.words('life', 'later_v1_quiet $W2 on')
nth.words('life', 'later_v1_quiet * off')
nth.words('life', 'later_v1_note raw-queue mail')
nth.words('life', 'later_v1_await $wait1')
nth.words('life', 'later_v1_tidy $W1 2 mail 1 sms 604800000 2 room 50 retried 3', function(m)
  m.fate.dead1, m.fate.dead2 = 'any', 'any'
end, true)
nth.words('plain', 'later_v1_tidy $W1 1 mail 604800000', nil, true)
nth.words('gates', 'later_v1_tidy $W1 2 gate 604800000 aside 604800000', nil, true)
nth.scenario{name = 'tidy: what nobody serves, and old names', stage = 'life', prepare = function(m)
  nth.redis('HSET', 'worker:' .. m.name.W1, 'queues', 'mail')
  nth.redis('HSET', 'worker:' .. m.name.W2, 'queues', 'mail')
  nth.redis('HSET', 'worker:' .. m.name.V, 'queues', 'mail')
  nth.add(m, 'unserved', 'uniq')
  nth.redis('SADD', 'names', 'old')
  nth.redis('HSET', 'notes', 'old:note', '5')
end, call = function(m)
  return {'later_v1_tidy', m.name.W1, '1', 'uniq', '604800000'}
end}
nth.words('empty', 'later_v1_leave $W2', function(m, reply)
  if reply == 'left' then
    m.live = {m.name.W1}
  end
end)

local function reap(name, victim, stage, prepare)
  nth.scenario{name = name, stage = stage, prepare = prepare, call = function(m)
    return {'later_v1_reap', m.name.W1, m.name[victim], '1', '5', '100'}
  end, after = function(m)
    m.held[m.name[victim]] = nil
    m.victims = {m.name[victim]}
  end}
end
reap('reap: a worker with jobs', 'V', 'life')
reap('reap: a program that holds a lock', 'P1', 'gates')
reap('reap: a program that waits', 'P3', 'gates')
reap('reap: a worker with gates', 'W2', 'gates', function(m)
  m.live = {m.name.W1}
end)

-- The worker runs one job that Redis has given away, and Redis gave it jobs that it never heard of.
nth.scenario{name = 'reconcile', stage = 'life', worker = nil, call = function(m)
  local epoch = m.name.W1
  return {'later_v1_reconcile', epoch, m.link[epoch], '2', m.name.w1a, '1', m.name.wait1, '1', '1790000999999999'}
end, after = function(m, reply, why)
  local epoch = m.name.W1
  local heard = {[m.name.w1a] = m.held[epoch][m.name.w1a]}
  for id in pairs(m.held[epoch]) do
    m.unheard[id] = not heard[id] or nil
  end
  m.held[epoch] = heard
  if why then
    -- It asks again until it gets an answer.
    nth.reconcile(m, epoch)
  else
    m.link[epoch] = tostring(reply[3])
    if table.concat(reply[5], ' ') ~= m.name.wait1 then
      nth.found('settled', 'lost are ' .. table.concat(reply[5], ' '))
    end
  end
end}

-- W1 comes back after Redis forgot it, or with a new registration. `names`: the jobs that it still
-- runs.
local function register(name, names, prepare)
  local function args(m, old, seq)
    local out = {'later_v1_register', '0', 'inst-W1', seq, old, '3', 'host', 'h', 'queues', table.concat(nth.QUEUES, ','),
                 'places', '50', '1', 'max_payload', '1048576', tostring(#names)}
    for _, tag in ipairs(names) do
      out[#out + 1], out[#out + 2] = m.name[tag], '1'
    end
    return out
  end
  nth.scenario{name = name, stage = 'life', prepare = prepare, call = function(m)
    return args(m, m.name.W1, '2')
  end, after = function(m, reply, why)
    local old = m.name.W1
    if why then
      reply = nth.must(unpack(args(m, old, '3')))
    end
    local epoch, was = reply[2], m.held[old]
    nth.redis('HSET', 'worker:' .. epoch, 'room', 50)
    m.held[epoch], m.held[old], m.link[epoch] = {}, nil, '1'
    for i, tag in ipairs(names) do
      if reply[5][i] == 'adopted' then
        m.held[epoch][m.name[tag]] = was[m.name[tag]] or {start = 1, tag = tag}
      end
    end
    m.live = {epoch, m.name.W2}
    m.victims = {m.name.V, old}
  end}
end
register('register: adopts what it runs', {'w1a', 'w1lock', 'w1uniq'})
register('register: adopts all', {'w1a', 'w1b', 'w1lock', 'w1uniq', 'w1sem'})
-- W1 was reaped meanwhile: its jobs wait again, and another job has the lock of the first one.
register('register: adopts what was taken from it', {'w1a', 'w1b', 'w1lock', 'w1uniq', 'w1sem'}, function(m)
  nth.must('later_v1_reap', m.name.W2, m.name.W1, '1', '5', '100')
end)
register('register: adopts what Redis forgot', {'w1a', 'w1lock', 'w1uniq', 'w1sem'}, function(m)
  nth.must('later_limit_set', 'two', 'semaphore', '1')
  nth.redis('HDEL', 'workers', m.name.W1)
  nth.redis('DEL', 'worker:' .. m.name.W1)
end)

-- ---- many jobs

local function purge(stage, line, tags)
  nth.words(stage, line, function(m)
    for _, tag in ipairs(tags) do
      m.fate[tag] = 'any'
    end
  end, true)
end
purge('life', 'later_v1_purge mail due 100', {'wait1', 'wait2', 'raw', 'rawinf'})
nth.scenario{name = 'purge: raw members', stage = 'empty', is_atomic = true, prepare = function(m)
  nth.add_raw(m, 'raw1', 'sms', '1')
  nth.add_raw(m, 'raw2', 'sms', '2')
end, call = function() return {'later_v1_purge', 'sms', 'due', '100'} end, after = function(m)
  m.fate.raw1, m.fate.raw2 = 'any', 'any'
end}
nth.scenario{name = 'purge: the last that wait', stage = 'empty', prepare = function(m)
  nth.add(m, 'p1', 'sms')
end, call = function() return {'later_v1_purge', 'sms', 'due', '100'} end, after = function(m)
  m.fate.p1 = 'any'
end}
purge('life', 'later_v1_purge mail dead 100', {'dead1', 'dead2'})
purge('life', 'later_v1_purge mail done 100', {'kept1', 'kept2'})
purge('gates', 'later_v1_purge gate parked 100', {'door1', 'door2', 'both', 'log2', 'res', 'granted', 'enough'})

-- Members of the foreign set of a job each, with these tags: each is in exactly one place.
local function foreign_after(tags, member_of)
  return function(m)
    for i, tag in ipairs(tags) do
      local left = redis.call('ZSCORE', 'later:{nth}x', member_of(tag, i))
      local is_there = nth.whereabouts(m)[tag]
      if (left and is_there) or not (left or is_there) then
        nth.found(left and 'twice' or 'lost', tag .. (left and ' is here and there' or ' is neither here nor there'))
      end
      m.fate[tag] = is_there and 'any' or nil
    end
    redis.call('DEL', 'later:{nth}x', 'later:{nth}y')
  end
end

local function itself(tag) return tag .. '|' end
local function numbered(_, i) return 'm' .. i end

local function foreign(name, words, prepare, tags, member_of)
  nth.scenario{name = name, stage = 'life', prepare = prepare, after = foreign_after(tags, member_of),
               call = function(m)
    local out = {}
    for word in string.gmatch(words, '%S+') do
      out[#out + 1] = word == '-0' and '' or word == '$W1' and m.name.W1 or
                      (string.gsub(word, '^{', 'later:{nth}'))
    end
    return out
  end}
end

local function alone()
  redis.call('ZADD', 'later:{nth}x', 5, 'a1|', 6, 'a2|', '+inf', 'a3|')
end

local function with_bodies()
  redis.call('ZADD', 'later:{nth}x', 5, 'm1', 6, 'm2', '+inf', 'm3')
  redis.call('HSET', 'later:{nth}y', 'm1', 'a1|', 'm2', 'a2|', 'm3', 'a3|')
end

foreign('adopt: members of a foreign set', 'later_v1_adopt mail {x -0 ms 1 -0 -0 100', alone, {'a1', 'a2', 'a3'}, itself)
foreign('adopt: with a hash', 'later_v1_adopt mail {x {y ms 1 -0 -0 100', with_bodies, {'a1', 'a2', 'a3'}, numbered)
foreign('collect: members of a foreign set', 'later_v1_collect $W1 1 mail {x -0 ms - 0', alone, {'a1', 'a2', 'a3'},
        itself)
foreign('collect: with a hash', 'later_v1_collect $W1 1 mail {x {y ms - 0', with_bodies, {'a1', 'a2', 'a3'}, numbered)
foreign('collect: into a queue that needs a key', 'later_v1_collect $W1 2 keyed {x -0 ms - 0 mail {z -0 s 9 0', alone,
        {'a1', 'a2', 'a3'}, itself)

-- ---- repairs: none makes anything worse that it does not repair

local REPAIRS = {"keys '' 100 jobs hash heads zset worker:66 hash", "set '' 100 q:mail:5", "set '' 100 dead:mail",
  "set '' 100 q:sms:5", "set '' 100 q:mail:3", "running '' 100", "jobs '' 100", "tries '' 100", "errors '' 100", "workers '' 100",
  "parked '' 100", "holds '' 100", "gates '' 100 lock:nobody sem:two rate:granted:log wait:lock:empty granted:mail",
  "queue '' 100 mail", "keys '' 100 big:j00000000001 string", "keys '' 100 seen:gone:5 string", "seen '' 100"}
for i = 1, #REPAIRS do
  nth.words('broken', 'later_v1_repair ' .. REPAIRS[i], nil, true)
end

-- ---- readers: they change nothing, whatever fails

local READERS = {'later_show $door1', 'later_show $granted', 'later_show $hold', 'later_explain $door1',
                       'later_explain $granted', 'later_explain $hold', 'later_explain $both', 'later_explain $plain',
                       'later_explain $log2', 'later_explain $door2', 'later_explain $res', 'later_explain $enough',
                       'later_limits', 'later_fence_check door 5',
                       'later_v1_gates lock:door sem:smtp rate:slow rate:log sem:t:a',
                       "later_v1_list gate parked '' 10", 'later_v2_look 2000 gate mail', 'later_v1_rights',
                       'later_v1_health 2000', 'later_stats', 'later_stats gate', 'later_v1_workers',
                       'later_v1_suspects', "later_v1_queues '' 100", 'later_v1_queues .0:0 100', 'later_v1_running',
                       'later_v1_summary', 'later_v1_ahead gate 0 60000 60', "later_v1_gate_names '' 250",
                       "later_v1_export gate parked 1 '' '' 100"}
for i = 1, #READERS do
  nth.words('gates', READERS[i])
end
READERS = {'later_show $kept1', 'later_show $dead2', 'later_explain $wait1', 'later_explain $dead1',
                       'later_explain $kept1', 'later_explain $w1uniq', 'later_explain $wait3', 'later_result $kept1',
                       'later_result $dead1', "later_v1_list mail due '' 10", "later_v1_list mail dead '' 10",
                       "later_v1_list mail running '' 10", "later_v1_list mail done '' 10", 'later_v1_metrics 0 retried',
                       "later_v1_reasons mail '' 500", "later_v1_reasons mail '' 500 0 1000",
                       "later_v1_queues '' 1", 'later_v1_ahead mail 0 60000 60',
                       "later_v1_export mail due 1 '' '' 100", "later_v1_export mail dead 1 '' '' 100",
                       "later_v1_audit jobs '' 100", "later_v1_audit running '' 100", "later_v1_audit workers '' 100",
                       "later_v1_audit queue '' 100 mail gate", "later_v1_audit keys '' 100 jobs hash heads zset",
                       "later_v1_audit parked '' 100", "later_v1_audit holds '' 100", "later_v1_audit tries '' 100",
                       "later_v1_audit gates '' 100 lock:door wait:lock:door", "later_v1_audit set '' 100 q:mail:5"}
nth.words('solo', 'later_explain $sus')
for i = 1, #READERS do
  nth.words('life', READERS[i])
end

-- The last scenario: from here on each call publishes its events for a minute.
nth.sync_scenario('sync: while somebody follows', 'results', {results = nth.RESULTS, prepare = function()
  nth.must('later_v1_tail', '60000')
end})
