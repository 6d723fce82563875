-- What a job keeps for its next attempt: its checkpoint, and the outputs of its steps.
--
--   R:resume      HASH  id -> "<steps> <bytes of their names and outputs>[ <checkpoint>]"
--   R:steps:<id>  HASH  name of a step -> its output, any bytes
--
-- A job without either has neither row. Only the attempt that runs writes them, by its start
-- number. They stay while the job is tried again or dead, and go when it is done, cancelled or
-- removed.

local resume = module 'core/resume'
local change, txn = use('txn/change', 'txn/txn')
resume.CHECKPOINT_MAX = 4096
resume.OUTPUT_MAX = 16384
resume.NAME_MAX = 64
resume.STEPS_MAX = 100
resume.BYTES_MAX = 262144 -- of the names and outputs of all steps

-- A value of R:resume, false for none -> how many steps, their bytes, the checkpoint; nil: none
function resume.read(text)
  local steps, bytes, rest = string.match(text or '', '^(%d+) (%d+)(.*)$')
  steps, bytes = whole(steps or ''), whole(bytes or '')
  if not steps or not bytes then
    return 0, 0, nil
  end
  return steps, bytes, string.sub(rest, 1, 1) == ' ' and string.sub(rest, 2) or nil
end

local function text_of(steps, bytes, checkpoint)
  return int(steps) .. ' ' .. int(bytes) .. (checkpoint and ' ' .. checkpoint or '')
end

-- Is this a name of a step?
function resume.is_name(name)
  return #name <= resume.NAME_MAX and string.find(name, '^%w[%w._:-]*$') ~= nil
end

-- Keep the checkpoint of a running job in place of its last one; '': it has none any more.
function resume.put_checkpoint(R, id, text)
  local steps, bytes = resume.read(db('HGET', R .. ':resume', id))
  if text == '' and steps == 0 then
    db('HDEL', R .. ':resume', id)
  else
    db('HSET', R .. ':resume', id, text_of(steps, bytes, text ~= '' and text or nil))
  end
end

-- Fail if the job may not keep a new step with an output of so many bytes. -> its steps and their
-- bytes then, its checkpoint
function resume.need_room(R, id, name, more)
  local steps, bytes, checkpoint = resume.read(db('HGET', R .. ':resume', id))
  if steps >= resume.STEPS_MAX then
    fail('ELATER_FULL', 'job ' .. id .. ' has kept ' .. int(steps) .. ' steps, as many as it may')
  elseif more > resume.OUTPUT_MAX then
    fail('ELATER_SIZE', 'the output of step ' .. name .. ' has ' .. int(more) ..
         ' bytes, a step may keep ' .. int(resume.OUTPUT_MAX))
  elseif bytes + #name + more > resume.BYTES_MAX then
    fail('ELATER_FULL', 'the steps of job ' .. id .. ' have kept ' .. int(bytes) ..
         ' bytes, with step ' .. name .. ' more than the ' .. int(resume.BYTES_MAX) ..
         ' that a job may')
  end
  return steps + 1, bytes + #name + more, checkpoint
end

-- -> the output that a job has kept under this name; false: none
function resume.output(R, id, name)
  return db('HGET', R .. ':steps:' .. id, name)
end

-- The steps of a job whose value of R:resume is this, sorted by name -> names, name -> output.
-- Roles that may look at jobs have no HGETALL.
local function read_steps(R, id, text)
  local names, outputs, cursor = {}, {}, resume.read(text) > 0 and '0'
  while cursor do
    local page = redis.call('HSCAN', R .. ':steps:' .. id, cursor, 'COUNT', resume.STEPS_MAX)
    for i = 1, #page[2], 2 do
      local name = page[2][i]
      names[#names + 1] = not outputs[name] and name or nil
      outputs[name] = page[2][i + 1]
    end
    cursor = page[1] ~= '0' and page[1]
  end
  table.sort(names)
  return names, outputs
end

-- Keep the output of a step of a running job, which has none of this name.
function resume.keep(R, id, name, output)
  local steps, bytes, checkpoint = resume.need_room(R, id, name, #output)
  db('HSET', R .. ':steps:' .. id, name, output)
  db('HSET', R .. ':resume', id, text_of(steps, bytes, checkpoint))
end

-- The steps of a job as one text: {name, ' ', bytes of its output, LF, output}*.
-- text: of R:resume -> '': it has none
function resume.pack(R, id, text)
  local parts, outputs = read_steps(R, id, text)
  for i, name in ipairs(parts) do
    local output = outputs[name]
    parts[i] = name .. ' ' .. int(#output) .. '\n' .. output
  end
  return table.concat(parts)
end

-- Such a text -> {name, output}*. Fails if it is none, or has more than a job may keep.
function resume.unpack(text)
  local steps, at, is_known, bytes = {}, 1, {}, 0
  while at <= #text do
    local name, n, behind = string.match(text, '^(%S+) (%d+)\n()', at)
    n = whole(n or '')
    if not n or not resume.is_name(name) or is_known[name] or n > resume.OUTPUT_MAX or
       behind + n - 1 > #text then
      fail('ELATER_OPTION', 'steps: they do not add up')
    end
    steps[#steps + 1], is_known[name] = {name, string.sub(text, behind, behind + n - 1)}, true
    bytes, at = bytes + #name + n, behind + n
  end
  if #steps > resume.STEPS_MAX or bytes > resume.BYTES_MAX then
    fail('ELATER_OPTION', 'steps: they are more than a job may keep')
  end
  return steps
end

-- A job that is added has kept this already. steps: of resume.unpack; checkpoint: nil for none
function resume.begin(R, id, steps, checkpoint)
  if not steps[1] and not checkpoint then
    return
  end
  local bytes = 0
  for _, step in ipairs(steps) do
    db('HSET', R .. ':steps:' .. id, step[1], step[2])
    bytes = bytes + #step[1] + #step[2]
  end
  db('HSET', R .. ':resume', id, text_of(#steps, bytes, checkpoint))
end

-- -> the values of R:resume of ids[from..to], false for none. A key of a foreign type, which is not
-- ours, must keep no job from its start or its end: then they have kept nothing.
function resume.rows(R, ids, from, to)
  return change.unless_foreign(db, 'HMGET', R .. ':resume', unpack(ids, from, to)) or {}
end

-- These jobs begin anew, or are no more.
function resume.drop(R, ids)
  local key = R .. ':resume'
  if not ids[1] or txn.is_known_empty(key) then
    return
  end
  local rows, kept = resume.rows(R, ids, 1, #ids), {}
  for i = 1, #ids do
    if rows[i] then
      kept[#kept + 1] = ids[i]
    end
    if rows[i] and resume.read(rows[i]) > 0 then
      change.drop_key(R .. ':steps:' .. ids[i], 'large')
    end
  end
  if kept[1] then
    db('HDEL', key, unpack(kept))
  end
end
