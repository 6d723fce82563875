/*
 * Clocks: the wall clocks of Redis and of the workers step by an hour under load, are strobed, or
 * are set to instants that programs stumble over; and a monotonic clock that starts elsewhere.
 *
 * Due times are by Redis' clock (doc/protocol.md): a job is early or late by that clock alone. All
 * durations here are measured on the machine's own monotonic clock, which is never stepped.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "stage.h"

#define HOUR_US INT64_C(3600000000)
#define SOON_MS STAGE_WAIT_MS /* within a deadline, even on a slow machine; not in an hour */

static struct stage stage;

static int setup(void **state)
{
    (void)state;
    stage_begin(&stage);
    return 0;
}

/* Start Redis and two daemons with the queue `timed`, which logs how late each job is. */
static void play(bool redis_has_clock, bool daemons_have_clock)
{
    static const char yaml[] = "concurrency: 4\n";

    if (redis_has_clock)
        stage_clock(&stage);
    test_redis_start(&stage.redis, NULL);
    stage_plain();
    test_handler(stage.dir, "timed", "echo \"$LATER_ID late $LATER_LATE_MS\" >> %s", stage.out);
    if (daemons_have_clock)
        stage_clock(&stage);
    stage_start(&stage, &stage.a, "a", yaml);
    stage_start(&stage, &stage.b, "b", yaml);
    stage_plain();
}

static void step_to(int64_t offset_us)
{
    __atomic_store_n(&stage.clock->offset_us, offset_us, __ATOMIC_SEQ_CST);
}

static bool has_run(void *id)
{
    return test_lines(stage.out, id) == 1;
}

/* A job that is due in two seconds starts in two seconds. */
static void check_two_seconds(void)
{
    struct mono begin = mono_now();
    CLEANUP_FREE char *id = stage_add(&stage, "timed", "in", "2s");

    assert_true(test_until(has_run, id, STAGE_WAIT_MS));
    assert_in_range(test_ms_since(begin), 2000, SOON_MS);
}

/* A job that is due now starts now. */
static void check_now(void)
{
    struct mono begin = mono_now();
    CLEANUP_FREE char *id = stage_add(&stage, "timed", NULL, NULL);

    assert_true(test_until(has_run, id, STAGE_WAIT_MS));
    assert_in_range(test_ms_since(begin), 0, SOON_MS);
}

/* No job was early by Redis' clock, and no duration is negative. */
static void check_none_early(void)
{
    assert_int_equal(test_lines(stage.out, "late -"), 0);
    for (int i = 0; i < 2; i++) {
        const char *log = i == 0 ? stage.a.log : stage.b.log;

        assert_int_equal(test_lines(log, "late_us=-") + test_lines(log, "run_ms=-"), 0);
    }
}

/* Wait for a beat; in the long form for longer than the silence that gets a worker reaped. */
static void check_nobody_is_suspected(void)
{
    static const char *const trouble[] = {"event=reaped",       "event=given-up", "event=forgotten",
                                          "event=lost",         "event=refused",  "state=down",
                                          "event=count-differs"};

    test_pause(test_is_long() ? 35000 : 6000);
    for (size_t i = 0; i < sizeof(trouble) / sizeof(trouble[0]); i++) {
        assert_int_equal(test_lines(stage.a.log, trouble[i]), 0);
        assert_int_equal(test_lines(stage.b.log, trouble[i]), 0);
    }
    assert_int_equal(test_int(&stage.redis, "HLEN", STAGE_ROOT ":workers"), 2);
}

static bool is_waiting(const char *id)
{
    CLEANUP_FREE char *was = test_shown(&stage.redis, id, "state");

    return strcmp(was, "waiting") == 0;
}

static bool work_is_drained(void *arg)
{
    (void)arg;
    return test_int(&stage.redis, "ZCARD", STAGE_ROOT ":q:work:5") +
               test_int(&stage.redis, "ZCARD", STAGE_ROOT ":running") ==
           0;
}

/* ---- T1, T2, T3: steps of an hour */

static void T1_redis_an_hour_ahead(void **state)
{
    CLEANUP_FREE char *within = NULL;
    CLEANUP_FREE char *beyond = NULL;
    CLEANUP_FREE char *after = NULL;
    struct ledger_sum sum;

    (void)state;
    play(true, false);
    within = stage_add(&stage, "timed", "in", "30m");
    beyond = stage_add(&stage, "timed", "in", "2h");
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 300, 0), 300);
    assert_true(ledger_until(&stage.ledger, " start", 20, STAGE_WAIT_MS));
    step_to(HOUR_US);
    check_now();
    check_two_seconds();
    /* Jobs that the step made due run, the others wait. */
    assert_true(test_until(has_run, within, STAGE_WAIT_MS));
    assert_true(test_until(work_is_drained, NULL, STAGE_WAIT_MS));
    check_nobody_is_suspected();
    assert_true(is_waiting(beyond));
    after = stage_add(&stage, "timed", NULL, NULL);
    assert_true(strcmp(beyond, after) < 0); /* ids rise */
    check_none_early();
    reply_free(test_fcall(&stage.redis, "later_cancel", beyond, NULL));
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    assert_int_equal(sum.starts, 300);
    (void)printf(
        "figure T1: 300 jobs under way, 0 lost, 0 run twice, 0 workers suspected; new jobs "
        "on time\n");
}

static void T2_redis_an_hour_back(void **state)
{
    CLEANUP_FREE char *before = NULL;
    CLEANUP_FREE char *after = NULL;
    struct ledger_sum sum;
    int started, waiting;

    (void)state;
    play(true, false);
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 600, 0), 600);
    before = stage_add(&stage, "timed", "in", "30m");
    assert_true(ledger_until(&stage.ledger, " start", 20, STAGE_WAIT_MS));
    step_to(-HOUR_US);
    /* New jobs run at once and on time. */
    check_now();
    check_two_seconds();
    /* Claimed jobs have run. The others are due when Redis' clock reaches their time again, not
     * before, and no job is lost. */
    check_nobody_is_suspected();
    assert_int_equal(test_int(&stage.redis, "ZCARD", STAGE_ROOT ":running"), 0);
    started = ledger_lines(&stage.ledger, " start");
    waiting = (int)test_int(&stage.redis, "ZCARD", STAGE_ROOT ":q:work:5");
    assert_int_equal(started + waiting, 600);
    after = stage_add(&stage, "timed", NULL, NULL);
    assert_true(strcmp(before, after) < 0); /* ids rise although the clock does not */
    /* The clock is put right: all jobs run at once. */
    step_to(0);
    assert_true(test_until(work_is_drained, NULL, STAGE_WAIT_MS));
    check_two_seconds();
    check_none_early();
    assert_true(is_waiting(before));
    reply_free(test_fcall(&stage.redis, "later_cancel", before, NULL));
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    assert_int_equal(sum.starts, 600);
    (void)printf(
        "figure T2: 600 jobs under way, 0 lost, 0 run twice, 0 workers suspected; new jobs "
        "on time, %d not yet claimed waited until the clock was right again\n",
        waiting);
}

static void T3_workers_step(void **state)
{
    CLEANUP_FREE char *far = NULL;
    struct ledger_sum sum;

    (void)state;
    play(false, true);
    far = stage_add(&stage, "timed", "in", "30m");
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 300, 0), 300);
    assert_true(ledger_until(&stage.ledger, " start", 20, STAGE_WAIT_MS));
    step_to(HOUR_US);
    check_now();
    check_two_seconds();
    step_to(-HOUR_US);
    check_now();
    check_two_seconds();
    assert_true(test_until(work_is_drained, NULL, STAGE_WAIT_MS));
    check_nobody_is_suspected();
    assert_true(is_waiting(far)); /* not early by the worker's clock either */
    check_none_early();
    reply_free(test_fcall(&stage.redis, "later_cancel", far, NULL));
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    assert_int_equal(sum.starts, 300);
    (void)printf("figure T3: +1 h and -1 h, 300 jobs under way, 0 lost, 0 run twice, 0 early, 0 "
                 "workers suspected\n");
}

/* ---- T5: odd instants */

static void pass(const char *instant)
{
    struct tm tm = {0};
    struct timespec now;
    struct mono begin;
    CLEANUP_FREE char *at = NULL;
    CLEANUP_FREE char *over = NULL;

    assert_non_null(strptime(instant, "%Y-%m-%dT%H:%M:%SZ", &tm));
    (void)clock_gettime(CLOCK_REALTIME, &now);
    begin = mono_now();
    /* Go to a second before the instant. One job is due at it, another a second after it. */
    step_to(((int64_t)timegm(&tm) - now.tv_sec - 1) * 1000000 - now.tv_nsec / 1000);
    at = stage_add(&stage, "timed", "at", instant);
    over = stage_add(&stage, "timed", "in", "2s");
    assert_true(test_until(has_run, at, STAGE_WAIT_MS));
    assert_in_range(test_ms_since(begin), 990, SOON_MS);
    assert_true(test_until(has_run, over, STAGE_WAIT_MS));
    assert_in_range(test_ms_since(begin), 2000, SOON_MS);
}

static void T5_odd_instants(void **state)
{
    /* In ascending order: after a step back, jobs that were left would have to wait. */
    static const char *const instants[] = {
        "2027-01-01T00:00:00Z",                         /* a possible leap second */
        "2027-03-14T07:00:00Z",                         /* New York's clocks go forward */
        "2027-11-07T06:00:00Z",                         /* and back */
        "2028-02-29T00:00:00Z", "2038-01-19T03:14:08Z", /* leap day; 2^31 seconds */
        "2100-03-01T00:00:00Z", "2106-02-07T06:28:16Z", /* no leap year; 2^32 seconds */
    };
    const size_t n = sizeof(instants) / sizeof(instants[0]);

    (void)state;
    (void)setenv("TZ", "America/New_York", 1);
    play(true, true);
    (void)unsetenv("TZ");
    for (size_t i = 0; i < n; i++)
        pass(instants[i]);
    assert_int_equal(test_lines(stage.out, NULL), 2 * n);
    check_none_early();
    assert_true(test_lines(stage.a.log, "2106-02-07T06:28:1") +
                    test_lines(stage.b.log, "2106-02-07T06:28:1") >
                0);
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    assert_int_equal(test_lines(stage.a.log, "event=registered"), 1);
}

/* ---- T6: a strobe */

/* Fork a child that sets the offset to a random value within 200 ms, a thousand times a second. */
static pid_t strobe(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            step_to(stage_random(-200000, 200000));
            test_pause(1);
        }
    }
    return pid;
}

static void T6_strobe(void **state)
{
    int64_t strobe_ms = test_is_long() ? 30000 : 6000;
    unsigned seed = stage_seed();
    struct ledger_sum sum;
    struct mono begin;
    char last[16] = "";
    int jobs = 0;
    pid_t pid;

    (void)state;
    play(true, true);
    pid = strobe();
    begin = mono_now();
    while (test_ms_since(begin) < strobe_ms) {
        CLEANUP_FREE char *id = stage_add(&stage, "timed", "in", "300ms");

        assert_true(strcmp(last, id) < 0); /* ids rise whatever the clock does */
        (void)snprintf(last, sizeof(last), "%s", id);
        assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 5, stage_random(0, 1500)),
                         5);
        jobs++;
        test_pause(50);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    step_to(0);
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    assert_int_equal(test_lines(stage.out, NULL), jobs);
    check_none_early();
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    assert_int_equal(sum.starts, 5 * jobs);
    (void)printf("figure T6: %d s of strobe, %d jobs, 0 lost, 0 run twice (seed %u)\n",
                 (int)(strobe_ms / 1000), 6 * jobs, seed);
}

/* ---- T7: a monotonic clock that starts elsewhere */

/* Write a program `laterd` that starts the real one in a time namespace. */
static void write_launcher(const char *build, const char *offset_s)
{
    CLEANUP_FREE char *path = mem_printf("%s/laterd", stage.dir);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    (void)fprintf(f, "#!/bin/sh\nexec unshare --time --monotonic %s %s/laterd \"$@\"\n", offset_s,
                  build);
    assert_int_equal(fchmod(fileno(f), 0755), 0);
    (void)fclose(f);
}

static bool has_time_namespaces(void)
{
    char *argv[] = {(char *)(uintptr_t) "unshare",     (char *)(uintptr_t) "--time",
                    (char *)(uintptr_t) "--monotonic", (char *)(uintptr_t) "10",
                    (char *)(uintptr_t) "true",        NULL};

    return proc_run(argv, NULL, 0, NULL, NULL) == 0;
}

static void T7_monotonic_offset(void **state)
{
    CLEANUP_FREE char *build = mem_strdup(test_build_dir());
    struct ledger_sum sum;
    struct mono killed;

    (void)state;
    if (!has_time_namespaces())
        skip(); /* time namespaces are not allowed here */
    write_launcher(build, "100000");
    (void)setenv("LATER_BUILD_DIR", stage.dir, 1);
    test_redis_start(&stage.redis, NULL);
    test_handler(stage.dir, "timed", "echo \"$LATER_ID late $LATER_LATE_MS\" >> %s", stage.out);
    stage_start(&stage, &stage.a, "a", "concurrency: 4\n");
    check_now();
    check_two_seconds();
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 100, 0), 100);
    assert_true(ledger_until(&stage.ledger, " start", 10, STAGE_WAIT_MS));
    stage_kill(&stage, &stage.a);
    killed = mono_now();
    /* The clock of its successor is a day behind. */
    write_launcher(build, "10");
    test_laterd_start(&stage.a);
    (void)setenv("LATER_BUILD_DIR", build, 1);
    check_two_seconds();
    assert_true(test_until(work_is_drained, NULL, STAGE_WAIT_MS));
    assert_in_range(test_ms_since(killed), 0, 19000); /* it did not wait for 20 s of silence */
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    assert_in_range(sum.again, 0, 4);
}

int main(void)
{
#define T(f) cmocka_unit_test_prestate_setup_teardown(f, setup, stage_teardown, &stage)
    const struct CMUnitTest tests[] = {
        T(T1_redis_an_hour_ahead),
        T(T2_redis_an_hour_back),
        T(T3_workers_step),
        T(T5_odd_instants),
        T(T6_strobe),
        T(T7_monotonic_offset),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
