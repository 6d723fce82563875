-- Claiming: which jobs of which queues a step gives to its worker (step.lua has the order of them).
--
-- ctx, what one step knows: now_us, now_ms, until_ms (jobs without gates may be claimed so early),
-- epoch (a number), epoch_text, held (HELD of the step), max (claims in all), claimed (so
-- far), bytes (of records that may still be read), peek (of raw members that are read for their
-- scores), parked (so far), groups (the reply, filled by start.lua), solo_due, book (gate.lua),
-- is_more (the step stopped at a bound: more jobs may be due). Of the queues that the step names:
-- names, marks, paused, gates, heads (of R:heads, by number).

L.STEP_BYTES, L.CLAIMS_MAX = 1048576, 512 -- the records and the jobs that a step starts at most

-- How far a claim looks behind jobs that it parks. A call that has parked parked_max jobs reads
-- only `few` of each further queue.
L.LOOK = {rounds = 4, window = 64, parked_max = 128, few = 16}
local LOOK = L.LOOK

-- Write the marks and the head of a queue as they are now.
local function remember(R, queue, marks, head)
  local was = db('ZSCORE', R .. ':heads', queue)
  L.set_marks(R, queue, marks, db)
  if head == math.huge then
    db('ZREM', R .. ':heads', queue)
  elseif was ~= head then
    db('ZADD', R .. ':heads', head, queue)
    if not was then
      db('SADD', R .. ':names', queue)
    end
    if not was or head < was then
      -- No message told of a raw member: tell the workers that have room.
      L.wake(R, queue)
    end
  end
end

-- Claim, park or bury the rows of a slice, until the call has `most` claims. -> the head of the
-- rows that stay, how many were parked
local function take(R, b, max_payload, head, most, ctx)
  local judged = L.judge(R, b, max_payload, ctx)
  local handled, parked = L.start_all(R, b, judged, most, ctx)
  -- The other rows stay. They are sorted by priority, so any of them may be due first.
  for i = handled + 1, b.n do
    head = math.min(head, b.raws[i] and ctx.now_ms or b.dues[i])
  end
  return head, parked
end

-- Claim the due jobs of a queue, up to `room`. Jobs that are parked make room for the jobs behind
-- them, within bounds. -> head, marks
local function claim_due(R, queue, room, max_payload, ctx)
  local most, window = ctx.claimed + room, 0
  local b, head, marks, parked
  for round = 1, LOOK.rounds do
    local left = ctx.bytes > 0 and most - ctx.claimed or 0
    if ctx.parked >= LOOK.parked_max then
      if round > 1 then
        break
      end
      left = math.min(left, LOOK.few)
    end
    b, head, marks = L.gather(R, queue, left > 0 and math.max(left, window) or 0, ctx)
    if b.n == 0 then
      return head, marks
    end
    head, parked = take(R, b, max_payload, head, most, ctx)
    ctx.parked = ctx.parked + parked
    if parked == 0 and not b.has_caused then
      return head, marks
    end
    window = LOOK.window
  end
  if b.has_caused then
    -- A job that died told its own queue of it.
    local _, its_head, its_marks = L.gather(R, queue, 0, ctx)
    return its_head, its_marks
  end
  -- A job behind the parked ones may be free to start.
  ctx.is_more = ctx.is_more or head <= ctx.now_ms
  return head, marks
end

-- Claim the first suspect, which runs alone, if this worker may run it now. -> head, marks
local function claim_solo(R, queue, room, max_payload, ctx)
  if not L.has_mark(ctx, queue, 's') then
    return math.huge, ''
  end
  local b, head, mark = L.gather_solo(R, queue, room, ctx)
  if b then
    local parked
    head, parked = take(R, b, max_payload, head, ctx.claimed + 1, ctx)
    ctx.solo = not b.whys[1] and parked == 0
  end
  return head, mark
end

-- Claim the jobs that gates have let in. -> head, marks
local function claim_granted(R, queue, room, max_payload, ctx)
  if not L.has_mark(ctx, queue, 'g') and not ctx.book.let_in[queue] then
    return math.huge, ''
  end
  local b, is_solo, is_left = L.gather_granted(R, queue, room, ctx)
  local head = is_left and ctx.now_ms or math.huge
  if b.n > 0 then
    head = take(R, b, max_payload, head, ctx.claimed + room, ctx)
    ctx.solo = ctx.solo or is_solo and not b.whys[1]
  end
  if ctx.book.let_in[queue] then
    L.grant_rest(ctx.book, queue)
  end
  if db('ZCARD', R .. ':granted:' .. queue) > 0 then
    return head, 'g'
  end
  db('ZREM', R .. ':timers', 'granted:' .. queue)
  return head, ''
end

-- Claim what is pinned to this worker. -> head, mark
local function claim_pinned(R, queue, room, max_payload, ctx)
  if not L.has_mark(ctx, queue, 'p') then
    return math.huge, ''
  end
  local b, head = L.gather_pinned(R, queue, room, ctx)
  if b.n > 0 then
    head = take(R, b, max_payload, head, ctx.claimed + room, ctx)
  end
  return head, L.end_pinned(R, queue, ctx)
end

-- How many jobs of the queue may be claimed still, of `most` in all.
local function room_left(most, ctx)
  return ctx.bytes > 0 and not ctx.solo and most - ctx.claimed or 0
end

-- What is claimed from a queue behind pinned jobs, in this order.
local WAYS = {claim_solo, claim_granted, claim_due}

-- Claim from one queue. -> its head for the reply
local function claim_queue(R, queue, room, max_payload, ctx)
  local paused = L.paused_until(ctx.paused[queue], ctx.now_ms)
  if paused then
    return paused == 0 and -1 or paused
  end
  if ctx.paused[queue] then
    db('HDEL', R .. ':paused', queue)
  end
  local most = ctx.claimed + math.min(room, ctx.max - ctx.claimed)
  -- The head of pinned jobs is no matter of other workers.
  local pinned_head, marks = claim_pinned(R, queue, room_left(most, ctx), max_payload, ctx)
  local head = math.huge
  for i = 1, #WAYS do
    local its_head, its_marks = WAYS[i](R, queue, room_left(most, ctx), max_payload, ctx)
    head, marks = math.min(head, its_head), its_marks .. marks
  end
  remember(R, queue, marks .. (L.has_mark(ctx, queue, 'a') and 'a' or ''), head)
  head = math.min(head, pinned_head)
  return head == math.huge and -1 or head
end

-- A queue stands because of this. errors: the list of L.claim_all, to which this adds. A key of a
-- foreign type stays until somebody removes it, so `later health` is told.
local function tell_error(R, errors, queue, why, now_ms)
  errors[#errors + 1], errors[#errors + 2] = queue, why
  local what = string.match(why, '^ELATER_TYPE (.*)')
  if what then
    L.note(R, string.sub('bad-queue:' .. queue .. ' ' .. what, 1, L.NOTE_BYTES), now_ms)
  end
end

-- Queues that stand aside at a gate and have room in this worker become waiters again.
local function rejoin_all(R, queues, ctx, errors)
  local any, rest = false, {}
  for i = 1, #queues do
    local q = queues[i]
    if ctx.marks[q.name] and q.room > 0 and L.has_mark(ctx, q.name, 'a') and
       not L.paused_until(ctx.paused[q.name], ctx.now_ms) then
      any = true
      local ok, left, joined, why = pcall(L.rejoin, ctx.book, q.name)
      if ok and left == 0 then
        L.mark_clear(R, q.name, 'a')
      elseif ok then
        rest[q.name] = left + joined
      end
      why = not ok and L.error_text(left) or why
      if why then
        tell_error(R, errors, q.name, why, ctx.now_ms)
      end
    end
  end
  if any then
    L.hand_on(ctx.book, true)
  end
  for name, all in pairs(rest) do
    -- Some are left. Another step is asked for only where the queue is a waiter of some again: else
    -- there is no room, and the rest would find none.
    ctx.is_more = ctx.is_more or db('SCARD', R .. ':aside:' .. name) < all
  end
end

-- Read what the step has to know of its queues before it opens gates.
function L.read_queues(R, queues, ctx)
  local names, room, most = {}, ctx.book.room, ctx.max
  for i = 1, #queues do
    local q = queues[i]
    local name, its_room = q.name, q.room
    if room[name] then
      q.is_again = true
    end
    names[i], room[name] = name, its_room < most and its_room or most
  end
  ctx.names, ctx.gates = names, {}
  if #names > 0 then
    ctx.paused, ctx.marks = L.know(R .. ':paused', names), L.know(R .. ':prio', names)
    local texts = L.know(R .. ':queues', names)
    for i = 1, #names do
      local text = texts[names[i]]
      ctx.gates[names[i]] = text and L.queue_gates(text) or nil
    end
  end
end

-- Does the queue have this mark?
function L.has_mark(ctx, queue, mark)
  local marks = ctx.marks[queue]
  return marks and string.find(marks, mark, 1, true) ~= nil
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
  local ok, head = L.try(claim_queue, R, q.name, q.room, q.max_payload, ctx)
  if not ok then
    forget_claims(ctx, was)
    return -1, L.error_text(head)
  end
  ctx.book.room[q.name] = math.min(q.room, ctx.max) - (ctx.claimed - was.claimed)
  return head
end

-- Is a suspect due, and does this worker run nothing? Then its queue goes first, since any other
-- claim would shut it out.
local function has_due_suspect(R, q, ctx)
  if ctx.held > 0 or q.room == 0 or not (ctx.marks[q.name] or ctx.book.let_in[q.name]) then
    return false
  elseif L.has_mark(ctx, q.name, 's') and
         db('ZCOUNT', R .. ':solo:' .. q.name, '-inf', L.int(ctx.now_ms)) > 0 then
    return true
  end
  local rows = L.read_let_in(ctx.book, q.name)
  local first = rows and rows[1].id or
                L.has_mark(ctx, q.name, 'g') and db('ZRANGE', R .. ':granted:' .. q.name, 0, 0)[1]
  return first and L.tries(db('HGET', R .. ':tries', first)).crashes >= L.SOLO_CRASHES
end

-- -> the numbers of the queues to claim from, in their order, those with a due suspect first
local function turns_of(R, queues, heads, ctx)
  local turns, rest = {}, {}
  for i = 1, #queues do
    if ctx.book.let_in[ctx.names[i]] then
      heads[i] = nil
    end
    if not heads[i] then
      -- The claim tells of a foreign type.
      local ok, is_first = pcall(has_due_suspect, R, queues[i], ctx)
      local list = ok and is_first and turns or rest
      list[#list + 1] = i
    end
  end
  for i = 1, #rest do
    turns[#turns + 1] = rest[i]
  end
  return turns
end

-- Lower the room of each queue to what the step may still claim: nothing beside a job that runs
-- alone.
local function lower_rooms(ctx)
  local room, left = ctx.book.room, ctx.solo and 0 or ctx.max - ctx.claimed
  for i = 1, left < ctx.max and #ctx.names or 0 do
    local name = ctx.names[i]
    room[name] = room[name] < left and room[name] or left
  end
end

-- Claim from these queues, {name, room, max_payload} each. -> head per queue, {queue, error, ...}
function L.claim_all(R, queues, ctx)
  local errors, names = {}, ctx.names
  if #names == 0 then
    return {}, errors
  end
  rejoin_all(R, queues, ctx, errors)
  local heads = L.idle_heads(R, queues, ctx)
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
    if ctx.book.let_in[names[i]] then
      L.grant_rest(ctx.book, names[i])
    end
  end
  lower_rooms(ctx)
  return heads, errors
end
