-- The ledger knows what was handed out to which worker, and where each job is. It judges a run and
-- writes what it finds to nth.findings.

function nth.found(kind, text)
  table.insert(nth.findings, {kind, text})
end

-- ---- chains and children

-- The end of this job causes another one, in this queue, which has to run (in m.killer: to die).
local function add_caused(m, tag, queue, chain)
  local caused = string.match(tag, '^[^+]+') .. '+' .. queue
  if m.fate[caused] then
    error({err = 'ERR the stage has two jobs ' .. caused})
  end
  m.fate[caused], m.chain[caused] = queue == m.killer and 'dead' or 'run', chain
end

-- This result of a job was accepted, perhaps earlier. Only one that is done is followed, once, and adds
-- its children, once.
function nth.go_on(m, tag, verb, children)
  local chain, is_good = m.chain[tag], verb == 'done' or verb == 'result'
  local queue = chain and not chain.is_followed and is_good and chain.thens[1]
  for _, child in ipairs(is_good and children or {}) do
    if not m.fate[tag .. '+' .. child[1]] then
      add_caused(m, tag, child[1])
    end
  end
  if queue then
    chain.is_followed = true
    add_caused(m, tag, queue, {thens = {unpack(chain.thens, 2)}, on_dead = chain.on_dead})
  end
end

-- Jobs that are among the dead now and were not before have told of it. Where the call may not COPY,
-- it tells of none with a large payload: that must not keep a job from dying.
function nth.note_deaths(m)
  local where = next(m.chain) and nth.whereabouts(m) or {}
  for tag, at in pairs(where) do
    local chain = m.chain[tag]
    if chain and chain.on_dead and not chain.is_told and string.match(at[2], '^dead:') then
      chain.is_told = true
      add_caused(m, tag, chain.on_dead)
      if nth.missing == 'COPY' then
        m.fate[string.match(tag, '^[^+]+') .. '+' .. chain.on_dead] = 'any'
      end
    end
  end
end

-- ---- claims

-- A worker learnt of one start.
local function take_claim(m, epoch, id, start, record)
  local tag = m.tag[id] or nth.tag_by_record(id, record) or id
  local number = id .. ' ' .. tostring(start)
  m.tag[id] = tag
  if not m.fate[tag] then
    nth.note_deaths(m)
  end
  if m.started[number] then
    nth.found('twice', tag .. ': start ' .. tostring(start) .. ' is handed out a second time')
  end
  if m.ended[tag] then
    nth.found('twice', tag .. ' is started again after its end was taken')
  elseif m.fate[tag] == 'gone' or m.fate[tag] == 'dead' then
    nth.found('twice', tag .. ' is started, and should be ' .. m.fate[tag])
  elseif not m.fate[tag] then
    nth.found('unknown', tag .. ' is started, and nobody has added it')
  end
  m.started[number] = true
  m.held[epoch][id] = {start = start, tag = tag}
end

-- Take the claims of a sync's reply, which come in groups.
-- -> how many claims
function nth.take_claims(m, epoch, reply)
  local n = 0
  for _, c in ipairs(reply[4] or {}) do
    for i = 7, #c, 3 do
      take_claim(m, epoch, c[i], tonumber(c[3]), c[i + 2])
      n = n + 1
    end
  end
  return n
end

-- ---- ends

-- Does a job with this result run on?
function nth.runs_on(verb)
  return verb == 'progress' or verb == 'checkpoint'
end

-- The worker knows that this result is settled: it was accepted now, or by a call whose reply was
-- lost.
function nth.end_result(m, epoch, r)
  local held = m.held[epoch][r[1]]
  if nth.runs_on(r[3]) or not held then
    return
  end
  m.held[epoch][r[1]] = nil
  nth.go_on(m, held.tag, r[3], r.children)
  if m.fate[held.tag] == 'any' then
    return
  elseif r[3] == 'done' or r[3] == 'result' then
    m.ended[held.tag] = (m.ended[held.tag] or 0) + 1
  elseif r[3] == 'dead' then
    m.fate[held.tag] = 'dead'
  end
end

-- The answers of a sync: to its long results, and to the short ones in groups. A result that was
-- answered with `error` is sent again (m.sent).
function nth.take_answers(m, epoch, reply, results, short)
  for i, r in ipairs(results) do
    local answer = reply[3][i]
    if string.sub(answer or 'error', 1, 5) == 'error' then
      m.sent[r[1]] = r
    elseif answer == 'settled' and not m.sent[r[1]] then
      nth.found('settled', (m.tag[r[1]] or r[1]) .. ': its worker runs it, and Redis says that it does not')
      m.held[epoch][r[1]] = nil
    elseif string.sub(answer, 1, 7) == 'refused' then
      m.sent[r[1]] = nil -- a child is refused: it goes on
    else
      m.sent[r[1]] = nil
      nth.end_result(m, epoch, r)
    end
  end
  local refused = {}
  for i = 1, #(reply[10] or {}), 2 do
    refused[reply[10][i]] = reply[10][i + 1]
  end
  for i, r in ipairs(short or {}) do
    local answer = refused[i] or 'ok'
    if string.sub(answer, 1, 5) == 'error' then
      m.sent[r[1]] = r
    elseif answer == 'settled' and not m.sent[r[1]] then
      nth.found('settled', (m.tag[r[1]] or r[1]) .. ': its worker runs it, and Redis says that it does not')
      m.held[epoch][r[1]] = nil
    else
      m.sent[r[1]] = nil
      nth.end_result(m, epoch, r)
    end
  end
end

-- ---- sets

-- -> id -> list of the sets it is in
local function sets_by_id()
  local where = {}
  for key in pairs(nth.content_keys()) do
    local rest = string.sub(key, #nth.ROOT + 2)
    if rest == 'running' or string.match(rest, '^q:') or string.match(rest, '^solo:') or string.match(rest, '^pin:') or
       string.match(rest, '^dead:') or
       string.match(rest, '^done:') or string.match(rest, '^parked:') then
      for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do
        where[id] = where[id] or {}
        table.insert(where[id], rest)
      end
    end
  end
  return where
end

-- -> tag -> {id, first of its sets}; also raw members
function nth.whereabouts(m)
  local where, out = sets_by_id(), {}
  local all = nth.redis('HGETALL', 'jobs')
  for i = 1, #all, 2 do
    local id = all[i]
    local tag = m.tag[id] or nth.tag_by_record(id, all[i + 1]) or id
    out[tag] = {id, where[id] and where[id][1] or 'nowhere'}
  end
  for _, queue in ipairs(nth.QUEUES) do
    for _, member in ipairs(nth.redis('ZRANGE', 'due:' .. queue, 0, -1)) do
      out[nth.tag_of(member) or member] = {member, 'due:' .. queue}
    end
  end
  return out
end

-- Each record is in one set, and each member has a record. Exceptions: what the stage has
-- otherwise. An end causes one job.
function nth.judge_sets(m, before)
  local where, records, ids = sets_by_id(), {}, {}
  local all = nth.redis('HGETALL', 'jobs')
  for i = 1, #all, 2 do
    local id, tag = all[i], m.tag[all[i]] or nth.tag_by_record(all[i], all[i + 1])
    records[id] = true
    if tag and string.find(tag, '+', 1, true) and ids[tag] then
      nth.found('twice', tag .. ' is there as ' .. ids[tag] .. ' and as ' .. id)
    end
    ids[tag or id] = id
    if not where[id] then
      nth.found('no-place', (tag or id) .. ' is in no set')
    elseif #where[id] > 1 then
      nth.found('two-places', (tag or id) .. ' is in ' .. table.concat(where[id], ' and '))
    end
    if not (tag and m.fate[tag]) and not m.tag[id] and not before[id] then
      nth.found('unknown', (tag or id) .. ' is there, and nobody has added it')
    end
  end
  for id, sets in pairs(where) do
    if not records[id] and not before[id] then
      nth.found('no-record', (m.tag[id] or id) .. ' is in ' .. sets[1] .. ' without a record')
    end
  end
end

-- R:running has exactly the jobs that the workers were told.
function nth.judge_running(m)
  local rows, is_there, is_victim = nth.redis('ZRANGE', 'running', 0, -1, 'WITHSCORES'), {}, {}
  for _, epoch in ipairs(m.victims) do
    is_victim[epoch] = true
  end
  for i = 1, #rows, 2 do
    local id, epoch = rows[i], rows[i + 1]
    local held = m.held[epoch] and m.held[epoch][id]
    is_there[id .. ' ' .. epoch] = true
    if not held and not is_victim[epoch] and not m.unheard[id] then
      nth.found('nobody', (m.tag[id] or nth.tag_by_record(id, nth.redis('HGET', 'jobs', id)) or id) ..
                ' is held by a worker that was not told of it')
    elseif held then
      local starts = string.match(nth.redis('HGET', 'tries', id) or '', '^(%d+) ')
      if tonumber(starts) ~= held.start then
        nth.found('nobody', held.tag .. ' runs as start ' .. tostring(held.start) .. ', its tries say ' .. tostring(starts))
      end
    end
  end
  for epoch, all in pairs(m.held) do
    for id, held in pairs(all) do
      if not is_there[id .. ' ' .. epoch] and not m.sent[id] then
        nth.found('phantom', held.tag .. ' was handed out, and is not in R:running')
      end
    end
  end
end

local function holds(gate, id)
  if string.sub(gate, 1, 5) == 'lock:' then
    return nth.redis('HGET', gate, 'holder') == id
  end
  return nth.redis('ZSCORE', gate, id)
end

-- A running job holds its gates, so no two running jobs have the same lock.
function nth.judge_gates(m)
  for _, all in pairs(m.held) do
    for id, held in pairs(all) do
      for _, gate in ipairs(m.gates[held.tag] or {}) do
        if not holds(gate, id) and not m.sent[id] then
          nth.found('no-gate', held.tag .. ' runs and does not hold ' .. gate)
        end
      end
    end
  end
end

-- Find the keys that have changed.
function nth.judge_unchanged(before, kind)
  local now, changed = nth.content(), {}
  for key, content in pairs(now) do
    if before[key] ~= content then
      changed[key] = true
    end
  end
  for key in pairs(before) do
    if not now[key] then
      changed[key] = true
    end
  end
  changed[nth.key('clock')], changed[nth.key('stats')] = nil, nil
  local names = {}
  for key in pairs(changed) do
    names[#names + 1] = string.sub(key, #nth.ROOT + 2)
  end
  table.sort(names)
  if #names > 0 then
    nth.found(kind, 'it answered with an error and has changed ' .. table.concat(names, ' '))
  end
end

-- The row of a job that has kept something fits its steps, and no other job has any. is_end: only dead jobs have some.
function nth.judge_kept(is_end)
  local where, rows, has_steps = sets_by_id(), nth.redis('HGETALL', 'resume'), {}
  for i = 1, #rows, 2 do
    local id, bytes = rows[i], 0
    local n, told = string.match(rows[i + 1], '^(%d+) (%d+)')
    local state = where[id] and string.match(where[id][1], '^%a+') or 'gone'
    for _, word in ipairs(nth.redis('HGETALL', 'steps:' .. id)) do
      bytes = bytes + #word
    end
    if tonumber(n) ~= nth.redis('HLEN', 'steps:' .. id) or tonumber(told) ~= bytes then
      nth.found('left', id .. ' has kept ' .. rows[i + 1] .. ', and its steps have ' .. bytes .. ' bytes')
    elseif state == 'gone' or state == 'done' or is_end and state ~= 'dead' then
      nth.found('left', id .. ' is ' .. state .. ' and has kept ' .. rows[i + 1])
    end
    has_steps['steps:' .. id] = tonumber(n) > 0
  end
  for key in pairs(nth.content_keys()) do
    local rest = string.sub(key, #nth.ROOT + 2)
    if string.find(rest, '^steps:') and not has_steps[rest] then
      nth.found('left', rest .. ' is there, and its job has kept no steps')
    end
  end
end

-- These findings harm no job, and the reaper or tidy removes them. So they only count at the end.
local LATER = {stranger = true, leftover = true, ['orphan-payload'] = true}

function nth.judge_fsck(known, kind)
  for what, text in pairs(nth.fsck()) do
    if not known[what] and (kind == 'fsck-end' or not LATER[string.match(what, '^%S+')]) then
      nth.found(kind, text)
    end
  end
end

-- ---- the end

local EMPTY = {'running', 'holds', 'parked', 'timers', 'heads', 'cancel', 'progress', 'await'}
local NOBODY = {'q:', 'solo:', 'pin:', 'pins:', 'due:', 'parked:', 'granted:', 'line:', 'wait:', 'aside:', 'lock:', 'sem:',
                'rate:granted:'}

-- Nothing waits, runs, is held or is awaited any more.
local function judge_left(known)
  for key in pairs(nth.content_keys()) do
    local rest = string.sub(key, #nth.ROOT + 2)
    local is_left = false
    for _, name in ipairs(EMPTY) do
      is_left = is_left or rest == name
    end
    for _, prefix in ipairs(NOBODY) do
      is_left = is_left or string.sub(rest, 1, #prefix) == prefix
    end
    if is_left and not known['left ' .. rest] then
      nth.found('left', rest .. ' is there in the end')
    end
  end
end

local function judge_fate(m, tag, fate, at)
  local n, is_dead = m.ended[tag] or 0, at and string.match(at[2], '^dead:')
  if n > 1 then
    nth.found('twice', tag .. ' has ended ' .. n .. ' times')
  elseif fate == 'run' and n == 0 then
    nth.found('lost', tag .. ' was never ended' .. (at and ': it is in ' .. at[2] or ': it is gone'))
  elseif fate == 'dead' and not is_dead then
    nth.found('lost', tag .. ' should be among the dead' .. (at and ': it is in ' .. at[2] or ': it is gone'))
  elseif fate == 'gone' and at and not string.match(at[2], '^done:') then
    nth.found('left', tag .. ' should be gone: it is in ' .. at[2])
  elseif fate == 'run' and at and not string.match(at[2], '^done:') then
    nth.found('left', tag .. ' has ended: it is in ' .. at[2])
  end
end

function nth.judge_end(m, known)
  local where = nth.whereabouts(m)
  judge_left(known)
  for tag, fate in pairs(m.fate) do
    judge_fate(m, tag, fate, where[tag])
  end
end

-- For repairs: the next two repair what is left, and every job that exists after a repair without
-- an error must exist here, too.
function nth.judge_repair(m, kept)
  local ids = {}
  nth.fsck(true)
  nth.fsck(true)
  for what, text in pairs(nth.fsck()) do
    -- The reaper, or the end of a running job, puts these right.
    if not string.find(what, '^stranger ') and not string.find(text, 'its end puts that right', 1, true) then
      nth.found('fsck-end', text)
    end
  end
  for tag in pairs(nth.whereabouts(m)) do
    ids[tag] = true
  end
  kept.repaired = kept.repaired or ids
  for tag in pairs(kept.repaired) do
    if not ids[tag] then
      nth.found('lost', tag .. ' is gone')
    end
  end
end
