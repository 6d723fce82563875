-- The commands of the toy Redis for sorted sets. A sorted set is {scores: member -> number, order: its members by score,
-- then by name}.
local keys = require 'toy.keys'

local commands = {}

local function new()
  return {scores = {}, order = {}}
end

local EMPTY = new()

local function read(key)
  return keys.read(key, 'zset') or EMPTY
end

-- ---- scores

local function number(text)
  if text == '+inf' or text == 'inf' then
    return math.huge
  end
  return text == '-inf' and -math.huge or tonumber(text)
end

-- As Redis prints a score: with as few digits as read back to the same number.
local function text_of(score)
  if score == math.huge or score == -math.huge then
    return score > 0 and 'inf' or '-inf'
  elseif score % 1 == 0 and math.abs(score) < 1e17 then
    return string.format('%.0f', score)
  end
  for digits = 15, 17 do
    local text = string.format('%.' .. digits .. 'g', score)
    if tonumber(text) == score then
      return text
    end
  end
end

-- -> function that tells whether a score is between these two; '(' in front of one leaves it out
local function between(from, to)
  local from_out, from_text = string.match(from, '^(%(?)(.*)$')
  local to_out, to_text = string.match(to, '^(%(?)(.*)$')
  local least, most = number(from_text), number(to_text)
  return function(score)
    return (score > least or from_out == '' and score == least) and
           (score < most or to_out == '' and score == most)
  end
end

-- ---- members

-- -> the first place whose member does not come before this one
local function place_of(set, score, member)
  local low, high = 1, #set.order + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local other = set.order[middle]
    local its = set.scores[other]
    if its < score or its == score and other < member then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local function remove(set, member)
  local score = set.scores[member]
  if not score then
    return false
  end
  table.remove(set.order, place_of(set, score, member))
  set.scores[member] = nil
  return true
end

local function put(set, score, member)
  remove(set, member)
  table.insert(set.order, place_of(set, score, member), member)
  set.scores[member] = score
end

local function remove_all(key, members)
  local set, n = read(key), 0
  for _, member in ipairs(members) do
    n = n + (remove(set, member) and 1 or 0)
  end
  if #set.order == 0 then
    keys.remove(key)
  end
  return n
end

-- -> the members, each followed by its score if with_scores
local function listed(set, members, with_scores)
  local out = {}
  for _, member in ipairs(members) do
    out[#out + 1] = member
    out[#out + 1] = with_scores and text_of(set.scores[member]) or nil
  end
  return out
end

local function members_between(set, from, to)
  local out, is_between = {}, between(from, to)
  for _, member in ipairs(set.order) do
    if is_between(set.scores[member]) then
      out[#out + 1] = member
    end
  end
  return out
end

-- ---- commands

function commands.ZCARD(key)
  return #read(key).order
end

function commands.ZSCORE(key, member)
  local score = read(key).scores[member]
  return score and text_of(score) or false
end

function commands.ZMSCORE(key, ...)
  local out = {}
  for i, member in ipairs({...}) do
    out[i] = commands.ZSCORE(key, member)
  end
  return out
end

function commands.ZRANK(key, member)
  local set = read(key)
  local score = set.scores[member]
  return score and place_of(set, score, member) - 1 or false
end

function commands.ZCOUNT(key, from, to)
  return #members_between(read(key), from, to)
end

-- Members from `[low` to `(high`, which is not of them; all scores are the same.
local function by_name(set, low, high, count)
  local out = {}
  assert(string.sub(low, 1, 1) == '[' and string.sub(high, 1, 1) == '(', low .. ' ' .. high)
  for _, member in ipairs(set.order) do
    if member >= string.sub(low, 2) and member < string.sub(high, 2) and #out < count then
      out[#out + 1] = member
    end
  end
  return out
end

-- ZRANGE key first last [WITHSCORES], ZRANGE key low high BYLEX LIMIT offset count
function commands.ZRANGE(key, first, last, option, ...)
  local set = read(key)
  if option == 'BYLEX' then
    local word, offset, count = ...
    assert(word == 'LIMIT')
    return {unpack(by_name(set, first, last, offset + count), offset + 1)}
  end
  local n, from, to = #set.order, tonumber(first), tonumber(last)
  if not from or not to or option and option ~= 'WITHSCORES' then
    error('ZRANGE ' .. first .. ' ' .. last .. ' ' .. tostring(option))
  end
  from, to = from < 0 and from + n or from, to < 0 and to + n or to
  return listed(set, {unpack(set.order, math.max(from, 0) + 1, math.min(to + 1, n))}, option)
end

-- ZRANGEBYSCORE key from to [WITHSCORES] [LIMIT offset count]
function commands.ZRANGEBYSCORE(key, from, to, ...)
  local set, options = read(key), {...}
  local with_scores = options[1] == 'WITHSCORES'
  local at = with_scores and 2 or 1
  local members = members_between(set, from, to)
  if options[at] == 'LIMIT' then
    local offset, count = tonumber(options[at + 1]), tonumber(options[at + 2])
    members = {unpack(members, offset + 1, math.min(offset + count, #members))}
  elseif options[at] then
    error('ZRANGEBYSCORE ' .. options[at])
  end
  return listed(set, members, with_scores)
end

-- ZADD key [LT] [CH] {score member}*
function commands.ZADD(key, ...)
  local given, options, at = {...}, {}, 1
  while given[at] == 'LT' or given[at] == 'CH' do
    options[given[at]], at = true, at + 1
  end
  if not number(given[at]) then
    error('ZADD ' .. given[at])
  end
  local set, added, changed = keys.change(key, 'zset', new()), 0, 0
  for i = at, #given, 2 do
    local score, was = number(given[i]), set.scores[given[i + 1]]
    if not was or was ~= score and not (options.LT and score > was) then
      put(set, score, given[i + 1])
      added, changed = added + (was and 0 or 1), changed + 1
    end
  end
  return options.CH and changed or added
end

function commands.ZREM(key, ...)
  return remove_all(key, {...})
end

function commands.ZREMRANGEBYSCORE(key, from, to)
  return remove_all(key, members_between(read(key), from, to))
end

return commands
