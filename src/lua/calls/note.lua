-- later_v1_note R KIND NAME -> 'noted'
--
-- A worker saw something that an operator should know (KIND: stray-key). later_stats shows it for
-- ten minutes. For KIND raw-queue, NAME is a queue that has raw members but is not in R:names: it
-- becomes known, so that later_v1_tidy can tell whether anybody serves it.

local tidy, clock, job_sets, jobs, adds = use(
  'calls/tidy', 'core/clock', 'core/job_sets', 'core/jobs', 'public/add')
local PEEK_BYTES = 1

register('later_v1_note', {'allow-oom'}, function(R, args)
  local kind, name = args[1] or '', args[2] or ''
  local now_ms = clock.ms(clock.now_us())
  if kind == 'raw-queue' then
    local queue = check_queue(name)
    adds.check_names(R, queue)
    local key = R .. ':due:' .. queue
    if db('ZCARD', key) > 0 then
      local is_due = db('ZCOUNT', key, '-inf', int(now_ms)) > 0
      jobs.lower_head(R, queue, is_due and now_ms or job_sets.next_raw(key, 0,
                                                                       {now_ms = now_ms,
                                                                        peek = PEEK_BYTES},
                                                                       db('ZSCORE', R .. ':heads',
                                                                          queue)))
    end
  else
    tidy.note(R, one_line(string.sub(kind .. ':' .. name, 1, tidy.NOTE_BYTES)), now_ms)
  end
  return 'noted'
end)
