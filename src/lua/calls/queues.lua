-- later_v1_queues R AFTER COUNT -> [now_ms, next, queues, states]
-- later_v1_running R -> [now_ms, [queue, jobs, ...]]
--
-- One page of the queues, for namespaces with more of them than later_stats tells. AFTER: '' first,
-- then what the page before returned as `next`, or the name of any queue: those behind it are told.
-- COUNT: at most 100. next: '' behind the last page. queues and states: as in later_stats, but
-- running is ''. A page may have fewer than COUNT queues, or none, and not be the last: it ends
-- early where queues have jobs in many sets.
-- The names come in the order of their bytes, from the index of names. Names that it lacks (tidying
-- mends it) come behind all others, in no order; `next` is then '.' and two numbers.
-- later_v1_running: how many jobs of each queue run; '' instead of the list while more than 1,000
-- run, or their records have more than 1 MiB. Reading them takes longer than a page, so no page has
-- it.
-- no-writes. Errors: ELATER_ARGS TYPE. Cost: O(COUNT + log n), constant in jobs; O(running jobs).

local rooms, clock, queue_rows = use('claim/rooms', 'core/clock', 'core/queue_rows')
local COUNT_MAX = 100
local NAME_BYTES = 256      -- of AFTER
local RUNNING_BYTES = 1048576
local COMMANDS = 400        -- about so many a call

local function is_queue(name)
  return #name <= 64 and string.find(name, '^%w[%w_-]*$') ~= nil
end

-- -> up to `count` names of the index behind this one; the last of them, nil if there are fewer.
-- What is no name there was written by hand, and is passed over.
local function indexed(R, after, count)
  local members = redis.pcall('ZRANGE', R .. ':index', '(queue:' .. after, '(queue;', 'BYLEX',
                              'LIMIT', 0, count)
  local names = {}
  for i = 1, #members do
    local name = string.sub(members[i], 7)
    names[#names + 1] = is_queue(name) and name or nil
  end
  return names, #members == count and string.sub(members[count], 7) or nil
end

-- Does the index lack a name? A foreign type there is an index without names.
local function is_short(R)
  local n = redis.pcall('ZLEXCOUNT', R .. ':index', '(queue:', '(queue;')
  return type(n) ~= 'number' or n < redis.call('SCARD', R .. ':names')
end

-- -> names that the index lacks, of the page at this cursor, without the first `skip`; the cursor
-- of the next page, '0' for none
local function others(R, cursor, skip, count)
  local page, names, members = redis.call('SSCAN', R .. ':names', cursor, 'COUNT', count), {}, {}
  for i, name in ipairs(page[2]) do
    members[i] = 'queue:' .. name
  end
  local scores = members[1] and redis.pcall('ZMSCORE', R .. ':index', unpack(members)) or {}
  for i, name in ipairs(page[2]) do
    local is_other = is_queue(name) and (scores.err or not scores[i])
    names[#names + 1] = is_other and name or nil
  end
  return {unpack(names, skip + 1, skip + count)}, page[1], #names
end

local function indexed_page(R, after, count)
  local names, last = indexed(R, after, count)
  local queues, states, n = queue_rows.of(R, names, nil, COMMANDS)
  if last or n < #names then
    return n < #names and names[n] or last, queues, states
  end
  return is_short(R) and '.0:0' or '', queues, states
end

local function other_page(R, cursor, skip, count)
  local names, behind, all = others(R, cursor, skip, count)
  local queues, states, n = queue_rows.of(R, names, nil, COMMANDS)
  if skip + n < all then
    return '.' .. cursor .. ':' .. int(skip + n), queues, states
  end
  return behind ~= '0' and '.' .. behind .. ':0' or '', queues, states
end

register('later_v1_queues', {'no-writes'}, function(R, args)
  local after, count = args[1] or '.', whole(args[2])
  local cursor, skip = string.match(after, '^%.(%d+):(%d+)$')
  skip = skip and #skip <= 6 and whole(skip)
  if not count or count < 1 or count > COUNT_MAX or
     #after > NAME_BYTES or (not skip and string.sub(after, 1, 1) == '.') then
    fail('ELATER_ARGS', 'give AFTER COUNT (1 to ' .. int(COUNT_MAX) .. ')')
  end
  local now_ms = clock.ms(clock.now_us())
  if skip then
    return {now_ms, other_page(R, cursor, skip, count)}
  end
  return {now_ms, indexed_page(R, after, count)}
end)

register('later_v1_running', {'no-writes'}, function(R)
  local reply, counts = {clock.ms(clock.now_us()), ''}, rooms.running_by_queue(R, RUNNING_BYTES)
  if counts then
    reply[2] = {}
    for queue, n in pairs(counts) do
      reply[2][#reply[2] + 1], reply[2][#reply[2] + 2] = queue, n
    end
  end
  return reply
end)
