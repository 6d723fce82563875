-- later_v1_keep R EPOCH ID START NAME [OUTPUT] -> ['run'] | ['kept', output] | ['settled']
--
-- A step of a running job, for `later step`. Without OUTPUT: what has been kept under NAME, in this
-- attempt or an earlier one; run: nothing, so its command has to run. With OUTPUT, what the command
-- printed, at most 16 KiB: it is kept, unless there is one under NAME already; kept tells which one
-- counts. settled: this worker does not hold the job with this start number, nothing was changed.
-- NAME: up to 64 of A-Z a-z 0-9 . _ : -, the first one a letter or a digit. A job keeps at most 100
-- steps, and 256 KiB of names and outputs.
-- Errors: ELATER_ARGS, ELATER_FULL (one step too many, or too many bytes; without OUTPUT, too, so
-- that a command is not run for nothing), ELATER_SIZE (of OUTPUT), ELATER_TYPE. Called again, it
-- changes nothing and answers the same. allow-oom: what ran must be kept. Cost: O(1) and the
-- output.

local events, resume, uniques = use('core/events', 'core/resume', 'gates/uniques')

-- Does this worker run the job, with this start number?
local function is_held(R, epoch, id, start)
  local tries = db('HGET', R .. ':tries', id)
  return db('ZSCORE', R .. ':running', id) == epoch and tries and
         string.sub(tries, 1, #start + 1) == start .. ' '
end

register('later_v1_keep', {'allow-oom'}, function(R, args)
  local epoch, start, name, output = whole(args[1]), args[3], args[4], args[5]
  if not epoch or not whole(start) or not name or #args > 5 then
    fail('ELATER_ARGS', 'give EPOCH ID START NAME [OUTPUT]')
  elseif not resume.is_name(name) then
    fail('ELATER_ARGS', quote(name) .. ' is no name of a step: up to 64 of A-Z a-z 0-9 . _ : -')
  end
  local id = uniques.check_id(R, args[2])
  if not is_held(R, epoch, id, start) then
    return {'settled'}
  end
  local kept = resume.output(R, id, name)
  if kept then
    return {'kept', kept}
  elseif not output then
    resume.need_room(R, id, name, 0)
    return {'run'}
  end
  resume.keep(R, id, name, output)
  if events.now then
    events.add('kept', id, '-', nil, whole(start), nil, nil, name)
  end
  return {'kept', output}
end)
