-- later_v1_adopt R QUEUE KEY HASH UNIT REMOVE SCORE MEMBER COUNT
--   -> [added, left, SCORE, MEMBER, why, one left]
--
-- Makes jobs of the members of a sorted set of another system, for example a home-made delay queue.
-- KEY: that set. HASH: '' when a member is a payload. UNIT: s or ms (foreign/foreign.lua). REMOVE
-- 1: members that were added leave the set and the hash in the same call, so that each is always in
-- exactly one of both systems. SCORE, MEMBER: empty first, then those of the last reply; an empty
-- SCORE in a reply: that was the end. COUNT: at most 200; a call ends early at 1 MiB. Members that
-- cannot be a job are left where they are: left says how many, why and one left say why the first
-- one was left and which it is.
-- Errors: ELATER_ARGS QUEUE KEY (a gate of the queue needs a key) FULL TYPE, NOPERM. Cost: O(COUNT
-- log n).

local imports, clock, job_sets, jobs, foreign, wanted, adds = use(
  'calls/import', 'core/clock', 'core/job_sets', 'core/jobs', 'foreign/foreign', 'gates/wanted',
  'public/add')
local BYTES = 1048576

-- Read and check a page. -> jobs, their payloads, their members, how many values of `rows` were
-- read (two a row)
local function read_page(R, queue, source, rows, now_ms)
  local list, payloads, members, bytes, max = {}, {}, {}, 0, jobs.max_payload(R, queue)
  for i = 1, #rows, 2 do
    local member, payload = rows[i], rows[i]
    local due, why = foreign.foreign_due(rows[i + 1], source.unit, now_ms)
    if source.hash ~= '' then
      payload = db('HGET', source.hash, member)
      why = not payload and 'it has no field in ' .. quote(source.hash) or why
    end
    if payload and #payload > max then
      why = 'it has ' .. int(#payload) .. ' bytes, queue ' .. queue .. ' takes ' .. int(max) ..
            ' (max_payload)'
    end
    if why then
      source.left = source.left + 1
      source.why, source.one = source.why or why, source.one or member
    else
      local job = {queue = queue, priority = 5, due = due}
      adds.check_gates(R, job, source.of_queue)
      list[#list + 1], payloads[#payloads + 1], members[#members + 1] = job, payload, member
    end
    bytes = bytes + #(payload or '') -- a refused payload was read, too
    if bytes >= BYTES then
      return list, payloads, members, i + 1
    end
  end
  return list, payloads, members, #rows
end

register('later_v1_adopt', {}, function(R, args)
  local queue, key, hash, unit, remove = check_queue(args[1]), args[2], args[3], args[4], args[5]
  local score, member, count = args[6], args[7], whole(args[8])
  if not count or count < 1 or count > 200 or key == '' or (unit ~= 's' and unit ~= 'ms') or
     (remove ~= '0' and remove ~= '1') or (score ~= '' and not tonumber(score)) then
    fail('ELATER_ARGS', 'give QUEUE KEY HASH UNIT REMOVE SCORE MEMBER COUNT (1 to 200)')
  end
  if not foreign.check_foreign(R, key, hash) and score == '' then
    fail('ELATER_ARGS', 'there is no key ' .. quote(key))
  end
  if remove == '1' then
    foreign.need_removal(key, hash)
  end
  local now_us = clock.now_us()
  local source = {hash = hash, unit = unit, left = 0,
                  of_queue = wanted.queue_gates(redis.call('HGET', R .. ':queues', queue))}
  local rows = job_sets.read_set(key, job_sets.rank_behind(key, score, member), count, BYTES)
  local list, payloads, members, n = read_page(R, queue, source, rows, clock.ms(now_us))
  if #list > 0 then
    imports.write_many(R, queue, list, payloads, now_us)
    if remove == '1' then
      foreign.remove_foreign(key, members, hash, members)
    end
  end
  return {#list, source.left, rows[n] or '', rows[n - 1] or '', source.why or '', source.one or ''}
end)
