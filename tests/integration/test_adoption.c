/* Adoption of delay queues with real daemons: the two of the seeds, typed as their producers do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/fsck.h"
#include "fixture.h"

#define LONG_MS 60000

static const char DEMO[] = "  demo: { adopt: { zset: q-demo, unit: ms } }\n";

static void handler(const char *queue)
{
    test_handler(dir, queue, "echo \"$LATER_QUEUE $LATER_KEY $(cat)\" >> %s\n", out);
}

static void start_with(const char *queues)
{
    CLEANUP_FREE char *yaml = mem_printf("queues:\n%s", queues);

    handler("orders");
    handler("demo");
    start_a(yaml);
    assert_true(test_laterd_says(&a, "event=registered", LONG_MS));
}

#define redis_do(...) reply_free(test_redis_call(&redis, __VA_ARGS__, NULL))

static void zadd(const char *key, int64_t ms, const char *member)
{
    CLEANUP_FREE char *score = mem_printf("%lld", (long long)ms);

    redis_do("ZADD", key, score, member);
}

static bool both_empty(void *arg)
{
    (void)arg;
    return test_int(&redis, "EXISTS", "delay:queue") + test_int(&redis, "EXISTS", "q-demo") == 0;
}

/* Members that are due run once with their bodies; one that is removed never runs, one that is
 * moved runs then. */
static void test_both_queues(void **state)
{
    int64_t now = test_now_ms();

    (void)state;
    start_with("  orders: { adopt: { zset: delay:queue, unit: ms, bodies: delay:message } }\n"
               "  demo: { adopt: { zset: q-demo, unit: s } }\n");
    zadd("delay:queue", now + 1500, "order:1");
    redis_do("HSET", "delay:message", "order:1", "{\"order\": 1}");
    zadd("delay:queue", now + 1600, "order:2");
    redis_do("ZREM", "delay:queue", "order:2");
    zadd("delay:queue", now + 60000, "order:3");
    redis_do("HSET", "delay:message", "order:3", "three");
    zadd("delay:queue", now + 1, "order:3");
    zadd("q-demo", now / 1000 + 2, "codehole0");
    assert_true(test_until_lines(out, "orders order:1 {\"order\": 1}", 1, LONG_MS));
    assert_true(test_until_lines(out, "orders order:3 three", 1, LONG_MS));
    assert_true(test_until_lines(out, "demo  codehole0", 1, LONG_MS));
    assert_true(test_until(both_empty, NULL, LONG_MS));
    assert_int_equal(test_int(&redis, "EXISTS", "delay:message"), 0);
    /* Its field comes later. */
    zadd("delay:queue", now, "order:4");
    redis_do("HSET", "delay:message", "order:4", "four");
    assert_true(test_until_lines(out, "orders order:4 four", 1, LONG_MS));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_true(test_until_lines(out, NULL, 4, LONG_MS));
    assert_int_equal(test_fsck(&redis), 0);
}

static bool is_gone(void *arg)
{
    return test_int(&redis, "EXISTS", arg) == 0;
}

/* With keyspace events a member is taken at once, and without them within a second or so. Here it
 * is due long before that second is over, in three of thirty tries: another process may hold the
 * machine up in some. On a slow machine "at once" is what ten commands take. */
static void assert_taken_at_once(const char *key)
{
    for (int i = 0, fast = 0; fast < 3; i++) {
        CLEANUP_FREE char *member = mem_printf("m%d", i);
        int64_t asked = test_now_ms(), began, most_ms;

        assert_true(i < 30);
        (void)is_gone((void *)(uintptr_t)key);
        began = test_now_ms();
        most_ms = 100 + 10 * (began - asked);
        zadd(key, began, member);
        assert_true(test_until(is_gone, (void *)(uintptr_t)key, LONG_MS));
        fast += test_now_ms() - began < (most_ms < 600 ? most_ms : 600);
    }
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
}

static void test_events(void **state)
{
    (void)state;
    redis_do("CONFIG", "SET", "notify-keyspace-events", "Kz");
    start_with(DEMO);
    assert_taken_at_once("q-demo");
}

/* Without the right to the events of an adopted set those of raw members still come. */
static void test_events_without_the_right(void **state)
{
    (void)state;
    redis_do("CONFIG", "SET", "notify-keyspace-events", "Kz");
    redis_do("ACL", "SETUSER", "default", "resetchannels", "&later:*",
             "&__keyspace@0__:later:{default}:due:*");
    start_with(DEMO);
    assert_true(test_laterd_says(&a, "event=wake-denied", LONG_MS));
    assert_taken_at_once(ROOT ":due:orders");
    zadd("q-demo", 1, "x");
    assert_true(test_until_lines(out, "demo  x", 1, LONG_MS));
}

/* The loop of the other program runs beside: who removes a member has it. */
static void test_its_own_consumer_beside(void **state)
{
    static const char take[] =
        "local m = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', "
        "0, 1)[1] return m and redis.call('ZREM', KEYS[1], m) or 0";
    int64_t now = test_now_ms(), theirs = 0;
    struct reply *r;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        CLEANUP_FREE char *member = mem_printf("codehole%d", i);

        zadd("q-demo", now - 1, member);
    }
    start_with(DEMO);
    while (test_int(&redis, "EXISTS", "q-demo") > 0) {
        CLEANUP_FREE char *until = mem_printf("%lld", (long long)test_now_ms());

        r = test_redis_call(&redis, "EVAL", take, "1", "q-demo", until, NULL);

        theirs += reply_int(r);
        reply_free(r);
    }
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    r = test_redis_call(&redis, "HGET", ROOT ":stats", "adopted:demo", NULL);
    assert_int_equal(reply_int(r) + theirs, 1000);
    reply_free(r);
    assert_true(test_until_lines(out, NULL, (int)(1000 - theirs), LONG_MS));
}

static void test_wrong_type(void **state)
{
    (void)state;
    redis_do("RPUSH", "q-demo", "x");
    start_with("  orders: { adopt: { zset: delay:queue, unit: ms } }\n"
               "  demo: { adopt: { zset: q-demo, unit: ms } }\n");
    assert_true(test_laterd_says(&a, "event=bad-adoption queue=demo zset=\"q-demo\"", LONG_MS));
    zadd("delay:queue", 1, "fine");
    assert_true(test_until_lines(out, "orders  fine", 1, LONG_MS));
    redis_do("DEL", "q-demo");
    assert_true(
        test_laterd_says(&a, "event=adoption queue=demo zset=\"q-demo\" state=works", LONG_MS));
    /* A reload may end it. */
    test_laterd_reload(&a, redis.url, "queues: { demo: { concurrency: 2 } }\n");
    assert_true(test_laterd_says(&a, "event=reload result=done", LONG_MS));
    zadd("q-demo", 1, "stays");
    test_laterd_reload(&a, redis.url,
                       "queues: { demo: { adopt: { zset: delay:queue, unit: ms } } }\n");
    zadd("delay:queue", 1, "goes");
    assert_true(test_until_lines(out, "demo  goes", 1, LONG_MS));
    assert_int_equal(test_int(&redis, "ZCARD", "q-demo"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_both_queues, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_events, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_events_without_the_right, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_its_own_consumer_beside, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_wrong_type, fx_open, fx_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
