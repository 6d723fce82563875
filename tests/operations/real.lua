-- The shapes inside a real server. run puts this in front of the joined library, and worker, shapes, dump and play behind it as
-- functions that return what the files return. Nothing of Lua's own is there until a function is called.
--
-- operations_play 0 NUMBER -> what happened when this shape was played (play.lua)
local worker, shapes, dump, play

local server = {functions = {}, now_us = 0}

redis.register_function('operations_play', function(_, args)
  return play()(shapes()[tonumber(args[1])], worker(), dump(), server, function(sync, ...) return sync(...) end)
end)

-- As the toy's: the clock is the test's.
local function execute(how, command, ...)
  if command == 'TIME' then
    local us = server.now_us % 1000000
    return {string.format('%.0f', (server.now_us - us) / 1000000), string.format('%.0f', us)}
  end
  return redis[how](command, ...)
end

server.redis = {
  call = function(...) return execute('call', ...) end,
  pcall = function(...) return execute('pcall', ...) end,
  acl_check_cmd = function(...) return redis.acl_check_cmd(...) end,
  register_function = function(f) server.functions[f.function_name] = f.callback end,
}

local redis = server.redis
