-- Scenarios: syncs, with results of every verb and claims of every kind.

-- spec: results {tag, verb, amount, output, children}* (BIG: a large one; children: {queue, option, value, ...}*),
-- short {queue, tag...}*, queues, ahead, room, is_second
-- (the same sync was made before, and its reply was lost; without claims)
function nth.sync_scenario(name, stage, spec)
  local function results_of(m)
    local out, epoch = {}, m.name[spec.worker or 'W1']
    for i, r in ipairs(spec.results or {}) do
      out[i] = {m.name[r[1]], m.held[epoch][m.name[r[1]]].start, r[2], 'mail', r[3] or 0,
                r[4] == 'BIG' and r[1] .. '|' .. string.rep('y', 20000) or r[4], children = r[5]}
    end
    return out
  end
  local function groups_of(m)
    local out = {}
    for i, group in ipairs(spec.short or {}) do
      out[i] = type(group) == 'function' and group(m) or group
    end
    return out
  end
  local function short_of(m)
    local out, epoch = {}, m.name[spec.worker or 'W1']
    for _, group in ipairs(groups_of(m)) do
      for i = 2, #group do
        out[#out + 1] = {m.name[group[i]], m.held[epoch][m.name[group[i]]].start, 'done', group[1], 0}
      end
    end
    return out
  end
  local function more(m)
    if not spec.short and not spec.ahead then
      return nil
    end
    local out = {#(spec.short or {})}
    for _, group in ipairs(groups_of(m)) do
      out[#out + 1], out[#out + 2], out[#out + 3] = group[1], 1, #group - 1
      for i = 2, #group do
        out[#out + 1] = m.name[group[i]]
      end
    end
    if spec.ahead then
      out[#out + 1], out.has_ahead = spec.ahead, true
    end
    return out
  end
  local function keep_sent(m)
    for _, list in ipairs({results_of(m), short_of(m)}) do
      for _, r in ipairs(list) do
        m.sent[r[1]] = r
      end
    end
  end
  local function call(m)
    local epoch = m.name[spec.worker or 'W1']
    local ending = 0
    for _, r in ipairs(spec.results or {}) do
      ending = ending + (nth.runs_on(r[2]) and 0 or 1)
    end
    local held = nth.count(m.held[epoch]) - ending - #short_of(m)
    return nth.sync_args(m, epoch, held, results_of(m), spec.queues or nth.QUEUES, more(m), spec.room)
  end
  local function lose_first(m)
    nth.must(unpack(call(m)))
    keep_sent(m)
    for id, r in pairs(m.sent) do
      nth.go_on(m, m.tag[id], r[3], r.children)
    end
  end
  nth.scenario{name = name, stage = stage, worker = spec.worker or 'W1', call = call,
    prepare = spec.is_second and lose_first or spec.prepare,
    after = function(m, reply, why)
      local epoch, results, short = m.name[spec.worker or 'W1'], results_of(m), short_of(m)
      if spec.after then
        spec.after(m)
      end
      if why or reply[2] ~= 'ok' then
        keep_sent(m)
        return
      end
      nth.take_answers(m, epoch, reply, results, short)
      nth.take_claims(m, epoch, reply)
    end}
end

nth.RESULTS = {{'done1', 'done'}, {'done2', 'done'}, {'keep', 'done', 3600000}, {'retry', 'retry', 500}, {'dead', 'dead', 100},
                 {'release', 'release', 0}, {'progress', 'progress'}, {'cdone', 'done'}, {'cretry', 'retry', 500},
                 {'awaited', 'done'}, {'brdone', 'done'}, {'brretry', 'retry', 500}, {'plus', 'dead', 100}, {'big', 'done'},
                 {'lock', 'done'}, {'sem', 'retry', 0}, {'uniq', 'done'}}

nth.sync_scenario('sync: plain and raw jobs', 'plain', {})
nth.sync_scenario('sync: plain and raw jobs, short', 'plain', {ahead = 0})
nth.sync_scenario('sync: plain jobs, ahead', 'plain', {ahead = 1000})
nth.sync_scenario('sync: one of each queue', 'plain', {room = 1})
nth.sync_scenario('sync: only heads', 'plain', {room = 0})
nth.sync_scenario('sync: a suspect', 'solo', {})
nth.sync_scenario('sync: a suspect, short', 'solo', {ahead = 0})
nth.sync_scenario('sync: a suspect behind a lock', 'solo', {queues = {'gate'}})
nth.sync_scenario('sync: results of every verb', 'results', {results = nth.RESULTS, queues = {}})
nth.sync_scenario('sync: results and claims', 'results', {results = nth.RESULTS})
nth.sync_scenario('sync: the end of a lock', 'results', {results = {{'lock', 'done'}}, queues = {'gate'}})
nth.sync_scenario('sync: the end of a lock, elsewhere', 'results', {results = {{'lock', 'done'}}, queues = {'mail'}})
nth.sync_scenario('sync: the end of a semaphore', 'results', {results = {{'sem', 'dead', 100}}, queues = {'gate'}, ahead = 0})
nth.sync_scenario('sync: short results', 'short', {short = {{'mail', 's1', 's2', 's3', 's4'}, {'sms', 's5', 's6'}}, queues = {}})
nth.sync_scenario('sync: short results and claims', 'short', {short = {{'mail', 's1', 's4'}, {'sms', 's5', 's6'}}, ahead = 1000})
nth.sync_scenario('sync: gates', 'gates', {})
nth.sync_scenario('sync: gates, short', 'gates', {ahead = 0})
nth.sync_scenario('sync: gates, the end of their holder', 'gates', {results = {{'hold', 'done'}}})
nth.sync_scenario('sync: gates, the other worker', 'gates', {worker = 'W2', results = {{'log1', 'retry', 0}}})
nth.sync_scenario('sync: gates, one permit', 'gates', {room = 1})
nth.sync_scenario('sync: gates, timers', 'timers', {})
nth.sync_scenario('sync: gates, timers, one permit', 'timers', {room = 1, results = {{'hold', 'release', 0}}})
nth.sync_scenario('sync: gates, their holder ends while the queue is paused', 'gates', {results = {{'hold', 'done'}}, queues = {},
  prepare = function()
    nth.must('later_pause', 'gate')
  end})
nth.sync_scenario('sync: gates, the clock set back', 'gates', {prepare = function()
  nth.now_us = nth.now_us - 5000000
  nth.redis('ZADD', 'timers', nth.now_ms(), 'granted:gate')
end})
nth.sync_scenario('sync: a flag of nobody', 'flag', {})
nth.sync_scenario('sync: a reserved permit, while the queue is paused', 'gates', {queues = {}, prepare = function()
  nth.must('later_pause', 'gate')
  nth.redis('ZADD', 'timers', nth.now_ms(), 'gate:sem:own')
  nth.redis('DEL', 'sem:own')
end})
nth.sync_scenario('sync: a reserved permit, and the other is free', 'gates', {prepare = function()
  nth.must('later_sem_release', 'own', 'ann')
end})
nth.sync_scenario('sync: many', 'many', {ahead = 0, short = {function(m)
  return {'mail', unpack(m.running)}
end}})
nth.sync_scenario('sync: many, in the long form', 'many', {})
nth.sync_scenario('sync: the dead go', 'life', {results = {{'w1a', 'dead', 1}, {'w1lock', 'dead', 1}}, after = function(m)
  for _, tag in ipairs({'dead1', 'dead2', 'vpoison', 'rawinf', 'w1a', 'w1lock'}) do
    m.fate[tag] = 'any'
  end
end})
nth.sync_scenario('sync: the end of a unique job', 'uniq', {results = {{'ufor2', 'done'}, {'urun', 'retry', 500}}})
nth.sync_scenario('sync: unique keys', 'uniq', {results = {{'urun', 'dead', 100}}})
