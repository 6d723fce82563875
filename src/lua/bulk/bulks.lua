-- Bulks: one change of all jobs of a queue in one state, made bit by bit (bulk/advance.lua).
--
--   R:bulks      ZSET  id -> when it was made, ms
--   R:bulk:<id>  HASH  the fields of the bulk, by their names in FIELDS
--
-- id: b and the 11 characters of a job id that was made at the same time, which is `newest`.
-- A bulk is active until it has met all its jobs (done) or somebody ends it (aborted). One that
-- cannot be read is broken, and harms no other.

local bulks = module 'bulk/bulks'
local change, commit = use('txn/change', 'txn/commit')
local MOST, ACTIVE_MOST = 100, 16
local KEEP_MS = 86400000    -- how long one is kept that has ended
local TEXT_MAX = 512        -- bytes of a field
bulks.WHO_MAX = 200         -- bytes of who and why

-- name, and what it is: whole (a number), text, bytes, or the only words that it may be. They are
-- shown in this order. at_ms: of `at`; per_ms: `rate` jobs in so many ms; set, score, member: what
-- the next job stands behind; paced: what is left of the rate (gates/rates.lua); again_ms: not to
-- be advanced before; worker: who advanced it last; error: why a job could not be changed, or the
-- bulk not be advanced, the last time.
local FIELDS = {
  {'verb', {retry = true, cancel = true, reschedule = true, purge = true}},
  {'queue', 'text'}, {'state', {dead = true, due = true, parked = true, done = true}},
  {'status', {active = true, done = true, aborted = true}},
  {'reason', 'text'}, {'key', 'text'}, {'to', 'text'}, {'rate', 'whole'}, {'per_ms', 'whole'},
  {'at_ms', 'whole'}, {'spread_ms', 'whole'}, {'by', 'text'}, {'why', 'text'},
  {'created_ms', 'whole'}, {'advanced_ms', 'whole'}, {'ended_ms', 'whole'}, {'aborted_by', 'text'},
  {'total', 'whole'}, {'seen', 'whole'}, {'changed', 'whole'}, {'failed', 'whole'},
  {'error', 'text'}, {'worker', 'text'}, {'set', 'text'}, {'score', 'text'}, {'member', 'bytes'},
  {'paced', 'text'}, {'again_ms', 'whole'},
}
local NEEDED = {'verb', 'queue', 'state', 'status', 'created_ms', 'total', 'seen', 'changed',
                'failed', 'set', 'again_ms'}
local SHOWN = 23            -- of FIELDS, for people

local NAMES = {}
for i = 1, #FIELDS do
  NAMES[i] = FIELDS[i][1]
end

-- -> the newest job that a bulk may mean: ids of both tell when they were made
function bulks.newest_of(id)
  return 'j' .. string.sub(id, 2)
end

-- The same the other way round.
function bulks.id_of(newest)
  return 'b' .. string.sub(newest, 2)
end

-- -> is this the name of a bulk?
local function is_bulk_id(id)
  return #id == 12 and string.find(id, '^b[0-9a-z]+$') ~= nil
end

local function key_of(R, id)
  return R .. ':bulk:' .. id
end

-- -> the value of a field; nil where it cannot have been written here
local function read_field(kind, text)
  if kind == 'whole' then
    return whole(text)
  elseif type(kind) == 'table' then
    return kind[text] and text or nil
  end
  local is_fine = #text <= TEXT_MAX and
                  (kind == 'bytes' or not string.find(text, '[%z\1-\31\127]'))
  return is_fine and text or nil
end

local function is_sound(bulk)
  for _, name in ipairs(NEEDED) do
    if bulk[name] == nil then
      return false, name
    end
  end
  if (bulk.rate == nil) ~= (bulk.per_ms == nil) or bulk.rate == 0 or bulk.per_ms == 0 then
    return false, 'rate'
  elseif bulk.verb == 'reschedule' and not bulk.at_ms then
    return false, 'at_ms'
  elseif bulk.score and not tonumber(bulk.score) then
    return false, 'score'
  end
  return true
end

-- -> the bulk, its fields by their names and its id; nil: it cannot be read, and why
local function read(R, id)
  local values, any = db('HMGET', key_of(R, id), unpack(NAMES)), false
  local bulk = {id = id, newest = bulks.newest_of(id)}
  for i, field in ipairs(FIELDS) do
    if values[i] then
      any, bulk[field[1]] = true, read_field(field[2], values[i])
      if bulk[field[1]] == nil then
        return nil, 'its field ' .. field[1] .. ' is corrupt'
      end
    end
  end
  local ok, name = is_sound(bulk)
  if not ok then
    return nil, any and 'its field ' .. name .. ' is missing or corrupt' or 'it is not there'
  end
  check_queue(bulk.queue)
  return bulk
end

-- The same, where a key of a foreign type is such a reason, too.
function bulks.read(R, id)
  local ok, bulk, why = change.try(read, R, id)
  if ok then
    return bulk, why
  end
  return nil, type(bulk) == 'table' and bulk.elater or 'its key cannot be read'
end

-- -> the ids of all, the oldest first
function bulks.ids(R)
  return db('ZRANGE', R .. ':bulks', 0, 2 * MOST - 1)
end

-- Is there a bulk of this id?
function bulks.is_listed(R, id)
  return is_bulk_id(id) and db('ZSCORE', R .. ':bulks', id) ~= false
end

function bulks.fail_no_bulk(id)
  fail('ELATER_NOBULK', 'there is no bulk ' .. quote(id) ..
       ' (it is forgotten a day after its end)')
end

-- -> the bulk; fails if there is none, or if it is broken
function bulks.need(R, id)
  if not id or not bulks.is_listed(R, id) then
    bulks.fail_no_bulk(id or '')
  end
  local bulk, why = bulks.read(R, id)
  if not bulk then
    fail('ELATER_STATE', 'bulk ' .. id .. ' is broken: ' .. one_line(why) ..
         ' (fsck --repair removes it)')
  end
  return bulk
end

-- -> the status of one; nil where that cannot be read
local function status_of(R, id)
  return change.unless_foreign(db, 'HGET', key_of(R, id), 'status')
end

-- -> those that are active, the oldest first
function bulks.active(R)
  local out = {}
  for _, id in ipairs(bulks.ids(R)) do
    if is_bulk_id(id) and status_of(R, id) == 'active' then
      out[#out + 1] = bulks.read(R, id)
    end
  end
  return out
end

-- -> the text of an option; refused if it is empty, too long, or no line
function bulks.line(name, value, max)
  if #value < 1 or #value > max or string.find(value, '[%z\1-\31\127]') then
    fail('ELATER_OPTION', name .. ' must be 1 to ' .. int(max) ..
         ' bytes without control characters')
  end
  return value
end

-- Write a bulk that was changed, or is new.
function bulks.put(R, bulk)
  local key = key_of(R, bulk.id)
  for _, field in ipairs(FIELDS) do
    local name, value = field[1], bulk[field[1]]
    if value == nil then
      db('HDEL', key, name)
    else
      db('HSET', key, name, field[2] == 'whole' and int(value) or value)
    end
  end
end

-- Forget a bulk. Its jobs are what they are. A key of a foreign type is not ours, and is left.
function bulks.forget(R, id)
  db('ZREM', R .. ':bulks', id)
  if db('TYPE', key_of(R, id)).ok == 'hash' then
    change.drop_key(key_of(R, id))
  end
end

-- Make room for one more; refused where too many are active.
function bulks.make_room(R)
  local ids = bulks.ids(R)
  local active, over = 0, #ids + 1 - MOST
  for _, id in ipairs(ids) do
    if status_of(R, id) == 'active' then
      active = active + 1
    elseif over > 0 then
      bulks.forget(R, id)
      over = over - 1
    end
  end
  if active >= ACTIVE_MOST then
    fail('ELATER_FULL', int(active) .. ' bulks are active already: later_bulk_abort ends one')
  end
end

-- Add a new bulk.
function bulks.add(R, bulk)
  db('ZADD', R .. ':bulks', bulk.created_ms, bulk.id)
  bulks.put(R, bulk)
end

-- The bulk has met its last job, or somebody ended it.
function bulks.finish(bulk, status, now_ms)
  bulk.status, bulk.ended_ms = status, now_ms
end

-- Forget those that ended long ago. -> how many are active
function bulks.tidy(R, now_ms)
  local key = R .. ':bulks'
  if db('ZCARD', key) == 0 then
    return 0
  end
  for _, id in ipairs(db('ZRANGEBYSCORE', key, '-inf', int(now_ms - KEEP_MS), 'LIMIT', 0, MOST)) do
    local bulk = bulks.read(R, id)
    if not bulk or bulk.status ~= 'active' and (bulk.ended_ms or 0) <= now_ms - KEEP_MS then
      bulks.forget(R, id)
    end
  end
  return #bulks.active(R)
end

-- Have a worker advance bulks.
function bulks.wake(R)
  commit.wake(R, '!bulk')
end

-- -> how many of its jobs it has not met yet, and for how many ms its rate makes that last, nil
-- without a rate
function bulks.left(bulk)
  local left = bulk.status == 'done' and 0 or math.max(bulk.total - bulk.seen, 0)
  return left, bulk.rate and bulk.status == 'active' and
               math.min(math.ceil(left * bulk.per_ms / bulk.rate), LATEST) or nil
end

-- -> names and values for people. why: of one that is broken, then bulk is nil
function bulks.told(id, bulk, why)
  local out = {}
  put_named(out, 'bulk', one_line(id))
  if not bulk then
    put_named(out, 'status', 'broken')
    put_named(out, 'error', one_line(why))
    return out
  end
  for i = 1, SHOWN do
    put_named(out, FIELDS[i][1], bulk[FIELDS[i][1]])
  end
  local left, left_ms = bulks.left(bulk)
  put_named(out, 'left', left)
  put_named(out, 'left_ms', left_ms)
  return out
end
