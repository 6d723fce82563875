# Sidekiq. `ruby sidekiq.rb` adds the jobs (push_bulk, a thousand at a time); `sidekiq -r
# ./sidekiq.rb` runs them with ten threads. MODE, N, SPAN and REDIS_PORT come from the environment.
require 'json'
require 'sidekiq'

MODE = ENV.fetch('MODE')
N = ENV.fetch('N').to_i
SPAN = ENV.fetch('SPAN', '10').to_f
PER_CALL = 1000
# Its scheduler waits ten to fifteen seconds before its first check, so measure after that.
LEAD = { 'late' => 18.0, 'herd' => 18.0, 'mem' => 3600.0 }.freeze
SERVER = { url: "redis://127.0.0.1:#{ENV.fetch('REDIS_PORT')}/0" }.freeze

Sidekiq.configure_server { |c| c.redis = SERVER }
Sidekiq.configure_client { |c| c.redis = SERVER }

SEEN = { first: nil, ended: 0, late: [] }
LOCK = Mutex.new

class Noop
  include Sidekiq::Worker
  sidekiq_options retry: 3

  def perform(due, _pad)
    at = Time.now.to_f
    system('/bin/true') if MODE == 'exec'
    LOCK.synchronize do
      SEEN[:first] ||= at
      SEEN[:late] << ((at * 1000) - due).round(3) if due > 0
      SEEN[:ended] += 1
      report if SEEN[:ended] == N
    end
  end

  def report
    facts = { n: N, seconds: Time.now.to_f - SEEN[:first], late_ms: SEEN[:late] }
    File.write(ENV.fetch('ANSWER'), JSON.generate(facts))
    Process.kill('TERM', Process.pid)
  end
end

def due_at(from, index)
  case MODE
  when 'late' then from + (rand * SPAN)
  when 'herd' then from
  when 'mem' then from + (index / 1000.0)
  end
end

def push(indexes, from)
  at = indexes.map { |i| due_at(from, i) }
  bulk = { 'class' => Noop, 'args' => at.map { |t| [t ? (t * 1000).floor : 0, 'x' * 100] } }
  bulk['at'] = at.map { |t| (t * 1000).floor / 1000.0 } if at[0]
  Sidekiq::Client.push_bulk(bulk)
end

def used_memory
  Sidekiq.redis { |r| r.info['used_memory'].to_i }
end

if $PROGRAM_NAME == __FILE__
  before = used_memory
  from = Time.now.to_f
  due_from = from + LEAD.fetch(MODE, 0.0)
  (0...N).each_slice(PER_CALL) { |indexes| push(indexes, due_from) }
  seconds = Time.now.to_f - from
  puts JSON.generate(n: N, seconds: seconds, bytes_per_job: (used_memory - before).to_f / N)
end
