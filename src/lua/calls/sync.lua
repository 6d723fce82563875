-- later_v1_sync R EPOCH LINK HELD MAX
--     NR {id start verb queue a code text output}*NR   NQ {queue room max_payload}*NQ
--     NG {queue start n id*n}*NG [AHEAD [NC {number n {words word*words}*n}*NC]]
--   -> [now_us, status, [answer per result], [group...], [id to cancel...], [head per queue],
--       [queue, error, ...], solo_due, timer_ms, [number, answer, ...], [id, checkpoint, ...]]
--
-- Results in, claims out, one round trip for both.
--
-- HELD: how many jobs of the worker have not ended, those that syncs under way may still bring
-- included; only with 0 it may get a suspect. MAX: most jobs to claim (<= 512).
-- verb: done (a: keep ms) | result (done, and output is what its handler gave as its result: the
-- payload of the next job of its chain) | retry (a: delay ms) | dead (a: most dead jobs kept) |
-- release (a: delay ms; counts no attempt) | progress (text) | checkpoint (output: the text, at
-- most 4 KiB; empty: none any more). code: exit status; text: one line of text; output: its last
-- bytes.
-- room: most claims from this queue now (0: only tell its head).
-- NG: jobs with small payloads that ended well and of which nothing is kept, by queue and start
-- number. They are handled after the NR, so one that is in both is settled there. A record that
-- began with '+' must not be among them: its payload would stay.
-- AHEAD: small jobs without gates that are due within so many ms (0 to 1000) are claimed too, where
-- nothing else of their queue can come between. Their worker starts each when it is due, to the
-- microsecond.
--
-- NC: children, jobs that are added with the end of a result that is done (its number among the
-- NR). The words of a child are those of later_add behind R. At most 1000 a result.
--
-- status: ok | dead | unknown | link (an older link number: nothing was done).
-- answer: ok | settled (not held by this epoch with this start number: changes nothing) | error
-- TEXT (could not be written: send it again) | later (the results before it have moved 1 MiB:
-- nothing was changed, send it with the next sync) | refused TEXT (a child is refused: nothing was
-- changed, the attempt has failed). [number, answer]: the jobs of NG that are not ok, by
-- their number among all of them.
-- group: claims that begin alike, one flat list
--   queue, fence of the first, start, attempt, crashes, gated, {id, due ms, record}*
-- whose fences rise by 2. A record that starts with '+' has its payload in R:big:<id>. gated: 1
-- when the jobs passed gates: their end may let in another; 2 when also their handler must not
-- outlive a worker that lost Redis: it holds a lock, or a semaphore with on_lost kill.
-- head: due ms of the first job left in that queue, -1 for none, or when its pause ends.
-- solo_due: 1 when a suspect waits. A job with SOLO_CRASHES crashes is claimed only by a worker
-- that runs nothing else (HELD 0, no other claim).
-- [id, checkpoint]: of claimed jobs whose last attempts kept one.
-- timer_ms: when a gate needs a sync, whichever worker makes it; -1: none does.
--
-- Queues are served in this order (with HELD 0, those with a due suspect first); jobs of a queue by
-- priority, due time, id; raw members count as priority 5. Permits that the results free are handed
-- to the first waiters, and granted jobs are claimed before all others. A due job whose gate is
-- shut is parked and costs nothing until the gate opens (gates/waiters.lua). A wrong-typed
-- key stops its queue, a corrupt record buries its job; neither stops the call. Only the keys that
-- every sync needs stop all of it (jobs running tries workers holds heads timers queues cancel prio
-- paused, and that of the worker); without clock it takes results and claims nothing. At most MAX
-- jobs and 1 MiB of records and raw payloads a call (the one that passes it included), and as much
-- for the results: records, outputs, payloads that are copied, and 1 KiB for each child. allow-oom.
-- Cost: O(results + due queues + claims * log n).

local syncs = use 'claim/syncs'

local function read_results(args, at, n)
  local results = {}
  for i = 1, n do
    local o = at + 8 * i - 8
    local has_result = args[o + 2] == 'result'
    results[i] = {id = args[o], start = args[o + 1], verb = has_result and 'done' or args[o + 2],
                  queue = args[o + 3], a = whole(args[o + 4]), code = args[o + 5],
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
    local its_room, its_max = args[o + 1], args[o + 2]
    if its_room ~= room_text or its_max ~= max_text then
      room_text, max_text = its_room, its_max
      room, max = whole(room_text), whole(max_text)
      if not room or not max then
        fail('ELATER_ARGS', 'queue ' .. int(i) .. ' has no room or limit')
      end
    end
    queues[i] = {name = check_queue(args[o]), room = room, max_payload = max}
  end
  return queues
end

-- EPOCH LINK HELD MAX NR {result}*NR NQ {queue room max}*NQ -> a request, the number of the
-- argument behind them
local function read_begin(args)
  local q = {epoch_text = args[1] or '', link = args[2], held = whole(args[3]),
             max = whole(args[4]), ends = {}, end_ids = {}}
  if not (whole(q.epoch_text) and q.link and q.held and q.max) then
    fail('ELATER_ARGS', 'give EPOCH LINK HELD MAX, results and queues')
  end
  local n = whole(args[5])
  if n == nil or n > 1024 or 5 + 8 * n > #args then
    fail('ELATER_ARGS', 'the results do not add up')
  end
  q.results = read_results(args, 6, n)
  local at = 6 + 8 * n
  n = whole(args[at] or '')
  if not n or n > 2000 or at + 3 * n > #args then
    fail('ELATER_ARGS', 'the queues do not add up')
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
  fail('ELATER_ARGS', 'the children of ended jobs do not add up')
end

-- NC {number of a result, n, {how many words, word...}*n}*NC from args[at] on, or nothing. The
-- words of a child stay in args: {first, last}
local function read_children(results, args, at)
  if at > #args then
    return
  end
  local all = whole(args[at])
  at = at + 1
  if not all or all < 1 or all > #results then
    fail_children()
  end
  for _ = 1, all do
    local r, n = results[whole(args[at]) or 0], whole(args[at + 1])
    if not r or not n or n > 1000 then
      fail_children()
    end
    r.children, at = {args = args}, at + 2
    for i = 1, n do
      local words = whole(args[at])
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

-- NG {queue start n id*n}*NG [AHEAD [NC ...]] from args[at] on
local function read_ends(q, args, at)
  local groups = whole(args[at])
  at = at + 1
  for i = 1, groups and groups <= #args and groups or 0 do
    local start, n = args[at + 1], whole(args[at + 2] or '')
    if not n or at + 2 + n > #args or #q.end_ids + n > 1024 then
      groups = nil
      break
    end
    -- A start that is no number is the start of no job.
    q.ends[i] = {queue = check_queue(args[at]), start = whole(start) and start or 'none', n = n}
    add_ids(q, args, at + 3, at + 2 + n)
    at = at + 3 + n
  end
  q.ahead = at > #args and 0 or whole(args[at])
  if not groups or groups > #args or not q.ahead or q.ahead > 1000 then
    fail('ELATER_ARGS', 'the groups of ended jobs do not add up')
  end
  read_children(q.results, args, at + 1)
end

local function sync(R, args)
  local q, at = read_begin(args)
  read_ends(q, args, at)
  local r = syncs.sync(R, q)
  if r.status ~= 'ok' then
    return {r.now_us, r.status}
  end
  return {r.now_us, 'ok', r.answers, r.groups, r.cancels, r.heads, r.errors, r.solo_due, r.timer_ms,
          r.refused, r.checkpoints or {}}
end

register_bare('later_v1_sync', {'allow-oom'}, sync)
-- Daemons of library 46 and before call it by this name.
register_bare('later_v2_step', {'allow-oom'}, sync)
