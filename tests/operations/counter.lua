-- Counts what a sync costs: the operations of the Lua machine that are the library's, and the commands of Redis. What the
-- toy needs itself does not count; nor does what C does, `string.find` say.
local server = require 'toy.server'

local counter = {}

local CHUNK = '@laterd.lua'

-- The file of src/lua that each line of the joined library comes from (scripts/join-lua marks them).
local function files_of(text)
  local files, file = {}, 'join-lua'
  for line in string.gmatch(text, '([^\n]*)\n') do
    file = string.match(line, '^%-%- ==== (%S+)$') or file
    files[#files + 1] = file
  end
  return files
end

-- Load a joined library anew, into an empty toy. It registers its functions in server.functions.
function counter.load(text)
  server.reset()
  -- Redis reads the first line; to Lua it is none.
  local library, why = loadstring(string.gsub(text, '^#![^\n]*', ''), CHUNK)
  if not library then
    error(why, 0)
  end
  setfenv(library, setmetatable({redis = server.redis}, {__index = _G}))()
  counter.files = files_of(text)
end

-- Call f(...). -> what it returns, {operations, commands, files: name -> operations}
function counter.count(f, ...)
  local count = {operations = 0, commands = server.commands, files = {}}
  local of_file, info_of = count.files, debug.getinfo
  debug.sethook(function()
    local info = info_of(2, 'S')
    if info.source == CHUNK then
      local file = counter.files[info.linedefined] or 'join-lua'
      count.operations = count.operations + 1
      of_file[file] = (of_file[file] or 0) + 1
    end
  end, '', 1)
  local ok, result = pcall(f, ...)
  debug.sethook()
  if not ok then
    error(result, 0)
  end
  count.commands = server.commands - count.commands
  return result, count
end

return counter
