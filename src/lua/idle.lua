-- Idle queues: a sweep names every queue, and hardly any has something to claim. Those that have nothing, and of which
-- R:heads says the truth, are told from the others by as few reads as will do; claim.lua looks into the others.

local MANY = 16

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

function L.fields_of(key, names)
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

-- The head in R:heads, false for none, when there seems to be nothing to claim: no mark, no pause, nothing granted,
-- and not due unless without room. nil: claim.lua has to look.
local function noted_head(q, ctx)
  if ctx.marks[q.name] ~= '' or ctx.paused[q.name] or ctx.book.fresh[q.name] then
    return nil
  end
  local head = ctx.heads[q.name] and tonumber(ctx.heads[q.name]) or false
  if head and head <= ctx.until_ms and q.room > 0 then
    return nil
  end
  return head
end

-- The head that was noted, when the first job of the queue is due then; else nil.
local function head_of(R, queue, noted)
  local first = redis.pcall('ZRANGE', R .. ':q:' .. queue .. ':5', 0, 0, 'WITHSCORES')
  return first[2] and L.due(first[2]) == noted and noted or nil
end

-- -> heads by the number of the queue, as claim.lua would tell them; nil where it has to look.
function L.idle_heads(R, queues, ctx)
  local heads, noted, keys, exists, seen = {}, {}, {}, {}, {}
  local due, five, n = R .. ':due:', R .. ':q:', 0
  for i, q in ipairs(queues) do
    local name = q.name
    -- One that is named again has another head by then.
    if not seen[name] then
      seen[name], noted[i] = true, noted_head(q, ctx)
    end
    if noted[i] ~= nil then
      n = n + 1
      keys[n] = due .. name
    end
    if noted[i] == false then
      n = n + 1
      keys[n] = five .. name .. ':5'
    end
  end
  find_existing(keys, 1, n, exists)
  local is_any = next(exists) ~= nil
  for i, q in ipairs(queues) do
    if noted[i] == nil or (is_any and (exists[due .. q.name] or exists[five .. q.name .. ':5'])) then
      heads[i] = nil
    else
      heads[i] = noted[i] and head_of(R, q.name, noted[i]) or not noted[i] and -1 or nil
    end
  end
  return heads
end
