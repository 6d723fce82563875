-- Batches: jobs that are counted together. Other jobs are added when all of them have ended.
--
--   R:batches         HASH  name -> its definition: a header, LF, the payload of its callbacks
--   R:batch:open      ZSET  name -> when a job was last known to join, ms; sealed: LATEST
--   R:batch:ended     ZSET  name -> when it is forgotten, ms
--   R:members:<name>  ZSET  id -> 0 live, 1 done, 2 dead, 3 cancelled (membership.lua)
--
-- The header: <name>=<value>, with spaces between them, in the order of FIELDS. then, finally,
-- on_dead: queues that get a callback; fired: which of the three have, with commas between them;
-- dead: the member that died first; the others are times in ms. cancelled: when later_batch_cancel
-- sealed it. Nothing is counted here: a count is a ZCOUNT of the members, so an end that is applied
-- twice changes nothing.
--
-- A batch is open until it is sealed; sealed until none of its members is live; then ended, until a
-- dead member is tried again.

local batches = module 'batch/batches'
local clock, change = use('core/clock', 'txn/change')
local FIELDS = {'created_ms', 'keep_ms', 'then', 'finally', 'on_dead', 'sealed_ms', 'cancelled_ms',
                'ended_ms', 'fired', 'dead'}
local NUMBERS = {created_ms = true, keep_ms = true, sealed_ms = true, cancelled_ms = true,
                 ended_ms = true}

batches.BATCH_KEEP_MS = 86400000  -- where nothing says another time

local OPEN_MAX = 10000
local ENDED_MAX = 100000    -- that are kept
local UNSEALED_MS = 600000  -- an open batch that nobody touched for so long is told by health
local LOST_MS = 604800000   -- and for so long, is forgotten
local TOLD, TIDIED = 20, 16

-- -> the name; fails with ELATER_BATCH if it is none
function batches.check_name(name)
  return check_name_of('ELATER_BATCH', 'batch', name)
end

local CALLBACKS = {['then'] = true, finally = true, on_dead = true}

-- -> the value of a field; nil where it cannot have been written here: then the batch cannot be
-- used until it is mended
local function read_field(field, value)
  if NUMBERS[field] then
    return whole(value)
  elseif field == 'dead' then
    return is_id(value) and value or nil
  elseif field == 'fired' then
    return not string.find(value, '[^%l_,]') and value or nil
  end
  local is_fine = not CALLBACKS[field] or #value <= 64 and string.find(value, '^%w[%w_-]*$')
  return is_fine and value or nil
end

-- -> the batch, or nil; whether its definition is there and corrupt; then what can be read of it
local function parse(name, text)
  local lf = text and string.find(text, '\n', 1, true)
  if not lf then
    return nil, text and true or false
  end
  local batch = {name = name, payload = string.sub(text, lf + 1), fired = ''}
  local is_corrupt, lost = false, {}
  for word in string.gmatch(string.sub(text, 1, lf - 1), '[^ ]+') do
    local field, value = string.match(word, '^([%l_]+)=(%S+)$')
    batch[field or ''] = field and read_field(field, value)
    is_corrupt = is_corrupt or not field or batch[field] == nil
    lost[string.match(word, '^[%l_]*')] = true
  end
  if is_corrupt or not batch.created_ms or not batch.keep_ms then
    return nil, true, batch, lost
  end
  return batch
end

-- -> the batch: its fields, name and payload; nil: there is none, or it cannot be read; whether it
-- is there and corrupt
function batches.of(R, name)
  return parse(name, db('HGET', R .. ':batches', name))
end

-- Mend a corrupt batch with what can be read of it. A time that is lost counts as now. Where no
-- payload can be found, nothing is left to be called back with: it is forgotten. -> what was done
function batches.mend(R, name, now_ms)
  local _, _, batch, had = parse(name, db('HGET', R .. ':batches', name))
  if not batch then
    batches.forget(R, name)
    return
  end
  batch.created_ms = batch.created_ms or now_ms
  batch.keep_ms = batch.keep_ms or batches.BATCH_KEEP_MS
  batch.cancelled_ms = batch.cancelled_ms or had.cancelled_ms and now_ms or nil
  batch.sealed_ms = batch.sealed_ms or (had.sealed_ms or batch.cancelled_ms) and now_ms or nil
  batches.put(R, batch)
end

-- The definition that was read last: jobs join one batch after the other.
local known_name, known_text, known

-- -> the batch with this definition, not to be changed
function batches.known(name, text)
  if name ~= known_name or text ~= known_text then
    known_name, known_text, known = name, text, (parse(name, text))
  end
  return known
end

-- is_corrupt: it is there
function batches.fail_no_batch(name, is_corrupt)
  if is_corrupt then
    fail('ELATER_BATCH', 'the definition of batch ' .. quote(name) ..
         ' is corrupt: later fsck --repair')
  end
  fail('ELATER_NOBATCH', 'there is no batch ' .. quote(name) .. ': later_batch opens it')
end

function batches.need(R, name)
  local batch, is_corrupt = batches.of(R, batches.check_name(name))
  return batch or batches.fail_no_batch(name, is_corrupt)
end

function batches.state(batch)
  return batch.ended_ms and 'ended' or batch.cancelled_ms and 'cancelled' or
         batch.sealed_ms and 'sealed' or 'open'
end

-- Write a batch that was changed. It is in one of the two sets, by its state.
function batches.put(R, batch)
  local header = fields_text(batch, FIELDS, NUMBERS, ' ')
  db('HSET', R .. ':batches', batch.name, header .. '\n' .. batch.payload)
  if batch.ended_ms then
    db('ZREM', R .. ':batch:open', batch.name)
    db('ZADD', R .. ':batch:ended', int(batch.ended_ms + batch.keep_ms), batch.name)
  else
    db('ZREM', R .. ':batch:ended', batch.name)
    db('ZADD', R .. ':batch:open', int(batch.sealed_ms and LATEST or batch.created_ms), batch.name)
  end
end

-- Refuse a new batch where too many are open.
function batches.check_count(R)
  if db('ZCARD', R .. ':batch:open') >= OPEN_MAX then
    fail('ELATER_FULL', 'there are ' .. int(OPEN_MAX) .. ' open batches already')
  end
end

-- Forget a batch and who its members are. Their jobs stay.
function batches.forget(R, name)
  db('HDEL', R .. ':batches', name)
  db('ZREM', R .. ':batch:open', name)
  db('ZREM', R .. ':batch:ended', name)
  change.drop_key(R .. ':members:' .. name, 'large')
end

-- Forget up to n batches whose time is over, or of which there are too many.
function batches.trim(R, now_ms, n)
  local key = R .. ':batch:ended'
  local is_full = db('ZCARD', key) > ENDED_MAX
  for _, name in ipairs(db('ZRANGEBYSCORE', key, '-inf', is_full and '+inf' or int(now_ms), 'LIMIT',
                           0, n)) do
    batches.forget(R, name)
  end
end

-- -> when a job joined last, ms, or it was opened: ids tell when they were made, and those of one
-- state are sorted.
function batches.touched_ms(R, batch)
  local key, last, before = R .. ':members:' .. batch.name, batch.created_ms, 0
  for state = 0, 3 do
    local n = redis.call('ZCOUNT', key, '-inf', state)
    if n > before then
      last = math.max(last, clock.made_ms(redis.call('ZRANGE', key, n - 1, n - 1)[1]))
    end
    before = n
  end
  return last
end

-- -> {name, touched_ms}* of open batches that nobody has touched for a while, at most TOLD of them
function batches.unsealed(R, now_ms)
  local before, out = now_ms - UNSEALED_MS, {}
  local names = redis.call('ZRANGEBYSCORE', R .. ':batch:open', '-inf', int(before), 'LIMIT', 0,
                           5 * TOLD)
  for _, name in ipairs(names) do
    local batch = batches.of(R, name)
    local touched = batch and batches.touched_ms(R, batch)
    if touched and touched <= before and #out < TOLD then
      out[#out + 1] = {name, touched}
    end
  end
  return out
end

-- Forget batches whose time is over, and open ones that nobody has touched for a week.
function batches.tidy(R, now_ms)
  local key, before = R .. ':batch:open', now_ms - LOST_MS
  batches.trim(R, now_ms, TIDIED)
  for _, name in ipairs(db('ZRANGEBYSCORE', key, '-inf', int(before), 'LIMIT', 0, TIDIED)) do
    local batch = batches.of(R, name)
    local touched = batch and batches.touched_ms(R, batch) or 0
    if touched < before then
      batches.forget(R, name)
    else
      db('ZADD', key, int(touched), name)
    end
  end
end
