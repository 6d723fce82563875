-- Scenarios: bulks. A job that could not be changed is counted, so of each job either may be true.

local function free(...)
  local tags = {...}
  return function(m, _, why)
    for _, tag in ipairs(tags) do
      m.fate[tag] = why and m.fate[tag] or 'any'
    end
  end
end

nth.words('life', 'later_bulk retry mail dead', free('dead1', 'dead2'), true)
nth.words('life', 'later_bulk retry mail dead to sms by me', free('dead1', 'dead2'), true)
nth.words('life', 'later_bulk retry mail dead reason no* key k', nil, true)
nth.words('life', 'later_bulk purge mail dead', free('dead1', 'dead2'), true)
nth.words('life', 'later_bulk purge mail done', free('kept1'), true)
nth.words('life', 'later_bulk retry mail dead rate 5/s')
nth.words('life', 'later_bulk_show')
nth.words('plain', 'later_bulk cancel mail due key k', free('opt'), true)
nth.words('plain', 'later_bulk reschedule mail due at +5m', free('expired'), true)
nth.words('uniq', 'later_bulk retry uniq dead', free('udead'), true)
nth.words('gates', 'later_bulk reschedule gate parked at +5m', nil, true)
nth.words('gates', 'later_bulk cancel gate parked', free('door1', 'door2', 'both', 'granted', 'enough', 'res', 'log2'), true)

-- One that is active: the first `changed` of its jobs may be changed by the call.
local function active(name, line, call, after)
  nth.scenario{name = 'bulk: ' .. name, stage = 'life', prepare = function(m)
    local words = {}
    for word in string.gmatch(line, '%S+') do
      words[#words + 1] = word
    end
    m.name.bulk = nth.must(unpack(words))[1]
    nth.pass(2)
  end, call = function(m)
    local out = {}
    for i, word in ipairs(call) do
      out[i] = string.sub(word, 1, 1) == '$' and m.name[string.sub(word, 2)] or word
    end
    return out
  end, after = after}
end

active('goes on', 'later_bulk retry mail dead rate 1000/s', {'later_v1_bulk', '$W1'}, free('dead1', 'dead2'))
active('purges', 'later_bulk purge mail dead rate 1000/s', {'later_v1_bulk', '$W1'}, free('dead1', 'dead2'))
active('is aborted', 'later_bulk retry mail dead rate 1/1h', {'later_bulk_abort', '$bulk', 'me'})
active('is shown', 'later_bulk retry mail dead rate 1/1h', {'later_bulk_show', '$bulk'})
active('tidy', 'later_bulk retry mail dead rate 1/1h', {'later_v1_tidy', '$W1', '0'})
nth.scenario{name = 'bulk: is forgotten', stage = 'life', prepare = function()
  nth.must('later_bulk', 'retry', 'sms', 'dead')
  local ids = redis.call('ZRANGE', nth.key('bulks'), 0, -1)
  redis.call('ZADD', nth.key('bulks'), 1, ids[1])
  redis.call('HSET', nth.key('bulk:' .. ids[1]), 'ended_ms', '1')
end, call = function(m)
  return {'later_v1_tidy', m.name.W1, '0'}
end}
nth.scenario{name = 'bulk: the oldest makes room', stage = 'life', prepare = function()
  for _ = 1, 100 do
    nth.must('later_bulk', 'retry', 'sms', 'dead')
  end
end, call = function()
  return {'later_bulk', 'retry', 'sms', 'dead'}
end}
