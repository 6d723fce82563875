-- The jobs of a sync over rows that ended well and are kept with their outcome (jobs.finish,
-- core/jobs.lua). One that is followed is odd; so are kept jobs with large payloads whose
-- time is over.
--
-- What the sync knows: kept: {ids and outcomes (columns), of_queue: queue -> {ids, scores (until
-- when each is kept), over: {ids, scores} of those whose time is over, nil for none}, over: {ids
-- (all of these), had: {key, ids, values}* (what is there of them)}, nil for none}.

local row_kept = module 'rows/kept'
local events, jobs, row_ends, row_members, row_results, row_sync, writes = use(
  'core/events', 'core/jobs', 'rows/ends', 'rows/members', 'rows/results', 'rows/sync',
  'rows/writes')
local OVER_EACH = 2         -- as in jobs.finish
local OVER_MAX = 256        -- each has an outcome, which may be large
local OF_JOB = {'tries', 'progress', 'errors', 'failures', 'results'}

-- Result r of a job with these rows, which is kept. -> how many bytes it moves, its queue
function row_kept.keep_row(s, r, tries, record)
  local job = jobs.parse(record)
  if not job or r.children or r.result or job.n or job.S then
    return row_sync.odd()
  end
  local kept = s.kept or {ids = {}, outcomes = {}, of_queue = {}}
  local its = kept.of_queue[job.queue] or {ids = {}, scores = {}}
  local n, k = #kept.ids + 1, #its.ids + 1
  s.kept, kept.of_queue[job.queue] = kept, its
  kept.ids[n] = r.id
  kept.outcomes[n] = jobs.outcome('done', r.code, s.now_ms, tries.starts, r.text, r.output)
  if events.now then
    events.add_end(r.id, job.queue, kept.outcomes[n])
  end
  if job.b then
    row_members.note_member(s, job.b, r.id)
  end
  if job.u then
    row_ends.note_unique(s, job.queue .. ':' .. job.u, r.id, job.f)
  end
  its.ids[k], its.scores[k] = r.id, int(s.now_ms + r.a)
  return #record + #r.output, job.queue
end

-- Each job that is kept removes up to OVER_EACH of its queue whose time is over.
local function load_over(s, queue, its, all)
  local key = s.R .. ':done:' .. queue
  writes.need_absent(key, its.ids) -- one that is there has ended already
  local rows = redis.call('ZRANGEBYSCORE', key, '-inf', s.now_text, 'WITHSCORES', 'LIMIT', 0,
                          OVER_EACH * #its.ids)
  if not rows[1] then
    return
  end
  its.over = {ids = {}, scores = {}}
  for i = 1, #rows, 2 do
    local n = #its.over.ids + 1
    its.over.ids[n], its.over.scores[n], all[#all + 1] = rows[i], rows[i + 1], rows[i]
  end
  row_results.need_untold(s, its.over.ids, 1, #its.over.ids)
end

-- Read what the jobs that are kept replace.
function row_kept.load_over(s)
  local R, all, large = s.R, {}, {}
  for queue, its in pairs(s.kept.of_queue) do
    if redis.call('SISMEMBER', R .. ':names', queue) == 0 then
      row_sync.odd()
    end
    load_over(s, queue, its, all)
  end
  if not all[1] then
    return
  elseif #all > OVER_MAX then
    row_sync.odd()
  end
  for i = 1, #all do
    large[i] = R .. ':big:' .. all[i]
  end
  if redis.call('EXISTS', unpack(large)) > 0 then
    row_sync.odd()
  end
  s.kept.over = {ids = all, had = {}}
  for i, name in ipairs(OF_JOB) do
    s.kept.over.had[i] = writes.read_there(R .. ':' .. name, all)
  end
end
