-- The jobs of a sync over rows that are dead from now on (jobs.bury, core/jobs.lua). One that is
-- followed, is told of (on_dead) or belongs to a batch is odd; so is a queue that has to forget
-- some of its dead jobs for it.
--
-- What the sync knows: dead: {ids (of all), of_queue: queue -> {ids, max (how many may stay)}}.

local row_dead = module 'rows/dead'
local events, row_ends, row_sync, writes = use(
  'core/events', 'rows/ends', 'rows/sync', 'rows/writes')

-- Result r of a job with this record, which is dead; outcome: as it is kept.
function row_dead.dead_row(s, r, job, outcome)
  if job.n or job.S or job.d or job.b then
    row_sync.odd()
  end
  local dead = s.dead or {ids = {}, of_queue = {}}
  local its = dead.of_queue[job.queue] or {ids = {}, max = r.a}
  s.dead, dead.of_queue[job.queue] = dead, its
  dead.ids[#dead.ids + 1], its.ids[#its.ids + 1] = r.id, r.id
  its.max = math.min(its.max, r.a)
  if job.u then
    row_ends.note_unique(s, job.queue .. ':' .. job.u, r.id, job.f)
  end
  if events.now then
    events.add_end(r.id, job.queue, outcome)
  end
end

-- Read what there is of their queues.
function row_dead.load_dead(s)
  for queue, its in pairs(s.dead.of_queue) do
    local key = s.R .. ':dead:' .. queue
    if redis.call('SISMEMBER', s.R .. ':names', queue) == 0 or
       redis.call('ZCARD', key) + #its.ids > its.max then
      row_sync.odd()
    end
    writes.need_absent(key, its.ids) -- one that is there is dead already
  end
end

function row_dead.plan_dead(s)
  local scores = {}
  for i = 1, #s.dead.ids do
    scores[i] = s.now_text
  end
  for queue, its in pairs(s.dead.of_queue) do
    writes.add_members(s, s.R .. ':dead:' .. queue, its.ids, scores)
  end
  writes.remove_members(s, s.R .. ':running', s.dead.ids, s.epoch_text)
end
