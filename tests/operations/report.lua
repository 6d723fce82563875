-- Measures every shape, prints a table, and judges it by budgets.lua: a cost above its budget fails, and so does one more
-- than a tenth below it, since the budget would no longer hold what was gained.
--
-- Usage: lua5.1 report.lua LIBRARY FOLDER [files]     with LUA_PATH, from run
-- Leaves what happened in FOLDER/toy.1 and so on, by the number of the shape (play.lua). files: print below each shape
-- which files of src/lua its operations are of.
-- Exit status: 0 all as in the budgets, 3 not so, 1 something else failed.
local budgets = require 'budgets'
local counter = require 'counter'
local dump = require 'dump'
local new_worker = require 'worker'
local play = require 'play'
local server = require 'toy.server'

local LEAST = 0.9 -- of its budget
local FILES_SHOWN = 10
local ROW = '%2s %-32s %10s %10s %7s %6s %10s %7s'

local path, folder, wants_files = ...

local function read(name)
  local file = assert(io.open(name, 'rb'))
  local text = file:read('*a')
  file:close()
  return text
end

local function write(name, text)
  local file = assert(io.open(name, 'wb'))
  file:write(text, '\n')
  assert(file:close())
end

-- -> what is wrong with a cost, nil for nothing
local function judge(what, cost, budget)
  if cost > budget then
    return string.format('%d %s, its budget is %d', cost, what, budget)
  elseif cost < LEAST * budget then
    return string.format('%d %s, more than a tenth below its budget of %d: lower that in budgets.lua', cost, what, budget)
  end
end

local function print_files(files)
  local names = {}
  for name in pairs(files) do
    names[#names + 1] = name
  end
  table.sort(names, function(a, b) return files[a] > files[b] end)
  for i = 1, math.min(#names, FILES_SHOWN) do
    print(string.format('    %-28s %10d', names[i], files[names[i]]))
  end
end

local function measure(text, shape, number)
  local count
  counter.load(text)
  write(folder .. '/toy.' .. number, play(shape, new_worker, dump, server, function(...)
    local result
    result, count = counter.count(...)
    return result
  end))
  return count
end

-- Measure one shape and print its row. -> what is wrong with it, a list
local function report(text, shape, number)
  local count, budget = measure(text, shape, number), budgets[shape.name] or {operations = 0, commands = 0}
  local operations = math.ceil(count.operations / math.max(shape.ends, shape.starts))
  print(string.format(ROW, number, shape.name, count.operations, operations, budget.operations, budget.goal or '-',
                      count.commands, budget.commands))
  if wants_files then
    print_files(count.files)
  end
  local wrong = {}
  wrong[1] = judge('operations a job', operations, budget.operations)
  wrong[#wrong + 1] = judge('commands', count.commands, budget.commands)
  return wrong
end

print(string.format(ROW, '', 'a sync', 'operations', 'of a job', 'budget', 'goal', 'commands', 'budget'))
local text, status = read(path), 0
for number, shape in ipairs(require 'shapes') do
  for _, why in ipairs(report(text, shape, number)) do
    print('FAILED: ' .. shape.name .. ': ' .. why)
    status = 3
  end
  budgets[shape.name] = nil
end
if next(budgets) then
  print('FAILED: budgets.lua has a budget for no shape: ' .. next(budgets))
  status = 3
end
os.exit(status)
