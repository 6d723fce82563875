-- later_schedules R [NAME] -> [row...], or of NAME [name, value, ...]
--
-- row: [name, value, ...]. Names: schedule revision when tz queue overlap catch_up
-- catch_up_window_ms splay_ms from_ms until_ms options origin (file or call) paused (as in
-- R:paused) last_ms zones job runs skipped missed next_ms payload_bytes, and of one NAME also
-- payload. Names that do not apply are left out. next_ms is left out until a worker has planned it.
-- Errors: ELATER_SCHEDULE NOSCHEDULE TYPE. no-writes. Cost: O(schedules), of NAME O(1).

local PAGE = 100
local SHOWN = {{'revision', 'revision'}, {'when', 'when'}, {'tz', 'tz'}, {'queue', 'queue'},
               {'overlap', 'overlap'}, {'catch_up', 'catch_up'},
               {'catch_up_window_ms', 'catch_up_window'}, {'splay_ms', 'splay'},
               {'from_ms', 'from'}, {'until_ms', 'until'}, {'options', 'options'}}
local OF_CURSOR = {{'last_ms', 'last'}, {'zones', 'zones'}, {'job', 'job'}, {'runs', 'runs'},
                   {'skipped', 'skipped'}, {'missed', 'missed'}}

-- What is known of a schedule. now_ms: a pause that is over by then is left out.
function L.schedule_row(R, s, now_ms)
  local row, c = {}, L.schedule_cursor(R, s.name)
  local pause = db('HGET', R .. ':schedule:paused', s.name)
  L.put_named(row, 'schedule', s.name)
  for _, field in ipairs(SHOWN) do
    L.put_named(row, field[1], s[field[2]])
  end
  L.put_named(row, 'origin', db('ZSCORE', R .. ':schedule:file', s.name) and 'file' or 'call')
  L.put_named(row, 'paused', L.paused_until(pause, now_ms) and pause)
  for _, field in ipairs(OF_CURSOR) do
    L.put_named(row, field[1], c[field[2]])
  end
  L.put_named(row, 'next_ms', c.revision == s.revision and c.next)
  L.put_named(row, 'payload_bytes', #s.payload)
  return row
end

-- Append the rows of a page. -> the cursor of the next one, 0 for none
function L.schedule_page(R, cursor, rows, now_ms)
  local page = L.ask(R .. ':schedules', 'hash', 'HSCAN', cursor, 'COUNT', PAGE)
  for i = 1, #page[2], 2 do
    local s = L.parse_schedule(page[2][i], page[2][i + 1])
    rows[#rows + 1] = s and L.schedule_row(R, s, now_ms)
  end
  return page[1]
end

L.register('later_schedules', {'no-writes'}, function(R, args)
  local now_ms = L.ms(L.now_us())
  if args[1] then
    local s = L.need_schedule(R, args[1])
    local row = L.schedule_row(R, s, now_ms)
    L.put_named(row, 'payload', s.payload)
    return row
  end
  local rows, cursor = {}, '0'
  repeat
    cursor = L.schedule_page(R, cursor, rows, now_ms)
  until cursor == '0'
  return rows
end)
