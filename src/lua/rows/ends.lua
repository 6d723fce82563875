-- The jobs that leave their worker in a sync over rows, and what they hold: those that ended well,
-- of which nothing is kept, and those with a result (results.lua). In a transaction:
-- claim/ends.lua.

local row_ends = module 'rows/ends'
local events, gate, row_gates, row_members, row_results, row_sync, row_tenants, writes = use(
  'core/events', 'gates/gate', 'rows/gates', 'rows/members', 'rows/results', 'rows/sync',
  'rows/tenants', 'rows/writes')
-- `u`, `b` and `f`, with which such lines of R:holds begin
local OF_UNIQUE, OF_BATCH, OF_FAIR = 117, 98, 102

-- Most jobs end in the order of their claims. So when n end, all of them are mostly among the n +
-- 64 oldest that the worker holds.
local STILL_RUN = 64

-- Which of these n jobs does this worker hold? Redis tells ids cheaper than scores: so the oldest
-- ids of the worker are read first. -> nil: all of them; else id -> true
local function held_by(R, epoch_text, ids, n)
  local key, found, concat = R .. ':running', 1, table.concat
  local oldest = n <= 8 and {} or
                 redis.call('ZRANGEBYSCORE', key, epoch_text, epoch_text, 'LIMIT', 0, n + STILL_RUN)
  if n <= #oldest and concat(oldest, ' ', 1, n) == concat(ids, ' ') then
    return nil
  end
  for i = 1, #oldest do
    if oldest[i] == ids[found] then
      found = found + 1
    end
  end
  if found > n then
    return nil
  end
  -- They came in another order, twice, or are not among the oldest.
  local mine, rest = {}, {}
  for _, id in ipairs(oldest) do
    mine[id] = true
  end
  for _, id in ipairs(ids) do
    rest[#rest + 1] = not mine[id] and id or nil
  end
  for i, owner in ipairs(#rest > 0 and redis.call('ZMSCORE', key, unpack(rest)) or {}) do
    mine[rest[i]] = owner == epoch_text
  end
  return mine
end

-- Are they all held by the worker of the sync, each once?
local function need_held(s, ids)
  if not ids[2] then
    if redis.call('ZSCORE', s.R .. ':running', ids[1]) ~= s.epoch_text then
      row_sync.odd()
    end
    return
  end
  local mine = held_by(s.R, s.epoch_text, ids, #ids)
  for i = 1, mine and #ids or 0 do
    if not mine[ids[i]] then
      row_sync.odd()
    end
    mine[ids[i]] = nil
  end
end

local BESIDE = {'progress', 'errors', 'failures', 'results'}

-- Read what earlier attempts of these jobs may have left.
local function load_beside(s, ids)
  if not s.has_left then
    return
  end
  local R, beside = s.R, {}
  for _, name in ipairs(BESIDE) do
    local had = writes.read_there(R .. ':' .. name, ids)
    beside[#beside + 1] = had.ids[1] and had or nil
  end
  s.beside = beside
end

-- Job `id` ends, and has this unique key, <queue>:<key>. until_ms: text, when the key is free; 0 or
-- nil: at once
function row_ends.note_unique(s, name, id, until_ms)
  local uniques = s.uniques or {names = {}, ids = {}, untils = {}}
  local n = #uniques.names + 1
  s.uniques, uniques.names[n], uniques.ids[n] = uniques, name, id
  uniques.untils[n] = until_ms and until_ms ~= '0' and (whole(until_ms) or row_sync.odd()) or false
end

-- Job `id` ends. It holds this gate, or this unique key, which is free then, or is a member of this
-- batch, or its tenant is charged (s.shares: lines of such jobs). Another line is odd.
local function note_hold(s, drops, order, id, line)
  local ids, begin = drops[line], string.byte(line)
  if ids then
    if ids[#ids] == id then
      row_sync.odd() -- once is enough
    end
    ids[#ids + 1] = id
  elseif begin == OF_UNIQUE and string.sub(line, 1, 7) == 'uniq:0:' then
    row_ends.note_unique(s, string.sub(line, 8), id)
  elseif begin == OF_UNIQUE then
    local until_ms, name = string.match(line, '^uniq:(%d+):(.*)$')
    row_ends.note_unique(s, name or row_sync.odd(), id, until_ms)
  elseif begin == OF_BATCH and string.sub(line, 1, 6) == 'batch ' then
    row_members.note_member(s, string.sub(line, 7), id)
  elseif begin == OF_FAIR and string.sub(line, 1, 5) == 'fair ' then
    s.shares, drops[line] = s.shares or {}, {id}
    s.shares[#s.shares + 1] = line
  else
    order[#order + 1] = row_gates.row_gate(s, line)
    drops[line] = {id}
  end
end

-- A result tells of job `id`, which has a record (results.lua): only its gates and its tenant are
-- read here.
local function note_gates(s, drops, order, id, text)
  for line in string.gmatch(text, '[^\n]+') do
    if gate.read(line) or string.byte(line) == OF_FAIR then
      note_hold(s, drops, order, id, line)
    end
  end
end

-- Drop what these jobs hold; holds: their texts in R:holds. Results tell of the first n_told.
local function drop_all(s, ids, holds, n_told)
  local drops, order, holders, texts, n = {}, {}, {}, {}, 0
  for i = 1, #ids do
    local text = holds[i]
    if text then
      local id = ids[i]
      n = n + 1
      holders[n], texts[n] = id, text
      if i <= n_told then
        note_gates(s, drops, order, id, text)
      elseif string.find(text, '\n', 1, true) then
        for line in string.gmatch(text, '[^\n]+') do
          note_hold(s, drops, order, id, line)
        end
      else
        note_hold(s, drops, order, id, text)
      end
    end
  end
  row_gates.load_gates(order)
  for i = 1, #order do
    row_gates.drop_from(order[i], drops[order[i].id])
  end
  s.freed, s.touched = {ids = holders, texts = texts}, order
  if s.shares then
    row_tenants.finish(s, s.shares, drops)
  end
end

-- The unique keys that these jobs still have are free, now or later. One with a successor is odd.
local function free_uniques(s)
  local R, names, ids, locks, free = s.R, s.uniques.names, s.uniques.ids, {}, {'DEL', owners = {}}
  for i = 1, #names do
    locks[i] = R .. ':lock:~unique:' .. names[i]
  end
  if redis.call('EXISTS', unpack(locks)) > 0 then
    row_sync.odd()
  end
  for i = 1, #names do
    local key = R .. ':uniq:' .. names[i]
    local is_its = redis.call('GET', key) == ids[i]
    if is_its and s.uniques.untils[i] then
      s.expiries = s.expiries or {}
      s.expiries[key] = s.uniques.untils[i]
    elseif is_its then
      free[#free + 1], free.owners[#free.owners + 1] = key, ids[i]
    end
  end
  if free[2] then
    writes.remove_write(s, free)
  end
end

local function join(a, b)
  local all = {unpack(a)}
  for i = 1, #b do
    all[#all + 1] = b[i]
  end
  return all
end

-- Do all of them run with the start number that the worker told? Jobs that were due together have
-- the same text in R:tries.
local function are_current(groups, tries)
  local at, sub = 0, string.sub
  for _, group in ipairs(groups) do
    local prefix, known = group.start .. ' ', nil
    for i = at + 1, at + group.n do
      local text = tries[i]
      if text ~= known then
        if not text or sub(text, 1, #prefix) ~= prefix then
          return false
        end
        known = text
      end
    end
    at = at + group.n
  end
  return true
end

-- Load the jobs that end well.
local function load_plain(s, ids)
  need_held(s, ids)
  s.tries = redis.call('HMGET', s.R .. ':tries', unpack(ids))
  if not are_current(s.q.ends, s.tries) then
    row_sync.odd()
  end
  load_beside(s, ids)
  redis.call('HLEN', s.R .. ':jobs') -- its type
end

-- Tell that these jobs end; groups: as in claim/ends.lua
local function tell_ended(groups, ids)
  local last = 0
  for _, group in ipairs(groups) do
    for i = last + 1, last + group.n do
      events.add('done', ids[i], group.queue, nil, group.start, nil, 0, 'ok')
    end
    last = last + group.n
  end
end

-- None of these jobs has kept anything (core/resume.lua). Some job has.
function row_ends.need_nothing_kept(s, ids, from, to)
  for _, resume in ipairs(redis.call('HMGET', s.R .. ':resume', unpack(ids, from, to))) do
    if resume then
      row_sync.odd()
    end
  end
end

-- None of these jobs is to be cancelled, nobody waits for its end, and none has kept anything.
local function need_unwatched(s, ids)
  if s.has_resume then
    row_ends.need_nothing_kept(s, ids, 1, #ids)
  end
  local flags, waits = redis.call('HMGET', s.R .. ':cancel', unpack(ids)),
                       redis.call('HMGET', s.R .. ':await', unpack(ids))
  for i = 1, #ids do
    if flags[i] or waits[i] then
      row_sync.odd()
    end
  end
end

-- Load the jobs that end or wait again, and drop what they hold.
function row_ends.load_ends(s)
  local q = s.q
  local ids, n_told = q.end_ids, 0
  s.touched = {}
  if ids[1] then
    load_plain(s, ids)
  end
  if q.results[1] then
    local left = row_results.load_results(s)
    ids, n_told = left[1] and join(left, ids) or ids, #left
  end
  if events.now then
    tell_ended(q.ends, q.end_ids)
  end
  if not ids[1] then
    return
  elseif s.is_watched then
    need_unwatched(s, ids)
  end
  drop_all(s, ids, redis.call('HMGET', s.R .. ':holds', unpack(ids)), n_told)
  if s.uniques then
    free_uniques(s)
  end
end
