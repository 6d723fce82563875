-- What a claim has to know of a job stands in the header of its record. A header without the values
-- of keys, traces and unique keys, which differ from job to job, is a class: it is read once for
-- all jobs of the class.
--
-- A class is what L.parse reads of such a header (false: it is no header); hold: what its jobs hold
-- in R:holds without gates and a unique key, false for nothing; and wants: what its gates are made
-- of, a list of {text before the key, text behind it (nil: the gate has no key in
-- it)}; nil until somebody asks, false where it takes more than that to know them.

local OWN = ' ([KTufpmBOYW])=%S+' -- options whose value is the job's own

-- -> the class of a record, nil where it has no header; the header
function L.class_of(ctx, record)
  local lf = string.find(record, '\n', 1, true)
  if not lf or lf > L.HEADER_MAX then
    return nil
  end
  local header = string.sub(record, 1, lf)
  local class = ctx.classes[header] -- many jobs have the same header
  if class == nil then
    local text = string.gsub(header, OWN, ' %1=0')
    class = ctx.classes[text]
    if class == nil then
      class = L.parse(text) or false
      ctx.classes[text] = class
    end
    ctx.classes[header] = class
  end
  return class or nil, header
end

-- One gate of a class at most of each kind: its own, or its queue's. -> list, false for more
local function read_wants(class, of_queue)
  local wants = {}
  if class.o then
    return false
  end
  for _, option in ipairs(L.GATE_OPTIONS) do
    local kind = option[2]
    local own, common = class[option[1]], of_queue and of_queue[kind]
    if own and common then
      return false
    elseif own then
      wants[#wants + 1] = {kind .. ':' .. own}
    elseif common then
      local before, behind = L.split_key(common)
      wants[#wants + 1] = {kind .. ':' .. before, behind}
    end
  end
  return wants
end

-- The gates that a job has to pass, nil for none; and why it cannot run.
function L.wanted_gates(class, header, of_queue)
  local wants, key, ids = class.wants, nil, {}
  if wants == nil then
    wants = read_wants(class, of_queue)
    class.wants = wants
  end
  if not wants then
    return L.gates_of(L.parse(header) or class, of_queue)
  end
  for i = 1, #wants do
    local want = wants[i]
    local behind = want[2]
    if behind and not key then
      key = class.K and string.match(header, ' K=(%S+)')
      if not key then
        return L.gates_of(class, of_queue)
      end
    end
    ids[i] = behind and want[1] .. key .. behind or want[1]
  end
  return ids[1] and ids or nil
end

-- -> text for R:holds, or nil: see L.holding_started
function L.hold_of(class, header, gates)
  if class and not gates and not class.u then
    if class.hold == nil then
      class.hold = L.holding_started(nil, class) or false
    end
    return class.hold or nil
  end
  local own = {n = class and class.n, b = class and class.b, S = class and class.S}
  if class and class.u then
    own.queue = class.queue
    own.u, own.f = string.match(header, ' u=(%S+)'), string.match(header, ' f=(%d+)')
  end
  return L.holding_started(gates, own)
end
