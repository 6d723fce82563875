-- What a sync may cost: operations of Lua for each job that ends or starts, and commands of Redis for the whole call. A
-- budget is what the shape costs today: whoever makes it cheaper lowers it in the same commit, and the test insists. goal:
-- the operations that are promised for later; nil where nothing is.
return {
  ['plain jobs'] = {operations = 88, goal = 120, commands = 28},
  ['key, priority, attempts, timeout'] = {operations = 288, commands = 36},
  ['attempts, timeout'] = {operations = 151, commands = 28},
  ['tried before'] = {operations = 459, commands = 42},
  ['one in eight fails'] = {operations = 284, commands = 52},
  ['kept for an hour'] = {operations = 635, commands = 44},
  ['member of a batch'] = {operations = 410, commands = 35},
  ['unique for a minute'] = {operations = 512, commands = 161},
  ['one of 64 dies'] = {operations = 142, commands = 53},
  ['unique key'] = {operations = 432, commands = 98},
  ['open rate'] = {operations = 539, commands = 38},
  ['lock by {key}, 100 keys'] = {operations = 697, commands = 170},
  ['fair, one tenant'] = {operations = 282, commands = 50},
  ['fair, 100 tenants'] = {operations = 1028, commands = 116},
  ['fair, a tenant a job'] = {operations = 973, commands = 119},
  ['free locks, starts alone'] = {operations = 495, goal = 500, commands = 89},
  ['free locks'] = {operations = 711, commands = 165},
  ['semaphore of 20'] = {operations = 680, goal = 700, commands = 42},
  ['one lock, handed over'] = {operations = 2978, goal = 3000, commands = 37},
}
