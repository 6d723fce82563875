-- later_v1_step R EPOCH LINK HELD MAX
--     NR {id start verb queue a code text tail}*NR   NQ {queue room max_payload}*NQ
--     [NG {queue n id*n}*NG [AHEAD]]
--   -> [now_us, status, [answer per result], [claim...], [id to cancel...], [head per queue],
--       [queue, error, ...], solo_due, timer_ms, [number, answer, ...], [short claims...]]
--
-- Results in, claims out, one round trip for both.
-- HELD: jobs that the worker still runs after these results. MAX: most jobs to claim (<= 512).
-- verb: done (a: keep ms) | retry (a: delay ms) | dead (a: most dead jobs kept) | release (a: delay
-- ms; spends no attempt) | progress (text). code: exit status; text: one line; tail: output.
-- With NG, plain jobs go in short both ways (plain.lua). Its groups: jobs of one queue that ended well at their
-- first start (`done`, nothing is kept) and were claimed in short; then all those that are not ok, by their number
-- among them. Short claims, one list a queue: queue, fence of the first, {id due_ms record}*: fences rise by 2, it is
-- the first start and the first attempt, without crashes and gates. Without NG the last three are not there.
-- AHEAD: plain jobs that are due within so many ms (0 to 1000) are claimed too: their worker starts each when it is
-- due, to the microsecond.
-- answer: ok | settled (not held by this epoch with this start number: changes nothing) | error TEXT
-- (could not be written: send it again).
-- room: most claims from this queue now (0: only tell its head). Queues are served in this order
-- (with HELD 0, those with a due suspect first); inside one by priority, due time, id; raw members
-- count as priority 5.
-- status: ok | dead | unknown | link (an older link number: nothing was done).
-- claim: [id, queue, start, attempt, crashes, fence, due_ms, record, gated]; a record that starts with '+'
-- has its payload in R:big:<id>. head: due ms of the first job left in that queue, -1 for none, or
-- when its pause ends. A job with L.SOLO_CRASHES crashes is claimed only by a worker that runs
-- nothing else (HELD 0, no other claim); solo_due: 1 when such a one waits.
-- gated: 1 when it passed gates: its end may let in another; 2 when its handler must not outlive a worker
-- that lost Redis as well: it holds a lock, or a semaphore that says so. timer_ms: when a gate wants a step,
-- whoever makes it; -1: none does. What the results free is handed to those in line first, granted jobs are
-- claimed before all others, a due job whose gate is shut stands in line and costs nothing until the gate
-- opens (gate_line.lua).
-- One wrong-typed key or corrupt record stops that queue or buries that job, never the call.
-- At most MAX jobs and 1 MiB of records and raw payloads a call (the one that passes it included).
-- allow-oom. Cost: O(results + due queues + claims * log n).

local STEP_BYTES = 1048576
local PEEK_BYTES = 262144   -- and of raw members that are not due

-- ---- results

local function apply_retry(R, r, job, tries, now_ms)
  local due = now_ms + r.a
  if L.end_replaced(R, r.id, job, r.code, tries.starts, r.tail, now_ms) then
    return
  end
  db('ZREM', R .. ':running', r.id)
  db('HSET', R .. ':tries', r.id, L.tries_text(tries, due))
  db('HSET', R .. ':errors', r.id, L.outcome('failed', r.code, now_ms, tries.starts, r.text, r.tail))
  db('HDEL', R .. ':progress', r.id)
  L.enqueue(R, r.id, job, tries, due)
  if L.events then
    L.event('failed', r.id, job.queue, due, tries.starts, tries.attempts, L.whole(r.code), r.text)
  end
end

-- The record of a held job is missing or corrupt. Done is done; any other end needs what is lost.
local function apply_broken(R, r, record, tries, now_ms)
  if r.verb ~= 'done' then
    L.bury_broken(R, r.id, record, string.match(r.queue, '^%w[%w_-]*$'), now_ms)
    return
  end
  db('ZREM', R .. ':running', r.id)
  L.finish(R, nil, r.id, L.outcome('done', r.code, now_ms, tries.starts, r.text, r.tail), now_ms, 0)
  L.count(R, 'done', r.queue, 1)
end

local VERBS = {done = true, retry = true, dead = true, release = true, progress = true}

-- Apply one result of a job that is held.
local function apply(R, r, tries, cancelled, now_ms)
  if not VERBS[r.verb] then
    L.fail('ELATER_ARGS', 'unknown verb ' .. L.quote(r.verb))
  elseif not r.a then
    L.fail('ELATER_ARGS', 'no amount')
  elseif r.verb == 'progress' then
    db('HSET', R .. ':progress', r.id, L.line(r.text))
    return
  end
  local record = db('HGET', R .. ':jobs', r.id)
  local job = L.parse(record)
  if job == nil then
    apply_broken(R, r, record, tries, now_ms)
  elseif cancelled and r.verb ~= 'done' then
    -- It did not finish by itself: it ends here, whatever its worker made of it.
    L.end_cancelled(R, job, r.id, L.outcome('cancelled', r.code, now_ms, tries.starts, 'cancelled while running',
                    r.tail), now_ms)
  elseif r.verb == 'done' then
    db('ZREM', R .. ':running', r.id)
    L.finish(R, job, r.id, L.outcome('done', r.code, now_ms, tries.starts, r.text, r.tail), now_ms, r.a)
    L.count(R, 'done', job.queue, 1)
  elseif r.verb == 'retry' then
    apply_retry(R, r, job, tries, now_ms)
  elseif r.verb == 'dead' then
    db('ZREM', R .. ':running', r.id)
    L.bury(R, job.queue, r.id, L.outcome('dead', r.code, now_ms, tries.starts, r.text, r.tail), now_ms, r.a)
  else
    L.release(R, r.id, r.a, now_ms)
  end
end

-- The results of a step: n of them, 8 arguments each, from args[at] on. Most are read no further than that
-- they are plain: done, and nothing is to be kept.
local function read_result(args, o)
  return {id = args[o], start = L.whole(args[o + 1]), verb = args[o + 2], queue = args[o + 3],
          a = L.whole(args[o + 4]), code = args[o + 5], text = args[o + 6], tail = args[o + 7]}
end

-- One that leaves something behind. -> answer, did it end?
local function settle_one(R, r, tries, flag, book)
  local ok, what = L.attempt(apply, R, r, L.tries(tries), flag, book.now_ms)
  if not ok then
    return 'error ' .. L.error_text(what), false
  elseif r.verb ~= 'progress' then
    book.ended[#book.ended + 1] = r.id
    return 'ok', true
  end
  return 'ok', false
end

-- What Redis has of n results: who runs each job, its tries, whether it is to be cancelled, by number.
local function read_held(R, args, at, n)
  local ids = {}
  for i = 1, n do
    ids[i] = args[at + 8 * i - 8]
  end
  return ids, db('ZMSCORE', R .. ':running', unpack(ids)), db('HMGET', R .. ':tries', unpack(ids)),
         db('HMGET', R .. ':cancel', unpack(ids))
end

-- The results of NR. -> answers
local function settle(R, args, at, n, ctx)
  local answers, plain, plain_tries, others, is_ended, counts = {}, {}, {}, {}, {}, {}
  if n == 0 then
    return answers
  end
  local ids, owners, tries, flags = read_held(R, args, at, n)
  local is_awaited = db('EXISTS', R .. ':await') == 1
  for i = 1, n do
    local o, id = at + 8 * i - 8, ids[i]
    if is_ended[id] or owners[i] ~= ctx.epoch or
       not tries[i] or string.match(tries[i], '^(%d+) %d+ %d+ %d+$') ~= args[o + 1] then
      answers[i] = 'settled'
    elseif args[o + 2] == 'done' and args[o + 4] == '0' and not flags[i] and not is_awaited then
      -- Those that leave nothing behind go together.
      local queue = args[o + 3]
      plain[#plain + 1], plain_tries[#plain_tries + 1] = id, tries[i]
      answers[i], is_ended[id] = 'ok', true
      counts[queue] = (counts[queue] or 0) + 1
      if L.events then
        L.event('done', id, queue, nil, args[o + 1], nil, L.whole(args[o + 5]))
      end
    else
      answers[i], is_ended[id] = settle_one(R, read_result(args, o), tries[i], flags[i], ctx.book)
      others[#others + 1] = is_ended[id] and id or nil
    end
  end
  if #plain > 0 then
    L.end_at_once(R, plain, plain_tries, false, ctx)
  end
  L.let_go(ctx.book, others, false)
  for queue, count in pairs(counts) do
    L.count(R, 'done', queue, count)
  end
  return answers
end

-- The groups of NG.
local function settle_short(R, args, at, ctx)
  return L.end_plain(R, args, at + 1, L.whole(args[at]), ctx, function(id, queue)
    local r = {id = id, start = 1, verb = 'done', queue = queue, a = 0, code = '0', text = 'ok', tail = ''}
    local tries, flag = db('HGET', R .. ':tries', id), db('HGET', R .. ':cancel', id)
    local answer, ended = settle_one(R, r, tries, flag, ctx.book)
    L.let_go(ctx.book, ended and {id} or {}, false)
    return answer
  end)
end

-- Do they, and what follows them, end where the call does? -> AHEAD; false where they do not
local function check_groups(args, at)
  local groups, ids = L.whole(args[at]), 0
  if not groups or groups > #args then
    return false
  end
  at = at + 1
  for _ = 1, groups do
    local n = L.whole(args[at + 1] or '')
    if not n or at + 1 + n > #args then
      return false
    end
    L.check_queue(args[at])
    ids, at = ids + n, at + 2 + n
  end
  if ids > 1024 then
    return false
  elseif at > #args then
    return 0
  end
  local ahead = L.whole(args[at])
  return at == #args and ahead and ahead <= 1000 and ahead
end

-- Whatever pcall caught -> one line.
function L.error_text(e)
  if type(e) == 'table' then
    e = e.elater or e.err or 'unknown error'
  end
  return L.line(tostring(e))
end

-- Flags of running jobs: those of this worker are returned, those of ended jobs removed.
local function cancels(R, epoch)
  local mine, ids = {}, db('HKEYS', R .. ':cancel')
  for i = 1, math.min(#ids, 1000) do
    local owner = db('ZSCORE', R .. ':running', ids[i])
    if not owner then
      db('HDEL', R .. ':cancel', ids[i])
    elseif owner == epoch then
      mine[#mine + 1] = ids[i]
    end
  end
  return mine
end

-- ---- arguments

local function read_queues(args, at)
  local queues, n = {}, L.whole(args[at])
  local left = n and #args - at - 3 * n
  local ahead = left == 0 and 0
  if n and n <= 2000 and left > 0 then
    ahead = check_groups(args, at + 3 * n + 1)
  end
  if not ahead then
    L.fail('ELATER_ARGS', 'the queues do not add up')
  end
  -- Most say the same as the one before.
  local room_text, room, max_text, max
  for i = 1, n do
    local o = at + 3 * (i - 1)
    if args[o + 2] ~= room_text or args[o + 3] ~= max_text then
      room_text, max_text = args[o + 2], args[o + 3]
      room, max = L.whole(room_text), L.whole(max_text)
      if not room or not max then
        L.fail('ELATER_ARGS', 'queue ' .. L.int(i) .. ' has no room or limit')
      end
    end
    queues[i] = {name = L.check_queue(args[o + 1]), room = room, max_payload = max}
  end
  return queues, ahead
end

L.register('later_v1_step', {'allow-oom'}, function(R, args)
  local epoch_text, link = args[1] or '', args[2]
  local epoch, held, max = L.whole(epoch_text), L.whole(args[3]), L.whole(args[4])
  if not (epoch and link and held and max) then
    L.fail('ELATER_ARGS', 'give EPOCH LINK HELD MAX, results and queues')
  end
  local n = L.whole(args[5])
  if n == nil or n > 1024 or 5 + 8 * n > #args then
    L.fail('ELATER_ARGS', 'the results do not add up')
  end
  local queues, ahead = read_queues(args, 6 + 8 * n)
  L.need_worker(R)
  local now_us = L.now_us()
  local status, current = L.worker(R, epoch_text)
  if status == 'ok' and current ~= link then
    status = 'link'
  end
  if status ~= 'ok' then
    return {now_us, status}
  end
  local ctx = {now_us = now_us, now_ms = L.ms(now_us), until_ms = L.ms(now_us) + ahead, epoch = epoch,
               epoch_text = epoch_text, held = held, max = math.min(max, 512), bytes = STEP_BYTES,
               peek = PEEK_BYTES, claims = {}, claimed = 0, parked = 0, solo_due = 0, book = L.book(R, now_us)}
  ctx.book.epoch = epoch_text
  local answers, refused = settle(R, args, 6, n, ctx), nil
  local short_at = 7 + 8 * n + 3 * #queues
  if args[short_at] then
    refused, ctx.short = settle_short(R, args, short_at, ctx), {}
  end
  L.read_queues(R, queues, ctx)
  L.settle_gates(ctx.book, true)
  local heads, errors = L.claim_all(R, queues, ctx)
  L.settle_gates(ctx.book)
  return {now_us, 'ok', answers, ctx.claims, cancels(R, epoch), heads, errors, ctx.solo_due,
          ctx.is_more and ctx.now_ms or L.next_timer(R), refused, ctx.short}
end)
