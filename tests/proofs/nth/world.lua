-- The world of a run: the keys of one namespace, and what the test knows about them (m, the model).
--
-- m: now_us; name (of ids and epochs); link (epoch -> link number); held (epoch -> id -> {start,
-- tag}); fate (tag -> what has to become of the job: run, exactly once; dead; gone: it never
-- starts; any: one of these); chain (tag -> {thens: the queues that follow, on_dead}); killer (a
-- queue that kills the jobs that are caused in it); tag (id -> tag); started ("id start" -> true);
-- ended (tag -> how often a `done` was accepted); gates (tag -> the locks and semaphores that it
-- holds while it runs); live, victims (epochs of workers); unheard (id -> true: its worker was
-- never told, and finds out by counting); sent (id -> the result that was not accepted). A tag is
-- the beginning of a payload up to '|': it identifies a job whatever its id. The payload goes on to
-- the jobs that the end of a job causes: their tags are that one, '+', and their queue.

nth.ROOT = 'later:{nth}'
nth.TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
nth.QUEUES = {'mail', 'sms', 'gate', 'keyed', 'aside', 'uniq'}

function nth.key(name)
  return nth.ROOT .. ':' .. name
end

function nth.redis(command, name, ...)
  return redis.call(command, nth.key(name), ...)
end

local function copy(x)
  if type(x) ~= 'table' then
    return x
  end
  local out = {}
  for k, v in pairs(x) do
    out[k] = copy(v)
  end
  return out
end
nth.copy = copy

function nth.new_model()
  return {name = {}, link = {}, held = {}, fate = {}, chain = {}, tag = {}, started = {}, ended = {}, gates = {}, sent = {},
          callers = {}, victims = {}, unheard = {}, live = {}}
end

-- ---- the clock

-- Let time pass, and remove what expires meanwhile.
function nth.pass(ms)
  nth.now_us = nth.now_us + ms * 1000
  for _, key in ipairs(redis.call('KEYS', '*')) do
    local ttl = redis.call('PTTL', key)
    if ttl >= 0 and ttl <= ms then
      redis.call('DEL', key)
    elseif ttl >= 0 then
      redis.call('PEXPIRE', key, string.format('%.0f', ttl - ms))
    end
  end
end

function nth.now_ms()
  return math.floor(nth.now_us / 1000)
end

-- ---- save and restore all keys

function nth.clear()
  local keys = redis.call('KEYS', '*')
  if #keys > 0 then
    redis.call('DEL', unpack(keys))
  end
end

-- Without keys that expire within 1 ms.
function nth.save()
  local all = {}
  for _, key in ipairs(redis.call('KEYS', '*')) do
    local ttl = redis.call('PTTL', key)
    if ttl < 0 or ttl > 1 then
      all[#all + 1] = {key, string.format('%.0f', math.max(ttl, 0)), redis.call('DUMP', key)}
    end
  end
  return all
end

function nth.restore(all)
  nth.clear()
  for _, row in ipairs(all) do
    redis.call('RESTORE', row[1], row[2], row[3])
  end
end

local function sorted_pairs(flat)
  local rows = {}
  for i = 1, #flat, 2 do
    rows[#rows + 1] = #flat[i] .. ':' .. flat[i] .. '=' .. flat[i + 1]
  end
  table.sort(rows)
  return table.concat(rows, '\n')
end

local READ = {
  hash = function(key) return sorted_pairs(redis.call('HGETALL', key)) end,
  zset = function(key) return table.concat(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'), '\n') end,
  list = function(key) return table.concat(redis.call('LRANGE', key, 0, -1), '\n') end,
  set = function(key)
    local all = redis.call('SMEMBERS', key)
    table.sort(all)
    return table.concat(all, '\n')
  end,
  string = function(key) return redis.call('GET', key) end,
}

function nth.content_of(key)
  local kind = redis.call('TYPE', key).ok
  return kind ~= 'none' and (redis.call('PTTL', key) >= 0 and 'expires\n' or '\n') .. READ[kind](key) or nil
end

-- -> key -> its content as text
function nth.content()
  local out = {}
  for _, key in ipairs(redis.call('KEYS', '*')) do
    out[key] = nth.content_of(key)
  end
  return out
end

-- ---- jobs

function nth.tag_of(payload)
  return payload and string.match(payload, '^([%w_]+)|')
end

-- The tag of a job by its record, or by what is left of the record.
function nth.tag_by_record(id, record)
  local lf = record and string.find(record, '\n', 1, true)
  local tag = nth.tag_of(lf and string.sub(record, lf + 1)) or nth.tag_of(record) or
              nth.tag_of(redis.call('GET', nth.key('big:' .. id)))
  local queue = record and string.match(record, '^[-+](%S+)[^\n]* p=j')
  return tag and queue and tag .. '+' .. queue or tag
end

-- Note the options of an add, {queue, option, value, ...}, that its judges have to know.
function nth.note_options(m, tag, args)
  local chain = {thens = {}}
  for i = 2, #args - 1, 2 do
    if args[i] == 'lock' or args[i] == 'sem' then
      m.gates[tag] = m.gates[tag] or {}
      table.insert(m.gates[tag], args[i] .. ':' .. args[i + 1])
    elseif args[i] == 'then' then
      table.insert(chain.thens, args[i + 1])
    elseif args[i] == 'on_dead' then
      chain.on_dead = args[i + 1]
    end
  end
  m.chain[tag] = (chain.thens[1] or chain.on_dead) and chain or nil
end

-- Add a job for the stage that is being built; it has to run.
function nth.add(m, tag, queue, ...)
  local args = {queue, ...}
  nth.note_options(m, tag, args)
  local payload = tag .. '|'
  if args[#args] == 'BIG' then
    args[#args] = nil
    payload = payload .. string.rep('x', 20000)
  end
  args[#args + 1] = payload
  local id = nth.must('later_add', unpack(args))[1]
  m.fate[tag], m.tag[id], m.name[tag] = 'run', tag, id
  return id
end

function nth.add_raw(m, tag, queue, score, size)
  nth.redis('ZADD', 'due:' .. queue, score, tag .. '|' .. string.rep('r', size or 0))
  m.fate[tag] = 'run'
end

-- ---- workers

-- Register a worker that serves all queues. -> its epoch
function nth.worker(m, name, places)
  local epoch = nth.must('later_v1_register', '0', 'inst-' .. name, '1', '0', '4', 'host', 'h', 'pid', '7', 'queues',
                         table.concat(nth.QUEUES, ','), 'places', tostring(places or 50), '0', '0')[2]
  nth.redis('HSET', 'worker:' .. epoch, 'room', places or 50)
  m.name[name], m.link[epoch], m.held[epoch] = epoch, '1', {}
  m.live[#m.live + 1] = epoch
  return epoch
end

-- -> what a sync says behind AHEAD of the children of these results, nil for nothing. A child has the tag of its
-- parent and its queue, since its payload is the tag of its parent.
local function children_args(m, results)
  local out, n = {}, 0
  for i, r in ipairs(results) do
    if r.children then
      n, out[#out + 1], out[#out + 2] = n + 1, i, #r.children
    end
    for _, child in ipairs(r.children or {}) do
      out[#out + 1] = #child + 1
      for _, word in ipairs(child) do
        out[#out + 1] = word
      end
      out[#out + 1] = m.tag[r[1]] .. '|' .. (child.is_big and string.rep('y', 20000) or '')
    end
  end
  return n > 0 and {n, unpack(out)} or nil
end

-- The arguments of a sync. results: {id, start, verb, queue, a, output (nil: one that fits), children = ...}; queues: names;
-- more: the arguments from NG on (nil: no ended jobs); its has_ahead: AHEAD is among them
function nth.sync_args(m, epoch, held, results, queues, more, room)
  local children = children_args(m, results)
  more = more or {0}
  local args = {'later_v1_sync', epoch, m.link[epoch], tostring(held), '200', tostring(#results)}
  local function put(...)
    for _, value in ipairs({...}) do
      args[#args + 1] = tostring(value)
    end
  end
  for _, r in ipairs(results) do
    local is_good = r[3] == 'done' or r[3] == 'result'
    put(r[1], r[2], r[3], r[4], r[5], is_good and 0 or 7, 'T', r[6] or is_good and '' or 'O')
  end
  put(#queues)
  for _, queue in ipairs(queues) do
    put(queue, room or 50, 1048576)
  end
  put(unpack(more))
  if children and not more.has_ahead then
    put(0)
  end
  put(unpack(children or {}))
  return args
end

function nth.count(t)
  local n = 0
  for _ in pairs(t) do
    n = n + 1
  end
  return n
end
