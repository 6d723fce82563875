# frozen_string_literal: true

# A thin client of laterd over redis-rb: copy this file, or install the folder.
#
#   redis = Redis.new(username: "manager", password: password, timeout: 5)
#   later = Later.new(redis)
#   job = later.add("mail", "hello", in: "5m", key: "user:42")
#   p later.wait(job.id, 600)
#
# Options and values are those of doc/protocol.md; the value of one that is given more than once
# (`then`) is an array. Payloads and outputs are bytes. An error reply raises a Later::Error. Where
# the connection is lost or no answer comes in time, the exceptions of redis-rb come through.

require "redis"
require "securerandom"

# The jobs of a namespace.
class Later
  ASK_AGAIN_SECONDS = 30 # a wait makes sure now and then that the job and the connection are there
  ENDED = %w[done dead cancelled].freeze
  TEMPORARY = %w[LOADING BUSY OOM READONLY MASTERDOWN ELATER_FULL TRYAGAIN CLUSTERDOWN].freeze
  NOT_ALLOWED = %w[NOPERM WRONGPASS NOAUTH].freeze

  Job = Struct.new(:id, :status, :due_ms)
  Outcome = Struct.new(:state, :code, :when_ms, :start, :text, :output)

  # An error reply. code: its first word, as "ELATER_NOJOB".
  class Error < StandardError
    attr_reader :code

    def initialize(message)
      super
      @code = message[/\A[A-Z][A-Z0-9_]+(?= )/] || "ERR"
    end

    # -> the error of an error reply, by its code
    def self.of(message)
      code = new(message).code
      return Temporary.new(message) if TEMPORARY.include?(code)
      return NotAllowed.new(message) if NOT_ALLOWED.include?(code) || message.include?("Function not found")

      (code.start_with?("ELATER_") ? Mistake : Error).new(message)
    end
  end

  # Nothing was done: try again after a while.
  class Temporary < Error; end
  # An operator has to cure it: rights, a password, `later setup`.
  class NotAllowed < Error; end
  # It would fail again: the text says why. Also ELATER_NOJOB, where the job has ended.
  class Mistake < Error; end

  def initialize(redis, namespace = "default")
    @redis = redis
    @root = "later:{#{namespace}}"
  end

  # -> a Job. If the answer is lost it is asked for once more, with the same token.
  def add(queue, payload, **options)
    args = [queue, *pairs({ token: SecureRandom.hex, **options }), payload]
    begin
      job(call_once("add", args))
    rescue Redis::BaseConnectionError
      job(call_once("add", args))
    end
  end

  # -> an array of Jobs: all or none, at most 1,000 and 16 MiB. It has no token, so an answer that is
  # lost is not asked for again: the jobs may have been added.
  def add_many(queue, payloads, **options)
    call_once("add_many", [queue, *pairs(options), "--", *payloads]).map { |reply| job(reply) }
  end

  # -> the Outcome once the job has ended, nil if it has not after so many seconds. The id is one that
  # add gave. ELATER_NOJOB: it has ended, and its outcome was not kept (option keep).
  def wait(id, seconds)
    over = now + seconds
    while (left = over - now).positive?
      outcome = listen(id, [left, ASK_AGAIN_SECONDS].min)
      return outcome if outcome
    end
    outcome_if_ended(id)
  end

  # -> the Outcome as it is now. state: also waiting, parked, running or failed.
  def result(id)
    outcome(*call("result", [id]))
  end

  # -> "cancelled", "cancelling" (it runs) or "freed"
  def cancel(id)
    call("cancel", [id])
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def call(function, args)
    @redis.call("FCALL", "later_#{function}", 1, @root, *args)
  rescue Redis::CommandError => e
    raise Error.of(e.message)
  end

  # redis-rb would send it again by itself.
  def call_once(function, args)
    @redis.without_reconnect { call(function, args) }
  end

  def pairs(options)
    options.flat_map { |name, value| Array(value).flat_map { |one| [name.to_s, one.to_s] } }
  end

  def job(reply)
    Job.new(reply[0], reply[1], reply[2].to_i)
  end

  def outcome(state, code, when_ms, start, text, output)
    Outcome.new(state, code.to_i, when_ms.to_i, start.to_i, text, output.b)
  end

  def outcome_of_message(data)
    head, output = data.b.split("\n", 2)
    state, code, when_ms, start, text = head.force_encoding("UTF-8").scrub.split(" ", 5)
    outcome(state, code, when_ms, start, text.to_s, output)
  end

  def outcome_if_ended(id)
    found = outcome(*call("v1_await", [id]))
    found if ENDED.include?(found.state)
  end

  # Subscribe, then ask, then hear of the end. -> nil after so many seconds without it
  def listen(id, seconds)
    other = @redis.dup
    told = catch(:told) do
      hear(other, "#{@root}:ended:#{id}", seconds) { outcome_if_ended(id) }
    rescue Redis::TimeoutError
      nil
    rescue Redis::CommandError => e
      raise Error.of(e.message)
    end
    told.is_a?(Exception) ? raise(told) : told
  ensure
    other.close
  end

  # By throw, not by unsubscribe, which takes a right of its own.
  def hear(other, channel, seconds)
    other.without_reconnect do
      other.subscribe_with_timeout(seconds, channel) do |on|
        on.subscribe do
          ended = yield and throw :told, ended
        rescue Redis::TimeoutError => e # this is not the silence that ends the subscription
          throw :told, e
        end
        on.message { |_, data| throw :told, outcome_of_message(data) }
      end
    end
  end
end
