/* Topics with real daemons: what files subscribe, what handlers are told, and what `later` says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/fsck.h"
#include "fixture.h"

#define LONG_MS 60000

static const char TELL[] = "echo \"$LATER_QUEUE $LATER_TOPIC $LATER_KEY $(cat)\" >> ";

static void handler(const char *queue)
{
    CLEANUP_FREE char *script = mem_printf("%s%s\n", TELL, out);

    test_handler(dir, queue, "%s", script);
}

static bool has_topics(void *arg)
{
    struct reply *r = test_fcall(&redis, "later_topics", NULL);
    size_t n = reply_count(r) - 1;

    reply_free(r);
    return n == *(const size_t *)arg;
}

static bool until_topics(size_t n)
{
    return test_until(has_topics, &n, LONG_MS);
}

#define publish(...) reply_free(test_fcall(&redis, "later_publish", __VA_ARGS__, NULL))

static void test_copies_run(void **state)
{
    (void)state;
    handler("mail");
    handler("audit");
    start_a("queues:\n  mail: { topics: [order.paid] }\n  audit: { topics: [\"order.*\", "
            "order.paid] }\n");
    assert_true(until_topics(3));
    publish("order.paid", "key", "k1", "hello");
    assert_true(test_until_lines(out, "mail order.paid k1 hello", 1, LONG_MS));
    assert_true(test_until_lines(out, "audit order.paid k1 hello", 1, LONG_MS));
    publish("order.sent", "key", "k2", "x");
    assert_true(test_until_lines(out, "audit order.sent k2 x", 1, LONG_MS));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_true(test_until_lines(out, NULL, 3, LONG_MS)); /* audit has one copy of each */
    /* Nobody serves them for a time. */
    assert_int_equal(test_laterd_stop(&a), 0);
    for (int i = 0; i < 10; i++)
        publish("order.paid", "x");
    test_laterd_start(&a);
    assert_true(test_until_lines(out, NULL, 23, LONG_MS));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(test_fsck(&redis), 0);
}

static void test_the_file_that_was_read_last_holds(void **state)
{
    (void)state;
    handler("mail");
    start_a("queues: { mail: { topics: [a, b] } }\n");
    assert_true(until_topics(2));
    test_laterd_reload(&a, redis.url, "queues: { mail: { topics: [b, c, d] } }\n");
    assert_true(until_topics(3));
    reply_free(test_fcall(&redis, "later_subscribe", "e", "mail", NULL));
    test_laterd_reload(&a, redis.url, "queues: { mail: { concurrency: 2 } }\n"); /* says nothing */
    assert_true(test_laterd_says(&a, "event=reload result=done", LONG_MS));
    assert_true(until_topics(4));
    test_laterd_reload(&a, redis.url, "queues: { mail: { topics: [] } }\n");
    assert_true(until_topics(1)); /* what a call has said stays */
    test_laterd_reload(&a, redis.url, "queues: { mail: { topics: [a] } }\n");
    assert_true(until_topics(2));
    reply_free(test_redis_call(&redis, "FLUSHALL", NULL));
    assert_true(until_topics(1)); /* told again */
    assert_int_equal(test_fsck(&redis), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_copies_run, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_the_file_that_was_read_last_holds, fx_open, fx_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
