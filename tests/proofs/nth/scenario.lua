-- The scenarios: a stage, the call under test, and what its reply says about the jobs. is_atomic:
-- the call is about one thing, so an error must change nothing. is_cached: the library keeps
-- something in its locals, so each run is judged. worker: the worker that calls. prepare(m): runs
-- before the call and is not counted. judge: replaces the judge of run.lua.

-- s: name, stage, call(m) -> {function, arguments}, after(m, reply, why)
function nth.scenario(s)
  s.after = s.after or function() end
  nth.scenarios[#nth.scenarios + 1] = s
end

-- A scenario that is one call, given in words; $x stands for the name x of the stage. is_atomic
-- unless `is_wide`; is_add: is_cached.
function nth.words(stage, line, after, is_wide, is_add)
  nth.scenario{name = stage .. ': ' .. line, stage = stage, is_atomic = not is_wide, after = after, is_cached = is_add,
    judge = stage == 'broken' and nth.judge_repair or nil, call = function(m)
    local out = {}
    for word in string.gmatch(line, '%S+') do
      local name = string.match(word, '^%$([%w_]+)$')
      out[#out + 1] = word == "''" and '' or word == 'BIG' and 'new|' .. string.rep('x', 20000) or name and m.name[name] or word
    end
    return out
  end}
end
