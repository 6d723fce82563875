-- What later_v1_audit and later_v1_repair (calls/audit.lua) check of bulks (bulk/bulks.lua), in
-- phase keys: each that is listed must be readable, and each that is there must be listed.

local audit_bulks = module 'audit/bulks'
local bulks, change = use('bulk/bulks', 'txn/change')

-- Judge the key bulks.
function audit_bulks.list(ctx)
  for _, id in ipairs(bulks.ids(ctx.R)) do
    local bulk, why = bulks.read(ctx.R, id)
    if not bulk then
      ctx.tell('broken-bulk', one_line(id), '', 'this bulk cannot be read: ' .. one_line(why),
               function()
                 bulks.forget(ctx.R, id)
               end)
    end
  end
end

-- Judge a key bulk:<id>.
function audit_bulks.fields(ctx, id)
  if ctx.ask('ZSCORE', ctx.R .. ':bulks', id) == false then
    ctx.tell('leftover', 'bulk:' .. one_line(id), '', 'fields of a bulk that is not listed',
             function()
               change.drop_key(ctx.R .. ':bulk:' .. id)
             end)
  end
end
