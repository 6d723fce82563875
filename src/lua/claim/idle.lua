-- Idle queues. Where many queues are named, few have a job to claim. A few reads find the queues
-- that have none and of which R:heads is right; claims.lua looks into the others.

local idle = module 'claim/idle'
local txn = use 'txn/txn'
local MANY = 16

-- -> the head of each name in R:heads, false for none. Where R:heads has far fewer than the names,
-- all of it is read.
function idle.read_heads(R, names)
  local key = R .. ':heads'
  local n = #names > MANY and txn.ask(key, 'zset', 'ZCARD')
  if n == 0 then
    return {}
  elseif not n or 4 * n >= #names then
    return txn.ask(key, 'zset', 'ZMSCORE', unpack(names))
  end
  local rows, by, out = txn.ask(key, 'zset', 'ZRANGE', 0, -1, 'WITHSCORES'), {}, {}
  for i = 1, #rows, 2 do
    by[rows[i]] = rows[i + 1]
  end
  for i = 1, #names do
    out[i] = by[names[i]] or false
  end
  return out
end

-- Which of keys[from..to] exist? out: key -> true. Mostly none does, or all do, and one EXISTS
-- tells; else each half is asked.
local function find_existing(keys, from, to, out)
  local there = from <= to and redis.call('EXISTS', unpack(keys, from, to)) or 0
  if there == 0 then
    return
  elseif there == to - from + 1 then
    for i = from, to do
      out[keys[i]] = true
    end
    return
  end
  local middle = math.floor((from + to) / 2)
  find_existing(keys, from, middle, out)
  find_existing(keys, middle + 1, to, out)
end

-- Which queues have jobs that R:heads does not tell of: raw members, or jobs of priority 5 whose
-- head was lost? heads: of each name, nil: leave the queue out. -> name -> true
function idle.find_untold(R, names, heads)
  local raw, five, keys, exists, out = R .. ':due:', R .. ':q:', {}, {}, {}
  for i = 1, #names do
    if heads[i] ~= nil then
      keys[#keys + 1] = raw .. names[i]
      keys[#keys + 1] = not heads[i] and five .. names[i] .. ':5' or nil
    end
  end
  find_existing(keys, 1, #keys, exists)
  for i = 1, next(exists) and #names or 0 do
    out[names[i]] = exists[raw .. names[i]] or exists[five .. names[i] .. ':5']
  end
  return out
end

-- told: its head in R:heads. -> that head, if the first job of the queue is due then; nil: a key
-- was lost or written by hand
local function head_of(R, queue, told)
  local first = redis.pcall('ZRANGE', R .. ':q:' .. queue .. ':5', 0, 0, 'WITHSCORES')
  return first[2] and to_due(first[2]) == told and told or nil
end

-- Queues in which there seems to be nothing to claim: no flag, no pause, nothing granted, no due
-- head or no room. -> their heads in R:heads by number, false for none; nil: claims.lua has to look
local function told_heads(R, queues, ctx)
  local told = {}
  local flags, paused, heads, until_ms = ctx.flags, ctx.paused, ctx.heads, ctx.until_ms
  local changed = txn.cells_of(R .. ':heads', 'zset') -- heads that this call has changed
  for i = 1, #queues do
    local q = queues[i]
    local name = q.name
    -- A queue that is named twice has another head the second time.
    if not flags[name] and not paused[name] and changed[name] == nil and not q.is_again then
      local head = heads[i] and tonumber(heads[i])
      if not head or head > until_ms or q.room == 0 then
        told[i] = head or false
      end
    end
  end
  return told
end

-- ctx.heads: what R:heads says of each, by their number. -> heads by number, as claims.lua would
-- tell them; nil where it has to look.
function idle.heads(R, queues, ctx)
  local out = {}
  ctx.heads = idle.read_heads(R, ctx.names)
  local told = told_heads(R, queues, ctx)
  local untold = idle.find_untold(R, ctx.names, told)
  for i = 1, #queues do
    local head, name = told[i], queues[i].name
    if head == nil or untold[name] then
      out[i] = nil
    elseif head == false then
      out[i] = -1
    else
      out[i] = head_of(R, name, head)
    end
  end
  return out
end
