-- later_v1_step R EPOCH LINK HELD MAX
--     NR {id start verb queue a code text output}*NR   NQ {queue room max_payload}*NQ
--     [NG {queue n id*n}*NG [AHEAD]]
--   -> [now_us, status, [answer per result], [claim...], [id to cancel...], [head per queue],
--       [queue, error, ...], solo_due, timer_ms, [number, answer, ...], []]
--
-- later_v2_step for daemons of versions before library 19: see there. Differences: every claim
-- stands by itself,
--   claim: [id, queue, start, attempt, crashes, fence, due_ms, record, gated]
-- and all groups of ended jobs are of first starts. Without NG the last two values are left out;
-- the last one is always empty. allow-oom. Cost: as later_v2_step.

-- Append the claims of a group, one by one.
local function add_claims(claims, g)
  local fence = g[2]
  for at = L.GROUP_COMMON + 1, #g, 3 do
    claims[#claims + 1] = {g[at], g[1], g[3], g[4], g[5], fence, g[at + 1], g[at + 2], g[6]}
    fence = fence + 2
  end
end

L.register_bare('later_v1_step', {'allow-oom'}, function(R, args)
  local q, at = L.read_step(args)
  local has_groups = args[at] ~= nil
  if has_groups then
    L.read_ends(q, args, at, 1, function(i) return {queue = args[i], start = '1'} end)
  end
  local r = L.step(R, q)
  if r.status ~= 'ok' then
    return {r.now_us, r.status}
  end
  local claims = {}
  for _, group in ipairs(r.groups) do
    add_claims(claims, group)
  end
  return {r.now_us, 'ok', r.answers, claims, r.cancels, r.heads, r.errors, r.solo_due, r.timer_ms,
          has_groups and r.refused or nil, has_groups and {} or nil}
end)
