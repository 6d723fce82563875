-- Plays a shape and writes down what happened: every reply of the library, then every key. Used beside the toy and
-- inside a real server, as worker.lua: both must come to the same text.
local ROOT = 'later:{default}'
local START_US = 4102444860000000 -- in the year 2100: nothing expires on the real server meanwhile
-- How long each call takes. Jobs that are added together are due together: 64 of them are due in one millisecond.
local ADD_US, CALL_US = 1, 1000

-- dump: what dump.lua returns; server: redis, functions (name -> function of the library), now_us (the clock);
-- measure(sync, ...): makes the sync that the shape is about, and returns what it returns -> the text
return function(shape, new_worker, dump, server, measure)
  local lines = {}
  server.now_us = START_US
  local worker = new_worker(function(name, args)
    server.now_us = server.now_us + (name == 'later_add' and ADD_US or CALL_US)
    local reply = server.functions[name]({ROOT}, args)
    if type(reply) == 'table' and reply.err then
      error(shape.name .. ': ' .. name .. ': ' .. reply.err, 0)
    end
    lines[#lines + 1] = name .. ' ' .. dump.text_of(reply)
    return reply
  end)
  shape.set_up(worker)
  local started = measure(worker.sync, shape.ends, shape.room, shape.told)
  if started ~= shape.starts then
    error(shape.name .. ': the sync started ' .. started .. ' jobs, not ' .. shape.starts, 0)
  end
  return table.concat(lines, '\n') .. '\n' .. table.concat(dump.keys(server.redis), '\n')
end
