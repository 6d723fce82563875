-- later_v1_workers R
--   -> [now_ms, [epoch, counter, held, host, pid, version, started, queues, quiet, modes, defects,
--      places, reload]...]
--
-- The workers of the namespace. counter is `dead` for one that is being reaped. modes:
-- "mail=stream,..." of the queues that it does not run as exec; defects: "mail REASON" LF ... of
-- those that it cannot run; reload: why its last reload was refused, or what of it needs a restart.
-- These are as of up to ten seconds ago. no-writes.

local workers, clock = use('calls/register', 'core/clock')

register('later_v1_workers', {'no-writes'}, function(R)
  local reply = {clock.ms(clock.now_us())}
  for _, peer in ipairs(workers.peers(R, {'host', 'pid', 'version', 'started', 'queues', 'quiet',
                                          'modes', 'defects', 'places', 'reload'})) do
    -- A field that is no epoch is shown as well; it holds no jobs.
    local held = whole(peer.epoch) and redis.call('ZCOUNT', R .. ':running', peer.epoch,
                                                  peer.epoch) or 0
    reply[#reply + 1] = {peer.epoch, peer.counter, held,
                         peer.row[1] or '', peer.row[2] or '', peer.row[3] or '', peer.row[4] or '',
                         peer.row[5] or '', peer.row[6] or '0', peer.row[7] or '',
                         peer.row[8] or '', peer.row[9] or '', peer.row[10] or ''}
  end
  return reply
end)
