-- later_schedules R [NAME] -> [row...], or of NAME [name, value, ...]
-- later_schedules R cursor CURSOR -> [CURSOR, row...]
--
-- Without arguments all of them, up to 1000 whose definitions have 4 MiB together; more are refused
-- with ELATER_FULL and come in pages. CURSOR: 0 first, then that of the last reply; 0 in a reply:
-- there are no more. As with HSCAN, one that is there all the time comes at least once.
-- row: [name, value, ...]. Names: schedule revision when tz queue overlap catch_up
-- catch_up_window_ms splay_ms from_ms until_ms options origin (file or call) paused (as in
-- R:paused) last_ms zones job runs skipped missed next_ms payload_bytes, and of one NAME also
-- payload. Names that do not apply are left out. next_ms is left out until a worker has planned it.
-- Errors: ELATER_ARGS SCHEDULE NOSCHEDULE FULL TYPE. no-writes. Cost: O(schedules), of NAME and of
-- a page O(1).

local schedule_pages = module 'public/schedules'
local clock, instant, schedules, txn = use(
  'core/clock', 'core/instant', 'schedule/schedules', 'txn/txn')
local PAGE = 50             -- 0.8 MiB, if all have the longest payload
local ALL_MAX, ALL_BYTES = 1000, 4194304
local SHOWN = {{'revision', 'revision'}, {'when', 'when'}, {'tz', 'tz'}, {'queue', 'queue'},
               {'overlap', 'overlap'}, {'catch_up', 'catch_up'},
               {'catch_up_window_ms', 'catch_up_window'}, {'splay_ms', 'splay'},
               {'from_ms', 'from'}, {'until_ms', 'until'}, {'options', 'options'}}
local OF_CURSOR = {{'last_ms', 'last'}, {'zones', 'zones'}, {'job', 'job'}, {'runs', 'runs'},
                   {'skipped', 'skipped'}, {'missed', 'missed'}}

-- What is known of a schedule. now_ms: a pause that is over by then is left out.
function schedule_pages.schedule_row(R, s, now_ms)
  local row, c = {}, schedules.cursor(R, s.name)
  local pause = db('HGET', R .. ':schedule:paused', s.name)
  put_named(row, 'schedule', s.name)
  for _, field in ipairs(SHOWN) do
    put_named(row, field[1], s[field[2]])
  end
  put_named(row, 'origin', db('ZSCORE', R .. ':schedule:file', s.name) and 'file' or 'call')
  put_named(row, 'paused', instant.paused_until(pause, now_ms) and pause)
  for _, field in ipairs(OF_CURSOR) do
    put_named(row, field[1], c[field[2]])
  end
  put_named(row, 'next_ms', c.revision == s.revision and c.next)
  put_named(row, 'payload_bytes', #s.payload)
  return row
end

-- Append the rows of a page. -> the cursor of the next one, 0 for none; how many bytes it has
function schedule_pages.schedule_page(R, cursor, rows, now_ms)
  local page, bytes = txn.ask(R .. ':schedules', 'hash', 'HSCAN', cursor, 'COUNT', PAGE), 0
  for i = 1, #page[2], 2 do
    bytes = bytes + #page[2][i + 1]
    local s = schedules.parse(page[2][i], page[2][i + 1])
    rows[#rows + 1] = s and schedule_pages.schedule_row(R, s, now_ms)
  end
  return page[1], bytes
end

-- All of them, unless they are too many for a call.
local function all_rows(R, now_ms)
  local rows, cursor, bytes = {}, '0', 0
  local n = txn.ask(R .. ':schedules', 'hash', 'HLEN')
  while n <= ALL_MAX and bytes <= ALL_BYTES do
    local next_cursor, more = schedule_pages.schedule_page(R, cursor, rows, now_ms)
    cursor, bytes = next_cursor, bytes + more
    if cursor == '0' then
      return rows
    end
  end
  fail('ELATER_FULL', 'the ' .. int(n) .. ' schedules are too many for one call: read them' ..
       ' in pages, from `cursor 0` on')
end

register('later_schedules', {'no-writes'}, function(R, args)
  local now_ms = clock.ms(clock.now_us())
  if args[2] then
    if args[1] ~= 'cursor' or not whole(args[2]) or args[3] then
      fail('ELATER_ARGS', 'give nothing, NAME, or cursor CURSOR')
    end
    local page = {''}
    page[1] = schedule_pages.schedule_page(R, args[2], page, now_ms)
    return page
  elseif args[1] then
    local s = schedules.need(R, args[1])
    local row = schedule_pages.schedule_row(R, s, now_ms)
    put_named(row, 'payload', s.payload)
    return row
  end
  return all_rows(R, now_ms)
end)
