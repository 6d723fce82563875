# Drives clients/ruby/later.rb for test_thin_clients.c: drive.rb WHAT [ARGUMENT...]
require "#{ENV.fetch("CLIENTS")}/ruby/later"

KINDS = { Later::Temporary => "temporary", Later::NotAllowed => "not allowed", Later::Mistake => "mistake",
          Later::Error => "other" }.freeze
REDIS = Redis.new(port: ENV.fetch("REDIS_PORT").to_i, username: ENV.fetch("REDIS_USER", "manager"),
                  password: ENV.fetch("REDISCLI_AUTH"), timeout: ENV.fetch("TIMEOUT", "30").to_f)
LATER = Later.new(REDIS)

def told
  yield
rescue Later::Error => e
  "#{e.code} #{KINDS.fetch(e.class)}"
end

def show(outcome)
  return puts(outcome || "none") unless outcome.is_a?(Later::Outcome)

  puts "#{outcome.state} #{outcome.code} #{outcome.start} #{outcome.text}"
  puts outcome.output.unpack1("H*")
end

def bulk
  payloads = (0...1000).map { |k| ([k % 256, k / 256] * 2).pack("C*") }
  LATER.add_many("mail", payloads, in: "1h").each { |job| puts "#{job.id} #{job.status}" }
rescue Redis::BaseConnectionError
  puts "lost"
end

def add(times, delay = "1h")
  times.to_i.times do
    puts(told do
      job = LATER.add("mail", "x", in: delay)
      "#{job.id} #{job.status}"
    end)
  end
end

def wait(job, seconds)
  show(told { LATER.wait(job, seconds.to_f) })
end

def look
  options = { in: "1h", keep: "1h", token: "t", then: %w[first second] }
  job = LATER.add("mail", "grüße", **options)
  puts "#{job.id} #{job.status} #{job.due_ms}", LATER.add("mail", "grüße", **options).status
  show(LATER.result(job.id))
  show(LATER.wait(job.id, 0.3))
  puts LATER.cancel(job.id), told { LATER.cancel(job.id) }
  show(LATER.wait(job.id, 30))
  puts told { LATER.wait("j0000000000a", 30) }
end

send(*ARGV)
