<?php
/*
 * A thin client of laterd over phpredis: copy this file, or install the folder.
 *
 *     $later = new Laterd\Later(function () use ($password) {
 *         $redis = new Redis();
 *         $redis->connect('127.0.0.1', 6379, 5, null, 0, 5);
 *         $redis->auth(['manager', $password]);
 *         return $redis;
 *     });
 *     $job = $later->add('mail', 'hello', ['in' => '5m', 'key' => 'user:42']);
 *     print_r($later->wait($job['id'], 600));
 *
 * It takes a function that connects, since a wait and a repeat need connections of their own. Options and
 * values are those of doc/protocol.md; the value of one that is given more than once (`then`) is an
 * array. Payloads and outputs are strings of bytes. An error reply throws a LaterError; a lost connection,
 * or no answer within the read timeout, a RedisException.
 */

namespace Laterd;

use Redis;
use RedisException;

/** An error reply. getCode(): its first word, as 'ELATER_NOJOB', or 'ERR'. */
class LaterError extends \Exception
{
    private const TEMPORARY = ['LOADING', 'BUSY', 'OOM', 'READONLY', 'MASTERDOWN', 'ELATER_FULL', 'TRYAGAIN', 'CLUSTERDOWN'];
    private const NOT_ALLOWED = ['NOPERM', 'WRONGPASS', 'NOAUTH'];

    public static function of(string $reply): self
    {
        $code = preg_match('/^[A-Z][A-Z0-9_]+(?= )/', $reply, $found) ? $found[0] : 'ERR';
        if (in_array($code, self::TEMPORARY, true)) {
            $error = new Temporary($reply);
        } elseif (in_array($code, self::NOT_ALLOWED, true) || str_contains($reply, 'Function not found')) {
            $error = new NotAllowed($reply);
        } else {
            $error = str_starts_with($code, 'ELATER_') ? new Mistake($reply) : new LaterError($reply);
        }
        $error->code = $code;
        return $error;
    }
}

/** Nothing was done: try again after a while. */
class Temporary extends LaterError {}
/** An operator has to cure it: rights, a password, `later setup`. */
class NotAllowed extends LaterError {}
/** It would fail again: the text says why. Also ELATER_NOJOB, where the job has ended. */
class Mistake extends LaterError {}

class Later
{
    private const ASK_AGAIN_SECONDS = 30; // a wait makes sure now and then that the job and the connection are there

    private Redis $redis;
    private string $root;

    /** @param callable(): Redis $connect */
    public function __construct(private $connect, string $namespace = 'default')
    {
        $this->redis = $connect();
        $this->root = "later:{{$namespace}}";
    }

    /** -> [id, status, due_ms], by their names. If the answer is lost it is asked for once more, with the same token. */
    public function add(string $queue, string $payload, array $options = []): array
    {
        $args = [$queue, ...self::pairs($options + ['token' => bin2hex(random_bytes(16))]), $payload];
        try {
            return self::job($this->call('add', $args));
        } catch (RedisException) {
            $this->redis = ($this->connect)();
            return self::job($this->call('add', $args));
        }
    }

    /** -> a list of them: all or none, at most 1,000 and 16 MiB. It has no token, so an answer that is lost is
     * not asked for again: the jobs may have been added. */
    public function addMany(string $queue, array $payloads, array $options = []): array
    {
        return array_map(self::job(...), $this->call('add_many', [$queue, ...self::pairs($options), '--', ...$payloads]));
    }

    /** -> [state, code, when_ms, start, text, output], by their names, once the job has ended; null if it has
     * not after so many seconds. The id is one that add gave. ELATER_NOJOB: it has ended, and its outcome was not
     * kept (option keep). */
    public function wait(string $id, float $seconds): ?array
    {
        $until = self::now() + $seconds;
        $channel = "{$this->root}:ended:$id";
        do {
            $listener = ($this->connect)();
            self::command($listener, 'SUBSCRIBE', $channel);
            $outcome = self::outcome($this->call('v1_await', [$id]));
            if (in_array($outcome['state'], ['done', 'dead', 'cancelled'], true)) {
                return $outcome;
            }
            $left = min($until - self::now(), self::ASK_AGAIN_SECONDS);
            $message = $left > 0 ? self::listen($listener, $channel, $left) : null;
        } while ($message === null && $left > 0);
        return $message === null ? null : self::outcomeOfMessage($message);
    }

    /** -> the outcome as it is now. state: also waiting, parked, running or failed. */
    public function result(string $id): array
    {
        return self::outcome($this->call('result', [$id]));
    }

    /** -> 'cancelled', 'cancelling' (it runs) or 'freed' */
    public function cancel(string $id): string
    {
        return $this->call('cancel', [$id]);
    }

    private function call(string $function, array $args): mixed
    {
        return self::command($this->redis, 'FCALL', "later_$function", 1, $this->root, ...$args);
    }

    /** phpredis answers an error reply with false or an exception, and has its text aside. */
    private static function command(Redis $redis, ...$words): mixed
    {
        $redis->clearLastError();
        try {
            $reply = $redis->rawCommand(...$words);
        } catch (RedisException $e) {
            if ($redis->getLastError() === null) {
                throw $e;
            }
        }
        if ($redis->getLastError() !== null) {
            throw LaterError::of($redis->getLastError());
        }
        return $reply;
    }

    /** phpredis reads messages only after a SUBSCRIBE of its own. One that comes before its answer is lost: then
     * null comes at once, and who called asks again. */
    private static function listen(Redis $listener, string $channel, float $seconds): ?string
    {
        $message = null;
        $until = self::now() + $seconds;
        $listener->setOption(Redis::OPT_READ_TIMEOUT, $seconds);
        try {
            $listener->subscribe([$channel], function ($listener, $channel, $data) use (&$message) {
                $message = $data;
                $listener->close(); // which ends subscribe, as the end of the time does
            });
        } catch (RedisException $e) {
            if ($message === null && self::now() < $until - 0.1) {
                throw $e;
            }
        }
        return $message;
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }

    private static function pairs(array $options): array
    {
        $words = [];
        foreach ($options as $name => $value) {
            foreach ((array) $value as $one) {
                array_push($words, $name, (string) $one);
            }
        }
        return $words;
    }

    private static function job(array $reply): array
    {
        return ['id' => $reply[0], 'status' => $reply[1], 'due_ms' => (int) $reply[2]];
    }

    private static function outcome(array $reply): array
    {
        [$state, $code, $when, $start, $text, $output] = $reply;
        return ['state' => $state, 'code' => (int) $code, 'when_ms' => (int) $when, 'start' => (int) $start,
            'text' => $text, 'output' => $output];
    }

    private static function outcomeOfMessage(string $data): array
    {
        [$head, $output] = explode("\n", $data, 2);
        return self::outcome([...explode(' ', $head, 5), $output]);
    }
}
