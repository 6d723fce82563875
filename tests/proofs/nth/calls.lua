-- Scenarios: calls about one thing: adds, one job, one gate.

-- ---- adds

-- The new jobs, known by their tags, exist if the call succeeded, and do not exist if it failed.
local function added(...)
  local tags = {...}
  return function(m, reply, why)
    if not why then
      for _, tag in ipairs(tags) do
        m.fate[tag] = 'run'
      end
      m.tag[reply[1]] = type(reply[1]) == 'string' and tags[1] or nil
    end
  end
end

-- The job `was` has the payload of a new one now. After an error either payload may run, but only
-- one of them.
local function rewritten(was)
  return function(m, _, why)
    m.gates[was] = nil
    if not why then
      m.fate[was] = nil
      m.fate.new, m.tag[m.name[was]] = 'run', 'new'
    end
  end
end

nth.words('empty', 'later_add mail new|', added('new'), false, true)
nth.words('plain', 'later_add mail new|', added('new'), false, true)
nth.words('plain', 'later_add sms in 5m new|', added('new'), false, true)
nth.words('plain', 'later_add mail priority 1 key k attempts 3 timeout 1s expire 1h keep 1h trace ' .. nth.TRACE ..
          ' token t new|', added('new'), false, true)
nth.words('plain', 'later_add mail BIG', added('new'), false, true)
nth.words('plain', 'later_add_many mail n1| n2| n3|', added('n1', 'n2', 'n3'), false, true)
nth.words('plain', 'later_add_many sms priority 7 -- n1| BIG', added('n1', 'new'), false, true)
nth.words('uniq', 'later_add mail token used tok|')
nth.words('uniq', 'later_add uniq unique fresh new|', added('new'), false, true)
nth.words('uniq', 'later_add uniq unique fresh token tt unique_for 1h lock door new|', added('new'), false, true)
nth.words('uniq', 'later_add uniq unique wait new|')
nth.words('uniq', 'later_add uniq unique wait unique_mode replace new|', rewritten('uwait'), false, true)
nth.words('uniq', 'later_add uniq unique wait unique_mode replace priority 2 token tt BIG', rewritten('uwait'), false, true)
nth.words('uniq', 'later_add uniq unique wait unique_mode move in 5m new|', rewritten('uwait'), false, true)
nth.words('uniq', 'later_add uniq unique park unique_mode replace new|', rewritten('upark'), false, true)
nth.words('uniq', 'later_add uniq unique park unique_mode move new|', rewritten('upark'), false, true)
nth.words('uniq', 'later_add uniq unique run new|')
nth.words('uniq', 'later_add uniq unique run unique_mode replace new|', added('new'), false, true)
nth.words('uniq', 'later_add uniq unique run unique_mode move in 5m new|', added('new'), false, true)
nth.words('uniq', 'later_add uniq unique for unique_mode replace new|')
nth.words('uniq', 'later_add uniq unique dead new|', added('new'), false, true)
nth.words('gates', 'later_add gate lock door sem smtp rate slow new|', added('new'), false, true)
nth.words('gates', 'later_add keyed key 7 new|', added('new'), false, true)
nth.words('life', 'later_v1_import mail 0 n1| 2 priority 3 key k n2| 1 due 1000 BIG', added('n1', 'n2', 'new'))
nth.words('life', 'later_v1_import mail 1 token tt new|', added('new'))
nth.scenario{name = 'life: later_v1_import of a dead job', stage = 'life', is_atomic = true, after = function(m, _, why)
  if not why then
    m.fate.new = 'dead'
  end
end, call = function()
  local outcome = 'dead 65 ' .. string.format('%.0f', nth.now_ms()) .. ' 3 why\nout'
  return {'later_v1_import', 'mail', '4', 'dead', outcome, 'tries', '3 2 1', 'token', 'tt', 'unique', 'u', 'new|'}
end}
nth.words('uniq', 'later_v1_import uniq 1 unique wait new|')
nth.words('uniq', 'later_v1_import uniq 2 unique fresh unique_until 99999999999999 new|', added('new'))

nth.words('uniq', 'later_add uniq unique ret unique_mode replace new|', rewritten('uret'), false, true)

-- ---- one job

-- Where the call succeeds, this is the fate of the job from now on.
function nth.now(tag, fate)
  return function(m, _, why)
    if not why then
      m.fate[tag] = fate
      if fate == 'run' then
        m.ended[tag] = nil
      end
    end
  end
end

local now = nth.now

nth.words('plain', 'later_cancel $p1', now('p1', 'gone'))
nth.words('plain', 'later_cancel $prio0', now('prio0', 'gone'))
nth.words('plain', 'later_cancel $big', now('big', 'gone'))
nth.words('plain', 'later_cancel $opt', now('opt', 'gone'))
nth.words('plain', 'later_run_now $later')
nth.words('plain', 'later_reschedule $p1 +5m')
nth.words('plain', 'later_reschedule $ret +5m')
nth.words('solo', 'later_cancel $sus', now('sus', 'gone'))
nth.words('solo', 'later_reschedule $sus +5m')
nth.words('results', 'later_cancel $done1', now('done1', 'any'))
nth.words('gates', 'later_cancel $door1', now('door1', 'gone'))
nth.words('gates', 'later_cancel $granted', now('granted', 'gone'))
nth.words('gates', 'later_cancel $enough', now('enough', 'gone'))
nth.words('gates', 'later_cancel $res', now('res', 'gone'))
nth.words('gates', 'later_cancel $hold', now('hold', 'any'))
nth.words('gates', 'later_run_now $both')
nth.words('gates', 'later_reschedule $granted +5m')
nth.words('gates', 'later_reschedule $res +5m')
nth.words('uniq', 'later_cancel uniq@wait', now('uwait', 'gone'))
nth.words('uniq', 'later_retry $udead', now('udead', 'run'))
nth.words('life', 'later_retry $dead1', now('dead1', 'run'))
nth.words('life', 'later_retry $dead2', now('dead2', 'run'))
nth.words('plain', 'later_pause mail by me reason why for 5m')
nth.words('plain', 'later_pause new')
nth.scenario{name = 'forget: a queue that is paused', stage = 'plain', prepare = function()
  nth.must('later_pause', 'unused', 'by', 'me')
  nth.redis('HSET', 'stats', 'done:unused', '3', 'dead:unused', '1')
  nth.redis('HSET', 'queues', 'unused', 'lock=a')
end, call = function() return {'later_v1_forget', 'unused'} end}
nth.words('plain', 'later_v1_forget mail')
nth.words('plain', 'later_v1_known new')
nth.words('life', 'later_resume sms')
nth.words('life', 'later_resume sms at +5m')
nth.words('gates', 'later_resume aside')

-- ---- gates

nth.words('gates', 'later_lock new ann')
nth.words('gates', 'later_lock new ann wait 1m')
nth.words('gates', 'later_lock door eve')
nth.words('gates', 'later_lock door eve wait 1m')
nth.words('gates', 'later_lock door bob wait 1m')
nth.words('gates', 'later_lock mine ann ttl 2h')
nth.words('timers', 'later_lock door bob wait 1m', nil, true)
nth.words('gates', 'later_unlock mine ann')
nth.words('gates', 'later_unlock mine ann token t')
nth.words('gates', 'later_unlock door bob')
nth.words('gates', 'later_unlock door nobody')
nth.scenario{name = 'unlock with a job that waits', stage = 'gates', is_atomic = true, prepare = function(m)
  nth.redis('HSET', 'worker:' .. m.name.W1, 'limits', 'gate=9')
  nth.must('later_limit_set', 'smtp', 'semaphore', '5')
  nth.must('later_lock', 'turn', 'ann', 'ttl', '1h')
  nth.add(m, 'turn', 'gate', 'lock', 'turn', 'sem', 'smtp')
  nth.must('later_add', 'gate', 'lock', 'turn', 'turn2|')
  m.fate.turn2 = 'run'
  m.gates.turn2 = {'lock:turn'}
  local epoch = m.name.W2
  nth.take_claims(m, epoch, nth.must(unpack(nth.sync_args(m, epoch, 1, {}, {'gate'}))))
  m.callers[#m.callers + 1] = {'later_unlock', 'turn', 'ann'}
end, call = function() return {'later_unlock', 'turn', 'ann'} end}
nth.scenario{name = 'unlock with a caller that waits', stage = 'gates', is_atomic = true, prepare = function(m)
  nth.must('later_lock', 'turn', 'ann', 'ttl', '1h')
  nth.must('later_lock', 'turn', 'bob', 'ttl', '1h', 'wait', '1h')
  m.callers[#m.callers + 1] = {'later_unlock', 'turn', 'ann'}
end, call = function() return {'later_unlock', 'turn', 'ann'} end}
nth.scenario{name = 'a lock whose turn it is', stage = 'gates', is_atomic = true, prepare = function()
  nth.must('later_lock', 'turn', 'ann', 'ttl', '1h')
  nth.must('later_lock', 'turn', 'bob', 'ttl', '1h', 'wait', '1h')
  nth.must('later_unlock', 'turn', 'ann')
end, call = function() return {'later_lock', 'turn', 'bob', 'ttl', '1h', 'wait', '1h'} end}
nth.scenario{name = 'unlock of a lock held twice', stage = 'gates', is_atomic = true, prepare = function()
  nth.must('later_lock', 'mine', 'ann', 'ttl', '1h')
end, call = function() return {'later_unlock', 'mine', 'ann', 'token', 'x'} end}
nth.words('gates', 'later_sem_acquire t:b ann')
nth.words('gates', 'later_sem_acquire t:a eve')
nth.words('gates', 'later_sem_acquire smtp ann wait 1m')
nth.words('gates', 'later_sem_acquire t:a ann ttl 2h')
nth.words('gates', 'later_sem_release t:a ann')
nth.words('gates', 'later_sem_release t:a bob')
nth.words('timers', 'later_sem_acquire t:a eve')
nth.scenario{name = 'a lock of which the lease is over', stage = 'gates', is_atomic = true, prepare = function()
  nth.redis('HSET', 'lock:over', 'holder', '=ann', 'fence', '5', 'depth', '1', 'until', nth.now_ms() - 1, 'since', '5')
  nth.redis('PEXPIRE', 'lock:over', '100000')
end, call = function() return {'later_lock', 'over', 'eve', 'wait', '1m'} end}
nth.scenario{name = 'a throttle, the clock set back', stage = 'gates', is_atomic = true, prepare = function()
  nth.must('later_limit_set', 'alone', 'rate', '2/1h', 'algorithm', 'sliding')
  nth.must('later_throttle', 'alone')
  nth.now_us = nth.now_us - 60000000
end, call = function() return {'later_throttle', 'alone'} end}
nth.words('gates', 'later_sem_release own ann')
nth.words('gates', 'later_renew mine ann ttl 2h')
nth.words('gates', 'later_renew t:a ann ttl 2h kind sem')
nth.words('gates', 'later_throttle slow')
nth.words('gates', 'later_throttle log quota 1')
nth.words('gates', 'later_throttle fix')
nth.words('gates', 'later_limit_set smtp semaphore 3', nil, true)
nth.words('gates', 'later_limit_set smtp semaphore 0')
nth.words('gates', 'later_limit_set slow rate 0/1s')
nth.words('gates', 'later_limit_set log rate 9/1s burst 9', nil, true)
nth.words('gates', 'later_limit_set new semaphore 3 missing')
nth.words('gates', 'later_limit_set u:{key} semaphore 1')
nth.words('gates', 'later_limit_del smtp')
nth.words('gates', 'later_limit_del slow')
nth.words('gates', 'later_limit_del t:{key}')
nth.words('gates', 'later_v1_enter $W2 lock:new', function(m)
  table.insert(m.callers, {'later_v1_exit', m.name.W2})
end)
nth.words('gates', 'later_v1_enter $P2 lock:beside wait')
nth.words('gates', 'later_v1_enter $P1 lock:beside')
nth.words('gates', 'later_v1_exit $P1')
nth.words('gates', 'later_v1_exit $P3')
nth.words('gates', 'later_v1_leave $P2')
nth.scenario{name = 'declare', stage = 'gates', is_atomic = true, call = function(m)
  return {'later_v1_declare', m.name.W1, '3', 'new', 'semaphore 5 keep', 'smtp', 'semaphore 9 keep', 'v:{key}',
          'semaphore 1 keep', '2', 'mail', 'lock=mail sem=new', 'keyed', ''}
end, after = function(m)
  m.gates.key1, m.gates.key2 = nil, nil
end}
nth.scenario{name = 'fenced', stage = 'gates', is_atomic = true, call = function()
  return {'later_fenced', 'mine', nth.redis('HGET', 'lock:mine', 'fence'), 'HSET', nth.key('stats'), 'x', '1'}
end}
