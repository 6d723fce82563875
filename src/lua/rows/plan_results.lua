-- What the results of a sync over rows write (results.lua, kept.lua).

local plan_results = module 'rows/plan_results'
local row_dead, plans, row_results, row_sync, writes = use(
  'rows/dead', 'rows/plan', 'rows/results', 'rows/sync', 'rows/writes')

-- Retried jobs may be the first of their queues: the workers of these are woken, in the order in
-- which the heads are lowered.
local function plan_late(s)
  local claimed, heads = s.heads or {}, {}
  for _, queue in ipairs(s.late) do
    local row = claimed[queue]
    local was = row and row.was or not row and redis.call('ZSCORE', s.R .. ':heads', queue)
    local head, is_lowered = row_results.head_with(s.late[queue], was)
    if is_lowered then
      if redis.call('SISMEMBER', s.R .. ':names', queue) == 0 then
        row_sync.odd()
      elseif not row then
        plans.set_head(s, queue, was, head)
      end
      heads[queue] = was and tonumber(was) or math.huge
    end
  end
  for i = 1, #s.dues, 2 do
    local queue, due = s.dues[i], s.dues[i + 1]
    if heads[queue] and due < heads[queue] then
      heads[queue], s.woken[#s.woken + 1] = nil, queue
    end
  end
end

local function pairs_of(names, values)
  local out = {}
  for i = 1, #names do
    out[2 * i - 1], out[2 * i] = names[i], values[i]
  end
  return out
end

local function set_fields(s, name, had, words)
  writes.add_write(s, {names = had.ids, values = had.values, 'HSET', s.R .. ':' .. name,
                       unpack(words)})
end

local function plan_retried(s)
  local t, ids = s.retried, s.retried.ids
  set_fields(s, 'tries', {ids = ids, values = t.texts}, pairs_of(ids, t.tries))
  for key, set in pairs(s.waiting) do
    writes.add_members(s, key, set.ids, set.scores)
  end
  writes.remove_members(s, s.R .. ':running', ids, s.epoch_text)
  plan_late(s)
end

local function plan_kept(s)
  local R, kept = s.R, s.kept
  set_fields(s, 'results', s.had.results, pairs_of(kept.ids, kept.outcomes))
  for queue, its in pairs(kept.of_queue) do
    writes.add_members(s, R .. ':done:' .. queue, its.ids, its.scores)
    if its.over then
      writes.remove_members(s, R .. ':done:' .. queue, its.over.ids, its.over.scores)
    end
  end
  writes.remove_members(s, R .. ':running', kept.ids, s.epoch_text)
  for _, had in ipairs(kept.over and kept.over.had or {}) do
    writes.remove_there(s, had)
  end
  for _, id in ipairs(kept.over and kept.over.ids or {}) do
    s.last = s.last or {'HDEL', R .. ':jobs'}
    s.last[#s.last + 1] = id
  end
end

function plan_results.plan_results(s)
  if s.progress[1] then
    set_fields(s, 'progress', s.had.progress, s.progress)
  end
  local failed = s.failed
  if failed.ids[1] then
    set_fields(s, 'errors', s.had.errors, pairs_of(failed.ids, failed.outcomes))
    set_fields(s, 'failures', s.had.failures, pairs_of(failed.ids, failed.lines))
  end
  if s.retried.ids[1] then
    plan_retried(s)
  end
  if s.dead then
    row_dead.plan_dead(s)
  end
  if s.kept then
    plan_kept(s)
  end
  for _, t in ipairs(s.taken or {}) do
    row_results.need_untold(s, t.ids, t.from, t.to)
  end
  writes.remove_there(s, s.gone.errors)
  writes.remove_there(s, s.gone.progress)
end
