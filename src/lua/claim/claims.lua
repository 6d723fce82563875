-- Claiming: which jobs of which queues a sync gives to its worker (syncs.lua has their order).
--
-- A due job is not claimed while its queue is paused, or the room of the queue, of the sync or the
-- bytes of a call are used up by others that come first; a suspect, while the worker runs anything
-- else. It is parked before a shut gate, or one where others wait or its queue stands aside, and
-- buried when it can never run (expired, corrupt, too large, no key for its gates).
--
-- ctx, what one sync knows: now_us, now_ms, until_ms (jobs without gates may be claimed so early),
-- epoch (a number), epoch_text, held (HELD of the sync), max (claims in all), claimed (so
-- far), bytes (of records that may still be read), peek (of raw members that are read for their
-- scores), parked (so far), groups (the reply, filled by starting.lua), solo_due, ledger
-- (gates/gate.lua), is_more (the sync stopped at a bound: more jobs may be due). Of the queues that
-- the sync names: names, flags, paused, gates, heads (of R:heads, by number), is_fair (queue ->
-- whether it is to be fair), fair (queue -> weights of its tenants, which take turns), began (queue
-- -> its virtual time before the first claim there).

local claims = module 'claim/claims'
local pins, tidy, granted, idle, judge, starting, syncs, waiting, instant, jobs, passes, tenants,
      turns, grants, waiters, wanted, change, commit, txn = use(
  'broadcast/pins', 'calls/tidy', 'claim/granted', 'claim/idle', 'claim/judge', 'claim/starting',
  'claim/syncs', 'claim/waiting', 'core/instant', 'core/jobs', 'fair/passes', 'fair/tenants',
  'fair/turns', 'gates/grants', 'gates/waiters', 'gates/wanted', 'txn/change', 'txn/commit',
  'txn/txn')

claims.SYNC_BYTES = 1048576 -- of the records of jobs that a sync starts, at most
claims.CLAIMS_MAX = 512     -- jobs that it starts, at most

-- How far a claim looks behind jobs that it parks. A call that has parked parked_max jobs reads
-- only `few` of each further queue.
claims.LOOK = {rounds = 4, window = 64, parked_max = 128, few = 16}
local LOOK = claims.LOOK

-- Write the flags and the head of a queue as they are now.
local function remember(R, queue, flags, head)
  local was = db('ZSCORE', R .. ':heads', queue)
  jobs.set_flags(R, queue, flags, db)
  if head == math.huge then
    db('ZREM', R .. ':heads', queue)
  elseif was ~= head then
    db('ZADD', R .. ':heads', head, queue)
    if not was then
      db('SADD', R .. ':names', queue)
    end
    if not was or head < was then
      -- No message told of a raw member: tell the workers that have room.
      commit.wake(R, queue)
    end
  end
end

-- Claim, park or bury the rows of a chunk, until the call has `most` claims. -> the head of the
-- rows that stay, how many were parked, how many rows were handled
local function take(R, b, max_payload, head, most, ctx)
  local judged = judge.judge(R, b, max_payload, ctx)
  local handled, parked = starting.start_all(R, b, judged, most, ctx)
  -- The other rows stay. They are sorted by priority, so any of them may be due first.
  for i = handled + 1, b.n do
    head = math.min(head, b.raws[i] and ctx.now_ms or b.dues[i])
  end
  return head, parked, handled
end

-- The first n rows do not wait any more. Their queue has become fair in this call, which may have
-- given some of them their tenants since.
local function leave_tenants(R, b, n)
  for i = 1, n do
    if b.jobs[i] and not b.raws[i] then
      tenants.remove(R, b.ids[i], b.jobs[i], b.dues[i])
    end
  end
end

-- Claim the due jobs of a queue, up to `room`. Jobs that are parked make room for the jobs behind
-- them, within bounds. -> head, flags
local function claim_due(R, queue, room, max_payload, ctx)
  local most, window = ctx.claimed + room, 0
  local b, head, flags, parked, handled
  for round = 1, LOOK.rounds do
    local left = ctx.bytes > 0 and most - ctx.claimed or 0
    if ctx.parked >= LOOK.parked_max then
      if round > 1 then
        break
      end
      left = math.min(left, LOOK.few)
    end
    b, head, flags = waiting.gather(R, queue, left > 0 and math.max(left, window) or 0, ctx)
    if b.n == 0 then
      return head, flags
    end
    head, parked, handled = take(R, b, max_payload, head, most, ctx)
    ctx.parked = ctx.parked + parked
    if ctx.is_fair[queue] then
      leave_tenants(R, b, handled)
    end
    if parked == 0 and not b.has_caused then
      return head, flags
    end
    window = LOOK.window
  end
  if b.has_caused then
    -- A job that died told its own queue of it.
    local _, its_head, its_flags = waiting.gather(R, queue, 0, ctx)
    return its_head, its_flags
  end
  -- A job behind the parked ones may be free to start.
  ctx.is_more = ctx.is_more or head <= ctx.now_ms
  return head, flags
end

-- -> when the first waiting job of a fair queue is due, the flags of priorities that are still true
local function fair_head(R, queue)
  local head, kept = math.huge, ''
  for _, digit in ipairs(tenants.digits(R, queue)) do
    local row = db('ZRANGE', R .. ':q:' .. queue .. ':' .. digit, 0, 0, 'WITHSCORES')
    head = row[2] and math.min(head, to_due(row[2])) or head
    kept = row[2] and digit ~= '5' and kept .. digit or kept
  end
  return head, kept
end

-- The same for a fair queue: tenants take turns.
local function claim_turns(R, queue, room, max_payload, ctx)
  local most, window, left, is_done = ctx.claimed + room, 0, nil, false
  waiting.adopt_raw(R, queue, ctx)
  for _ = 1, LOOK.rounds do
    left = ctx.bytes > 0 and most - ctx.claimed or 0
    left = ctx.parked >= LOOK.parked_max and math.min(left, LOOK.few) or left
    if left <= 0 or window > 0 and ctx.parked >= LOOK.parked_max then
      break
    end
    local b, may_be_more = turns.gather(R, queue, math.max(left, window), ctx.fair[queue], ctx)
    local _, parked, handled = take(R, b, max_payload, math.huge, most, ctx)
    turns.leave(R, b, handled, ctx)
    ctx.parked, window = ctx.parked + parked, LOOK.window
    is_done = parked == 0 and not b.has_caused and (b.n > 0 or not may_be_more)
    if is_done then
      break
    end
  end
  local head, flags = fair_head(R, queue)
  if left > 0 and head <= ctx.now_ms and not is_done then
    ctx.is_more = true -- a job behind the parked ones may be free to start
  elseif left > 0 and head <= ctx.now_ms and tenants.none_due(R, queue, ctx.now_ms) then
    passes.begin(R, queue, true) -- a key was lost or written by hand
    ctx.is_more = true
  end
  return head, flags
end

-- Claim the first suspect, which runs alone, if this worker may run it now. -> head, flags
local function claim_solo(R, queue, room, max_payload, ctx)
  if not claims.has_flag(ctx, queue, 's') then
    return math.huge, ''
  end
  local b, head, flag = waiting.gather_solo(R, queue, room, ctx)
  if b then
    local parked
    head, parked = take(R, b, max_payload, head, ctx.claimed + 1, ctx)
    ctx.solo = not b.whys[1] and parked == 0
  end
  return head, flag
end

-- Claim the jobs that gates have let in. -> head, flags
local function claim_granted(R, queue, room, max_payload, ctx)
  if not claims.has_flag(ctx, queue, 'g') and not ctx.ledger.let_in[queue] then
    return math.huge, ''
  end
  local b, is_solo, is_left = granted.gather(R, queue, room, ctx)
  local head = is_left and ctx.now_ms or math.huge
  if b.n > 0 then
    head = take(R, b, max_payload, head, ctx.claimed + room, ctx)
    ctx.solo = ctx.solo or is_solo and not b.whys[1]
  end
  if ctx.ledger.let_in[queue] then
    grants.grant_rest(ctx.ledger, queue)
  end
  if db('ZCARD', R .. ':granted:' .. queue) > 0 then
    return head, 'g'
  end
  db('ZREM', R .. ':timers', 'granted:' .. queue)
  return head, ''
end

-- Claim what is pinned to this worker. -> head, flag
local function claim_pinned(R, queue, room, max_payload, ctx)
  if not claims.has_flag(ctx, queue, 'p') then
    return math.huge, ''
  end
  local b, head = pins.gather(R, queue, room, ctx)
  if b.n > 0 then
    head = take(R, b, max_payload, head, ctx.claimed + room, ctx)
  end
  return head, pins.end_queue(R, queue, ctx)
end

-- How many jobs of the queue may be claimed still, of `most` in all.
local function room_left(most, ctx)
  return ctx.bytes > 0 and not ctx.solo and most - ctx.claimed or 0
end

-- A queue that becomes fair, or is so no more, goes a part of the way.
local function claim_waiting(R, queue, room, max_payload, ctx)
  local is_fair = ctx.is_fair[queue]
  if (is_fair or claims.has_flag(ctx, queue, 'f')) and passes.advance(R, queue, is_fair,
                                                                        ctx.now_us) then
    ctx.is_more = true
  end
  return (ctx.fair[queue] and claim_turns or claim_due)(R, queue, room, max_payload, ctx)
end

-- What is claimed from a queue behind pinned jobs, in this order.
local WAYS = {claim_solo, claim_granted, claim_waiting}

-- Claim from one queue. -> its head for the reply
local function claim_queue(R, queue, room, max_payload, ctx)
  local paused = instant.paused_until(ctx.paused[queue], ctx.now_ms)
  if paused then
    return paused == 0 and -1 or paused
  end
  if ctx.paused[queue] then
    db('HDEL', R .. ':paused', queue)
  end
  local most = ctx.claimed + math.min(room, ctx.max - ctx.claimed)
  -- The head of pinned jobs is no matter of other workers.
  local pinned_head, flags = claim_pinned(R, queue, room_left(most, ctx), max_payload, ctx)
  local head = math.huge
  for i = 1, #WAYS do
    local its_head, its_flags = WAYS[i](R, queue, room_left(most, ctx), max_payload, ctx)
    head, flags = math.min(head, its_head), its_flags .. flags
  end
  local f = (ctx.is_fair[queue] or claims.has_flag(ctx, queue, 'f')) and
            db('HEXISTS', R .. ':fair', queue) == 1 and 'f' or ''
  remember(R, queue, flags .. (claims.has_flag(ctx, queue, 'a') and 'a' or '') .. f, head)
  head = math.min(head, pinned_head)
  return head == math.huge and -1 or head
end

-- A queue stands because of this. errors: the list of claims.claim_all, to which this adds. A key
-- of a foreign type stays until somebody removes it, so `later health` is told.
local function tell_error(R, errors, queue, why, now_ms)
  errors[#errors + 1], errors[#errors + 2] = queue, why
  local what = string.match(why, '^ELATER_TYPE (.*)')
  if what then
    tidy.note(R, string.sub('bad-queue:' .. queue .. ' ' .. what, 1, tidy.NOTE_BYTES), now_ms)
  end
end

-- Queues that stand aside at a gate and have room in this worker become waiters again.
local function rejoin_all(R, queues, ctx, errors)
  local any, rest = false, {}
  for i = 1, #queues do
    local q = queues[i]
    if ctx.flags[q.name] and q.room > 0 and claims.has_flag(ctx, q.name, 'a') and
       not instant.paused_until(ctx.paused[q.name], ctx.now_ms) then
      any = true
      local ok, left, joined, why = pcall(waiters.rejoin, ctx.ledger, q.name)
      if ok and left == 0 then
        jobs.flag_clear(R, q.name, 'a')
      elseif ok then
        rest[q.name] = left + joined
      end
      why = not ok and syncs.error_text(left) or why
      if why then
        tell_error(R, errors, q.name, why, ctx.now_ms)
      end
    end
  end
  if any then
    waiters.hand_on(ctx.ledger, true)
  end
  for name, all in pairs(rest) do
    -- Some are left. Another sync is asked for only where the queue is a waiter of some again: else
    -- there is no room, and the rest would find none.
    ctx.is_more = ctx.is_more or db('SCARD', R .. ':aside:' .. name) < all
  end
end

-- Read what the sync has to know of its queues before it opens gates.
function claims.read_queues(R, queues, ctx)
  local names, room, most = {}, ctx.ledger.room, ctx.max
  for i = 1, #queues do
    local q = queues[i]
    local name, its_room = q.name, q.room
    if room[name] then
      q.is_again = true
    end
    names[i], room[name] = name, its_room < most and its_room or most
  end
  ctx.names, ctx.gates, ctx.fair, ctx.is_fair, ctx.began = names, {}, {}, {}, {}
  if #names > 0 then
    ctx.paused, ctx.flags = txn.know(R .. ':paused', names), txn.know(R .. ':prio', names)
    local texts = txn.know(R .. ':queues', names)
    for i = 1, #names do
      local text = texts[names[i]]
      ctx.gates[names[i]] = text and wanted.queue_gates(text) or nil
      local weights = tenants.weights_in(text)
      ctx.is_fair[names[i]] = weights ~= nil
      if weights then
        -- A foreign type is met again by the claim from this queue, and fails that alone.
        local ok, takes_turns = pcall(tenants.take_turns, R, names[i])
        ctx.fair[names[i]] = ok and takes_turns and weights or nil
      end
    end
  end
end

-- Does the queue have this flag?
function claims.has_flag(ctx, queue, flag)
  local flags = ctx.flags[queue]
  return flags and string.find(flags, flag, 1, true) ~= nil
end

-- Take out of the reply what a failed part of the call has put into it.
local function forget_claims(ctx, was)
  for i = #ctx.groups, was.groups + 1, -1 do
    ctx.groups[i] = nil
  end
  ctx.claimed, ctx.solo = was.claimed, was.solo
end

-- Claim from a queue; an error keeps it alone. -> its head, the error or nil
local function claim_or_leave(R, q, ctx)
  local was = {claimed = ctx.claimed, solo = ctx.solo, groups = #ctx.groups}
  ctx.next_fence = nil -- begin a new group
  local ok, head = change.try(claim_queue, R, q.name, q.room, q.max_payload, ctx)
  if not ok then
    forget_claims(ctx, was)
    return -1, syncs.error_text(head)
  end
  ctx.ledger.room[q.name] = math.min(q.room, ctx.max) - (ctx.claimed - was.claimed)
  return head
end

-- Is a suspect due, and does this worker run nothing? Then its queue goes first, since any other
-- claim would shut it out.
local function has_due_suspect(R, q, ctx)
  if ctx.held > 0 or q.room == 0 or not (ctx.flags[q.name] or ctx.ledger.let_in[q.name]) then
    return false
  elseif claims.has_flag(ctx, q.name, 's') and db('ZCOUNT', R .. ':solo:' .. q.name, '-inf',
                                                  int(ctx.now_ms)) > 0 then
    return true
  end
  local rows = granted.read_let_in(ctx.ledger, q.name)
  local first = rows and rows[1].id or claims.has_flag(ctx, q.name, 'g') and
                db('ZRANGE', R .. ':granted:' .. q.name, 0, 0)[1]
  return first and jobs.tries(db('HGET', R .. ':tries', first)).crashes >= SOLO_CRASHES
end

-- -> the numbers of the queues to claim from, in their order, those with a due suspect first
local function turns_of(R, queues, heads, ctx)
  local order, rest = {}, {}
  for i = 1, #queues do
    if ctx.ledger.let_in[ctx.names[i]] then
      heads[i] = nil
    end
    if not heads[i] then
      -- The claim tells of a foreign type.
      local ok, is_first = pcall(has_due_suspect, R, queues[i], ctx)
      local list = ok and is_first and order or rest
      list[#list + 1] = i
    end
  end
  for i = 1, #rest do
    order[#order + 1] = rest[i]
  end
  return order
end

-- Lower the room of each queue to what the sync may still claim: nothing beside a job that runs
-- alone.
local function lower_rooms(ctx)
  local room, left = ctx.ledger.room, ctx.solo and 0 or ctx.max - ctx.claimed
  for i = 1, left < ctx.max and #ctx.names or 0 do
    local name = ctx.names[i]
    room[name] = room[name] < left and room[name] or left
  end
end

-- Claim from these queues, {name, room, max_payload} each. -> head per queue, {queue, error, ...}
function claims.claim_all(R, queues, ctx)
  local errors, names = {}, ctx.names
  if #names == 0 then
    return {}, errors
  end
  rejoin_all(R, queues, ctx, errors)
  local heads = idle.heads(R, queues, ctx)
  for _, i in ipairs(turns_of(R, queues, heads, ctx)) do
    local q = queues[i]
    local head, why = claim_or_leave(R, q, ctx)
    heads[i] = head
    if why then
      tell_error(R, errors, q.name, why, ctx.now_ms)
    end
  end
  for i = 1, #names do
    -- Jobs of this queue were let in, and it could not be claimed from.
    if ctx.ledger.let_in[names[i]] then
      grants.grant_rest(ctx.ledger, names[i])
    end
  end
  lower_rooms(ctx)
  return heads, errors
end
