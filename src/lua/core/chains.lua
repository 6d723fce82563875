-- What the end of a job causes: the next job of its chain, its children, a job that tells of its
-- death. The call that ends the job adds them, so neither is ever there without the other.
--
-- Fields of a record (jobs.lua): n: the queues that follow when the job is done, with commas
-- between them; d: the queue that gets a job when this one dies; p: the id of the job that caused
-- this one; m: why that one died, in percent-encoding (RFC 3986, 2.1), since a header has no
-- spaces in its values; c: of a kept or dead job, the ids of the jobs that it caused, with commas
-- between them.
--
-- A running job with n has the line `then` as the first one of its entry in R:holds. The fast path
-- of claim/ends.lua reads that entry anyway, and does not read records.

local chains = module 'core/chains'
local membership, clock, events, jobs, rights, uses, adds, at_once, change, commit, txn = use(
  'batch/membership', 'core/clock', 'core/events', 'core/jobs', 'core/rights', 'core/uses',
  'public/add', 'public/add_at_once', 'txn/change', 'txn/commit', 'txn/txn')
local THEN_MAX = 8
local OF_PARENT = 16        -- bytes that p adds to the header of a next job
local OF_CAUSED, OF_ID = 4, 13 -- that c adds, with the LF; an id, with its comma
local REASON_BYTES = 256
local OF_CHILD = 2048       -- as many bytes take about as long to move as a child to add

-- ---- options of an add

-- Append a queue to those that follow.
function chains.add_then(job, queue)
  job.thens = (job.thens or 0) + 1
  if job.thens > THEN_MAX then
    fail('ELATER_OPTION', 'then is given more than ' .. int(THEN_MAX) .. ' times')
  end
  job.n = (job.n and job.n .. ',' or '') .. check_queue(queue)
end

-- -> how many jobs come of it, itself included
function chains.chain_length(job)
  return 1 + (job.thens or 0)
end

-- Refuse a chain with a queue name too many, or whose header would be too long. A next job is not
-- refused for its queue's name: by then it is too late. So the add reserves the names.
function chains.check_chain(R, job)
  if not job.is_named then
    uses.new_names(R, uses.chain_queues(job))
  end
  local n = #jobs.header(job) + OF_PARENT
  if n > HEADER_MAX then
    fail('ELATER_SIZE', 'the options have ' .. int(n) .. ' bytes together, at most ' ..
         int(HEADER_MAX) .. ' fit')
  end
end

-- ---- reasons

-- Any text -> its first REASON_BYTES as one line in percent-encoding, nil for none.
function chains.encode_reason(text)
  text = string.sub(one_line(text), 1, REASON_BYTES)
  return text ~= '' and string.gsub(text, '[^%w._~-]', function(c)
    return string.format('%%%02X', string.byte(c))
  end) or nil
end

function chains.decode_reason(m)
  return m and (string.gsub(m, '%%(%x%x)', function(hex)
    return string.char(tonumber(hex, 16))
  end))
end

-- ---- what follows

-- The call may be going to write a large payload, or to move it. -> its bytes under this key once
-- the call has ended; what is no number: it is of a foreign type
local function bytes_of(key)
  local source, e = txn.moved[key], txn.entries[key]
  if source then
    return bytes_of(source)
  end
  local written = e and e.cells['']
  return written and #written or redis.pcall('STRLEN', key)
end

function chains.payload_size(R, id)
  return bytes_of(R .. ':big:' .. id)
end

-- May the large payload of a job be handed on, by this command? Where it is missing, a claim of the
-- next job will say so.
local function can_pass(command, source, target)
  if not rights.may(command, source, target) then
    fail('NOPERM', 'this user may not ' .. command .. ' ' .. quote(source))
  elseif not txn.moved[source] and db('EXISTS', source) == 0 then
    return false
  end
  change.assign(txn.moved, target, source)
  return true
end

local function move_payload(source, target)
  if can_pass('RENAME', source, target) then
    change.write_together('RENAME', source, {target}, function()
      redis.pcall('RENAME', target, source)
    end)
  end
end

-- The job before stays, with its payload.
local function copy_payload(source, target)
  if can_pass('COPY', source, target) then
    txn.spend(tonumber(bytes_of(source)) or 0)
    change.write_together('COPY', source, {target, 'REPLACE'}, function()
      redis.pcall('DEL', target)
    end)
  end
end

-- -> how many jobs that are due now the call has added to a queue
function chains.caused_in(queue)
  return txn.caused[queue] or 0
end

-- Write a job that is due now: its record has these fields. payload: nil for a large one that is
-- moved to its place. -> its id
function chains.add_due_now(R, fields, payload, now_ms)
  local id = clock.id(clock.tick(R, 1000 * now_ms, 1))
  fields.big = not payload or #payload > BIG
  txn.spend(payload and #payload or 0)
  adds.put_record(R, id, jobs.header(fields) .. (fields.big and '' or payload), fields.big and
                  payload)
  change.is_new(jobs.waiting_key(R, fields, at_once.NEW), 'zset', id)
  jobs.enqueue(R, id, fields, at_once.NEW, now_ms)
  change.assign(txn.caused, fields.queue, chains.caused_in(fields.queue) + 1)
  commit.count(R, 'added', fields.queue, 1)
  if events.now then
    events.add('added', id, fields.queue, now_ms)
  end
  return id
end

-- Add the job that job `id` causes, with its key, priority and trace. fields: what else the header
-- has. result: its payload; nil: that of job `id`, a large one by pass(source, target). -> its id
local function add_caused(R, id, job, fields, result, pass, now_ms)
  fields.has_options, fields.priority, fields.K, fields.T, fields.p = true, job.priority, job.K,
                                                                      job.T, id
  local payload = result or not job.big and string.sub(job.record, job.body)
  local next_id = chains.add_due_now(R, fields, payload, now_ms)
  if not payload then
    pass(R .. ':big:' .. id, R .. ':big:' .. next_id)
  end
  if fields.b then
    membership.join(R, fields.b, next_id)
  end
  return next_id
end

-- Write into the record of a kept or dead job which jobs it caused: the last ones, as many as fit.
function chains.keep_caused(R, id, ids)
  local record = ids[1] and db('HGET', R .. ':jobs', id)
  if not record then
    return
  end
  local header, payload = string.match(record, '^([^\n]*)(\n.*)$')
  local earlier = string.match(header, ' c=(%S+)')
  header = string.gsub(header, ' c=%S+', '')
  local all = (earlier and earlier .. ',' or '') .. table.concat(ids, ',')
  local over = #header + #all + OF_CAUSED - HEADER_MAX
  if over > 0 then
    all = string.sub(all, math.ceil(over / OF_ID) * OF_ID + 1)
  end
  if all ~= '' then
    db('HSET', R .. ':jobs', id, header .. ' c=' .. all .. payload)
  end
end

-- A job that is done is followed by the next one of its chain, unless its batch is cancelled. job:
-- as jobs.parse tells it, with its record. result: what its handler gave as its result, nil for
-- nothing. stays: the job is kept. Fails with {refused = text}. -> the id of the next one, nil for
-- none
function chains.add_next(R, id, job, result, stays, now_ms)
  local queue, rest = string.match(job.n or '', '^([^,]+),?(.*)$')
  local batch = queue and membership.member_batch(R, id, job.b)
  if batch and not batch.cancelled_ms then
    membership.check_room(R, batch.name)
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
    fail('ELATER_ARGS', 'give QUEUE [name value]... PAYLOAD')
  end
  txn.spend(OF_CHILD + #args[words[2]]) -- of one that is refused, too
  local job = {queue = check_queue(queue), priority = 5, due = clock.ms(now_us), p = parent,
               has_options = true}
  adds.read_options(job, args, words[1] + 1, words[2] - 1)
  job.inside = inside
  local reply = adds.add_in_transaction(R, job, args[words[2]], now_us)
  return reply[2] == 'added' and reply[1]
end

-- Add the children of a result. One that later_add would refuse makes all of it fail, with
-- {refused = text}. An error that the handler has not caused (a key of a foreign type, say) is
-- raised as it is. batch: of the record of their parent, nil for none. -> their ids
function chains.add_children(R, r, batch, now_ms)
  local member_of = membership.member_batch(R, r.id, batch)
  local inside, ids = member_of and member_of.name, {}
  for i, words in ipairs(r.children) do
    local ok, why = pcall(add_child, R, words, r.children.args, r.id, inside, 1000 * now_ms)
    local text = type(why) == 'table' and why.elater
    ids[#ids + 1] = ok and why or nil
    if not ok and text and not string.find(text, '^ELATER_TYPE ') then
      error({refused = 'child ' .. int(i) .. ': ' .. one_line(text)})
    elseif not ok then
      error(why, 0)
    end
  end
  return ids
end

-- ---- deaths

-- A job that died is told to the queue of its on_dead. What hinders that must not keep the job from
-- dying: nothing is told then. why: the reason
function chains.tell_death(R, id, job, why, now_ms)
  if job and job.d then
    local fields = {queue = job.d, m = chains.encode_reason(why)}
    local _, told = change.unless_hindered(add_caused, R, id, job, fields, nil, copy_payload,
                                           now_ms)
    chains.keep_caused(R, id, {told})
  end
end
