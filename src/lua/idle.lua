-- Idle queues: a sweep names every queue, and hardly any has something to claim. Those that have nothing, and of which
-- R:heads says the truth, are told from the others by as few reads as will do; claim.lua looks into the others.

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
  if head and head <= ctx.now_ms and q.room > 0 then
    return nil
  end
  return head
end

-- -> heads by the number of the queue, as claim_queue would tell them; nil where it has to look.
function L.idle_heads(R, queues, ctx)
  local heads, noted, keys, exists, seen = {}, {}, {}, {}, {}
  for i, q in ipairs(queues) do
    -- One that is named again has another head by then.
    if not seen[q.name] then
      seen[q.name], noted[i] = true, noted_head(q, ctx)
    end
    if noted[i] ~= nil then
      keys[#keys + 1] = R .. ':due:' .. q.name
    end
    if noted[i] == false then
      keys[#keys + 1] = R .. ':q:' .. q.name .. ':5'
    end
  end
  find_existing(keys, 1, #keys, exists)
  for i, q in ipairs(queues) do
    local key = R .. ':q:' .. q.name .. ':5'
    if noted[i] == nil or exists[R .. ':due:' .. q.name] or exists[key] then
      heads[i] = nil
    elseif not noted[i] then
      heads[i] = -1
    else
      local first = redis.pcall('ZRANGE', key, 0, 0, 'WITHSCORES')
      heads[i] = first[2] and L.due(first[2]) == noted[i] and noted[i] or nil
    end
  end
  return heads
end
