-- Start, park or bury the rows of a chunk that were judged (judge.lua). A sync over rows has
-- rows/starts.lua, which shares start_rows.
--
-- The worker is told of starts in groups. A group is one flat list
--   queue, fence of the first, start, attempt, crashes, gated, {id, due ms, record}*
-- of jobs that begin alike; their fences rise by 2. gated: 0 without gates; 1: their ends may let
-- in other jobs; 2: as 1, and a handler must end when its worker loses Redis, since it holds a
-- lock, or a semaphore with on_lost kill.

local starting = module 'claim/starting'
local chains, clock, events, jobs, resume, charges, tenants, gate, grants, holding, waiters, adds,
      series, change, commit, txn = use(
  'core/chains', 'core/clock', 'core/events', 'core/jobs', 'core/resume', 'fair/charges',
  'fair/tenants', 'gates/gate', 'gates/grants', 'gates/holding', 'gates/waiters', 'public/add',
  'series/series', 'txn/change', 'txn/commit', 'txn/txn')

-- ---- what is written of the starts of a chunk

local function new_starts()
  return {n = 0, running = {}, tries = {}}
end

local function write_starts(R, s, ctx)
  local ids = {}
  for i = 1, s.n do
    ids[i] = s.running[2 * i]
  end
  if ids[1] then
    db('ZMSCORE', R .. ':running', unpack(ids)) -- all by one command
  end
  for i = 1, s.n do
    db('ZADD', R .. ':running', ctx.epoch, s.running[2 * i])
    db('HSET', R .. ':tries', s.tries[2 * i - 1], s.tries[2 * i])
  end
end

-- The job starts, and its tenant is charged. -> its line of R:holds
local function share_of(R, b, job, ctx)
  local began, queue = ctx.began, b.queue
  began[queue] = began[queue] or tenants.state(R, queue)
  return charges.begin(R, queue, job.K or '', ctx.fair[queue], began[queue], b.met ~= nil,
                       ctx.now_us)
end

-- Write to R:holds what the job holds from its start to its end.
local function hold(R, b, i, ctx)
  local id, job = b.ids[i], b.jobs[i] or {}
  local share = ctx.fair[b.queue] and not b.is_pinned and share_of(R, b, job, ctx) or nil
  local text = holding.holding_started(b.gates[i], job, share)
  if text then
    db('HSET', R .. ':holds', id, text)
  elseif b.is_granted then
    db('HDEL', R .. ':holds', id)
  end
end

-- ---- runs: rows side by side that start alike

-- begin: what R:tries has of its first start, before the due time.
starting.NEVER_TRIED = {starts = 0, attempts = 0, crashes = 0, begin = '1 1 0 '}

-- -> the group of a start, which is the last one where it goes on with that. ctx: groups,
-- next_fence
local function group_of(ctx, queue, fence, tries, gated)
  local g = ctx.groups[#ctx.groups]
  if not g or g[1] ~= queue or ctx.next_fence ~= fence or g[6] ~= gated or
     g[3] ~= tries.starts + 1 or g[4] ~= tries.attempts + 1 or g[5] ~= tries.crashes then
    g = {queue, fence, tries.starts + 1, tries.attempts + 1, tries.crashes, gated}
    ctx.groups[#ctx.groups + 1] = g
  end
  return g
end

-- The rows from..to of a chunk, which all have these tries, start: they are told to the worker
-- (ctx.groups), and what is written of them is appended to s.running and s.tries, of n jobs so far.
function starting.start_rows(ctx, s, b, from, to, fence, tries, gated)
  local g, epoch = group_of(ctx, b.queue, fence, tries, gated), ctx.epoch_text
  local n, at, ids, dues, records = s.n, #g, b.ids, b.dues, b.records
  local running, texts, known_due, text = s.running, s.tries, nil, nil
  local begin = tries.begin or int(tries.starts + 1) .. ' ' .. int(tries.attempts + 1) .. ' ' ..
                int(tries.crashes) .. ' '
  for i = from, to do
    local id, due = ids[i], dues[i]
    if due ~= known_due then
      known_due, text = due, begin .. int(due)
    end
    n = n + 1
    local two = 2 * n
    running[two - 1], running[two] = epoch, id
    texts[two - 1], texts[two] = id, text
    g[at + 1], g[at + 2], g[at + 3] = id, due, records[i]
    at = at + 3
  end
  s.n, ctx.next_fence = n, fence + 2 * (to - from + 1)
end

-- Tell that the rows from..to start; tries: before that
function starting.tell_started(b, from, to, tries)
  for i = from, to do
    events.add('started', b.ids[i], b.queue, b.dues[i], tries.starts + 1, tries.attempts + 1)
  end
end

-- Rows that belong to a batch have something to hold, and are not special for that.
local function hold_batches(R, b, run, ctx)
  for i = run.from, b.has_members and run.to or 0 do
    if b.jobs[i] and b.jobs[i].b and not b.is_special[i] then
      hold(R, b, i, ctx)
    end
  end
end

-- Count the keys of rows that start for the first time.
local function count_keys(R, b, run)
  local keys = {}
  for i = run.from, run.to do
    keys[#keys + 1] = b.jobs[i] and b.jobs[i].K
  end
  if keys[1] then
    commit.hint(series.count_keys, R, b.queue, keys)
  end
end

-- Tell the worker the checkpoints of rows.
local function tell_checkpoints(b, run, ctx)
  local told = ctx.checkpoints
  for i = run.from, run.to do
    if b.resumes[i] then
      local _, _, text = resume.read(b.resumes[i])
      told[#told + 1], told[#told + 2] = text and b.ids[i], text
    end
  end
end

-- run: {from, to, tries (text or false), gated, fence (of the first)}
local function start_run(R, b, run, s, ctx)
  local t = run.tries and jobs.tries(run.tries) or starting.NEVER_TRIED
  starting.start_rows(ctx, s, b, run.from, run.to, run.fence, t, run.gated)
  hold_batches(R, b, run, ctx)
  tell_checkpoints(b, run, ctx)
  if b.has_keys and not run.tries then
    count_keys(R, b, run)
  end
  if events.now then
    starting.tell_started(b, run.from, run.to, t)
  end
end

-- ---- one row

-- Take all gates of the job. -> whether it has them; else it is parked
local function passes(b, i, fence, ledger)
  local id, gates = b.ids[i], b.gates[i]
  if b.is_granted then
    if b.let_in[i] then
      change.assign(b.let_in[i], 'is_claimed', true)
      waiters.forget_spot(ledger, b.queue, id)
    else
      waiters.unpark(ledger, b.queue, id, true)
    end
    gate.count_claim(ledger, id, gates, fence)
    return true
  end
  local spot = gates and waiters.pass_gates(ledger, b.queue, id, gates, b.dues[i], fence)
  if spot then
    waiters.park_new(ledger, b.queue, id, spot)
  end
  return not spot
end

-- Give the row an id and a record, where it is a raw member or its record is broken.
local function give_record(R, b, i, number)
  if b.raws[i] then
    b.ids[i] = clock.id(number)
    b.records[i] = adds.insert(R, b.ids[i], b.jobs[i], b.raws[i])
    -- A queue of raw members that are claimed at once has no head that makes its name known.
    db('SADD', R .. ':names', b.queue)
    commit.count(R, 'added', b.queue, 1)
  elseif b.broken[i] then
    b.records[i] = jobs.mended(R, b.ids[i], b.queue, b.records[i] or nil)
    db('HSET', R .. ':jobs', b.ids[i], b.records[i])
  end
end

local function bury(R, b, i, ctx)
  local id, starts = b.ids[i], jobs.tries(b.tries[i] or nil).starts
  if b.is_granted and b.let_in[i] then
    change.assign(b.let_in[i], 'is_claimed', true)
    grants.grant(ctx.ledger, b.queue, id, b.let_in[i].spot)
  end
  if b.is_granted then
    waiters.unpark(ctx.ledger, b.queue, id)
  end
  local outcome = jobs.outcome('dead', 0, ctx.now_ms, starts, b.whys[i], '')
  local before = chains.caused_in(b.queue)
  jobs.bury(R, b.queue, id, outcome, ctx.now_ms)
  b.has_caused = b.has_caused or chains.caused_in(b.queue) > before
end

-- A row that has more to do than to start. -> gated, as a group has it; nil: it does not start
local function handle_special(R, b, i, fence, ctx)
  if b.whys[i] or b.raws[i] then
    give_record(R, b, i, fence - 1)
  end
  if b.whys[i] then
    bury(R, b, i, ctx)
    return nil
  elseif not passes(b, i, fence, ctx.ledger) then
    b.parked = b.parked + 1
    return nil
  end
  hold(R, b, i, ctx)
  local gates = b.gates[i]
  return gates and (waiters.must_end(ctx.ledger, gates) and 2 or 1) or 0
end

-- ---- a chunk

-- Rows from..to of the chunk, which are the first members of a set, leave it.
local function take_from(b, key, from, to)
  local members = {unpack(b.ids, from, to)}
  for i, raw in pairs(b.raws) do
    if i >= from and i <= to then
      members[i - from + 1] = raw
    end
  end
  db('ZREM', key, unpack(members))
end

-- The first n rows leave the sets in which they waited.
local function take_out(b, n)
  local from = 1
  for k = 1, #b.sets, 2 do
    local to = math.min(b.sets[k + 1], n)
    if from <= to then
      take_from(b, b.sets[k], from, to)
    end
    from = to + 1
  end
end

-- Learn of all gates of the first `judged` rows by few reads.
local function load(b, judged, ledger)
  local ids, is_met = {}, {}
  for i = 1, next(b.gates) and judged or 0 do
    for _, id in ipairs(b.gates[i] or {}) do
      if not is_met[id] then
        is_met[id], ids[#ids + 1] = true, id
      end
    end
  end
  if ids[1] then
    txn.learn_absent({ledger.R .. ':aside:' .. b.queue})
    gate.load(ledger, ids)
  end
end

-- Row i and the rows behind it that start like it make a run. -> its last row, at most `last`
local function end_of_run(b, i, last)
  if last < (b.first_judged or math.huge) then
    return last
  end
  local is_special, tries = b.is_special, b.tries
  local first = tries[i]
  for k = i + 1, last do
    if is_special[k] or tries[k] ~= first then
      return k - 1
    end
  end
  return last
end

-- Rows from..to start alike: add them to the run, or end it and begin another. -> the run
local function extend(R, b, run, from, to, gated, fence, s, ctx)
  local tries = b.tries[from]
  if run and run.to == from - 1 and run.gated == gated and run.tries == tries then
    run.to = to
    return run
  elseif run then
    start_run(R, b, run, s, ctx)
  end
  return {from = from, to = to, tries = tries, gated = gated, fence = fence}
end

-- Start, park or bury the first `judged` rows, in runs, until the call has `most` claims. Row i has
-- number + 2i - 2 for a new id and the next number for its fence. -> how many rows are handled
local function handle_rows(R, b, judged, most, number, s, ctx)
  local i, run = 1, nil
  while i <= judged and ctx.claimed < most do
    local to, gated, fence, parked = i, 0, number + 2 * i - 1, b.parked
    if b.is_granted or b.is_special[i] then
      gated = handle_special(R, b, i, fence, ctx)
    else
      to = end_of_run(b, i, math.min(judged, i + most - ctx.claimed - 1))
    end
    if gated then
      run = extend(R, b, run, i, to, gated, fence, s, ctx)
      ctx.claimed = ctx.claimed + to - i + 1
    elseif run then
      start_run(R, b, run, s, ctx)
      run = nil
    end
    if events.now and b.parked > parked then
      events.add('parked', b.ids[i], b.queue, b.dues[i])
    end
    i = to + 1
  end
  if run then
    start_run(R, b, run, s, ctx)
  end
  return i - 1
end

-- Start, park or bury the first `judged` rows, until the call has `most` claims. -> how many rows
-- are handled, how many of them were parked
function starting.start_all(R, b, judged, most, ctx)
  local number, s = judged > 0 and clock.tick(R, ctx.now_us, 2 * judged) or 0, new_starts()
  b.parked = 0
  if not b.is_granted then
    load(b, judged, ctx.ledger)
  end
  local n = handle_rows(R, b, judged, most, number, s, ctx)
  for i = n + 1, judged do
    ctx.bytes = ctx.bytes + #(b.raws[i] or b.records[i] or '') + #(b.resumes[i] or '')
  end
  if not b.is_granted then
    take_out(b, n)
  end
  write_starts(R, s, ctx)
  return n, b.parked
end
