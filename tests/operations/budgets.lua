-- What a step may cost: operations of Lua for each job that ends or starts, and commands of Redis for the whole call. A
-- budget is what the shape costs today: whoever makes it cheaper lowers it in the same commit, and the test insists. goal:
-- the operations that are promised for later; nil where nothing is.
return {
  ['plain jobs'] = {operations = 87, goal = 120, commands = 28},
  ['key, priority, attempts, timeout'] = {operations = 295, commands = 39},
  ['attempts, timeout'] = {operations = 149, commands = 28},
  ['tried before'] = {operations = 456, commands = 41},
  ['one in eight fails'] = {operations = 281, commands = 51},
  ['kept for an hour'] = {operations = 632, commands = 44},
  ['member of a batch'] = {operations = 408, commands = 35},
  ['unique for a minute'] = {operations = 509, commands = 161},
  ['one of 64 dies'] = {operations = 141, commands = 52},
  ['unique key'] = {operations = 430, commands = 98},
  ['open rate'] = {operations = 547, commands = 41},
  ['lock by {key}, 100 keys'] = {operations = 702, commands = 173},
  ['free locks, starts alone'] = {operations = 493, goal = 500, commands = 89},
  ['free locks'] = {operations = 706, commands = 165},
  ['semaphore of 20'] = {operations = 676, goal = 700, commands = 42},
  ['one lock, handed over'] = {operations = 2962, goal = 3000, commands = 37},
}
