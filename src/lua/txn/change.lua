-- How the transaction of a call is changed (txn.lua), and how a part of a call takes its changes
-- back.

local change = module 'txn/change'
local events, ordered, txn = use('core/events', 'txn/ordered', 'txn/txn')
local NONE, own_cells, entry_of = txn.NONE, txn.own_cells, txn.entry_of
local cell, learn_all, size_of = txn.cell, txn.learn_all, txn.size_of

local journal, n_journal, depth -- for change.try: {table, name, old value, is it a cell?}*

function change.begin_journal()
  journal, n_journal, depth = {}, 0, 0
end

local function remember(t, name)
  if depth > 0 then
    local n = n_journal
    journal[n + 1], journal[n + 2], journal[n + 3], journal[n + 4] = t, name, t[name], false
    n_journal = n + 4
  end
end

local function mark_unsaved(e)
  if not e.is_unsaved then
    e.is_unsaved = true
    txn.unsaved[#txn.unsaved + 1] = e
  end
end

-- Change a cell whose old value is known.
local function put(e, name, value)
  local cells = own_cells(e)
  local old = cells[name]
  if depth > 0 then
    local n = n_journal
    journal[n + 1], journal[n + 2], journal[n + 3], journal[n + 4] = e, name, old, true
    n_journal = n + 4
  end
  if not old and value then
    e.more = (e.more or 0) + 1
  elseif old and not value then
    e.more = (e.more or 0) - 1
  end
  cells[name] = value
  if e.order then
    ordered.rank(e, name, old, value)
  end
  if e.list == NONE then
    e.list, e.is_listed = {}, {}
  end
  if not e.is_listed[name] then
    e.is_listed[name] = true
    e.list[#e.list + 1] = name
    mark_unsaved(e)
  end
end

-- Set a field of a table that is not part of the transaction. If the change.try fails, it gets its
-- old value back.
function change.assign(t, name, value)
  remember(t, name)
  t[name], txn.is_used = value, true
end

-- Set a cell. -> 1 if it had no value, else 0
local function replace(e, name, value)
  local old = cell(e, name)
  if old ~= value then
    put(e, name, value)
  end
  return old and 0 or 1
end

local function remove(e, names)
  local n = 0
  if e.is_empty and not e.list[1] then
    return 0
  end
  learn_all(e, names)
  for i = 1, #names do
    if e.cells[names[i]] then
      put(e, names[i], false)
      n = n + 1
    end
  end
  return n
end

-- This name is not in Redis, as the caller knows: an id that was just made need not be looked for.
-- The first name of a key is read all the same, to meet a foreign type.
function change.is_new(key, kind, name)
  local e = entry_of(key, kind)
  if kind ~= 'string' and not e.size and not e.is_typed then
    cell(e, name)
    e.is_typed = true
  end
  if e.cells[name] == nil and not e.is_empty then
    own_cells(e)[name], e.was[name] = false, false
  end
end

-- Delete these fields of a hash unread, since they may be large. This cannot be undone, so it is
-- the last write, and a call may do it for one key only.
function change.erase(key, names)
  local e = entry_of(key, 'hash')
  if #names == 0 or size_of(e) == 0 then
    return
  end
  -- Drop what the transaction would write to these fields.
  for i = 1, #e.list > 0 and #names or 0 do
    if e.is_listed[names[i]] then
      put(e, names[i], e.was[names[i]])
    end
  end
  remember(e, 'erased')
  e.erased = {names = names, before = e.erased}
  txn.erasures[#txn.erasures + 1] = e
end

-- Delete a key unread. At first it only gets a moment to live, which can be undone. size: large: it
-- is freed in the background; nil for small
function change.drop_key(key, size)
  txn.is_used = true
  remember(txn.gone, key)
  txn.gone[key] = size or 'small'
end

-- Delete those of keys[from..to] that exist. Mostly none does, and one EXISTS tells; else the two
-- halves are asked, unless all do. -> how many
function change.drop_keys(keys, from, to)
  local n = from > to and 0 or redis.call('EXISTS', unpack(keys, from, to))
  if n == 0 or n == to - from + 1 then
    for i = from, n > 0 and to or 0 do
      change.drop_key(keys[i])
    end
    return n
  end
  local middle = math.floor((from + to) / 2)
  return change.drop_keys(keys, from, middle) + change.drop_keys(keys, middle + 1, to)
end

-- Write many values with one command, past the cells of the transaction. The caller knows their old
-- values, or that they are new, and nothing reads them in this call any more. args: what the
-- command has behind the key; undo(): undoes it.
function change.write_together(command, key, args, undo)
  txn.is_used = true
  local is_removal = not string.find(command, 'ADD$') and not string.find(command, 'SET$')
  txn.commands[#txn.commands + 1] = {command = command, key = key, args = args, undo = undo,
                                     is_removal = is_removal}
end

-- ---- parts that may fail alone

local function roll_back(since)
  for i = n_journal - 3, since + 1, -4 do
    local t, name, old = journal[i], journal[i + 1], journal[i + 2]
    if journal[i + 3] then
      local now = t.cells[name]
      t.more = (t.more or 0) + (old and 1 or 0) - (now and 1 or 0)
      t.cells[name] = old
      if t.order then
        ordered.rank(t, name, now, old)
      end
    else
      t[name] = old
    end
  end
  n_journal = since
end

local function shorten(list, n)
  for i = #list, n + 1, -1 do
    list[i] = nil
  end
end

-- Like pcall, but if fn raises an error, its changes leave the transaction.
function change.try(fn, ...)
  local since, n_events = n_journal, events.now and #events.now
  local n_hints, n_commands = #txn.hints, #txn.commands
  txn.is_used, depth = true, depth + 1
  local ok, a, b = pcall(fn, ...)
  depth = depth - 1
  if not ok then
    roll_back(since)
    shorten(txn.hints, n_hints)
    shorten(txn.commands, n_commands)
    shorten(events.now or {}, n_events or 0)
  elseif depth == 0 then
    n_journal = 0
  end
  return ok, a, b
end

-- -> what fn(...) returns; nil, and nothing is changed, if it met a key of a foreign type, which is
-- not ours. Other errors are raised.
function change.unless_foreign(fn, ...)
  local ok, reply = change.try(fn, ...)
  if not ok and not (type(reply) == 'table' and
                     string.find(reply.elater or '', '^ELATER_TYPE ')) then
    error(reply, 0)
  end
  return ok and reply or nil
end

-- -> whether fn(...) was done; false, and nothing is changed, if it met a key of a foreign type or
-- the caller lacks a right. For what must not keep a job from ending. Other errors are raised.
function change.unless_hindered(fn, ...)
  local ok, why = change.try(fn, ...)
  local text = not ok and type(why) == 'table' and why.elater or ''
  if not ok and not string.find(text, '^ELATER_TYPE ') and not string.find(text, '^NOPERM ') then
    error(why, 0)
  end
  return ok, ok and why or nil
end

change.remember, change.mark_unsaved, change.put = remember, mark_unsaved, put
change.replace, change.remove = replace, remove
