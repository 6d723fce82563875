-- The granted jobs of a queue as rows of a chunk (waiting.lua): they are claimed before all others.

local granted = module 'claim/granted'
local waiting, jobs, gate, waiters = use(
  'claim/waiting', 'core/jobs', 'gates/gate', 'gates/waiters')

-- Read the first `most` granted jobs. A job whose rate was closed since (its limit is 0, or it was
-- deleted) waits again.
local function read_granted(R, queue, most, ctx)
  local rows = {}
  local ids = db('ZRANGE', R .. ':granted:' .. queue, 0, most - 1)
  local spots = #ids > 0 and db('HMGET', R .. ':parked', unpack(ids))
  for i, id in ipairs(ids) do
    local spot = waiters.read_spot(spots[i])
    local closed = gate.closed_rate(ctx.ledger, spot)
    if closed then
      waiters.take_back(ctx.ledger, queue, id, closed)
    else
      rows[#rows + 1] = {id = id, due = spot and spot.due or ctx.now_ms,
                         gates = spot and spot.gates}
    end
  end
  return rows
end

-- Read the jobs that this sync has let in itself. Nothing of their grants is written.
function granted.read_let_in(ledger, queue)
  local rows = ledger.let_in[queue]
  if rows and #rows > 1 then
    table.sort(rows, function(a, b)
      return a.high < b.high or a.high == b.high and a.low < b.low
    end)
  end
  return rows
end

local function append(b, row)
  local n = b.n + 1
  b.n, b.ids[n], b.dues[n], b.gates[n] = n, row.id, row.due, row.gates
  b.let_in[n] = row.spot and row
end

-- Only a worker that runs nothing else claims a suspect. -> a chunk, whether its one job is a
-- suspect, whether granted jobs are left
function granted.gather(R, queue, room, ctx)
  local rows = granted.read_let_in(ctx.ledger, queue) or read_granted(R, queue, room + 1, ctx)
  local ids, b = {}, waiting.new_chunk(queue)
  b.is_granted, b.gates, b.let_in = true, {}, {}
  for i, row in ipairs(rows) do
    ids[i] = row.id
  end
  local tries = #ids > 0 and db('HMGET', R .. ':tries', unpack(ids))
  for i, row in ipairs(rows) do
    local is_suspect = jobs.tries(tries[i]).crashes >= SOLO_CRASHES
    if b.n >= room then
      ctx.solo_due = is_suspect and 1 or ctx.solo_due
      return b, false, true
    elseif not is_suspect then
      append(b, row)
    elseif ctx.held == 0 and ctx.claimed == 0 and b.n == 0 then
      append(b, row)
      return b, true, #ids > 1
    else
      ctx.solo_due = 1
    end
  end
  return b, false, false
end
