-- The index of names: what later_find and the completion of shells search by the first letters.
--
--   R:index        ZSET  "<kind>:<name>" -> 0: equal scores, so Redis sorts them by their bytes
--   R:index:state  HASH  how far queue_names.mend_names is: when it ran last, ms, and a cursor of
--   each source
--
-- Kinds and their sources: queue (R:names), sem and rate (the definitions of R:limits), lock (what
-- queues declare in R:queues), schedule, batch, topic (the subscriptions of R:topics). Members of
-- the kind `use` are no names: they keep those of queues from being tidied away (uses.lua). The
-- index follows the sources: commit.commit tells queue_names.note_names of each write to them; the
-- few writes past the transaction call queue_names.index_queues. It is a hint: one that cannot be
-- written harms no call. What is missing then, and what was there before the index, is mended by
-- tidying.

local queue_names = module 'core/queue_names'
local batches, uses, limits, wanted, schedules, topics, commit = use(
  'batch/batches', 'core/uses', 'gates/limits', 'gates/wanted', 'schedule/schedules',
  'topic/topics', 'txn/commit')

queue_names.INDEX_MAX = 400000        -- more than all names that the other limits allow
local AT_ONCE = 1000        -- names in a command
local BYTES_MAX = 256       -- bytes, of what tidying takes over
local GATES_READ = 2000     -- queues with gates; with more of them, locks that are gone are left

local function declared_lock(text)
  local gates = wanted.queue_gates(text)
  return gates and gates.lock
end

-- Source -> the members that one of its names and its value stand for.
local MEMBERS = {
  names = function(name) return {'queue:' .. name} end,
  limits = function(name, definition)
    local limit = limits.parse_limit(definition)
    return {limit and limit.kind .. ':' .. name or nil}
  end,
  queues = function(_, gates)
    local lock = declared_lock(gates)
    return {lock and 'lock:' .. lock or nil}
  end,
  schedules = function(name, text)
    local s = schedules.parse(name, text)
    return uses.use_members('schedule', name, s and uses.queues_of(s) or {})
  end,
  batches = function(name, text)
    local batch = batches.known(name, text)
    local is_open = batch and not batch.ended_ms
    return uses.use_members('batch', name, is_open and uses.batch_queues(batch) or {})
  end,
  topics = function(name, text) return uses.use_members('topic', name, topics.queues_of(text)) end,
}

local root_of, members_of

-- -> the key of each source -> its function of MEMBERS
function queue_names.name_sources(R)
  if root_of ~= R then
    root_of, members_of = R, {}
    for source, member in pairs(MEMBERS) do
      members_of[R .. ':' .. source] = member
    end
  end
  return members_of
end

-- ---- writing. Nothing here raises an error: a name is not worth a call.

local function run(command, key, members, from, to)
  local args = {}
  for i = from, to do
    if command == 'ZADD' then
      args[#args + 1] = 0
    end
    args[#args + 1] = members[i]
  end
  redis.pcall(command, key, unpack(args))
end

local function add(R, members)
  local key = R .. ':index'
  local n = redis.pcall('ZCARD', key)
  local last = type(n) == 'number' and math.min(#members, queue_names.INDEX_MAX - n) or 0
  for from = 1, last, AT_ONCE do
    run('ZADD', key, members, from, math.min(from + AT_ONCE - 1, last))
  end
end

local function drop(R, members)
  for from = 1, #members, AT_ONCE do
    run('ZREM', R .. ':index', members, from, math.min(from + AT_ONCE - 1, #members))
  end
end

-- -> member -> true for the locks that queues declare; nil: they cannot be read, or there are so
-- many that reading takes long
local function declared_locks(R)
  local key, locks = R .. ':queues', {}
  local n = redis.pcall('HLEN', key)
  if type(n) ~= 'number' or n > GATES_READ then
    return nil
  end
  local all = redis.call('HGETALL', key)
  for i = 2, #all, 2 do
    local lock = declared_lock(all[i])
    if lock then
      locks['lock:' .. lock] = true
    end
  end
  return locks
end

-- Drop names that one source has no more. A lock stays while another queue declares it.
local function drop_unused(R, members)
  local unused, locks = {}, nil
  for _, member in ipairs(members) do
    local is_used = false
    if string.find(member, '^lock:') then
      locks = locks or declared_locks(R)
      is_used = not locks or locks[member]
    end
    unused[#unused + 1] = not is_used and member or nil
  end
  drop(R, unused)
end

local function follow(R, added, dropped)
  drop_unused(R, dropped)
  add(R, added)
end

-- Append to a list those members that are not among the others.
local function append_others(list, members, others)
  local is_other = {}
  for _, member in ipairs(others) do
    is_other[member] = true
  end
  for _, member in ipairs(members) do
    list[#list + 1] = not is_other[member] and member or nil
  end
end

-- The call is going to write these names of a source, and to remove those. e: its entry in the
-- transaction
function queue_names.note_names(R, e, set, unset)
  local members, added, dropped = members_of[e.key], {}, {}
  local function note(name, was, is)
    was, is = was and members(name, was) or {}, is and members(name, is) or {}
    if table.concat(was, '\n') ~= table.concat(is, '\n') then
      append_others(added, is, was)
      append_others(dropped, was, is)
    end
  end
  for _, name in ipairs(set) do
    note(name, e.was[name], e.cells[name])
  end
  for _, name in ipairs(unset) do
    note(name, e.was[name])
  end
  if #added + #dropped > 0 then
    commit.hint(follow, R, added, dropped)
  end
end

-- The names of these queues were written past the transaction.
function queue_names.index_queues(R, queues)
  local members = {}
  for i, queue in ipairs(queues) do
    members[i] = 'queue:' .. queue
  end
  pcall(add, R, members)
end

-- ---- mending

local EVERY_MS = 5000
local PAGE = 200            -- names of a source a call, and of the index
local BIG_PAGE = 50         -- the same of sources whose values may be large

-- Add those of these members that the index lacks.
local function add_missing(R, members)
  local missing = {}
  for from = 1, #members, AT_ONCE do
    local some = {unpack(members, from, math.min(from + AT_ONCE - 1, #members))}
    for i, score in ipairs(redis.call('ZMSCORE', R .. ':index', unpack(some))) do
      missing[#missing + 1] = not score and #some[i] <= BYTES_MAX + 10 and some[i] or nil
    end
  end
  add(R, missing)
end

-- fields: {name, value}* of a source that is a hash
local function add_fields(R, source, fields)
  local members = {}
  for i = 1, #fields, 2 do
    append_others(members, MEMBERS[source](fields[i], fields[i + 1]), {})
  end
  add_missing(R, members)
end

-- Each adds a page of a source from a cursor on. -> the next cursor, 0 at the end
local function add_some_queues(R)
  local names = redis.call('SRANDMEMBER', R .. ':names', PAGE) -- all of them if few
  for i, name in ipairs(names) do
    names[i] = 'queue:' .. name
  end
  add_missing(R, names)
  return 0
end

local function add_limits(R)
  add_fields(R, 'limits', redis.call('HGETALL', R .. ':limits'))
  return 0
end

local function scan(source, count)
  return function(R, cursor)
    local page = redis.call('HSCAN', R .. ':' .. source, int(cursor), 'COUNT', count)
    add_fields(R, source, page[2])
    return tonumber(page[1])
  end
end

-- The batches in one of the two sets that have them.
local function walk_batches(set)
  return function(R, rank)
    local names, fields = redis.call('ZRANGE', R .. ':batch:' .. set, rank, rank + BIG_PAGE - 1), {}
    local texts = names[1] and redis.call('HMGET', R .. ':batches', unpack(names)) or {}
    for i, name in ipairs(names) do
      fields[2 * i - 1], fields[2 * i] = name, texts[i]
    end
    add_fields(R, 'batches', fields)
    return #names == BIG_PAGE and rank + BIG_PAGE or 0
  end
end

-- Kinds whose names are the fields of a hash.
local HASHES = {batch = 'batches', schedule = 'schedules', topic = 'topics'}

-- name: of a member of the kind `use`
local function is_use(R, name, member)
  local what, of = string.match(name, '^%S+ (%l+):(.+)$')
  local source = HASHES[what or '']
  local text = source and redis.call('HGET', R .. ':' .. source, of)
  for _, other in ipairs(text and MEMBERS[source](of, text) or {}) do
    if other == member then
      return true
    end
  end
  return uses.is_chain_use(name)
end

-- Is this still a name of its source?
local function is_there(R, kind, name, member, locks)
  if kind == 'queue' then
    return redis.call('SISMEMBER', R .. ':names', name) == 1
  elseif kind == 'sem' or kind == 'rate' then
    local limit = limits.parse_limit(redis.call('HGET', R .. ':limits', name) or nil)
    return limit and limit.kind == kind
  elseif kind == 'lock' then
    if locks.all == nil then
      locks.all = declared_locks(R) or false
    end
    return not locks.all or locks.all[member]
  elseif kind == 'use' then
    return is_use(R, name, member)
  end
  local source = HASHES[kind or '']
  return source and redis.call('HEXISTS', R .. ':' .. source, name) == 1
end

local function drop_stale(R, rank)
  local rows = redis.call('ZRANGE', R .. ':index', rank, rank + PAGE - 1, 'WITHSCORES')
  local stale, locks = {}, {}
  for i = 1, #rows, 2 do
    local member = rows[i]
    local kind, name = string.match(member, '^(%l+):(.+)$')
    if tonumber(rows[i + 1]) ~= 0 or not is_there(R, kind, name, member, locks) then
      stale[#stale + 1] = member
    end
  end
  drop(R, stale)
  return #rows == 2 * PAGE and rank + PAGE - #stale or 0
end

-- Field of R:index:state -> what mends that.
local PARTS = {
  queues = add_some_queues, limits = add_limits, locks = scan('queues', PAGE),
  schedules = scan('schedules', BIG_PAGE), topics = scan('topics', BIG_PAGE),
  open = walk_batches('open'), ended = walk_batches('ended'), stale = drop_stale,
}

local function mend(R, now_ms)
  local key, state = R .. ':index:state', {}
  local fields = redis.call('HGETALL', key)
  for i = 1, #fields, 2 do
    state[fields[i]] = whole(fields[i + 1])
  end
  if state.ms and state.ms <= now_ms and state.ms > now_ms - EVERY_MS then
    return
  end
  local after = {'ms', int(now_ms)}
  for part, go_on in pairs(PARTS) do
    -- A source of a foreign type does not keep the others from being mended.
    local ok, cursor = pcall(go_on, R, state[part] or 0)
    after[#after + 1], after[#after + 2] = part, int(ok and cursor or 0)
  end
  redis.call('HSET', key, unpack(after))
end

-- Add to the index what it lacks of a page of each source, and drop what is stale of a page of it:
-- after the writes, every few seconds, however many workers tidy.
function queue_names.mend_names(R, now_ms)
  commit.hint(mend, R, now_ms)
end
