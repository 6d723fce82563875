-- later_v1_declare R EPOCH NL {name definition}*NL NQ {queue gates}*NQ
--   -> [[name, definition in force]...]
--
-- Takes the gates from the configuration of a worker. Limits: only definitions that R:limits lacks
-- are filled in. A limit that differs gets a note limit-differs:<name>, and the reply has the
-- definition in force ('' when there are too many definitions to take a new one). definition: as in
-- later_limits. gates: "lock=<name> sem=<name> rate=<name>", those there are, behind "fair=1" and
-- up to 64 "w=<weight>:<tenant>" where places are shared by tenants; '' for a queue without any.
-- The newest gates of a queue win: they are written where they differ, and '' removes what was
-- there. That gets a note queue-gates:<queue>, unless this worker itself wrote what is replaced
-- (R:worker:<epoch> gates:<queue>).
-- At most 1000 limits and 2000 queues. All or nothing. Not allow-oom.
-- Errors: ELATER_ARGS GATE QUEUE TYPE WORKER. Cost: O(NL + NQ + templates + those it lets in), and
-- for each new template O(gates with waiters).

local beats, workers, tidy, clock, passes, tenants, gate, limits, waiters, wanted,
      limit_calls = use(
  'calls/beat', 'calls/register', 'calls/tidy', 'core/clock', 'fair/passes', 'fair/tenants',
  'gates/gate', 'gates/limits', 'gates/waiters', 'gates/wanted', 'public/limit')
local LIMITS_MAX = 1000
local QUEUES_MAX = 2000

-- Refuse what is no definition. -> the kind of gate that it defines
local function check_definition(name, text)
  limit_calls.check_limit_name(name)
  local limit = limits.parse_limit(text)
  local is_fine = limit and limit.n <= limits.MAX_PERMITS
  if is_fine and limit.kind == 'sem' then
    is_fine = limit.on_lost == 'keep' or limit.on_lost == 'kill'
  elseif is_fine then
    is_fine = limit.burst >= 1 and limit.burst <= limits.MAX_PERMITS
  end
  if not is_fine then
    fail('ELATER_ARGS', 'limit ' .. quote(name) .. ': ' .. quote(text) .. ' is no definition')
  end
  return limit.kind
end

-- -> the words with which the text of a fair queue begins: that it is, and the weights of tenants
local function fair_words(text)
  local words = {}
  if tenants.weights_in(text) then
    words[1] = 'fair=1'
    for weight, tenant in string.gmatch(text, ' w=(%d+):(%S+)') do
      local n = whole(weight)
      if n and n >= 1 and n <= tenants.WEIGHT_MAX and #words <= tenants.WEIGHTS_MAX then
        words[#words + 1] = 'w=' .. int(n) .. ':' .. tenant
      end
    end
  end
  return words
end

-- Refuse a text that wanted.queue_gates does not read as it was written.
local function check_queue_gates(queue, text)
  local of_queue, words = wanted.queue_gates(text) or {}, fair_words(text)
  for _, kind in ipairs({'lock', 'sem', 'rate'}) do
    if of_queue[kind] then
      limits.check_gate_name(kind, of_queue[kind])
      words[#words + 1] = kind .. '=' .. of_queue[kind]
    end
  end
  if table.concat(words, ' ') ~= text then
    fail('ELATER_ARGS', 'queue ' .. check_queue(queue) .. ': ' .. quote(text) ..
         ' is no list of gates')
  end
end

-- Every second element, from `from` on.
local function every_second(list, from, prefix)
  local out = {}
  for i = from, #list, 2 do
    out[#out + 1] = (prefix or '') .. list[i]
  end
  return out
end

-- Read several fields of a hash. Without fields Redis is not asked.
local function read_fields(key, fields)
  return #fields > 0 and db('HMGET', key, unpack(fields)) or {}
end

-- Write the limits that are missing. waiters.hand_on then opens their gates. -> {name, definition
-- in force}* of those that differ
local function fill_limits(ledger, definitions, kinds)
  local R, names = ledger.R, every_second(definitions, 1)
  local was = read_fields(R .. ':limits', names)
  local differ, templates = {}, {}
  local room = limits.MAX_LIMITS - db('HLEN', R .. ':limits')
  for i, name in ipairs(names) do
    local text = definitions[2 * i]
    if not was[i] and room > 0 then
      room = room - 1
      db('HSET', R .. ':limits', name, text)
      if string.find(name, '{key}', 1, true) then
        templates[#templates + 1] = name
      end
      limit_calls.touch_under(ledger, kinds[i], name)
    elseif was[i] ~= text then
      differ[#differ + 1] = {name, was[i] or ''}
      tidy.note(R, one_line(string.sub('limit-differs:' .. name, 1, tidy.NOTE_BYTES)),
                ledger.now_ms)
    end
  end
  limit_calls.list_templates(R, templates, true)
  return differ
end

-- Write the gates of the queues, and in the fields of the worker what it declared.
local function set_queues(R, epoch, queues, now_us)
  local worker, now_ms = R .. ':worker:' .. epoch, clock.ms(now_us)
  local was = read_fields(R .. ':queues', every_second(queues, 1))
  local own = read_fields(worker, every_second(queues, 1, 'gates:'))
  for i = 1, #queues / 2 do
    local queue, text = queues[2 * i - 1], queues[2 * i]
    local in_force = was[i] or ''
    if in_force ~= text then
      if in_force ~= '' and in_force ~= own[i] then
        tidy.note(R, 'queue-gates:' .. queue, now_ms)
      end
      if text == '' then
        db('HDEL', R .. ':queues', queue)
      else
        db('HSET', R .. ':queues', queue, text)
      end
      local is_fair = tenants.weights_in(text) ~= nil
      if is_fair ~= (tenants.weights_in(in_force) ~= nil) then
        passes.begin(R, queue, is_fair)
      end
    end
    if text ~= '' and own[i] ~= text then
      db('HSET', worker, 'gates:' .. queue, text)
    elseif text == '' and own[i] then
      db('HDEL', worker, 'gates:' .. queue)
    end
  end
end

register('later_v1_declare', {}, function(R, args)
  local epoch = args[1] or ''
  local definitions, from = workers.pairs_at(args, 2)
  local queues = workers.pairs_at(args, from)
  if #definitions > 2 * LIMITS_MAX or #queues > 2 * QUEUES_MAX then
    fail('ELATER_ARGS', 'at most ' .. int(LIMITS_MAX) .. ' limits and ' .. int(QUEUES_MAX) ..
         ' queues in a call')
  end
  local kinds = {}
  for i = 1, #definitions, 2 do
    kinds[#kinds + 1] = check_definition(definitions[i], definitions[i + 1])
  end
  for i = 1, #queues, 2 do
    check_queue(queues[i])
    if queues[i + 1] ~= '' then
      check_queue_gates(queues[i], queues[i + 1])
    end
  end
  local status = beats.worker(R, epoch)
  if status ~= 'ok' then
    fail('ELATER_WORKER', 'worker ' .. quote(epoch) .. ' is ' .. status)
  end
  local ledger = gate.ledger(R, clock.now_us())
  local differ = fill_limits(ledger, definitions, kinds)
  set_queues(R, epoch, queues, ledger.now_us)
  waiters.hand_on(ledger)
  return differ
end)
