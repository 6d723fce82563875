-- Idle queues: a sweep names every queue, and hardly any has something to claim. Those that have nothing, and of which
-- R:heads says the truth, are told from the others by as few reads as will do; claim.lua looks into the others.

local MANY = 16
local TURNS = 8 -- of many queues each has its head looked at once in so many seconds

-- What a hash (HLEN, HGETALL, HMGET) or a sorted set has for these names, as a table by name. Where many are asked for
-- and there are few or none, those that there are cost less than all that there might be.
local function values_of(key, names, count, read_all, read_some)
  local out, n = {}, #names > MANY and redis.call(count, key)
  if n == 0 then
    return out
  elseif n and 4 * n < #names then
    local rows, by = read_all(), {}
    for i = 1, #rows, 2 do
      by[rows[i]] = rows[i + 1]
    end
    for _, name in ipairs(names) do
      out[name] = by[name]
    end
    return out
  end
  for i, value in ipairs(redis.call(read_some, key, unpack(names))) do
    out[names[i]] = value or nil
  end
  return out
end

-- Of a hash below R, without a look where the call knows that it is not there.
function L.fields_of(R, hash, names)
  if L.absent[hash] then
    return {}
  end
  local key = R .. ':' .. hash
  return values_of(key, names, 'HLEN', function() return redis.call('HGETALL', key) end, 'HMGET')
end

function L.scores_of(key, names)
  return values_of(key, names, 'ZCARD', function() return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end, 'ZMSCORE')
end

-- Of keys[from..to], those that exist, into out. Mostly none does, and one call tells; else it is asked by halves.
local function find_existing(keys, from, to, out)
  if from > to or redis.call('EXISTS', unpack(keys, from, to)) == 0 then
    return
  elseif from == to then
    out[keys[from]] = true
    return
  end
  local middle = math.floor((from + to) / 2)
  find_existing(keys, from, middle, out)
  find_existing(keys, middle + 1, to, out)
end

-- The head that was noted, when the first job of the queue is due then; else nil. It is, unless a key was lost or
-- written by hand: to ask each time for each of many queues would be most of what a sweep costs.
local function head_of(R, queue, noted)
  local first = redis.pcall('ZRANGE', R .. ':q:' .. queue .. ':5', 0, 0, 'WITHSCORES')
  return first[2] and L.due(first[2]) == noted and noted or nil
end

-- The queues in which there seems to be nothing to claim: no mark, no pause, nothing granted, and not due unless without
-- room. -> their heads in R:heads by their number, false for none; nil: claim.lua has to look
local function noted_heads(queues, ctx)
  local noted, marks, paused, fresh, heads = {}, ctx.marks, ctx.paused, ctx.book.fresh, ctx.heads
  for i, q in ipairs(queues) do
    local name = q.name
    -- One that is named again has another head by then.
    if marks[name] == '' and not paused[name] and not fresh[name] and not q.is_again then
      local head = tonumber(heads[name] or '')
      if not head or head > ctx.until_ms or q.room == 0 then
        noted[i] = head or false
      end
    end
  end
  return noted
end

-- -> heads by the number of the queue, as claim.lua would tell them; nil where it has to look.
function L.idle_heads(R, queues, ctx)
  local heads, noted, keys, exists = {}, noted_heads(queues, ctx), {}, {}
  local due, five, n = R .. ':due:', R .. ':q:', 0
  for i, q in ipairs(queues) do
    if noted[i] ~= nil then
      n = n + 1
      keys[n] = due .. q.name
    end
    if noted[i] == false then
      n = n + 1
      keys[n] = five .. q.name .. ':5'
    end
  end
  find_existing(keys, 1, n, exists)
  local is_any, turn = next(exists) ~= nil, math.floor(ctx.now_ms / 1000)
  local turns = #queues <= MANY and 1 or TURNS
  for i, q in ipairs(queues) do
    local head = noted[i]
    if head == nil or (is_any and (exists[due .. q.name] or exists[five .. q.name .. ':5'])) then
      heads[i] = nil
    elseif head == false then
      heads[i] = -1
    else
      heads[i] = (turn + i) % turns ~= 0 and head or head_of(R, q.name, head)
    end
  end
  return heads
end
