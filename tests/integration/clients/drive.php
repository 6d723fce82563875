<?php
// Drives clients/php/Later.php for test_thin_clients.c: drive.php WHAT [ARGUMENT...]
require getenv('CLIENTS') . '/php/Later.php';

use Laterd\{Later, LaterError, Mistake, NotAllowed, Temporary};

const KINDS = [Temporary::class => 'temporary', NotAllowed::class => 'not allowed', Mistake::class => 'mistake',
    LaterError::class => 'other'];

$later = new Later(function () {
    $redis = new Redis();
    $redis->connect('127.0.0.1', (int) getenv('REDIS_PORT'), 30, null, 0, (float) (getenv('TIMEOUT') ?: 30));
    $redis->auth([getenv('REDIS_USER') ?: 'manager', getenv('REDISCLI_AUTH')]);
    return $redis;
});

function told(callable $call)
{
    try {
        return $call();
    } catch (LaterError $e) {
        return $e->getCode() . ' ' . KINDS[$e::class];
    }
}

function show($outcome)
{
    if (!is_array($outcome)) {
        echo $outcome ?? 'none', "\n";
        return;
    }
    echo "{$outcome['state']} {$outcome['code']} {$outcome['start']} {$outcome['text']}\n";
    echo bin2hex($outcome['output']), "\n";
}

$drive = [
    'bulk' => function () use ($later) {
        $payloads = array_map(fn ($k) => pack('C4', $k % 256, $k >> 8, $k % 256, $k >> 8), range(0, 999));
        try {
            foreach ($later->addMany('mail', $payloads, ['in' => '1h']) as $job) {
                echo "{$job['id']} {$job['status']}\n";
            }
        } catch (RedisException) {
            echo "lost\n";
        }
    },
    'add' => function ($times, $delay = '1h') use ($later) {
        for ($i = 0; $i < $times; $i++) {
            echo told(function () use ($later, $delay) {
                $job = $later->add('mail', 'x', ['in' => $delay]);
                return "{$job['id']} {$job['status']}";
            }), "\n";
        }
    },
    'wait' => fn ($job, $seconds) => show(told(fn () => $later->wait($job, (float) $seconds))),
    'look' => function () use ($later) {
        $options = ['in' => '1h', 'keep' => '1h', 'token' => 't', 'then' => ['first', 'second']];
        $job = $later->add('mail', 'grüße', $options);
        echo "{$job['id']} {$job['status']} {$job['due_ms']}\n";
        echo $later->add('mail', 'grüße', $options)['status'], "\n";
        show($later->result($job['id']));
        show($later->wait($job['id'], 0.3));
        echo $later->cancel($job['id']), "\n", told(fn () => $later->cancel($job['id'])), "\n";
        show($later->wait($job['id'], 30));
        echo told(fn () => $later->wait('j0000000000a', 30)), "\n";
    },
];
$drive[$argv[1]](...array_slice($argv, 2));
