-- Checks the modules of src/lua, file by file: a file names its own module by its path, and those of others as all files do;
-- what it takes from a module is there; a module is changed only in its own folder; a file that a comment names exists;
-- a function of the library is registered by core/register.lua, whose check of the slot none goes without.
--
-- Usage: lua5.1 tests/checks/modules.lua FILE...    from the top of the tree
-- Exit status: 0 clean, 1 findings, one a line.
local SYMBOL = '([%a_][%w_]*)%.([%a_][%w_]*)'

local texts, given, name_of, found = {}, {}, {}, 0

local function complain(...)
  print(table.concat({...}))
  found = found + 1
end

local function read(path)
  local file = assert(io.open(path, 'rb'))
  local text = file:read('*a')
  file:close()
  return text
end

-- Without comments and strings; they may name anything.
local function code_of(text)
  return (text:gsub('%-%-[^\n]*', ''):gsub("\\'", ''):gsub("'[^'\n]*'", "''"))
end

local function words(text, pattern)
  local out = {}
  for word in text:gmatch(pattern) do
    out[#out + 1] = word
  end
  return out
end

-- -> local name -> path, of the modules that a file uses
local function uses_of(text)
  local out = {}
  for names, paths in text:gmatch('local ([%w_,%s]-) = use%s*%(?([^)\n]-[%w/_\',%s]*)%)?\n') do
    names, paths = words(names, '[%w_]+'), words(paths, "'([%w_/]+)'")
    for i, name in ipairs(names) do
      out[name] = paths[i]
    end
  end
  return out
end

-- One module has one name in all files.
local function check_name(file, name, path)
  name_of[path] = name_of[path] or name
  if name_of[path] ~= name then
    complain(file, ': ', path, ' is ', name, ' here and ', name_of[path], ' elsewhere')
  end
end

local function folder_of(path)
  return path:match('^(.*)/')
end

-- What the file gives to its module, or to others of its folder.
local function note_given(path, text, names)
  for name, field in text:gmatch('\n%s*function ' .. SYMBOL) do
    if names[name] then
      given[names[name] .. '.' .. field] = true
    end
  end
  for left in text:gmatch('\n%s*([%w_., ]-) = ') do
    for name, field in left:gmatch(SYMBOL) do
      local of = names[name]
      if of and folder_of(of) ~= folder_of(path) then
        complain(path, '.lua: it sets ', name, '.', field, ', which is for ', folder_of(of), '/ to set')
      elseif of then
        given[of .. '.' .. field] = true
      end
    end
  end
end

-- Only this file may say `register_function`, once, and beside the check. Strings count too: redis['register_function'].
local REGISTRY = 'src/lua/core/register.lua'
local CHECKED = {
  'run = function%(R, args%)\n%s*if slot%.need_whole%(R%)',
  'redis%.register_function{\n%s*function_name = name,\n%s*flags = flags,',
  'pcall%(run, keys%[1%], args%)',
}

local function check_registry(file, text)
  local spoken = select(2, text:gsub('%-%-[^\n]*', ''):gsub('register_function', ''))
  if file:match('src/lua/.*$') ~= REGISTRY then
    if spoken > 0 then
      complain(file, ': it registers a function itself, past ', REGISTRY)
    end
    return
  end
  if spoken ~= 1 then
    complain(file, ': it registers functions in ', tostring(spoken), ' places')
  end
  for _, pattern in ipairs(CHECKED) do
    if not text:find(pattern) then
      complain(file, ': a function goes without the check of its slot: no ', (pattern:gsub('\n', ' ')))
    end
  end
end

-- later_version is added behind all files.
local function check_joined()
  local text = read('scripts/join-lua')
  local of_reads = select(2, text:gsub("redis%.register_function{%s*function_name = '[%w_]+',%s*flags = {'no%-writes'},", ''))
  if of_reads ~= select(2, text:gsub('register_function', '')) then
    complain('scripts/join-lua: it registers a function that may write, past ', REGISTRY)
  end
end

local names_in = {}
for _, file in ipairs(arg) do
  local text, path = read(file), file:match('src/lua/(.*)%.lua$')
  local own, own_path = text:match("\nlocal ([%w_]+) = module '([%w_/]+)'")
  local names = uses_of(text)
  for name, used in pairs(names) do
    check_name(file, name, used)
  end
  if own then
    names[own] = own_path
    check_name(file, own, own_path)
    if own_path ~= path then
      complain(file, ': its module is called ', own_path)
    end
  end
  check_registry(file, text)
  texts[file], names_in[file] = code_of(text), names
  note_given(path, texts[file], names)
  for named in text:gmatch('%-%-[^\n]-([%w_/]+%.lua)') do
    local at = io.open('src/lua/' .. named) or io.open('src/lua/' .. folder_of(path) .. '/' .. named)
    if not at then
      complain(file, ': a comment names ', named, ', which is not there')
    else
      at:close()
    end
  end
end

for file, text in pairs(texts) do
  for name, field in text:gmatch('%f[%w_.]' .. SYMBOL) do
    local of = names_in[file][name]
    if of and not given[of .. '.' .. field] then
      complain(file, ': ', of, ' gives no ', field)
    end
  end
end
check_joined()
os.exit(found == 0 and 0 or 1)
