-- Phase topics of later_v1_audit and later_v1_repair (calls/audit.lua): HSCAN of the subscriptions
-- (no name). Each must be one, with names of queues.

local audit_topics = module 'audit/topics'
local audit, topics = use('audit/audit', 'topic/topics')

local function judge(ctx, name, text)
  local is_name = pcall(topics.check_subscription, name)
  local queues = topics.queues_of(text)
  local readable = table.concat(queues, ' ')
  if is_name and queues[1] and readable == text then
    return
  end
  ctx.tell('broken-topic', name, '', 'its subscription is corrupt', function()
    topics.put_queues(ctx.R, name, is_name and queues or {})
  end)
end

-- -> next cursor, how many entries
function audit_topics.each(ctx, cursor, count)
  return audit.each(ctx, db('HSCAN', ctx.R .. ':topics', cursor, 'COUNT', count), judge)
end
