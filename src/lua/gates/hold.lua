-- What a holder lets go when it ends.
--
-- R:holds  HASH  job or @EPOCH -> the gates that it holds and its unique key, a line each: so whoever
-- ends it knows them without its record.

-- One line of what a holder has: into drops, gate -> holders, or into uniques, {name, id, for_until}*.
local function read_line(holder, line, drops, order, uniques)
  if string.find(line, '^uniq:') then
    local until_ms, name = string.match(line, '^uniq:(%d+):(.*)$')
    uniques[#uniques + 1] = name and {name, holder, L.whole(until_ms)} or nil
  elseif L.read_gate(line) then
    local holders = drops[line]
    if holders then
      holders[#holders + 1] = holder
    else
      drops[line], order[#order + 1] = {holder}, line
    end
  end
end

-- -> those that hold something, what they hold; its gates: gate -> holders, in which order; unique keys
local function read_holds(holders, texts)
  local gone, gone_texts, drops, order, uniques = {}, {}, {}, {}, {}
  for i, holder in ipairs(holders) do
    local text = texts[i]
    if text then
      gone[#gone + 1], gone_texts[#gone + 1] = holder, text
      if string.find(text, '\n', 1, true) then
        for line in string.gmatch(text, '[^\n]+') do
          read_line(holder, line, drops, order, uniques)
        end
      else
        read_line(holder, text, drops, order, uniques)
      end
    end
  end
  return gone, gone_texts, drops, order, uniques
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
  local gone, _, drops, order, uniques = read_holds(holders, texts)
  for _, unique in ipairs(is_end and uniques or {}) do
    L.unless_foreign(L.free_unique, book.R, unpack(unique))
  end
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
  local gone, gone_texts, drops, order, uniques = read_holds(ids, texts)
  if #gone == 0 then
    return
  end
  L.write_at_once('HDEL', key, gone, function()
    for i, id in ipairs(gone) do
      redis.pcall('HSET', key, id, gone_texts[i])
    end
  end)
  L.free_uniques(book.R, uniques)
  L.meet(book, order)
  drop_all(book, drops, order)
end
