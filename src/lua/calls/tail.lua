-- later_v1_tail R FOR_MS -> [now_ms, was_on]
--
-- For `later tail`, which follows the events of jobs: for FOR_MS, at most a minute, each call in
-- this namespace publishes on R:events what it did. Repeat this call before the time is over.
-- was_on: 0 when nobody followed, so that what happened just before was not published. A variable
-- of the loaded library keeps this, not a key: other calls pay nothing while nobody follows; a
-- restart of Redis or a new library forgets it until the next call of this function. Cost: O(1).
--
-- A message is text, separated by LF: first `1 <now_ms> <left out>`, then for each event
--   <event> <id> <queue> <due ms> <start> <attempt> <code> <text>
-- `-` stands for what an event has not. Events: added replaced moved retried (a dead one by hand)
-- kept (a step, text: its name) started parked failed (due: when it is tried again) released
-- cancelling (it runs) done dead cancelled batch-sealed batch-ended schedule-fired (a job was
-- added) schedule-skipped schedule-missed. text: why, for failed, done, dead and cancelled; where
-- it comes from, for added (`topic NAME`, `broadcast to TARGET`, `adopted from KEY`); the name of
-- a batch or a schedule, and how many occurrences were skipped or missed. Events are hints: they
-- are published, not kept. A caller without a right to the channel publishes nothing. Beyond 5,000
-- events a second, or 64 KiB a call, events are only counted, as `left out`.

local clock, events = use('core/clock', 'core/events')
local FOR_MAX = 60000

register('later_v1_tail', {'allow-oom'}, function(R, args)
  local for_ms = whole(args[1])
  if not for_ms or for_ms < 1 or for_ms > FOR_MAX then
    fail('ELATER_ARGS', 'give FOR_MS, 1 to ' .. int(FOR_MAX))
  end
  local now_ms = clock.ms(clock.now_us())
  return {now_ms, events.follow(R, now_ms, now_ms + for_ms) and 1 or 0}
end)
