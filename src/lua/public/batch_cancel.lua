-- later_batch_cancel R NAME [AFTER] -> [cancelled, cancelling, AFTER]
--
-- Cancel the live members of a batch, as later_cancel does, a hundred a call: AFTER is that of the
-- last reply, empty or left out first; empty in a reply: there are no more. cancelled: how many
-- ended; cancelling: how many run and were flagged. The first call seals the batch, and from then
-- on nothing joins it, no children and no next jobs of chains.
-- Errors: ELATER_ARGS BATCH NOBATCH TYPE. Cost: O(log n) a member.

local PAGE = 100

-- -> the next live members behind this id
local function live_behind(key, after)
  local rank = L.rank_behind(key, after ~= '' and '0' or '', after)
  return redis.call('ZRANGE', key, rank, rank + PAGE - 1, 'WITHSCORES')
end

L.register('later_batch_cancel', {'allow-oom'}, function(R, args)
  local batch, after = L.need_batch(R, args[1]), args[2] or ''
  if after ~= '' and not L.is_id(after) then
    L.fail('ELATER_ARGS', 'give NAME [AFTER], the id of the last reply')
  end
  local book = L.book(R, L.now_us())
  db('ZCARD', R .. ':members:' .. batch.name) -- a key of a foreign type is met here
  local rows = live_behind(R .. ':members:' .. batch.name, after)
  if not batch.cancelled_ms then
    L.seal(R, batch, book.now_ms, 'cancelled_ms')
  end
  local cancelled, cancelling, last = 0, 0, ''
  for i = 1, #rows, 2 do
    local id, is_live = rows[i], rows[i + 1] == '0'
    local state, job, tries = L.locate(R, id)
    if is_live and job and L.is_live(state) then
      local answer = L.cancel(book, id, state, job, tries)
      cancelled = cancelled + (answer == 'cancelled' and 1 or 0)
      cancelling = cancelling + (answer == 'cancelling' and 1 or 0)
    end
    last = is_live and id or ''
  end
  L.hand_on(book)
  return {cancelled, cancelling, #rows == 2 * PAGE and last or ''}
end)
