-- What a holder lets go when it ends.
--
-- R:holds  HASH  job or @EPOCH -> the gates that it holds and its unique key, a line each: so whoever
-- ends it knows them without its record.

-- One line of what a holder has: into `drops`, gate -> holders; or the unique key is free.
local function read_line(book, holder, line, is_end, drops, order)
  local kind = string.match(line, '^(%a+):')
  if kind == 'uniq' then
    local until_ms, unique = string.match(line, '^uniq:(%d+):(.*)$')
    if unique and is_end then
      L.unless_foreign(L.free_unique, book.R, unique, holder, L.whole(until_ms))
    end
  elseif L.read_gate(line) then
    local holders = drops[line]
    if holders then
      holders[#holders + 1] = holder
    else
      drops[line], order[#order + 1] = {holder}, line
    end
  end
end

local function read_holds(book, holders, texts, is_end)
  local gone, gone_texts, drops, order = {}, {}, {}, {}
  for i, holder in ipairs(holders) do
    local text = texts[i]
    if text then
      gone[#gone + 1], gone_texts[#gone + 1] = holder, text
      if string.find(text, '\n', 1, true) then
        for line in string.gmatch(text, '[^\n]+') do
          read_line(book, holder, line, is_end, drops, order)
        end
      else
        read_line(book, holder, text, is_end, drops, order)
      end
    end
  end
  return gone, gone_texts, drops, order
end

local function drop_at(book, id, holders)
  L.drop_all(book, L.gate(book, id), holders)
end

-- One gate with a key of a foreign type does not keep the others.
local function drop_all(book, drops, order)
  for _, id in ipairs(order) do
    L.unless_foreign(drop_at, book, id, drops[id])
  end
end

-- These holders (jobs, workers) end or wait again: their places are free, and where `is_end`, so
-- are the unique keys of jobs.
function L.let_go(book, holders, is_end)
  local key = book.R .. ':holds'
  if #holders == 0 or L.is_known_empty(key) then
    return
  end
  local texts = db('HMGET', key, unpack(holders))
  local gone, _, drops, order = read_holds(book, holders, texts, is_end)
  if #gone > 0 then
    db('HDEL', key, unpack(gone))
  end
  drop_all(book, drops, order)
end

-- The same for many jobs that end, of which the call has changed nothing.
function L.let_go_at_once(book, ids)
  local key = book.R .. ':holds'
  if L.is_known_empty(key) then
    return
  end
  local texts = L.ask(key, 'hash', 'HMGET', unpack(ids))
  local gone, gone_texts, drops, order = read_holds(book, ids, texts, true)
  if #gone == 0 then
    return
  end
  L.write_at_once('HDEL', key, gone, function()
    for i, id in ipairs(gone) do
      redis.pcall('HSET', key, id, gone_texts[i])
    end
  end)
  L.meet(book, order)
  drop_all(book, drops, order)
end
