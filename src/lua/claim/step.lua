-- A step: results in, claims out, one round trip for both. The function that is called has the wire
-- form (calls/step.lua).
--
-- A request: {epoch_text, link, held, max, ahead (ms), ends: {queue, start, n}*, end_ids: of all of
-- them, results (result.lua), queues: {name, room, max_payload}*}
-- A reply: {now_us, status, answers (one a result), refused ({number of an end, answer}*), groups
-- (start.lua), cancels (ids), heads (one a queue), errors ({queue, text}*), solo_due, timer_ms}.

local PEEK_BYTES = 262144   -- of raw members that are not due

L.CANCELS_MAX = 1000        -- ids in a reply

-- An error that pcall caught -> one line.
function L.error_text(e)
  if type(e) == 'table' then
    e = e.elater or e.err or 'unknown error'
  end
  return L.one_line(tostring(e))
end

-- -> the jobs of this worker that are to be cancelled. Flags of ended jobs are removed.
local function cancels(R, epoch)
  local mine, ids = {}, db('HKEYS', R .. ':cancel')
  for i = 1, math.min(#ids, L.CANCELS_MAX) do
    local owner = db('ZSCORE', R .. ':running', ids[i])
    if not owner then
      db('HDEL', R .. ':cancel', ids[i])
    elseif owner == epoch then
      mine[#mine + 1] = ids[i]
    end
  end
  return mine
end

-- -> of each result: the epoch that holds the job, its tries, its cancel flag
local function read_held(R, results)
  local ids = {}
  for i = 1, #results do
    ids[i] = results[i].id
  end
  return db('ZMSCORE', R .. ':running', unpack(ids)), db('HMGET', R .. ':tries', unpack(ids)),
         db('HMGET', R .. ':cancel', unpack(ids))
end

-- -> an answer for each result
local function settle(R, results, ctx)
  local answers, ended, is_ended = {}, {}, {}
  if #results == 0 then
    return answers
  end
  local owners, tries, flags = read_held(R, results)
  for i, r in ipairs(results) do
    if is_ended[r.id] or owners[i] ~= ctx.epoch or not tries[i] or
       string.match(tries[i], '^(%d+) %d+ %d+ %d+$') ~= r.start then
      answers[i] = 'settled'
    else
      answers[i], is_ended[r.id] = L.settle_one(R, r, tries[i], flags[i], ctx.epoch_text, ctx.book)
      ended[#ended + 1] = is_ended[r.id] and r.id or nil
    end
  end
  L.let_go(ctx.book, ended)
  return answers
end

-- -> function that ends a job which ended well, and which is cancelled, waited for or followed by
-- another one
local function settle_watched(R, ctx)
  return function(id, group)
    if L.is_spent() then
      return 'later'
    end
    local r = {id = id, start = group.start, verb = 'done', queue = group.queue, a = 0, code = '0',
               text = 'ok', output = ''}
    local tries, flag = db('HGET', R .. ':tries', id), db('HGET', R .. ':cancel', id)
    local answer, is_ended = L.settle_one(R, r, tries, flag, ctx.epoch_text, ctx.book)
    L.let_go(ctx.book, is_ended and {id} or {})
    return answer
  end
end

local function new_context(R, q, now_us)
  local now_ms = L.ms(now_us)
  local book = L.book(R, now_us)
  book.epoch = q.epoch_text
  return {now_us = now_us, now_ms = now_ms, until_ms = now_ms + q.ahead,
          epoch = L.whole(q.epoch_text), epoch_text = q.epoch_text, held = q.held,
          max = math.min(q.max, L.CLAIMS_MAX), bytes = L.STEP_BYTES, peek = PEEK_BYTES,
          groups = {}, claimed = 0, parked = 0, solo_due = 0, book = book}
end

local function step_over_draft(R, q)
  local now_us = q.now_us
  L.need_worker(R)
  local ctx = new_context(R, q, now_us)
  local reply = {now_us = now_us, status = 'ok', groups = ctx.groups}
  reply.answers = settle(R, q.results, ctx)
  reply.refused = L.end_all(R, q.ends, q.end_ids, ctx, settle_watched(R, ctx))
  L.read_queues(R, q.queues, ctx)
  L.hand_on(ctx.book, true)
  reply.heads, reply.errors = L.claim_all(R, q.queues, ctx)
  L.hand_on(ctx.book)
  reply.cancels = cancels(R, ctx.epoch)
  reply.solo_due = ctx.solo_due
  reply.timer_ms = ctx.is_more and ctx.now_ms or L.next_timer(R)
  return reply
end

function L.step(R, q)
  L.begin() -- rows read through it, too
  local now_us = L.now_us()
  local status, current = L.worker(R, q.epoch_text)
  if status == 'ok' and current ~= q.link then
    status = 'link'
  end
  if status ~= 'ok' then
    return {now_us = now_us, status = status}
  end
  q.now_us = now_us
  return L.step_over_rows(R, q) or L.over_draft(step_over_draft, R, q)
end

-- ---- arguments that both wire forms have

local function read_results(args, at, n)
  local results = {}
  for i = 1, n do
    local o = at + 8 * i - 8
    local has_result = args[o + 2] == 'result'
    results[i] = {id = args[o], start = args[o + 1], verb = has_result and 'done' or args[o + 2],
                  queue = args[o + 3], a = L.whole(args[o + 4]), code = args[o + 5],
                  text = args[o + 6], output = args[o + 7], result = has_result and args[o + 7]}
  end
  return results
end

-- n queues, three arguments each, from args[at] on.
local function read_rooms(args, at, n)
  -- Most queues have the same numbers as the one before: these are read once.
  local queues, room_text, room, max_text, max = {}, nil, nil, nil, nil
  for i = 1, n do
    local o = at + 3 * (i - 1)
    if args[o + 1] ~= room_text or args[o + 2] ~= max_text then
      room_text, max_text = args[o + 1], args[o + 2]
      room, max = L.whole(room_text), L.whole(max_text)
      if not room or not max then
        L.fail('ELATER_ARGS', 'queue ' .. L.int(i) .. ' has no room or limit')
      end
    end
    queues[i] = {name = L.check_queue(args[o]), room = room, max_payload = max}
  end
  return queues
end

-- EPOCH LINK HELD MAX NR {result}*NR NQ {queue room max}*NQ -> a request, the number of the
-- argument behind them
function L.read_step(args)
  local q = {epoch_text = args[1] or '', link = args[2], held = L.whole(args[3]),
             max = L.whole(args[4]),
             ahead = 0, ends = {}, end_ids = {}}
  if not (L.whole(q.epoch_text) and q.link and q.held and q.max) then
    L.fail('ELATER_ARGS', 'give EPOCH LINK HELD MAX, results and queues')
  end
  local n = L.whole(args[5])
  if n == nil or n > 1024 or 5 + 8 * n > #args then
    L.fail('ELATER_ARGS', 'the results do not add up')
  end
  q.results = read_results(args, 6, n)
  local at = 6 + 8 * n
  n = L.whole(args[at] or '')
  if not n or n > 2000 or at + 3 * n > #args then
    L.fail('ELATER_ARGS', 'the queues do not add up')
  end
  q.queues = read_rooms(args, at + 1, n)
  return q, at + 1 + 3 * n
end

-- Append args[from..to] to the ids of ended jobs; there is one group in most calls.
local function add_ids(q, args, from, to)
  if #q.end_ids == 0 then
    q.end_ids = {unpack(args, from, to)}
    return
  end
  for k = from, to do
    q.end_ids[#q.end_ids + 1] = args[k]
  end
end

local function fail_children()
  L.fail('ELATER_ARGS', 'the children of ended jobs do not add up')
end

-- NC {number of a result, n, {how many words, word...}*n}*NC from args[at] on, or nothing. The
-- words of a child stay in args: {first, last}
local function read_children(results, args, at)
  if at > #args then
    return
  end
  local all = L.whole(args[at])
  at = at + 1
  if not all or all < 1 or all > #results then
    fail_children()
  end
  for _ = 1, all do
    local r, n = results[L.whole(args[at]) or 0], L.whole(args[at + 1])
    if not r or not n or n > 1000 then
      fail_children()
    end
    r.children, at = {args = args}, at + 2
    for i = 1, n do
      local words = L.whole(args[at])
      if not words or at + words > #args then
        fail_children()
      end
      r.children[i], at = {at + 1, at + words}, at + 1 + words
    end
  end
  if at ~= #args + 1 then
    fail_children()
  end
end

-- NG {common n id*n}*NG [AHEAD [NC ...]] from args[at] on; common: `size` arguments, of which
-- read(at) makes a group.
function L.read_ends(q, args, at, size, read)
  local groups = L.whole(args[at])
  at = at + 1
  for i = 1, groups and groups <= #args and groups or 0 do
    local group, n = read(at), L.whole(args[at + size] or '')
    if not n or at + size + n > #args or #q.end_ids + n > 1024 then
      groups = nil
      break
    end
    group.n, q.ends[i] = n, group
    L.check_queue(group.queue)
    add_ids(q, args, at + size + 1, at + size + n)
    at = at + size + 1 + n
  end
  q.ahead = at > #args and 0 or L.whole(args[at])
  if not groups or groups > #args or not q.ahead or q.ahead > 1000 then
    L.fail('ELATER_ARGS', 'the groups of ended jobs do not add up')
  end
  read_children(q.results, args, at + 1)
end
