/* later once with real processes and a real Redis, and without any laterd. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/fsck.h"
#include "base/clock.h"
#include "lock_fixture.h"

#define HOSTS 4

static int lines(const char *name)
{
    CLEANUP_FREE char *line = mem_printf("cat $DIR/%s 2>/dev/null | wc -l", name);
    CLEANUP_BUF struct buf out = BUF_INIT;

    assert_int_equal(test_sh_out(line, &out), 0);
    return atoi(buf_str(&out));
}

static void test_it_runs_once(void **state)
{
    (void)state;
    test_says("$LATER once x --per 1m -- echo ran", 0, "ran\n");
    test_says("$LATER once x --per 1m -- echo ran; echo $?", 0, "1\n");
    assert_int_equal(test_sh("$LATER once x --per 1m -E 9 -- true"), 9);
    test_says("$LATER gates x:done", 0, "once@");
    assert_int_equal(test_sh("$LATER once y --per 1m -- true"), 0);
    test_says("$LATER once x --per 1m --again -- echo again", 0, "again\n");
    assert_int_equal(test_fsck(&redis), 0);
}

/* Also where another host did it before: D is counted from the last end. */
static void test_again_counts_from_its_own_end(void **state)
{
    (void)state;
    test_redis_load(&redis);
    reply_free(test_redis_call(&redis, "FCALL", "later_lock", "1", ROOT, "x:done", "once@elsewhere",
                               "ttl", "10s", NULL));
    assert_int_equal(test_sh("$LATER once x --per 1h --again -- true"), 0);
    test_says("$LATER gates x:done", 0, "in 59m");
    assert_int_equal(test_fsck(&redis), 0);
}

/* Who holds NAME:done for reasons of its own keeps it from being noted; that is said. */
static void test_a_foreign_holder_is_told_of(void **state)
{
    (void)state;
    test_redis_load(&redis);
    reply_free(test_redis_call(&redis, "FCALL", "later_lock", "1", ROOT, "x:done", "somebody",
                               "ttl", "10s", NULL));
    test_says("$LATER once x --per 1h --again -- true", 0, "it may run again");
}

static void test_it_runs_again_after_the_time(void **state)
{
    (void)state;
    assert_int_equal(test_sh("$LATER once x --per 300ms -- true"), 0);
    assert_int_equal(test_sh("for i in $(seq 600); do $LATER once x --per 1m true && exit 7; sleep "
                             "0.1; done"),
                     7);
    assert_int_equal(test_sh("$LATER once x --per 1m -- true"), 1);
}

static void test_a_failed_one_runs_again(void **state)
{
    (void)state;
    assert_int_equal(test_sh("$LATER once x --per 1m -- sh -c 'exit 3'"), 3);
    assert_int_equal(test_sh("$LATER once x --per 1m -- sh -c 'kill -9 $$'"), 137);
    assert_int_equal(test_sh("$LATER once x --per 1m -- true"), 0);
    assert_int_equal(test_sh("$LATER once x --per 1m -- true"), 1);
}

static void test_bad_usage_is_told(void **state)
{
    (void)state;
    test_says("$LATER once x true", 64, "--per is missing");
    test_says("$LATER once x --per 8d true", 64, "at most 7d");
    test_says("$LATER once x --per 0s true", 64, "at most 7d");
    test_says("$LATER once x --per soon true", 64, "write it like");
    test_says("$LATER once 'a b' --per 1m true", 64, "no spaces");
    test_says("$LATER once '' --per 1m true", 64, "1 to 256 bytes");
    test_says("$LATER once \"$(printf '%252s' | tr ' ' x)\" --per 1m true", 64, "1 to 256 bytes");
    test_says("$LATER once x --per 1m", 64, "COMMAND");
}

static void test_one_inside_itself_is_being_done(void **state)
{
    (void)state;
    assert_int_equal(test_sh("$LATER once x --per 1m -- $LATER once x --per 1m -- true"), 1);
    assert_int_equal(test_sh("$LATER once x --per 1m -- $LATER lock x -n -- true"), 0);
}

/* One that waits runs it if the first one fails, and does not if it is done. */
static void test_one_that_waits_takes_over(void **state)
{
    static const char *const ends[] = {"0", "5"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        CLEANUP_FREE char *first =
            mem_printf("$LATER once w%d --per 1m -- sh -c 'echo ran >>$DIR/first%d; until test -e "
                       "$DIR/go%d; do sleep 0.02; done; exit %s'",
                       i, i, i, ends[i]);
        CLEANUP_FREE char *second = mem_printf("$LATER once w%d --per 1m -w 50 -- true", i);
        CLEANUP_FREE char *name = mem_printf("first%d", i), *go = mem_printf(": >$DIR/go%d", i);
        CLEANUP_FREE char *key = mem_printf(ROOT ":wait:lock:w%d:once", i);

        test_sh_start(&procs[0], first);
        until_lines(name, 1, LONG_MS);
        test_sh_start(&procs[1], second);
        while (test_int(&redis, "ZCARD", key) == 0)
            continue;
        assert_int_equal(test_sh(go), 0);
        assert_int_equal(proc_wait(&procs[0], LONG_MS), atoi(ends[i]));
        assert_int_equal(proc_wait(&procs[1], LONG_MS), i == 0 ? 1 : 0);
    }
}

/* Four hosts with 50 calls each at once. */
static void test_of_many_one_runs(void **state)
{
    /* Of each host. A call that gets no answer in time for a busy machine tells nothing here. */
    const int calls = test_is_sanitized() ? 8 : 50;
    CLEANUP_FREE char *statuses = mem_printf(" 1 0\n %d 1\n", HOSTS * calls - 1);

    (void)state;
    for (size_t i = 0; i < HOSTS; i++) {
        CLEANUP_FREE char *line = mem_printf(
            "hostname host%zu 2>/dev/null; for i in $(seq %d); do { $LATER once x --per 1m -- sh "
            "-c 'hostname >>$DIR/ran'; echo $? >>$DIR/status; } & done; wait",
            i, calls);
        CLEANUP_FREE char *quoted = mem_printf("unshare -r -u sh -c \"$ONCE%zu\"", i);
        CLEANUP_FREE char *name = mem_printf("ONCE%zu", i);

        (void)setenv(name, line, 1);
        test_sh_start(&procs[i], quoted);
    }
    for (size_t i = 0; i < HOSTS; i++)
        assert_int_equal(proc_wait(&procs[i], LONG_MS), 0);
    assert_int_equal(lines("ran"), 1);
    assert_int_equal(lines("status"), HOSTS * calls);
    test_says("sort $DIR/status | uniq -c | tr -s ' '", 0, statuses);
    assert_int_equal(test_fsck(&redis), 0);
}

/* The holder is killed in the middle, on another host: a call that comes 15 s later runs it. */
static void test_a_killed_one_is_done_by_another(void **state)
{
    int64_t began;
    int status = 1;

    (void)state;
    if (test_sh("unshare -r -u true") != 0)
        skip();
    test_sh_start(&procs[0], "unshare -r -u sh -c \"hostname other; exec $LATER once x --per 1m -- "
                             "sh -c 'echo ran >>$DIR/ran; exec sleep 1000'\"");
    until_lines("ran", 1, LONG_MS);
    assert_int_equal(test_sh("$LATER once x --per 1m -- true"), 1);
    proc_signal(&procs[0], SIGKILL);
    assert_int_equal(proc_wait(&procs[0], LONG_MS), 137);
    /* -n tells it and does not wait for it. */
    began = mono_now().us;
    while (status == 1 && mono_now().us - began < LONG_MS * INT64_C(1000)) {
        status = test_sh("$LATER lock x:once -n -- true 2>>$DIR/told");
        if (lines("told") > 0)
            break;
    }
    assert_int_equal(status, 1);
    test_says("cat $DIR/told", 0, "has been silent for 15 s");
    assert_int_equal(test_sh("$LATER once x --per 1m -- true"), 0);
    print_message("it ran %lld ms after the kill\n", (long long)((mono_now().us - began) / 1000));
    assert_int_equal(test_fsck(&redis), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_it_runs_once),
        T(test_it_runs_again_after_the_time),
        T(test_again_counts_from_its_own_end),
        T(test_a_foreign_holder_is_told_of),
        T(test_a_failed_one_runs_again),
        T(test_bad_usage_is_told),
        T(test_one_inside_itself_is_being_done),
        T(test_one_that_waits_takes_over),
        T(test_of_many_one_runs),
        T(test_a_killed_one_is_done_by_another),
    };

    if (getenv("LATER_ONLY") != NULL)
        cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
