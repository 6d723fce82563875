/*
 * Schedules under trouble: clocks that step by an hour, a Redis that forgets all, frozen workers,
 * and workers with different time zones.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/occurrences.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "schedule/zone.h"
#include "stage.h"

#define HOUR_US INT64_C(3600000000)

static struct stage stage;

/* A function of the library, whose answer does not matter. */
#define call(...) reply_free(test_fcall(&stage.redis, __VA_ARGS__, NULL))

static int setup(void **state)
{
    (void)state;
    stage_begin(&stage);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return stage_end(&stage);
}

static int64_t value(const char *name)
{
    struct reply *r = test_fcall(&stage.redis, "later_schedules", "s", NULL);
    int64_t n = reply_int(reply_named(r, name));

    reply_free(r);
    return n;
}

/* -> how many occurrences there were */
static size_t assert_each_once(long long every_ms)
{
    return test_occurrences_each_once(stage.out, every_ms, false);
}

static void step_to(int64_t offset_us)
{
    __atomic_store_n(&stage.clock->offset_us, offset_us, __ATOMIC_SEQ_CST);
}

static bool has_sixty(void *arg)
{
    (void)arg;
    return test_lines(stage.out, NULL) >= 60;
}

static void X8_clock_of_redis_steps(void **state)
{
    int64_t next_ms;
    size_t n;

    (void)state;
    stage_clock(&stage);
    test_redis_start(&stage.redis, NULL);
    stage_plain();
    test_occurrences_handler(stage.dir, "q", stage.out);
    stage_start_plain(&stage, &stage.a, "a", "concurrency: 4\n");
    stage_start_plain(&stage, &stage.b, "b", "concurrency: 4\n");
    call("later_schedule_set", "s", "every", "1m", "queue", "q", "catch_up", "all", "x");
    test_pause(1500);
    step_to(HOUR_US);
    assert_true(test_until(has_sixty, NULL, STAGE_WAIT_MS));
    n = assert_each_once(60000);
    next_ms = value("next_ms");
    step_to(0); /* an hour back: nothing comes again */
    test_pause(3000);
    assert_int_equal(value("next_ms"), next_ms);
    step_to(-HOUR_US);
    test_pause(3000);
    assert_int_equal(assert_each_once(60000), n);
    step_to(HOUR_US + 61 * INT64_C(1000000)); /* and it goes on */
    assert_true(test_until_lines(stage.out, NULL, (int)n + 1, STAGE_WAIT_MS));
    assert_in_range(assert_each_once(60000), n + 1, n + 2);
    assert_int_equal(value("missed"), 0);
    printf("figure: an hour ahead: %zu occurrences, each once; an hour back and two: none again\n",
           n);
    stage.unsound = "beats an hour ahead";
}

static void X8_clocks_of_workers_step(void **state)
{
    static const int64_t steps_us[] = {HOUR_US, -HOUR_US, 0};
    size_t n;

    (void)state;
    test_redis_start(&stage.redis, NULL);
    test_occurrences_handler(stage.dir, "q", stage.out);
    stage_clock(&stage);
    stage_start_plain(&stage, &stage.a, "a", "concurrency: 4\n");
    stage_start_plain(&stage, &stage.b, "b", "concurrency: 4\n");
    stage_plain();
    call("later_schedule_set", "s", "every", "1s", "queue", "q", "catch_up", "all", "x");
    for (size_t i = 0; i < sizeof(steps_us) / sizeof(steps_us[0]); i++) {
        test_pause(2500);
        step_to(steps_us[i]);
    }
    test_pause(2500);
    call("later_schedule_del", "s");
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    n = assert_each_once(1000);
    assert_in_range(n, 8, 60);
    printf("figure: workers' clocks an hour ahead and back: %zu seconds, each once\n", n);
}

static bool is_declared(void *arg)
{
    (void)arg;
    return test_int(&stage.redis, "HLEN", STAGE_ROOT ":schedules") == 1;
}

static void X9_redis_forgets_all(void **state)
{
    struct mono from;

    (void)state;
    test_redis_start(&stage.redis, NULL);
    test_occurrences_handler(stage.dir, "q", stage.out);
    stage_start_plain(&stage, &stage.a, "a", "schedules: { s: { every: 1s, queue: q } }\n");
    assert_true(test_until_lines(stage.out, NULL, 2, STAGE_WAIT_MS));
    from = mono_now();
    reply_free(test_redis_call(&stage.redis, "FLUSHALL", NULL));
    assert_true(test_until(is_declared, NULL, 10000));
    printf("figure: declared again %lld ms after FLUSHALL\n",
           (long long)mono_until_us(from, mono_now()) / 1000);
    assert_true(test_until_lines(stage.out, NULL, 2 + test_lines(stage.out, NULL), STAGE_WAIT_MS));
    call("later_schedule_del", "s");
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
}

/* The kernel is the referee: a handler that runs beside another one finds its file locked. */
static void X10_frozen_under_replace_and_queue(void **state)
{
    static const char *const names[] = {"replace", "queue"};
    int before[2];

    (void)state;
    test_redis_start(&stage.redis, NULL);
    for (int i = 0; i < 2; i++)
        test_handler(stage.dir, names[i],
                     "exec 9>>%s/referee-%s; flock -n 9 || echo OVERLAP >> %s\n"
                     "echo \"%s $LATER_OCCURRENCE_MS\" >> %s\nsleep 2\n",
                     stage.dir, names[i], stage.out, names[i], stage.out);
    stage_start_plain(&stage, &stage.a, "a", "concurrency: 2\n");
    stage_start_plain(&stage, &stage.b, "b", "concurrency: 2\n");
    for (int i = 0; i < 2; i++)
        call("later_schedule_set", names[i], "every", "1s", "overlap", names[i], "x");
    assert_true(test_until_lines(stage.out, "queue ", 2, STAGE_WAIT_MS));
    test_laterd_kill(&stage.a, SIGSTOP);
    test_pause(24000); /* longer than the silence after which its permits pass on */
    test_laterd_kill(&stage.a, SIGCONT);
    for (int i = 0; i < 2; i++) {
        before[i] = test_lines(stage.out, names[i]);
        assert_true(test_until_lines(stage.out, names[i], before[i] + 2, STAGE_WAIT_MS));
        call("later_schedule_del", names[i]);
    }
    assert_int_equal(test_lines(stage.out, "OVERLAP"), 0);
    printf("figure: %d and %d handlers, one worker frozen for 24 s: never two at once\n", before[0],
           before[1]);
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
}

/* "SECOND MINUTE HOUR * * *" of the instant in a zone. */
static char *expression_of(const char *zone_of, int64_t utc_s)
{
    struct zone *zone = zone_new(zone_of, NULL);
    time_t local = (time_t)(utc_s + zone_stretch(zone, utc_s).offset_s);
    struct tm tm;

    zone_free(zone);
    (void)gmtime_r(&local, &tm);
    return mem_printf("%d %d %d * * *", tm.tm_sec, tm.tm_min, tm.tm_hour);
}

static void X11_two_databases_of_time_zones(void **state)
{
    int64_t at_s = test_now_ms() / 1000 + 8;
    CLEANUP_FREE char *expression = expression_of("Europe/Berlin", at_s);
    CLEANUP_FREE char *line = mem_printf("%lld000 j", (long long)at_s);
    CLEANUP_FREE char *folder = mem_printf("%s/older", stage.dir);
    /* An old database, in which the clocks of Berlin are those of Tokyo. */
    CLEANUP_FREE char *command =
        mem_printf("mkdir -p %s/Europe && cp /usr/share/zoneinfo/Asia/Tokyo %s/Europe/Berlin && "
                   "echo '# version 2000a' > %s/tzdata.zi",
                   folder, folder, folder);

    (void)state;
    assert_int_equal(system(command), 0);
    test_redis_start(&stage.redis, NULL);
    test_occurrences_handler(stage.dir, "q", stage.out);
    assert_int_equal(setenv("TZDIR", folder, 1), 0);
    stage_start_plain(&stage, &stage.a, "a", "concurrency: 2\n");
    assert_int_equal(unsetenv("TZDIR"), 0);
    call("later_schedule_set", "s", "cron", expression, "tz", "Europe/Berlin", "queue", "q", "x");
    test_pause(500);
    assert_true(value("next_ms") != at_s * 1000);
    stage_start_plain(&stage, &stage.b, "b", "concurrency: 2\n");
    assert_true(test_until_lines(stage.out, line, 1, STAGE_WAIT_MS));
    call("later_schedule_set", "other", "every", "1d", "queue", "q", "x");
    assert_true(test_laterd_says(&stage.a, "event=zone-differs here=2000a", STAGE_WAIT_MS));
    test_pause(1000);
    assert_int_equal(test_lines(stage.out, NULL), 1);
    assert_int_equal(value("runs"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(X8_clock_of_redis_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(X8_clocks_of_workers_step, setup, teardown),
        cmocka_unit_test_setup_teardown(X9_redis_forgets_all, setup, teardown),
        cmocka_unit_test_setup_teardown(X10_frozen_under_replace_and_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(X11_two_databases_of_time_zones, setup, teardown),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
