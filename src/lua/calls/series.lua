-- later_v1_series R -> [name, ...]: the queues that have series, sorted; `~rest` stands for all
-- that have none of their own
-- later_v1_series R QUEUE KIND FIRST N -> [now_ms, text * N]: rows of a queue (series/series.lua).
-- KIND: m, one text for each of N hours from hour FIRST on; h, for each of N days; total, one text.
-- N: 1 to 24. A text has the rows as they are in Redis; it is empty where nothing was counted, and
-- for a key of a foreign type, so that one does not hide all others. Of a text that somebody made
-- longer only the rows are read.
-- What the library has counted and not yet written is missing. no-writes. Cost: O(N).
-- Errors: ELATER_ARGS QUEUE; TYPE without QUEUE.

local series_calls = module 'calls/series'
local clock, series = use('core/clock', 'series/series')
local BYTES = {m = 8640, h = 3456, total = 304}

function series_calls.check(name)
  return name == series.SERIES_REST and name or check_queue(name)
end

local function names(R)
  need_kinds(R, 'series', 'hash')
  local out = {}
  local all = redis.call('HGETALL', R .. ':series')
  for i = 1, #all, 2 do
    local name = all[i]
    if #out < 1024 and (name == series.SERIES_REST or #name <= 64 and
                        string.match(name, '^%w[%w_-]*$')) then
      out[#out + 1] = name
    end
  end
  table.sort(out)
  return out
end

register('later_v1_series', {'no-writes'}, function(R, args)
  if #args == 0 then
    return names(R)
  end
  local queue, kind, first, n = series_calls.check(args[1]), args[2], whole(args[3] or ''),
                                whole(args[4] or '')
  if not BYTES[kind] or not first or not n or n < 1 or n > 24 then
    fail('ELATER_ARGS', 'give QUEUE, m or h or total, FIRST and N (1 to 24)')
  end
  local out, prefix = {clock.ms(clock.now_us())}, kind .. ':' .. queue
  for i = 0, n - 1 do
    local key = kind == 'total' and prefix or prefix .. ':' .. int(first + i)
    local text = redis.pcall('GETRANGE', R .. ':' .. key, 0, BYTES[kind] - 1)
    out[i + 2] = type(text) == 'string' and text or ''
  end
  return out
end)
