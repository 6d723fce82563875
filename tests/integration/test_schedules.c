/*
 * Schedules, with the real daemons: each occurrence once under kills, how late it starts, what a
 * handler is told, what is caught up, and what one midnight of many costs.
 * LATER_TEST_SCHEDULE_S: how long daemons are killed, 600 for the whole proof.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "../support/env.h"
#include "../support/fsck.h"
#include "../support/occurrences.h"
#include "fixture.h"
#include "redis/client.h"

#define LONG_MS 60000
#define DAEMONS 5

/* A function of the library, whose answer does not matter. */
#define call(...) reply_free(test_fcall(&redis, __VA_ARGS__, NULL))

static int seconds(void)
{
    const char *n = getenv("LATER_TEST_SCHEDULE_S");

    return n != NULL ? atoi(n) : 12;
}

/* The integer value of a field of a schedule. */
static int64_t value(const char *schedule, const char *name)
{
    struct reply *r = test_fcall(&redis, "later_schedules", schedule, NULL);
    int64_t n = reply_int(reply_named(r, name));

    reply_free(r);
    return n;
}

static bool has_runs(void *arg)
{
    return value("s", "runs") + value("s", "missed") >= *(const int64_t *)arg;
}

/* How often Redis has run a function. */
static int64_t function_calls(void)
{
    struct reply *r = test_redis_call(&redis, "INFO", "commandstats", NULL);
    const char *at = strstr(reply_str(r), "cmdstat_fcall:calls=");
    int64_t n = at != NULL ? atoll(at + strlen("cmdstat_fcall:calls=")) : 0;

    reply_free(r);
    return n;
}

/* ---- each once */

static void test_each_once_under_kills(void **state)
{
    static struct test_laterd d[DAEMONS];
    char name[8];
    int kills = 0;

    (void)state;
    test_occurrences_handler(dir, "s", out);
    for (int i = 0; i < DAEMONS; i++) {
        (void)snprintf(name, sizeof(name), "d%d", i);
        start(&d[i], name, "concurrency: 2\n");
    }
    call("later_schedule_set", "s", "every", "1s", "x");
    for (struct mono end = mono_add_ms(mono_now(), 1000 * seconds()); mono_before(mono_now(), end);
         kills++) {
        struct test_laterd *victim = &d[kills % DAEMONS];

        (void)usleep(seconds() > 60 ? 5000000 : 1300000);
        test_laterd_kill(victim, SIGKILL);
        (void)test_laterd_wait(victim, LONG_MS);
        test_laterd_start(victim);
    }
    call("later_schedule_del", "s");
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    printf("figure: %zu seconds, %d daemons, %d kills: each once\n",
           test_occurrences_each_once(out, 1000, true), DAEMONS, kills);
    for (int i = 0; i < DAEMONS; i++)
        assert_int_equal(test_laterd_stop(&d[i]), 0);
    assert_int_equal(test_fsck(&redis), 0);
}

/* ---- what handlers are told */

static void test_told(void **state)
{
    size_t n;
    int64_t want = 40;

    (void)state;
    test_occurrences_handler(dir, "q", out);
    start_a("queues: { q: { concurrency: 8 } }\n");
    call("later_schedule_set", "s", "cron", "* * * * * *", "tz", "Europe/Berlin", "queue", "q",
         "the payload");
    for (int i = 0; i < 9; i++) {
        char name[8];

        (void)snprintf(name, sizeof(name), "s%d", i);
        call("later_schedule_set", name, "every", "1s", "queue", "q", "x");
    }
    assert_true(test_until_lines(out, NULL, (int)want, LONG_MS));
    assert_true(test_until_lines(out, " s the payload", 2, LONG_MS));
    {
        CLEANUP_FREE struct test_occurrence *runs = test_occurrences_read(out, &n);

        /* None starts early; bench/ measures how late. */
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(runs[i].at_ms % 1000, 0);
            assert_true(runs[i].started_ns / 1000000 >= runs[i].at_ms);
        }
    }
}

/* ---- catching up */

/* No daemon runs: the cursor says that `minutes` minutes were missed. */
static void go_back(int minutes)
{
    CLEANUP_FREE char *cursor = mem_printf(
        "revision=%lld next=%lld zones=0 runs=0 skipped=0", (long long)value("s", "revision"),
        (long long)(test_now_ms() / 60000 - minutes + 1) * 60000);

    reply_free(test_redis_call(&redis, "HSET", ROOT ":cursors", "s", cursor, NULL));
}

static void catch_up(const char *mode, int minutes, int64_t runs, int64_t missed)
{
    int64_t sum = runs + missed;

    call("later_schedule_set", "s", "every", "1m", "queue", "nobody", "catch_up", mode, "x");
    go_back(minutes);
    start_a("queues: { q: {} }\n");
    assert_true(test_until(has_runs, &sum, LONG_MS));
    assert_int_equal(test_laterd_stop(&a), 0);
    /* A minute may have passed meanwhile. */
    if (value("s", "runs") - runs > 1 || value("s", "runs") < runs ||
        value("s", "missed") - missed > 1 || value("s", "missed") < missed)
        fail_msg("%s: %lld runs, %lld missed", mode, (long long)value("s", "runs"),
                 (long long)value("s", "missed"));
    call("later_schedule_del", "s");
}

static void test_catching_up(void **state)
{
    (void)state;
    test_handler(dir, "q", "true\n");
    test_redis_load(&redis);
    catch_up("last", 45, 1, 44);
    catch_up("none", 45, 1, 44);
    catch_up("all", 45, 45, 0);
    catch_up("last", 1500, 1, 1499);
}

/* Without a call of a function. */
static bool has_run_once(void *arg)
{
    struct reply *r = test_redis_call(&redis, "HGET", ROOT ":cursors", "s", NULL);
    bool has = strstr(reply_str(r), " runs=0 ") == NULL;

    (void)arg;
    reply_free(r);
    return has;
}

/* Redis' clock was set back, and the schedule planned anew: the last occurrence is to come. Nothing
 * is added up to it, nobody asks again and again, and what follows it is added. */
static void test_last_is_to_come(void **state)
{
    int64_t now_ms = test_now_ms() / 1000 * 1000, calls;
    CLEANUP_FREE char *cursor = NULL;

    (void)state;
    test_handler(dir, "q", "true\n");
    test_redis_load(&redis);
    call("later_schedule_set", "s", "every", "1s", "queue", "nobody", "catch_up", "all", "x");
    cursor = mem_printf("revision=%lld last=%lld next=%lld zones=0 runs=0 skipped=0 missed=0",
                        (long long)value("s", "revision"), (long long)now_ms + 4000,
                        (long long)now_ms - 60000);
    reply_free(test_redis_call(&redis, "HSET", ROOT ":cursors", "s", cursor, NULL));
    reply_free(test_redis_call(&redis, "CONFIG", "RESETSTAT", NULL));
    start_a("queues: { q: {} }\n");
    assert_true(test_until(has_run_once, NULL, LONG_MS));
    calls = function_calls();
    assert_true(value("s", "last_ms") > now_ms + 4000);
    assert_int_equal(value("s", "missed"), 0);
    if (calls > 100)
        fail_msg("%lld calls of functions in four seconds", (long long)calls);
    assert_int_equal(test_laterd_stop(&a), 0);
}

/* ---- configuration */

#define FILE_1 "queues: { q: {} }\nschedules:\n  s: { every: 1h, queue: q, payload: one }\n"
#define FILE_2                                                                                     \
    "queues: { q: {} }\nlimits: { x: { semaphore: 1 } }\n"                                         \
    "schedules:\n  s: { every: 1h, queue: q, payload: two, semaphore: x }\n  t: { cron: "          \
    "\"@daily\" }\n"
#define FILE_3 "queues: { q: {} }\nschedules: {}\n"

static bool has_schedules(void *arg)
{
    return test_int(&redis, "HLEN", ROOT ":schedules") == *(const int64_t *)arg;
}

static bool until_schedules(int64_t n)
{
    return test_until(has_schedules, &n, LONG_MS);
}

static void test_the_file_that_was_read_last_holds(void **state)
{
    int64_t revision;

    (void)state;
    test_handler(dir, "q", "true\n");
    start_a(FILE_1);
    assert_true(until_schedules(1));
    revision = value("s", "revision");
    start(&b, "b", FILE_2);
    assert_true(until_schedules(2));
    assert_int_equal(value("s", "revision"), revision); /* its timing is the same */
    assert_int_equal(value("s", "payload_bytes"), 3);
    assert_true(test_laterd_says(&b, "event=declared kind=schedule name=t status=added", LONG_MS));
    test_laterd_reload(&a, redis.url, FILE_3);
    assert_true(until_schedules(0));
    test_laterd_reload(&a, redis.url, FILE_1);
    assert_true(until_schedules(1));
    /* Nothing is left in Redis: both tell what they have, and the file that was read last holds. */
    reply_free(test_redis_call(&redis, "FLUSHALL", NULL));
    assert_true(until_schedules(1));
    assert_int_equal(test_laterd_stop(&b), 0);
    for (int i = 0; i < 3; i++) {
        revision = value("s", "revision");
        assert_int_equal(test_laterd_stop(&a), 0);
        test_laterd_start(&a);
        assert_true(until_schedules(1));
        assert_int_equal(value("s", "revision"), revision);
    }
    assert_int_equal(test_fsck(&redis), 0);
}

/* ---- many */

/* On one connection. */
static void set_many(int n, int64_t due_ms)
{
    CLEANUP_FREE char *from = mem_printf("%lld", (long long)due_ms);
    struct err err = ERR_INIT;
    struct client *c = test_redis_client(&redis, &err);

    assert_non_null(c);
    for (int i = 0; i < n; i++) {
        CLEANUP_FREE char *name = mem_printf("s%d", i);
        const char *argv[] = {"FCALL",  "later_schedule_set",
                              "1",      ROOT,
                              name,     "every",
                              "1d",     "queue",
                              "nobody", "from",
                              from,     "x"};
        struct reply *r = client_call(c, 12, argv, NULL, &err);

        assert_true(r != NULL && reply_kind(r) == REPLY_ARRAY);
        reply_free(r);
    }
    client_close(c);
}

/* LATER_TEST_SCHEDULES schedules that are due at one second. */
static void test_many_at_once(void **state)
{
    const char *text = getenv("LATER_TEST_SCHEDULES");
    int n = text != NULL ? atoi(text) : 1000, ready = 0;
    int64_t due_ms = 0, last_ms;

    (void)state;
    test_handler(dir, "q", "true\n");
    start_a("queues: { q: {} }\n"); /* it brings the library */
    /* As long ahead as this machine takes to set them and to start. */
    for (int lead_s = 3 + n / 500; test_now_ms() >= due_ms; lead_s *= 2) {
        (void)test_laterd_stop(&a);
        due_ms = (test_now_ms() / 1000 + lead_s) * 1000;
        set_many(n, due_ms);
        start_a("queues: { q: {} }\n");
    }
    while (test_now_ms() < due_ms + LONG_MS && ready < n) {
        ready = (int)test_int(&redis, "ZCARD", ROOT ":q:nobody:5");
        (void)usleep(2000);
    }
    last_ms = test_now_ms();
    printf("figure: %d schedules of one instant: the last one was added %lld ms behind it\n", n,
           (long long)(last_ms - due_ms));
    assert_int_equal(ready, n);
    assert_int_equal(test_fsck(&redis), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_once_under_kills, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_told, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_catching_up, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_last_is_to_come, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_the_file_that_was_read_last_holds, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_many_at_once, fx_open, fx_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
