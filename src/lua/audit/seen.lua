-- What later_v1_audit and later_v1_repair (calls/audit.lua) check of the Bloom filters of
-- later_seen (seen/bloom.lua). Phase seen: HSCAN of R:seen (no name), each entry must be readable.
-- Phase keys: a generation must be one of its filter; one whose filter was removed by hand would
-- stay until it expires.

local function judge(ctx, name, text)
  if pcall(L.check_name, '', '', name) and L.parse_bloom(text) then
    return
  end
  ctx.tell('broken-seen', name, '', 'the entry of its Bloom filter is corrupt', function()
    db('HDEL', ctx.R .. ':seen', name)
  end)
end

-- -> next cursor, how many entries
function L.audit_seen(ctx, cursor, count)
  return L.audit.each(ctx, ctx.ask('HSCAN', ctx.R .. ':seen', cursor, 'COUNT', count), judge)
end

-- Judge a key seen:<name>:<since>.
function L.audit_generation(ctx, key)
  local name, since = string.match(key, '^seen:(.+):(%d+)$')
  local text = ctx.ask('HGET', ctx.R .. ':seen', name or '')
  local f = L.parse_bloom(text)
  if text == nil or f and (L.int(f.since) == since or L.int(f.before) == since) then
    return
  end
  ctx.tell('leftover', key, '', 'keys of a Bloom filter that does not know of them', function()
    L.drop_key(ctx.R .. ':' .. key, 'large')
  end)
end
