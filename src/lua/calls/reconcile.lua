-- later_v1_reconcile R EPOCH LINK  N {id start}*N [SEEN]
--   -> [now_us, status, link, released, [lost id...], rewound]
--
-- After a reconnect or a failed sync the worker says what it runs (with results that were not
-- confirmed). LINK is the link number of the last beat. It is raised here, so that an older sync
-- that is still on its way is refused, and so is an older reconcile. Jobs that Redis holds for the
-- worker and that it never heard of are released unspent. Jobs that it names but does not hold are
-- lost: it kills their handlers.
-- SEEN: the highest clock number that the worker knows. The clock is raised to it, since Redis may
-- have an older copy of the data, in which this worker exists. rewound: 1 when Redis lost clock
-- numbers.
-- status: ok | dead | unknown | link. Cost: O(jobs of the worker).

local beats, workers, clock, jobs, gate = use(
  'calls/beat', 'calls/register', 'core/clock', 'core/jobs', 'gates/gate')

register('later_v1_reconcile', {'allow-oom'}, function(R, args)
  local epoch, link = args[1] or '', args[2]
  local held, at = workers.pairs_at(args, 3)
  local seen = clock.read_seen(args[at] or '0')
  if not seen then
    fail('ELATER_ARGS', 'SEEN is no number of the clock')
  end
  workers.need_worker(R)
  local now_us = clock.now_us()
  local status, current = beats.worker(R, epoch)
  if status == 'ok' and current ~= link then
    status = 'link'
  end
  if status ~= 'ok' then
    return {now_us, status, 0, 0, {}, 0}
  end
  local keep, lost = {}, {}
  for i = 1, #held, 2 do
    local owner = db('ZSCORE', R .. ':running', held[i])
    local tries = jobs.tries(db('HGET', R .. ':tries', held[i]))
    if owner and tonumber(owner) == tonumber(epoch) and tries.starts == tonumber(held[i + 1]) then
      keep[held[i]] = true
    else
      lost[#lost + 1] = held[i]
    end
  end
  -- Raise the clock first: the gates of released jobs are handed on with new fences.
  local rewound = clock.last(R) < seen
  if rewound then
    db('SET', R .. ':clock', int(seen))
  end
  local released = workers.release_unheard(R, tonumber(epoch), keep, gate.ledger(R, now_us))
  local new = db('HINCRBY', R .. ':worker:' .. epoch, 'link', 1)
  return {now_us, 'ok', new, released, lost, rewound and 1 or 0}
end)
