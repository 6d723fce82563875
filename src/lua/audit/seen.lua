-- What later_v1_audit and later_v1_repair (calls/audit.lua) check of the Bloom filters of
-- later_seen (seen/blooms.lua). Phase seen: HSCAN of R:seen (no name), each entry must be readable.
-- Phase keys: a generation must be one of its filter; one whose filter was removed by hand would
-- stay until it expires.

local audit_seen = module 'audit/seen'
local audit, blooms, change = use('audit/audit', 'seen/blooms', 'txn/change')

local function judge(ctx, name, text)
  if pcall(check_name_of, '', '', name) and blooms.parse(text) then
    return
  end
  ctx.tell('broken-seen', name, '', 'the entry of its Bloom filter is corrupt', function()
    db('HDEL', ctx.R .. ':seen', name)
  end)
end

-- -> next cursor, how many entries
function audit_seen.each(ctx, cursor, count)
  return audit.each(ctx, ctx.ask('HSCAN', ctx.R .. ':seen', cursor, 'COUNT', count), judge)
end

-- Judge a key seen:<name>:<since>.
function audit_seen.generation(ctx, key)
  local name, since = string.match(key, '^seen:(.+):(%d+)$')
  local text = ctx.ask('HGET', ctx.R .. ':seen', name or '')
  local f = blooms.parse(text)
  if text == nil or f and (int(f.since) == since or int(f.before) == since) then
    return
  end
  ctx.tell('leftover', key, '', 'keys of a Bloom filter that does not know of them', function()
    change.drop_key(ctx.R .. ':' .. key, 'large')
  end)
end
