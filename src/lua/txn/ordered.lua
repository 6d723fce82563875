-- A sorted set in the order that it will have once the transaction is written (txn.lua).
--
-- Redis' own set stays as it is while the function runs. So its first members are read once, piece
-- by piece, and kept in `front`. Members that the call has changed are skipped there; they are in
-- `order`. So taking the first one again and again costs O(log n) each time, and so does a count.
--
-- It keeps in an entry: front {names, scores, n, is_all, from}; from: no row before this one
-- counts; order {names, scores}: the changed members as they are now, sorted by score and name;
-- before {names, scores, n (of the list)}: the same as they are in Redis; counts: low -> high ->
-- how many Redis has there.

local ordered = module 'txn/ordered'
local job_sets, txn = use('core/job_sets', 'txn/txn')
local FRONT_MOST = 512      -- rows in one piece

-- ---- the members in Redis

-- -> name and score of the i-th member in Redis. wanted: if members must be read, read at least so
-- many.
local function front_row(e, i, wanted)
  local f = e.front
  while i > f.n and not f.is_all do
    local count = math.min(math.max(f.n, wanted, i - f.n), FRONT_MOST)
    local raw = txn.read_entry(e, 'ZRANGE', f.n, f.n + count - 1, 'WITHSCORES')
    for k = 1, #raw, 2 do
      f.n = f.n + 1
      f.names[f.n], f.scores[f.n] = raw[k], tonumber(raw[k + 1])
    end
    f.is_all = #raw < 2 * count
  end
  return f.names[i], f.scores[i]
end

-- -> function() -> name and score of the next member in Redis that the call has not changed, from
-- the first one on
local function from_front(e, wanted)
  local f = e.front
  if not f then
    f = {names = {}, scores = {}, n = 0, is_all = e.is_empty, from = 1}
    e.front = f
  end
  local i, is_first = f.from, true
  return function()
    local name, score = front_row(e, i, wanted)
    while name and e.is_listed[name] do
      i = i + 1
      name, score = front_row(e, i, wanted)
    end
    if is_first then
      f.from, is_first = i, false
    end
    i = i + 1
    return name, score
  end
end

-- The same for members with a score from low to high.
local function from_score(e, low, high, wanted)
  local at, rows, i = 0, {}, 1
  return function()
    while true do
      if rows[i] == nil then
        if e.is_empty or at > 0 and #rows < 2 * wanted then
          return nil
        end
        rows, i = txn.read_entry(e, 'ZRANGEBYSCORE', low, high, 'WITHSCORES', 'LIMIT', at, wanted),
                  1
        at = at + wanted
        if not rows[1] then
          return nil
        end
      end
      i = i + 2
      if not e.is_listed[rows[i - 2]] then
        return rows[i - 2], tonumber(rows[i - 1])
      end
    end
  end
end

-- ---- what the call has changed

-- -> where a member with this score stands in the order, or would stand. name: '' for before all of
-- this score, nil for behind them
local function place_of(order, name, score)
  local names, scores, from, to = order.names, order.scores, 1, #order.names + 1
  while from < to do
    local middle = math.floor((from + to) / 2)
    local its = scores[middle]
    if its < score or its == score and (not name or job_sets.is_before(names[middle], name)) then
      from = middle + 1
    else
      to = middle
    end
  end
  return from
end

local function insert(order, name, score)
  local i = place_of(order, name, score)
  table.insert(order.names, i, name)
  table.insert(order.scores, i, score)
end

-- The call gives a member another score, false for none: update the order, which there is. Members
-- that it had not changed before are not in it yet.
function ordered.rank(e, name, old, score)
  if old and e.is_listed[name] then
    local i = place_of(e.order, name, old)
    table.remove(e.order.names, i)
    table.remove(e.order.scores, i)
  end
  if score then
    insert(e.order, name, score)
  end
end

local function order_of(e)
  if not e.order then
    e.order = {names = {}, scores = {}}
    for _, name in ipairs(e.list) do
      if e.cells[name] then
        insert(e.order, name, e.cells[name])
      end
    end
  end
  return e.order
end

-- ---- both

-- A bound of a range of scores -> the number, whether it is excluded: '(5' -> 5, true
local function bound(text)
  if type(text) == 'number' then
    return text, false
  end
  local is_open = string.sub(text, 1, 1) == '('
  local n = is_open and string.sub(text, 2) or text
  return n == '-inf' and -math.huge or n == '+inf' and math.huge or tonumber(n), is_open
end

-- Where do the members with scores from low to high stand? -> the first, and behind the last
local function range_of(order, low, high)
  local from, is_over = bound(low)
  local to, is_under = bound(high)
  local first = place_of(order, not is_over and '' or nil, from)
  return first, math.max(place_of(order, is_under and '' or nil, to), first)
end

-- -> function() -> name and score of the next changed member with a score from low to high
local function from_order(e, low, high)
  local order = order_of(e)
  local first, last = range_of(order, low, high)
  local i = first - 1
  return function()
    i = i + 1
    if i < last then
      return order.names[i], order.scores[i]
    end
  end
end

-- -> {member, score, ...} of a changed sorted set with scores from low to high, without the first
-- `skip`; count: how many at most, nil for all
function ordered.rows(e, low, high, skip, count)
  local to, is_under = bound(high)
  local last, out, n = count and skip + count or math.huge, {}, 0
  local wanted = math.min(last, FRONT_MOST)
  local kept = low == '-inf' and from_front(e, wanted) or from_score(e, low, high, wanted)
  local changed = from_order(e, low, high)
  local a, a_score = kept()
  local b, b_score = changed()
  while n < last and (a or b) do
    local name, score
    if not b or a and (a_score < b_score or a_score == b_score and job_sets.is_before(a, b)) then
      name, score = a, a_score
      a, a_score = kept()
    else
      name, score = b, b_score
      b, b_score = changed()
    end
    if score > to or score == to and is_under then
      break -- Redis' own are read on behind the range, where they are read from the first one on
    end
    n = n + 1
    if n > skip then
      out[#out + 1], out[#out + 2] = name, score
    end
  end
  return out
end

-- The members in Redis from low to high, as ZRANGE BYLEX takes them, that the call has not changed.
-- -> function() -> the next one
local function from_name(e, low, high, wanted)
  local at, names, i = 0, {}, 0
  return function()
    while true do
      i = i + 1
      if i > #names then
        if e.is_empty or at > 0 and #names < wanted then
          return nil
        end
        names, i = txn.read_entry(e, 'ZRANGE', low, high, 'BYLEX', 'LIMIT', at, wanted), 1
        at = at + wanted
      end
      local name = names[i]
      if not name or not e.is_listed[name] then
        return name
      end
    end
  end
end

-- -> the first `count` names from low to high, as ZRANGE BYLEX takes them, of a changed sorted set
-- whose scores are all 0
function ordered.names(e, low, high, count)
  local order, out = order_of(e), {}
  local kept = from_name(e, low, high, math.min(count + #e.list, FRONT_MOST))
  local i, last = place_of(order, string.sub(low, 2), 0), place_of(order, string.sub(high, 2), 0)
  local a = kept()
  while #out < count and (a or i < last) do
    local b = i < last and order.names[i] or nil
    if not b or a and job_sets.is_before(a, b) then
      out[#out + 1], a = a, kept()
    else
      out[#out + 1], i = b, i + 1
    end
  end
  return out
end

-- What the changed members were in Redis, in order.
local function before_of(e)
  local before = e.before or {names = {}, scores = {}, n = 0}
  e.before = before
  for i = before.n + 1, #e.list do
    local score = e.was[e.list[i]]
    if score then
      insert(before, e.list[i], score)
    end
  end
  before.n = #e.list
  return before
end

-- -> how many members of a changed sorted set lie between two scores. Redis' own set is counted
-- once.
function ordered.count_rows(e, low, high)
  e.counts = e.counts or {}
  local from_low = e.counts[low] or {}
  local n = from_low[high] or e.is_empty and 0 or txn.read_entry(e, 'ZCOUNT', low, high)
  e.counts[low], from_low[high] = from_low, n
  local now_first, now_last = range_of(order_of(e), low, high)
  local was_first, was_last = range_of(before_of(e), low, high)
  return n + now_last - now_first - (was_last - was_first)
end
