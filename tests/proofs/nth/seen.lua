-- Scenarios: Bloom filters. Each call is a read, or one write, or a turn of generations.

nth.words('seen', 'later_seen keys a')
nth.words('seen', 'later_seen keys b')
nth.words('seen', 'later_seen new a capacity 1000')
nth.words('seen', 'later_seen full c')
nth.words('seen', 'later_seen_del full')
nth.words('seen', 'later_seen_list')
nth.scenario{name = 'seen: a generation is over', stage = 'seen', is_atomic = true, prepare = function()
  nth.now_us = nth.now_us + 3700000000
end, call = function() return {'later_seen', 'keys', 'a'} end}
nth.scenario{name = 'seen: a new filter in the place of one that has forgotten all', stage = 'seen', is_atomic = true,
  prepare = function()
  local text = nth.redis('HGET', 'seen', 'keys')
  for i = 1, 998 do
    nth.redis('HSET', 'seen', 'x' .. i, i > 1 and text or '1000 0.1 1 8192 4 5 0 0')
  end
end, call = function() return {'later_seen', 'new', 'a', 'capacity', '1000'} end}
