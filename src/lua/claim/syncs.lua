-- A sync: results in, claims out, one round trip for both. Its wire form: calls/sync.lua.
--
-- A request: {epoch_text, link, held, max, ahead (ms), ends: {queue, start, n}*, end_ids: of all of
-- them, results (settling.lua), queues: {name, room, max_payload}*}
-- A reply: {now_us, status, answers (one a result), refused ({number of an end, answer}*), groups
-- (starting.lua), cancels (ids), heads (one a queue), errors ({queue, text}*), solo_due, timer_ms,
-- checkpoints ({id, text}* of jobs that start; nil for none)}.

local syncs = module 'claim/syncs'
local beats, workers, claims, ends, settling, clock, gate, holding, waiters, row_sync, txn = use(
  'calls/beat', 'calls/register', 'claim/claims', 'claim/ends', 'claim/settling', 'core/clock',
  'gates/gate', 'gates/holding', 'gates/waiters', 'rows/sync', 'txn/txn')
local PEEK_BYTES = 262144   -- of raw members that are not due

syncs.CANCELS_MAX = 1000        -- ids in a reply

-- An error that pcall caught -> one line.
function syncs.error_text(e)
  if type(e) == 'table' then
    e = e.elater or e.err or 'unknown error'
  end
  return one_line(tostring(e))
end

-- -> the jobs of this worker that are to be cancelled. Flags of ended jobs are removed.
local function cancels(R, epoch)
  local mine, ids = {}, db('HKEYS', R .. ':cancel')
  for i = 1, math.min(#ids, syncs.CANCELS_MAX) do
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
      answers[i], is_ended[r.id] = settling.settle_one(R, r, tries[i], flags[i], ctx.epoch_text,
                                                       ctx.ledger)
      ended[#ended + 1] = is_ended[r.id] and r.id or nil
    end
  end
  holding.let_go(ctx.ledger, ended)
  return answers
end

-- -> function that ends a job which ended well, and which is cancelled, waited for or followed by
-- another one
local function settle_watched(R, ctx)
  return function(id, group)
    if txn.is_spent() then
      return 'later'
    end
    local r = {id = id, start = group.start, verb = 'done', queue = group.queue, a = 0, code = '0',
               text = 'ok', output = ''}
    local tries, flag = db('HGET', R .. ':tries', id), db('HGET', R .. ':cancel', id)
    local answer, is_ended = settling.settle_one(R, r, tries, flag, ctx.epoch_text, ctx.ledger)
    holding.let_go(ctx.ledger, is_ended and {id} or {})
    return answer
  end
end

local function new_context(R, q, now_us)
  local now_ms = clock.ms(now_us)
  local ledger = gate.ledger(R, now_us)
  ledger.epoch = q.epoch_text
  return {now_us = now_us, now_ms = now_ms, until_ms = now_ms + q.ahead,
          epoch = whole(q.epoch_text), epoch_text = q.epoch_text, held = q.held,
          max = math.min(q.max, claims.CLAIMS_MAX), bytes = claims.SYNC_BYTES, peek = PEEK_BYTES,
          groups = {}, checkpoints = {}, claimed = 0, parked = 0, solo_due = 0, ledger = ledger}
end

local function sync_in_transaction(R, q)
  local now_us = q.now_us
  workers.need_worker(R)
  local ctx = new_context(R, q, now_us)
  local reply = {now_us = now_us, status = 'ok', groups = ctx.groups,
                 checkpoints = ctx.checkpoints}
  reply.answers = settle(R, q.results, ctx)
  reply.refused = ends.end_all(R, q.ends, q.end_ids, ctx, settle_watched(R, ctx))
  claims.read_queues(R, q.queues, ctx)
  waiters.hand_on(ctx.ledger, true)
  reply.heads, reply.errors = claims.claim_all(R, q.queues, ctx)
  waiters.hand_on(ctx.ledger)
  reply.cancels = cancels(R, ctx.epoch)
  reply.solo_due = ctx.solo_due
  reply.timer_ms = ctx.is_more and ctx.now_ms or waiters.next_timer(R)
  return reply
end

function syncs.sync(R, q)
  txn.begin() -- rows read through it, too
  local now_us = clock.now_us()
  local status, current = beats.worker(R, q.epoch_text)
  if status == 'ok' and current ~= q.link then
    status = 'link'
  end
  if status ~= 'ok' then
    return {now_us = now_us, status = status}
  end
  q.now_us = now_us
  return row_sync.run(R, q) or in_transaction(sync_in_transaction, R, q)
end
