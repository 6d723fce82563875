-- Which workers could start a job of a queue now: what later_v1_health judges and later_explain
-- tells, and whether a queue is granted a permit.
--
-- A worker says which queues it serves, how many places it has and how many jobs of which queue may
-- run at once (R:worker:<epoch>); how many jobs it holds is counted here. `room` is what it said
-- itself, up to ten seconds ago: it may run a suspect alone, be stopping, or short of processes.

local rooms = module 'claim/rooms'
local workers = use 'calls/register'
local RUNNING_READ = 1000
local READ_AT_ONCE, READ_BYTES = 25, 4194304
local TAKER_READ = 64       -- jobs that are read to know whether a grant would be taken

rooms.SILENT_MS = 12000         -- without a beat for so long a worker is not counted on

local FIELDS = {'host', 'pid', 'beat_ms', 'places', 'unsent', 'refused', 'skew_ms', 'quiet',
                'queues', 'limits', 'room'}

-- What is known of one of workers.peers: {epoch, counter, is_live, held, places, row}; row: FIELDS
local function known(R, peer)
  local held = whole(peer.epoch) and db('ZCOUNT', R .. ':running', peer.epoch, peer.epoch) or 0
  return {epoch = peer.epoch, held = held, is_live = peer.counter ~= 'dead', row = peer.row,
          places = whole(peer.row[4] or ''), counter = peer.counter}
end

-- All workers, as known has them.
function rooms.worker_rows(R)
  local rows = {}
  for i, peer in ipairs(workers.peers(R, FIELDS)) do
    rows[i] = known(R, peer)
  end
  return rows
end

-- How many jobs of each queue the workers from epoch `first` to `last` hold; nil where there are
-- more than `most`, or their records have more than `most_bytes`. -> counts, how many jobs
local function running_counts(R, first, last, most, most_bytes)
  local ids = db('ZRANGEBYSCORE', R .. ':running', first, last, 'LIMIT', 0, most + 1)
  if #ids > most then
    return nil, 0
  end
  local counts, bytes = {}, 0
  for from = 1, #ids, READ_AT_ONCE do
    if bytes > most_bytes then
      return nil, from - 1
    end
    local some = redis.call('HMGET', R .. ':jobs',
                            unpack(ids, from, math.min(from + READ_AT_ONCE - 1, #ids)))
    for i = 1, #some do
      -- A corrupt record has its queue, too, and parsing takes longer than reading.
      local queue = string.match(some[i] or '', '^[-+](%w[%w_-]*)[ \n]')
      bytes = bytes + #(some[i] or '')
      if queue then
        counts[queue] = (counts[queue] or 0) + 1
      end
    end
  end
  return counts, #ids
end

-- -> how many jobs of each queue run (no entry: none); nil when there are too many to read. bytes:
-- of their records, where it is not the usual limit
function rooms.running_by_queue(R, bytes)
  return (running_counts(R, '-inf', '+inf', RUNNING_READ, bytes or READ_BYTES))
end

-- -> count(epoch, queue) -> how many jobs of a queue a worker holds, nil where there are too many
-- to read: it reads `most` in all. They are read when they are first asked for: of most queues as
-- many may run at once as there are places.
function rooms.job_counter(R, most)
  local counts, left = {}, most or RUNNING_READ
  return function(epoch, queue)
    if counts[epoch] == nil then
      local of_worker, n = running_counts(R, epoch, epoch, left, READ_BYTES)
      counts[epoch], left = of_worker or false, left - n
    end
    return counts[epoch] and (counts[epoch][queue] or 0) or nil
  end
end

-- How many jobs of a queue may run at once in a worker, nil when the queue has no such number of
-- its own. limits: "mail=4,web=2".
local function max_at_once(worker, queue)
  for name, n in string.gmatch(worker.row[10] or '', '([^,=]+)=(%d+)') do
    if name == queue then
      return whole(n)
    end
  end
  return nil
end

-- What a worker said of a queue that it cannot run: nil for nothing. defects: "mail REASON" LF ...
-- It is read for people only, so it is none of FIELDS.
function rooms.defect_in(R, worker, queue)
  local defects = redis.call('HGET', R .. ':worker:' .. worker.epoch, 'defects') or ''
  for name, why in string.gmatch(defects, '([^ \n]+) ([^\n]+)') do
    if name == queue then
      return one_line(string.sub(why, 1, 300))
    end
  end
  return nil
end

-- -> since when a running job runs, and how long it may run, both ms; nil: its worker has not
-- said, or it may run for ever. epoch: of its worker, as text
function rooms.run_times(R, epoch, id)
  local told = redis.call('HMGET', R .. ':worker:' .. epoch, 'runs', 'timeouts')
  local pattern = id .. ' (%d+),'
  return whole(string.match(told[1] or '', pattern)), whole(string.match(told[2] or '', pattern))
end

-- Is the queue one of these that a worker serves? queues: as in R:worker:<epoch>, nil for none
function rooms.serves(queues, queue)
  return string.find(',' .. (queues or '') .. ',', ',' .. queue .. ',', 1, true) ~= nil
end

-- Could it start a job of this queue now? -> elsewhere (it does not serve the queue), dead (it was
-- given up), quiet, full (all its places), mute (it said that it has none), limit (as many of this
-- queue as may run at once; too many to count is no room either), new (it has not said yet) or
-- room; with limit: how many may and how many it holds
function rooms.room_in(worker, queue, count)
  if not rooms.serves(worker.row[9], queue) then
    return 'elsewhere'
  elseif not worker.is_live then
    return 'dead'
  elseif worker.row[8] == '1' then
    return 'quiet'
  elseif worker.places and worker.held >= worker.places then
    return 'full'
  elseif not worker.places or (worker.row[11] and (whole(worker.row[11]) or 0) == 0) then
    return 'mute'
  end
  local most = max_at_once(worker, queue)
  local held = most and count(worker.epoch, queue)
  if most and (not held or held >= most) then
    return 'limit', most, held
  end
  return worker.row[11] and 'room' or 'new'
end

-- Would a worker take a job of this queue, if it were granted one? One that nobody takes keeps a
-- permit from all others for a second. Not the worker of this call, when it has just said that it
-- has no room. Asked once in a call for each queue.
function rooms.has_taker(ledger, queue)
  if ledger.takers == nil then
    ledger.takers, ledger.peers, ledger.count = {}, workers.peers(ledger.R, FIELDS),
                                                rooms.job_counter(ledger.R, TAKER_READ)
  end
  if ledger.takers[queue] == nil then
    ledger.takers[queue] = false
    for _, peer in ipairs(ledger.peers) do
      local beat_ms = whole(peer.row[3])
      local is_silent = beat_ms and ledger.now_ms - beat_ms >= rooms.SILENT_MS
      local is_full = peer.epoch == ledger.epoch and ledger.room[queue] == 0
      if not is_full and not is_silent and rooms.serves(peer.row[9], queue) then
        local word = rooms.room_in(known(ledger.R, peer), queue, ledger.count)
        if word == 'room' or word == 'new' then
          ledger.takers[queue] = true
          break
        end
      end
    end
  end
  return ledger.takers[queue]
end
