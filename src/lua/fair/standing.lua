-- Where a tenant of a fair queue stands, for people.

local standing = module 'fair/standing'
local tenants, usage = use('fair/tenants', 'fair/usage')

-- -> how many tenants with due jobs go before this one
function standing.before(R, queue, tenant)
  local active = R .. ':fair:' .. queue
  local time = db('ZSCORE', active, tenant) or
               math.max(db('ZSCORE', R .. ':fair-debts:' .. queue, tenant) or 0,
                        (tenants.state(R, queue)))
  return db('ZCOUNT', active, '-inf', '(' .. int(time))
end

-- Where a tenant stands, as a clause; '': the queue is not fair
function standing.text(R, queue, tenant, now_ms)
  if not tenants.are_kept(R, queue) then
    return ''
  end
  local before, used, all = standing.before(R, queue, tenant),
                            usage.last_minute(R, queue, tenant, now_ms)
  local percent = all > 0 and math.floor(100 * used / all + 0.5) or 0
  local who = tenant == '' and '; jobs without a key have had ' or '; its tenant ' ..
              one_line(tenant) .. ' has had '
  local others = before == 0 and 'it is the next one' or before == 1 and '1 other goes first' or
                 int(before) .. ' others go first'
  return who .. int(percent) .. " % of the last minute's run time; " .. others
end

-- -> how many jobs of a tenant with this priority stand before the one that was due then
local function count_before(R, queue, tenant, digit, due, id)
  local from = tenants.range(tenant, digit)
  return redis.call('ZLEXCOUNT', tenants.jobs_key(R, queue), from,
                    '(' .. tenants.line(tenant, digit, due, id))
end

-- -> how many jobs of a tenant with this priority are due
function standing.count_due(R, queue, tenant, digit, now_ms)
  return count_before(R, queue, tenant, digit, now_ms + 1, '')
end

-- -> how many due jobs of its tenant are claimed before this job, which waits
function standing.due_before(R, id, job, now_ms)
  local n, tenant, queue, priority = 0, job.K or '', job.queue, int(job.priority)
  local score = redis.call('ZSCORE', R .. ':q:' .. queue .. ':' .. priority, id)
  if not score then
    return 0
  end
  for p = 0, job.priority - 1 do
    n = n + standing.count_due(R, queue, tenant, int(p), now_ms)
  end
  return n + count_before(R, queue, tenant, priority, to_due(score), id)
end
