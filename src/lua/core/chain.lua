-- What the end of a job causes: the next job of its chain, its children, a job that tells of its
-- death. The call that ends the job adds them, so neither is ever there without the other.
--
-- Fields of a record (record.lua): n: the queues that follow when the job is done, with commas
-- between them; d: the queue that gets a job when this one dies; p: the id of the job that caused
-- this one; m: why that one died, in percent-encoding (RFC 3986, 2.1), since a header has no
-- spaces in its values; c: of a kept or dead job, the ids of the jobs that it caused, with commas
-- between them.
--
-- A running job with n has the line `then` as the first one of its entry in R:holds. The fast path
-- of ends.lua reads that entry anyway, and does not read records.

local THEN_MAX = 8
local OF_PARENT = 16        -- bytes that p adds to the header of a next job
local OF_CAUSED, OF_ID = 4, 13 -- that c adds, with the LF; an id, with its comma
local REASON_BYTES = 256
local OF_CHILD = 2048       -- as many bytes take about as long to move as a child to add

-- ---- options of an add

-- Append a queue to those that follow.
function L.add_then(job, queue)
  job.thens = (job.thens or 0) + 1
  if job.thens > THEN_MAX then
    L.fail('ELATER_OPTION', 'then is given more than ' .. L.int(THEN_MAX) .. ' times')
  end
  job.n = (job.n and job.n .. ',' or '') .. L.check_queue(queue)
end

-- -> how many jobs come of it, itself included
function L.chain_length(job)
  return 1 + (job.thens or 0)
end

-- Refuse a chain with a queue name too many, or whose header would be too long. A next job is not
-- refused for its queue's name: by then it is too late. So the add reserves the names.
function L.check_chain(R, job)
  if not job.is_named then
    L.new_names(R, L.chain_queues(job))
  end
  local n = #L.header(job) + OF_PARENT
  if n > L.HEADER_MAX then
    L.fail('ELATER_SIZE', 'the options have ' .. L.int(n) .. ' bytes together, at most ' ..
           L.int(L.HEADER_MAX) .. ' fit')
  end
end

-- ---- reasons

-- Any text -> its first REASON_BYTES as one line in percent-encoding, nil for none.
function L.encode_reason(text)
  text = string.sub(L.one_line(text), 1, REASON_BYTES)
  return text ~= '' and string.gsub(text, '[^%w._~-]', function(c)
    return string.format('%%%02X', string.byte(c))
  end) or nil
end

function L.decode_reason(m)
  return m and (string.gsub(m, '%%(%x%x)', function(hex)
    return string.char(tonumber(hex, 16))
  end))
end

-- ---- what follows

-- The call may be going to write a large payload, or to move it. -> its bytes under this key once
-- the call has ended; what is no number: it is of a foreign type
local function bytes_of(key)
  local source, e = L.draft.moved[key], L.draft.entries[key]
  if source then
    return bytes_of(source)
  end
  local written = e and e.cells['']
  return written and #written or redis.pcall('STRLEN', key)
end

function L.payload_size(R, id)
  return bytes_of(R .. ':big:' .. id)
end

-- May the large payload of a job be handed on, by this command? Where it is missing, a claim of the
-- next job will say so.
local function can_pass(command, source, target)
  if not L.may(command, source, target) then
    L.fail('NOPERM', 'this user may not ' .. command .. ' ' .. L.quote(source))
  elseif not L.draft.moved[source] and db('EXISTS', source) == 0 then
    return false
  end
  L.assign(L.draft.moved, target, source)
  return true
end

local function move_payload(source, target)
  if can_pass('RENAME', source, target) then
    L.write_together('RENAME', source, {target}, function()
      redis.pcall('RENAME', target, source)
    end)
  end
end

-- The job before stays, with its payload.
local function copy_payload(source, target)
  if can_pass('COPY', source, target) then
    L.spend(tonumber(bytes_of(source)) or 0)
    L.write_together('COPY', source, {target, 'REPLACE'}, function()
      redis.pcall('DEL', target)
    end)
  end
end

-- -> how many jobs that are due now the call has added to a queue
function L.caused_in(queue)
  return L.draft.caused[queue] or 0
end

-- Write a job that is due now: its record has these fields. payload: nil for a large one that is
-- moved to its place. -> its id
function L.add_due_now(R, fields, payload, now_ms)
  local id = L.id(L.tick(R, 1000 * now_ms, 1))
  fields.big = not payload or #payload > L.BIG
  L.spend(payload and #payload or 0)
  L.put_record(R, id, L.header(fields) .. (fields.big and '' or payload), fields.big and payload)
  L.is_new(L.waiting_key(R, fields, L.NEW), 'zset', id)
  L.enqueue(R, id, fields, L.NEW, now_ms)
  L.assign(L.draft.caused, fields.queue, L.caused_in(fields.queue) + 1)
  L.count(R, 'added', fields.queue, 1)
  if L.events then
    L.event('added', id, fields.queue, now_ms)
  end
  return id
end

-- Add the job that job `id` causes, with its key, priority and trace. fields: what else the header
-- has. result: its payload; nil: that of job `id`, a large one by pass(source, target). -> its id
local function add_caused(R, id, job, fields, result, pass, now_ms)
  fields.has_options, fields.priority, fields.K, fields.T, fields.p = true, job.priority, job.K,
                                                                      job.T, id
  local payload = result or not job.big and string.sub(job.record, job.body)
  local next_id = L.add_due_now(R, fields, payload, now_ms)
  if not payload then
    pass(R .. ':big:' .. id, R .. ':big:' .. next_id)
  end
  if fields.b then
    L.join(R, fields.b, next_id)
  end
  return next_id
end

-- Write into the record of a kept or dead job which jobs it caused: the last ones, as many as fit.
function L.keep_caused(R, id, ids)
  local record = ids[1] and db('HGET', R .. ':jobs', id)
  if not record then
    return
  end
  local header, payload = string.match(record, '^([^\n]*)(\n.*)$')
  local earlier = string.match(header, ' c=(%S+)')
  header = string.gsub(header, ' c=%S+', '')
  local all = (earlier and earlier .. ',' or '') .. table.concat(ids, ',')
  local over = #header + #all + OF_CAUSED - L.HEADER_MAX
  if over > 0 then
    all = string.sub(all, math.ceil(over / OF_ID) * OF_ID + 1)
  end
  if all ~= '' then
    db('HSET', R .. ':jobs', id, header .. ' c=' .. all .. payload)
  end
end

-- A job that is done is followed by the next one of its chain, unless its batch is cancelled. job:
-- as L.parse tells it, with its record. result: what its handler gave as its result, nil for
-- nothing. stays: the job is kept. Fails with {refused = text}. -> the id of the next one, nil for
-- none
function L.add_next(R, id, job, result, stays, now_ms)
  local queue, rest = string.match(job.n or '', '^([^,]+),?(.*)$')
  local batch = queue and L.member_batch(R, id, job.b)
  if batch and not batch.cancelled_ms then
    L.check_room(R, batch.name)
  end
  if queue and not (batch and batch.cancelled_ms) then
    return add_caused(R, id, job, {queue = queue, n = rest ~= '' and rest or nil, d = job.d,
                            b = batch and batch.name}, result,
               stays and copy_payload or move_payload, now_ms)
  end
  return nil
end

-- ---- children

local function add_child(R, words, args, parent, inside, now_us)
  local n, queue = words[2] - words[1] + 1, args[words[1]]
  if n < 2 or n % 2 == 1 then
    L.fail('ELATER_ARGS', 'give QUEUE [name value]... PAYLOAD')
  end
  L.spend(OF_CHILD + #args[words[2]]) -- of one that is refused, too
  local job = {queue = L.check_queue(queue), priority = 5, due = L.ms(now_us), p = parent,
               has_options = true}
  L.read_options(job, args, words[1] + 1, words[2] - 1)
  job.inside = inside
  local reply = L.add_in_draft(R, job, args[words[2]], now_us)
  return reply[2] == 'added' and reply[1]
end

-- Add the children of a result. One that later_add would refuse makes all of it fail, with
-- {refused = text}. An error that the handler has not caused (a key of a foreign type, say) is
-- raised as it is. batch: of the record of their parent, nil for none. -> their ids
function L.add_children(R, r, batch, now_ms)
  local member_of = L.member_batch(R, r.id, batch)
  local inside, ids = member_of and member_of.name, {}
  for i, words in ipairs(r.children) do
    local ok, why = pcall(add_child, R, words, r.children.args, r.id, inside, 1000 * now_ms)
    local text = type(why) == 'table' and why.elater
    ids[#ids + 1] = ok and why or nil
    if not ok and text and not string.find(text, '^ELATER_TYPE ') then
      error({refused = 'child ' .. L.int(i) .. ': ' .. L.one_line(text)})
    elseif not ok then
      error(why, 0)
    end
  end
  return ids
end

-- ---- deaths

-- A job that died is told to the queue of its on_dead. What hinders that must not keep the job from
-- dying: nothing is told then. why: the reason
function L.tell_death(R, id, job, why, now_ms)
  if job and job.d then
    local fields = {queue = job.d, m = L.encode_reason(why)}
    local _, told = L.unless_hindered(add_caused, R, id, job, fields, nil, copy_payload, now_ms)
    L.keep_caused(R, id, {told})
  end
end
