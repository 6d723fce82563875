-- One scenario: restore its stage, let the N-th call fail, and judge what is left; for N = 1 and so
-- on until the call makes fewer calls to Redis. (Or let all calls of its N-th command fail.) Runs
-- that leave the same keys and the same reply are judged once.

nth.stages, nth.scenarios, nth.kept = {}, {}, {}

local function build(stage)
  nth.findings = {}
  nth.clear()
  nth.now_us = nth.start_us
  local m = nth.new_model()
  nth.stages[stage](m)
  nth.note_deaths(m)
  m.now_us = nth.now_us
  local known = nth.fsck()
  local all = nth.save()
  for tag, at in pairs(nth.whereabouts(m)) do
    m.ids = m.ids or {}
    m.ids[at[1]] = tag
  end
  nth.kept[stage] = {all = all, m = m, known = known, complaints = nth.findings}
end

-- Restore the stage in Redis. -> its model
local function set_up(stage)
  local kept = nth.kept[stage]
  nth.restore(kept.all)
  local m = nth.copy(kept.m)
  nth.now_us = m.now_us
  return m
end

local function text_of(x)
  if type(x) ~= 'table' then
    return tostring(x)
  end
  local out = {}
  for i, value in ipairs(x) do
    out[i] = text_of(value)
  end
  return '[' .. table.concat(out, ' ') .. ']'
end
nth.text_of = text_of

-- The same for two runs that leave the same keys and the same reply.
local function print_of(reply, why)
  local rows = {}
  for key in pairs(nth.wrote or {}) do
    local content = nth.content_of(key)
    if content ~= nth.before[key] then
      rows[#rows + 1] = key .. '\n' .. (content or '-')
    end
  end
  table.sort(rows)
  return redis.sha1hex(table.concat(rows, '\n\n') .. text_of(reply) .. tostring(why))
end

local function judge(m, kept, s, before, reply, why)
  local ids = kept.m.ids or {}
  if why and s.is_atomic then
    nth.judge_unchanged(before, 'error-wrote')
  end
  s.after(m, reply, why)
  nth.note_deaths(m)
  nth.judge_sets(m, ids)
  nth.judge_running(m)
  nth.judge_gates(m)
  nth.judge_kept(false)
  nth.judge_fsck(kept.known, 'fsck')
  local n = #nth.findings
  if s.worker and (why or reply[2] ~= 'ok') then
    local ok, bad = pcall(nth.reconcile, m, m.name[s.worker])
    if not ok then
      nth.found('stuck', 'the reconcile: ' .. text_of(bad.err or bad))
    end
  end
  local ok, bad = pcall(nth.drain, m)
  if not ok then
    nth.found('stuck', 'the drain: ' .. text_of(type(bad) == 'table' and bad.err or bad))
  end
  nth.note_deaths(m)
  nth.judge_end(m, kept.known_end or {})
  nth.judge_kept(true)
  nth.judge_fsck(kept.known, 'fsck-end')
  return n
end

-- Bring Redis, the model and the keys to the state before the call. If the previous run has written
-- nothing and was not judged, they still have it.
local function ready(s)
  if nth.intact ~= s or s.is_cached then
    local m = set_up(s.stage)
    if s.prepare then
      s.prepare(m)
    end
    nth.ready_m = m
  end
  if nth.before_of ~= s then
    nth.before, nth.before_of = nth.content(), s
  end
  nth.intact = s
  return nth.ready_m, nth.before
end

-- One run. -> false if there is no N-th call, or command, any more
local function run(s, n, mode, seen, out)
  local kept = nth.kept[s.stage]
  local m, before = ready(s)
  local args = s.call(m)
  nth.findings = {}
  local reply, why = nth.call_armed(args, n, mode, s.commands)
  if n == 0 then
    s.commands = nth.met
  elseif not nth.raised then
    nth.intact = nil
    return n <= #s.commands and mode == 'right'
  end
  out.runs = out.runs + 1
  local raised = nth.raised or {site = 0, command = '-'}
  local print = print_of(reply, why)
  if nth.wrote then
    nth.intact = nil
  end
  if not seen[print] or s.is_cached then
    nth.intact = nil
    seen[print] = true
    out.judged = out.judged + 1
    (s.judge or judge)(m, kept, s, before, reply, why)
    for _, f in ipairs(nth.findings) do
      table.insert(out.findings, {n, raised.site, raised.command, f[1], f[2], why and text_of(why) or 'ok'})
    end
  end
  return true
end

-- nth_run R SCENARIO FROM COUNT MODE START_US
--   -> [next or -1 at the end, runs, judged, [site...], [finding...]]
redis.register_function({
  function_name = 'nth_run',
  callback = function(_, args)
    local s, from, count = nth.scenarios[tonumber(args[1])], tonumber(args[2]), tonumber(args[3])
    local out = {runs = 0, judged = 0, findings = {}}
    nth.start_us = tonumber(args[5])
    if not nth.kept[s.stage] then
      build(s.stage)
      for _, f in ipairs(nth.findings) do
        table.insert(out.findings, {0, 0, 'stage', f[1], f[2], 'ok'})
      end
    end
    nth.seen = from == 0 and {} or nth.seen
    nth.hit = {}
    local next = from
    while next < from + count do
      if not run(s, next, args[4], nth.seen, out) then
        next = -1
        break
      end
      next = next + 1
    end
    local sites = {}
    for site in pairs(nth.hit) do
      sites[#sites + 1] = site
    end
    return {next, out.runs, out.judged, sites, out.findings}
  end
})

-- nth_list -> names of the scenarios
redis.register_function({
  function_name = 'nth_list',
  callback = function()
    local out = {}
    for i, s in ipairs(nth.scenarios) do
      out[i] = s.name
    end
    return out
  end
})
