-- What a step may cost: operations of Lua for each job that ends or starts, and commands of Redis for the whole call. A
-- budget is what the shape costs today: whoever makes it cheaper lowers it in the same commit, and the test insists. goal:
-- the operations that are promised for later; nil where nothing is.
return {
  ['plain jobs'] = {operations = 145, goal = 120, commands = 28},
  ['key, priority, attempts, timeout'] = {operations = 380, commands = 31},
  ['tried before'] = {operations = 735, commands = 40},
  ['unique key'] = {operations = 860, commands = 103},
  ['open rate'] = {operations = 1130, commands = 39},
  ['lock by {key}, 100 keys'] = {operations = 1840, goal = 500, commands = 171},
  ['free locks, starts alone'] = {operations = 1250, goal = 500, commands = 91},
  ['free locks'] = {operations = 2020, goal = 500, commands = 171},
  ['semaphore of 20'] = {operations = 3830, goal = 700, commands = 62},
  ['one lock, handed over'] = {operations = 12000, goal = 3000, commands = 44},
}
