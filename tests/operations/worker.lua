-- A worker of queue `q` and a producer of its jobs: the calls of the library by what they mean. Used beside the toy and,
-- with the same text, inside a real server (real.lua); so it needs nothing but its arguments.
--
-- Given function(name, args) that calls a function of the library and returns its reply -> a registered worker.
local QUEUE = 'q'
local PLACES = '64'
local MAX_CLAIMS = '192'
local MAX_PAYLOAD = '1048576'
local AHEAD_MS = '2' -- what a daemon sends without settings of its own

return function(call)
  local worker, held = {}, {} -- held: {id, start}* of its running jobs, in the order of their starts
  local n_added = 0
  local epoch = call('later_v1_register', {'0', 'inst', '1', '0', '3', 'host', 'h', 'queues', QUEUE, 'places', PLACES,
                                           '0', '0'})[2]

  -- Add n jobs. options: names and values in a table, or function(number of the job) that returns one
  function worker.add(n, options)
    for _ = 1, n do
      local args = {QUEUE}
      for _, word in ipairs(type(options) == 'function' and options(n_added) or options or {}) do
        args[#args + 1] = word
      end
      args[#args + 1] = 'x'
      call('later_add', args)
      n_added = n_added + 1
    end
  end

  function worker.set_limit(...)
    call('later_limit_set', {...})
  end

  function worker.open_batch(name)
    call('later_batch', {name, 'finally', QUEUE, 'x'})
  end

  -- gates: as in later_v1_declare
  function worker.set_gates(gates)
    call('later_v1_declare', {epoch, '0', '1', QUEUE, gates})
  end

  local function put(args, ...)
    for _, word in ipairs({...}) do
      args[#args + 1] = word
    end
  end

  -- Jobs that ended well, in groups of one start number.
  local function put_ends(args, ends)
    local groups = {}
    for _, job in ipairs(ends) do
      local group = groups[#groups]
      if not group or group.start ~= job.start then
        group = {start = job.start}
        groups[#groups + 1] = group
      end
      group[#group + 1] = job.id
    end
    put(args, #groups)
    for _, group in ipairs(groups) do
      put(args, QUEUE, group.start, #group, unpack(group))
    end
  end

  -- The n oldest of the running jobs, which run no longer.
  local function take(n)
    local taken = {}
    for i = 1, math.min(n, #held) do
      taken[i] = table.remove(held, 1)
    end
    return taken
  end

  -- A sync; ends and the told run no longer. verb, amount: the result of the told; room: how many jobs may start. -> how
  -- many started
  local function sync(ends, told, verb, amount, room)
    local args = {epoch, '1', #held, MAX_CLAIMS, #told}
    for _, job in ipairs(told) do
      put(args, job.id, job.start, verb, QUEUE, amount, '1', 'text', '')
    end
    put(args, '1', QUEUE, room, MAX_PAYLOAD)
    put_ends(args, ends)
    put(args, AHEAD_MS)
    for i, word in ipairs(args) do
      args[i] = tostring(word)
    end
    local n = #held
    for _, group in ipairs(call('later_v1_sync', args)[4]) do
      for i = 7, #group, 3 do
        held[#held + 1] = {id = group[i], start = group[3]}
      end
    end
    return #held - n
  end

  -- n: how many of the oldest end; told: those of them with a result, as in shapes.lua. -> how many started
  function worker.sync(n, room, told)
    local jobs = take(told and told[1] or 0)
    return sync(take(n - #jobs), jobs, told and told[2], told and told[3], room)
  end

  -- All running jobs fail, and wait to be tried again.
  function worker.retry_all()
    sync({}, take(#held), 'retry', '0', 0)
  end

  return worker
end
