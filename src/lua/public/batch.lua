-- later_batch R NAME [then Q] [finally Q] [on_dead Q] [keep D] [PAYLOAD] -> [NAME, status]
--
-- Open a batch (batch/batches.lua): jobs join it by `batch NAME` until later_batch_seal. Once it is
-- sealed, `finally` gets a job when all members have ended in whichever way, and `then` when all
-- are done; `on_dead` gets one at the first death. Each gets it exactly once, with PAYLOAD (at most
-- 16 KiB). keep: how long the batch can be looked at after its end; 1 day without it.
-- status: opened | repeated. An open batch of this name with other settings is refused; so is
-- any other batch of this name, until it is forgotten.
-- Errors: ELATER_ARGS OPTION QUEUE TIME SIZE FULL BATCH TYPE. Cost: O(log n) in the batches.

local batches, clock, instant, uses = use(
  'batch/batches', 'core/clock', 'core/instant', 'core/uses')
local CALLBACKS = {['then'] = true, finally = true, on_dead = true}

local function read_option(batch, name, value)
  if batch[name] then
    fail('ELATER_OPTION', 'option ' .. name .. ' is given twice')
  elseif CALLBACKS[name] then
    batch[name] = check_queue(value)
  elseif name == 'keep' then
    batch.keep_ms = instant.duration(value, 'keep')
  else
    fail('ELATER_OPTION', 'unknown option ' .. quote(name) ..
         ' (then finally on_dead keep; the payload comes last)')
  end
end

local function read_batch(args)
  local batch, n = {name = batches.check_name(args[1]), payload = '', fired = ''}, #args
  if n % 2 == 0 then
    batch.payload, n = args[n], n - 1
  end
  for i = 2, n, 2 do
    read_option(batch, string.lower(args[i]), args[i + 1])
  end
  if #batch.payload > BIG then
    fail('ELATER_SIZE', 'the payload of a batch has ' .. int(#batch.payload) ..
         ' bytes, at most ' .. int(BIG) .. ' fit')
  end
  batch.keep_ms = batch.keep_ms or batches.BATCH_KEEP_MS
  return batch
end

local function is_same(a, b)
  return a['then'] == b['then'] and a.finally == b.finally and a.on_dead == b.on_dead and
         a.keep_ms == b.keep_ms and a.payload == b.payload
end

register('later_batch', {}, function(R, args)
  local batch = read_batch(args)
  local here, is_corrupt = batches.of(R, batch.name)
  if is_corrupt then
    batches.fail_no_batch(batch.name, true)
  elseif here and batches.state(here) == 'open' and is_same(here, batch) then
    return {batch.name, 'repeated'}
  elseif here then
    fail('ELATER_BATCH', 'batch ' .. quote(batch.name) .. ' is there already, ' ..
         (batches.state(here) == 'open' and 'with other settings' or batches.state(here)))
  end
  batches.check_count(R)
  uses.put_names(R, uses.new_names(R, uses.batch_queues(batch)))
  batch.created_ms = clock.ms(clock.now_us())
  batches.put(R, batch)
  return {batch.name, 'opened'}
end)
