-- Which gates a job has to pass: its own, and those of its queue.

local wanted = module 'gates/wanted'
local limits, uniques = use('gates/limits', 'gates/uniques')

-- The name of each kind in a record and in R:queues, in the order in which gates are taken.
wanted.GATE_OPTIONS = {{'l', 'lock'}, {'s', 'sem'}, {'r', 'rate'}}

-- A name with {key} in it -> the name for this key; nil when it needs a key and there is none.
function wanted.fill_key(name, key)
  local before, behind = limits.split_key(name)
  if not behind then
    return name
  end
  return key and before .. key .. behind
end

-- A value of R:queues, "lock=<name> sem=<name> rate=<name>" (each may be missing) -> {lock, sem,
-- rate}; nil for a queue without gates
function wanted.queue_gates(text)
  local out
  if not text then
    return nil
  end
  for kind, name in string.gmatch(text, '(%a+)=(%S+)') do
    out = out or {}
    out[kind] = name
  end
  return out
end

-- -> the names of one kind, sorted, each once; why the job cannot run
local function names_of(job, kind, own, common)
  local filled = common and wanted.fill_key(common, job.K)
  local why = common and not filled and 'its queue wants the ' .. kind .. ' ' .. common ..
              ', and it has no key' or nil
  local names = {}
  local unique = kind == 'lock' and job.o and job.u and uniques.lock_of(job) or false
  for _, name in ipairs({own or false, filled or false, unique}) do
    if name and name ~= names[1] and name ~= names[2] then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names, why
end

-- The gates of a job, its own and its queue's, as ids in the order in which they are taken: by kind
-- and name, so that no two jobs ever wait for each other. Rates come last, since they open by
-- themselves: otherwise a permit would be kept for a job that still waits for a lock, and others
-- would wait for this permit. -> list, nil for none; why the job cannot run
function wanted.gates_of(job, of_queue)
  local out, why = {}, nil
  if not (of_queue or job.l or job.s or job.r or (job.o and job.u)) then
    return nil
  end
  for _, option in ipairs(wanted.GATE_OPTIONS) do
    local kind = option[2]
    local names, cannot = names_of(job, kind, job[option[1]], of_queue and of_queue[kind])
    why = why or cannot
    for _, name in ipairs(names) do
      out[#out + 1] = kind .. ':' .. name
    end
  end
  return #out > 0 and out or nil, why
end
