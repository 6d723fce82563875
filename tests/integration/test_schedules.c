/*
 * Schedules, with the real daemons: each occurrence once under kills, how late it starts, what a
 * handler is told, what is caught up, what a damaged zone file harms, and what one midnight of many
 * costs.
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
#include "../support/shell.h"
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
    /* All of them: on a slow machine two may come due before a daemon looks. */
    call("later_schedule_set", "s", "every", "1s", "catch_up", "all", "x");
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

/* ---- a damaged file of the time zones */

static const char *const damages[] = {
    "truncate -s 0 $Z",
    "truncate -s 44 $Z",
    "truncate -s 60 $Z",
    "truncate -s 200 $Z",
    "truncate -s 500 $Z",
    "truncate -s 44 $Z && truncate -s 2000 $Z", /* zeros behind the header */
    "printf '\\377' | dd of=$Z bs=1 seek=34 conv=notrunc",
    "printf x | dd of=$Z bs=1 seek=$(($(stat -c %s $Z) - 5)) conv=notrunc",
};

#define DAMAGED "the time zone file "

/* The system's file of Berlin, changed by this line, is moved into place, as by an update. */
static void put_berlin(const char *change)
{
    CLEANUP_FREE char *line =
        mem_printf("exec 2>&1; Z=$DIR/new && cat /usr/share/zoneinfo/Europe/Berlin >$Z && %s && "
                   "mv $Z $TZDIR/Europe/Berlin",
                   change);

    assert_int_equal(test_sh(line), 0);
}

static void open_zones(void)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());
    CLEANUP_FREE char *laterd = mem_printf("%s/laterd", test_build_dir());
    CLEANUP_FREE char *zones = mem_printf("%s/zones", dir);

    (void)setenv("DIR", dir, 1);
    (void)setenv("LATER", later, 1);
    (void)setenv("LATERD", laterd, 1);
    (void)setenv("LATER_REDIS_URL", redis.url, 1);
    (void)setenv("TZDIR", zones, 1);
    assert_int_equal(test_sh("mkdir -p $TZDIR/Europe"), 0);
    put_berlin("true");
}

/* A client sets a schedule in that zone: the daemon looks at the file, and so does who asks. */
static void meet_damage(const char *damage, const char *name)
{
    CLEANUP_FREE char *log = mem_printf("event=bad-schedule schedule=%s reason=\"" DAMAGED, name);
    CLEANUP_FREE char *next = mem_printf("$LATER schedule next %s", name);

    put_berlin(damage);
    call("later_schedule_set", name, "cron", "* * * * * *", "tz", "Europe/Berlin", "queue", "q",
         "x");
    if (!test_laterd_says(&a, log, LONG_MS))
        fail_msg("%s: the log has no %s", damage, log);
    test_says(next, 65, "zones/Europe/Berlin is damaged");
    test_says("$LATERD --check-config --config $DIR/a.yaml", 78, "f: tz: " DAMAGED);
}

static bool has_note(void *arg)
{
    (void)arg;
    return test_int(&redis, "HLEN", ROOT ":notes") > 0;
}

/* It harms the schedules of its zone, as long as it is there, and nothing else. */
static void test_damaged_zone(void **state)
{
    char name[8];
    int pulses, before;

    (void)state;
    open_zones();
    test_handler(dir, "q", "echo \"$LATER_SCHEDULE.\" >> %s", out);
    start_a("queues: { q: { concurrency: 8 } }\nschedules:\n"
            "  f: { cron: \"* * * * * *\", tz: Europe/Berlin, queue: q }\n"
            "  pulse: { every: 1s, queue: q }\n");
    assert_true(test_until_lines(out, "f.", 1, LONG_MS));
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        (void)snprintf(name, sizeof(name), "s%zu", i);
        meet_damage(damages[i], name);
    }
    test_says("$LATER schedule next '@daily' --tz Europe/Berlin", 65, DAMAGED);
    test_says("$LATER schedule add t cron '@daily' --tz Europe/Berlin --queue q", 65, DAMAGED);
    test_says("$LATER schedule backfill s0 --from 2026-01-01T00:00:00Z --to now", 65, DAMAGED);
    test_says("echo '0 9 * * * true' | $LATER schedule import - --tz Europe/Berlin --queue q", 1,
              DAMAGED);
    test_says("$LATER schedule ls", 0, "Europe/Berlin");
    test_says("$LATER health", 1, "is damaged");
    /* As after ten minutes: it is told again. */
    reply_free(test_redis_call(&redis, "DEL", ROOT ":notes", NULL));
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_laterd_says(&a, "event=reload result=refused", LONG_MS));
    pulses = test_lines(out, "pulse.");
    assert_true(test_until_lines(out, "pulse.", pulses + 1, LONG_MS));
    test_says("$LATER wait $($LATER add q x --keep 1h)", 0, "");
    assert_int_equal(test_lines(out, "s0."), 0);
    assert_true(test_until(has_note, NULL, LONG_MS));
    before = test_lines(out, "f.");
    put_berlin("true");
    assert_true(test_until_lines(out, "f.", before + 2, LONG_MS));
    assert_true(test_until_lines(out, "s0.", 2, LONG_MS));
    assert_true(test_until_lines(out, "s7.", 2, LONG_MS));
    (void)unsetenv("TZDIR");
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

/* Does a worker know of so many schedules when they are due, before that instant? One that it sees
 * first behind it is due on the next day. */
static bool are_planned(int n, int64_t due_ms)
{
    int planned = 0;

    while (planned < n && test_now_ms() < due_ms) {
        planned = (int)test_int(&redis, "HLEN", ROOT ":cursors");
        (void)usleep(2000);
    }
    return planned == n && test_now_ms() < due_ms;
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
    for (int lead_s = 3 + n / 500; !are_planned(n, due_ms); lead_s *= 2) {
        (void)test_laterd_stop(&a);
        reply_free(test_redis_call(&redis, "FLUSHALL", NULL));
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
        cmocka_unit_test_setup_teardown(test_damaged_zone, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_many_at_once, fx_open, fx_close),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
