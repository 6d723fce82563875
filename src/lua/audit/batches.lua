-- Phases of later_v1_audit and later_v1_repair (calls/audit.lua) about batches.
--   batches   (no name) HSCAN of the definitions
--   members   NAME: one key members:<name> relative to R
-- A batch must be readable, be in the one set that its state asks for, and have ended with all its
-- callbacks if it is sealed and no member is live. A live member must be a job that has not ended.

local audit_batches = module 'audit/batches'
local audit, batches, membership, jobs, change = use(
  'audit/audit', 'batch/batches', 'batch/membership', 'core/jobs', 'txn/change')
local UNREADABLE = 'its definition is corrupt'

local function is_listed_right(R, batch)
  local open = db('ZSCORE', R .. ':batch:open', batch.name)
  local ended = db('ZSCORE', R .. ':batch:ended', batch.name)
  return (open ~= false) == not batch.ended_ms and (ended ~= false) == (batch.ended_ms ~= nil)
end

local function judge_batch(ctx, name)
  local R, batch = ctx.R, batches.of(ctx.R, name)
  if not batch then
    ctx.tell('broken-batch', name, '', UNREADABLE, function()
      batches.mend(R, name, ctx.now_ms)
      local mended = batches.of(R, name)
      if mended and mended.sealed_ms and membership.lacks_callbacks(R, mended) then
        membership.seal(R, mended, ctx.now_ms)
      end
    end)
  elseif not is_listed_right(R, batch) then
    ctx.tell('lost-batch', name, '', 'it is not listed as ' .. batches.state(batch), function()
      batches.put(R, batch)
    end)
  elseif batch.sealed_ms and membership.lacks_callbacks(R, batch) then
    ctx.tell('lost-callback', name, '', 'all its members have ended, and a callback is missing',
             function()
      membership.seal(R, batch, ctx.now_ms)
    end)
  end
end

-- Phase batches. -> next cursor, how many entries
function audit_batches.each_batch(ctx, cursor, count)
  return audit.each(ctx, db('HSCAN', ctx.R .. ':batches', cursor, 'COUNT', count), judge_batch)
end

-- A member that counts as live, and whose job has ended or is gone.
local function judge_member(ctx, name, id)
  local state = jobs.locate(ctx.R, id)
  if jobs.is_live(state) then
    return
  end
  local why = state and 'its job is ' .. state or 'its job is gone, maybe cancelled'
  ctx.tell('lost-member', id, '', 'it counts as live in batch ' .. name .. ', and ' .. why,
           function()
    membership.end_member(ctx.R, name, id, state or 'cancelled', ctx.now_ms)
  end)
end

-- Phase members. -> next cursor, how many entries
function audit_batches.each_member(ctx, cursor, count, names)
  local R, name = ctx.R, string.match(names[1] or '', '^members:(.+)$')
  if #names ~= 1 or not name then
    fail('ELATER_ARGS', 'give the one batch to look at')
  end
  local page = ctx.ask('ZSCAN', R .. ':members:' .. name, cursor, 'COUNT', count)
  if not page then
    return '0', 0
  elseif db('HEXISTS', R .. ':batches', name) == 0 then
    ctx.tell('leftover', name, '', 'members of a batch that is not there', function()
      change.drop_key(R .. ':members:' .. name, 'large')
    end)
    return '0', 0
  end
  return audit.each(ctx, page, function(_, id, state)
    if tonumber(state) == 0 then
      judge_member(ctx, name, id)
    end
  end)
end
