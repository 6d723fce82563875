-- later_v2_step R EPOCH LINK HELD MAX
--     NR {id start verb queue a code text output}*NR   NQ {queue room max_payload}*NQ
--     NG {queue start n id*n}*NG [AHEAD [NC {number n {words word*words}*n}*NC]]
--   -> [now_us, status, [answer per result], [group...], [id to cancel...], [head per queue],
--       [queue, error, ...], solo_due, timer_ms, [number, answer, ...]]
--
-- Results in, claims out, one round trip for both.
--
-- HELD: how many jobs of the worker have not ended, those that steps under way may still bring
-- included; only with 0 it may get a suspect. MAX: most jobs to claim (<= 512).
-- verb: done (a: keep ms) | result (done, and output is what its handler gave as its result: the
-- payload of the next job of its chain) | retry (a: delay ms) | dead (a: most dead jobs kept) |
-- release (a: delay ms; counts no attempt) | progress (text). code: exit status; text: one line of
-- text; output: its last bytes.
-- room: most claims from this queue now (0: only tell its head).
-- NG: jobs with small payloads that ended well and of which nothing is kept, by queue and start
-- number.
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
-- nothing was changed, send it with the next step) | refused TEXT (a child is refused: nothing was
-- changed, the attempt has failed). [number, answer]: the jobs of NG that are not ok, by
-- their number among all of them.
-- group: claims that begin alike, one flat list
--   queue, fence of the first, start, attempt, crashes, gated, {id, due ms, record}*
-- whose fences rise by 2. A record that starts with '+' has its payload in R:big:<id>. gated: 1
-- when the jobs passed gates: their end may let in another; 2 when also their handler must not
-- outlive a worker that lost Redis: it holds a lock, or a semaphore with on_lost kill.
-- head: due ms of the first job left in that queue, -1 for none, or when its pause ends.
-- solo_due: 1 when a suspect waits. A job with L.SOLO_CRASHES crashes is claimed only by a worker
-- that runs nothing else (HELD 0, no other claim).
-- timer_ms: when a gate needs a step, whichever worker makes it; -1: none does.
--
-- Queues are served in this order (with HELD 0, those with a due suspect first); jobs of a queue by
-- priority, due time, id; raw members count as priority 5. Permits that the results free are handed
-- to the first waiters, and granted jobs are claimed before all others. A due job whose gate is
-- shut is parked and costs nothing until the gate opens (gates/gate_waiters.lua). A wrong-typed
-- key stops its queue, a corrupt record buries its job; neither stops the call. At most MAX jobs
-- and 1 MiB of records and raw payloads a call (the one that passes it included), and as much for
-- the results: records, outputs, payloads that are copied, and 1 KiB for each child. allow-oom.
-- Cost: O(results + due queues + claims * log n).

L.register_bare('later_v2_step', {'allow-oom'}, function(R, args)
  local q, at = L.read_step(args)
  L.read_ends(q, args, at, 2, function(i)
    -- A start that is no number is the start of no job.
    return {queue = args[i], start = L.whole(args[i + 1] or '') and args[i + 1] or 'none'}
  end)
  local r = L.step(R, q)
  if r.status ~= 'ok' then
    return {r.now_us, r.status}
  end
  return {r.now_us, 'ok', r.answers, r.groups, r.cancels, r.heads, r.errors, r.solo_due, r.timer_ms,
          r.refused}
end)
