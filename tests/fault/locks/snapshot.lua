local out, keys = {}, redis.call('KEYS', '*')
table.sort(keys)
for _, key in ipairs(keys) do
  local kind, row = redis.call('TYPE', key).ok, {}
  if kind == 'hash' then
    local all = redis.call('HGETALL', key)
    for i = 1, #all, 2 do
      local beats = all[i] == 'beat_ms' or key:match(':workers$') and all[i + 1] ~= 'dead'
      row[#row + 1] = all[i] .. '=' .. (beats and '*' or all[i + 1])
    end
    table.sort(row)
  elseif kind == 'zset' then
    row = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'set' then
    row = redis.call('SMEMBERS', key)
    table.sort(row)
  else
    row = {redis.call('GET', key)}
  end
  out[#out + 1] = key .. ' ' .. table.concat(row, ' ')
end
return out
