-- What a job that starts holds, and what a holder that ends frees.
--
-- R:holds  HASH  job or @EPOCH -> the gates that it holds and its unique key, with LF between them,
-- after a line that says what its end causes: `then` if that is another job (core/chains.lua) or a
-- mark in a calendar (schedule/calendar.lua), or `batch NAME` if it only belongs to that batch
-- (batch/membership.lua); of a member with `then`, `then NAME`. So the call that ends a job need
-- not read its record, but for those with `then`. A job of a fair queue has a line that tells when
-- it started (fair/charges.lua).
--
-- Who frees a permit, by holding.let_go for jobs and gate.drop for a program or a caller:
--   a running job   a result under its start number (claim/syncs.lua, claim/ends.lua; over rows
--                   rows/ends.lua); calls/reconcile.lua and calls/register.lua, which release jobs
--                   that a worker does not name; calls/reap.lua
--   a granted job, or one that keeps gates   cancel, reschedule, run-now, purge, replace or move of
--                   its unique key, burial; the end of the grant; its queue, when it stands aside
--                   or has an older job there (waiters.lua)
--   a program       calls/enter.lua at the end of its command, its leave, its reap
--   a caller        later_unlock or later_sem_release with the same owner, the end of its lease
--   anybody         later fsck --repair, if the holder does not exist any more

local holding = module 'gates/holding'
local charges, gate, change, txn = use('fair/charges', 'gates/gate', 'txn/change', 'txn/txn')

-- A job that starts holds its locks, its semaphores and its unique key until it ends; a rate only
-- counts its claim. share: its line of a fair queue, nil for none -> text for R:holds, or nil
function holding.holding_started(gates, job, share)
  local is_followed = job.n or job.S
  if not (gates or job.u or is_followed or job.b or share) then
    return nil
  end
  local held = {is_followed and (job.b and 'then ' .. job.b or 'then') or
                job.b and 'batch ' .. job.b}
  for _, id in ipairs(gates or {}) do
    held[#held + 1] = not string.find(id, '^rate:') and id or nil
  end
  if job.u then
    held[#held + 1] = 'uniq:' .. (job.f or '0') .. ':' .. job.queue .. ':' .. job.u
  end
  held[#held + 1] = share
  return #held > 0 and table.concat(held, '\n') or nil
end

-- Add one part of R:holds to drops (gate -> holders), to uniques ({name, id, for_until}*) or to
-- shares (lines).
local function read_line(holder, line, drops, order, uniques, shares)
  if string.find(line, '^uniq:') then
    local until_ms, name = string.match(line, '^uniq:(%d+):(.*)$')
    uniques[#uniques + 1] = name and {name, holder, whole(until_ms)} or nil
  elseif string.find(line, '^fair ') then
    shares[#shares + 1] = line
  elseif gate.read(line) then
    local holders = drops[line]
    if holders then
      holders[#holders + 1] = holder
    else
      drops[line], order[#order + 1] = {holder}, line
    end
  end
end

-- -> the holders that hold something; gate -> its holders; the gates in order; the unique keys; the
-- lines of fair queues
local function read_holds(holders, texts)
  local gone, drops, order, uniques, shares = {}, {}, {}, {}, {}
  for i, holder in ipairs(holders) do
    local text = texts[i]
    if text then
      gone[#gone + 1] = holder
      if string.find(text, '\n', 1, true) then
        for line in string.gmatch(text, '[^\n]+') do
          read_line(holder, line, drops, order, uniques, shares)
        end
      else
        read_line(holder, text, drops, order, uniques, shares)
      end
    end
  end
  return gone, drops, order, uniques, shares
end

local function drop_at(ledger, id, holders)
  gate.drop_all(ledger, gate.of(ledger, id), holders)
end

-- A gate with a key of a foreign type is left as it is. Like one whose key was removed, it has lost
-- a holder all the same: waiters.hand_on looks at it, and again later while its key is foreign.
-- Else those that wait there would wait for ever.
local function drop_all(ledger, drops, order)
  for _, id in ipairs(order) do
    change.unless_foreign(drop_at, ledger, id, drops[id])
    gate.touch(ledger, id)
  end
end

-- Is a job with this text in R:holds followed by another one?
function holding.has_next(text)
  return text and string.sub(text, 1, 4) == 'then'
end

-- -> the batch of a job with this text in R:holds, nil for none
function holding.batch_of(text)
  return text and (string.match(text, '^batch ([^\n]+)') or string.match(text, '^then ([^\n]+)'))
end

-- -> the texts of these holders in R:holds, false for none; nil: nobody holds anything
function holding.holds_of(ledger, holders)
  local key = ledger.R .. ':holds'
  return not txn.is_known_empty(key) and txn.read_fields(key, holders) or nil
end

-- Free the permits of these holders (jobs, workers), which end or wait again. texts: as
-- holding.holds_of tells them, if the caller has them. -> their unique keys, for uniques.free_all
function holding.let_go(ledger, holders, texts)
  local key = ledger.R .. ':holds'
  texts = texts or #holders > 0 and holding.holds_of(ledger, holders)
  if not texts then
    return {}
  end
  local gone, drops, order, uniques, shares = read_holds(holders, texts)
  if #gone > 0 then
    db('HDEL', key, unpack(gone))
  end
  charges.finish_all(ledger, shares)
  gate.load(ledger, order)
  drop_all(ledger, drops, order)
  return uniques
end
