-- Phase topics of later_v1_audit and later_v1_repair (v1/audit.lua): HSCAN of the subscriptions (no
-- name). Each must be one, with names of queues.

-- -> the names of queues in a value, whether nothing else is in it
local function readable(text)
  local queues, is_fine = {}, string.find(text, '^%S+$') or string.find(text, '^%S.* %S+$')
  for word in string.gmatch(text, '%S+') do
    local is_queue = #word <= 64 and string.find(word, '^%w[%w_-]*$')
    queues[#queues + 1] = is_queue and word or nil
    is_fine = is_fine and is_queue
  end
  return queues, is_fine
end

local function judge(ctx, name, text)
  local is_name = pcall(L.check_subscription, name)
  local queues, is_fine = readable(text)
  if is_name and is_fine then
    return
  end
  ctx.tell('broken-topic', name, '', 'its subscription is corrupt', function()
    if is_name and queues[1] then
      db('HSET', ctx.R .. ':topics', name, table.concat(queues, ' '))
    else
      db('HDEL', ctx.R .. ':topics', name)
    end
  end)
end

-- -> next cursor, how many entries
function L.audit_topics(ctx, cursor, count)
  local page = db('HSCAN', ctx.R .. ':topics', cursor, 'COUNT', count)
  for i = 1, #page[2], 2 do
    judge(ctx, page[2][i], page[2][i + 1])
  end
  return page[1], #page[2] / 2
end
