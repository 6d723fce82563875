-- Which reasons of failures a text means: as `later ls --reason` has it.
--
-- A text means a reason that is equal, one that is equal once each number in it is written as *,
-- and, as a shell pattern, what it fits: * any bytes, ? one byte, \ takes the next byte as it is.

local reasons = module 'bulk/reason'

reasons.PATTERN_MAX = 256

-- -> the reason with * for each number. Exit statuses and signals stay.
local function fold(reason)
  return (string.gsub(reason, '()(%d+)', function(at, digits)
    local is_kept = string.sub(reason, math.max(at - 12, 1), at - 1) == 'exit status ' or
                    string.sub(reason, math.max(at - 7, 1), at - 1) == 'signal '
    return is_kept and digits or '*'
  end))
end

-- A shell pattern -> what stands between its stars, as patterns of Lua that fit one length only
local function pieces_of(pattern)
  local pieces, at = {''}, 1
  while at <= #pattern do
    local c = string.sub(pattern, at, at)
    if c == '*' then
      pieces[#pieces + 1] = ''
    else
      if c == '\\' and at < #pattern then
        at = at + 1
        c = string.sub(pattern, at, at)
      elseif c == '?' then
        c = nil
      end
      pieces[#pieces] = pieces[#pieces] .. (c and string.gsub(c, '%W', '%%%0') or '.')
    end
    at = at + 1
  end
  return pieces
end

-- Does the whole text fit? Each piece is taken where it stands first, so nothing is tried twice.
local function fits(pieces, text)
  local last = #pieces
  if last == 1 then
    return string.find(text, '^' .. pieces[1] .. '$') ~= nil
  end
  local _, at = string.find(text, '^' .. pieces[1])
  for i = 2, last - 1 do
    if not at then
      return false
    end
    _, at = string.find(text, pieces[i], at + 1)
  end
  if not at then
    return false
  end
  local from = string.find(text, pieces[last] .. '$', at + 1)
  return from ~= nil
end

-- -> is_meant(reason), nil for none
function reasons.matcher(pattern)
  local pieces = pieces_of(pattern)
  return function(reason)
    return reason ~= nil and (reason == pattern or fold(reason) == pattern or
                              fits(pieces, reason))
  end
end
