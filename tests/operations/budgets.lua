-- What a sync may cost: operations of Lua for each job that ends or starts, and commands of Redis for the whole call. A
-- budget is what the shape costs today: whoever makes it cheaper lowers it in the same commit, and the test insists. goal:
-- the operations that are promised for later; nil where nothing is.
return {
  ['plain jobs'] = {operations = 86, goal = 120, commands = 28},
  ['key, priority, attempts, timeout'] = {operations = 285, commands = 36},
  ['attempts, timeout'] = {operations = 148, commands = 28},
  ['tried before'] = {operations = 455, commands = 38},
  ['one in eight fails'] = {operations = 280, commands = 48},
  ['kept for an hour'] = {operations = 631, commands = 41},
  ['member of a batch'] = {operations = 404, commands = 35},
  ['unique for a minute'] = {operations = 505, commands = 161},
  ['one of 64 dies'] = {operations = 139, commands = 49},
  ['unique key'] = {operations = 426, commands = 98},
  ['open rate'] = {operations = 538, commands = 38},
  ['lock by {key}, 100 keys'] = {operations = 690, commands = 170},
  ['fair, one tenant'] = {operations = 277, commands = 50},
  ['fair, 100 tenants'] = {operations = 1023, commands = 116},
  ['fair, a tenant a job'] = {operations = 967, commands = 119},
  ['free locks, starts alone'] = {operations = 489, goal = 500, commands = 89},
  ['free locks'] = {operations = 701, commands = 165},
  ['semaphore of 20'] = {operations = 674, goal = 700, commands = 42},
  ['one lock, handed over'] = {operations = 2957, goal = 3000, commands = 37},
}
