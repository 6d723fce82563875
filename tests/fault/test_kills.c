/*
 * redis-server killed at any moment, or its data replaced by an old snapshot (R3, R4, K10).
 */
#include <limits.h>
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

#include "../support/clock.h"
#include "../support/env.h"
#include "../support/fsck.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "scene.h"

static struct scene s;

static int setup_aof(void **state)
{
    static const char *const aof[] = {"--appendonly", "yes", "--appendfsync", "everysec", NULL};

    (void)state;
    scene_open(&s, aof);
    return 0;
}

/* ---- R3, R4 */

/* Kill redis-server after ms, whatever it is doing then. */
static void kill_later(struct proc *p, int ms)
{
    CLEANUP_FREE char *script =
        mem_printf("sleep %d.%03d; kill -9 %d", ms / 1000, ms % 1000, (int)s.redis.pid);
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", script, NULL};

    proc_start(p, argv, NULL, NULL);
}

/* The last number that Redis acknowledged; written every two milliseconds. */
static int probe;

/* Write for ms, instead of a pause. */
static void write_for(struct client *c, int ms)
{
    struct mono begin = mono_now();

    do {
        CLEANUP_FREE char *number = mem_printf("%d", probe + 1);
        const char *argv[] = {"SET", "probe", number};
        struct err err = ERR_INIT;
        struct reply *r = client_call(c, 3, argv, NULL, &err);

        if (r == NULL)
            return;
        probe++;
        reply_free(r);
        test_pause(2);
    } while (test_ms_since(begin) < ms);
}

/* Add jobs until the connection breaks. The next call repeats the failed add with its token. The
 * pauses let the workers keep up, so that adds, claims and results are all under way. */
static void add_until_it_breaks(void)
{
    struct client *c = scene_client(&s);
    int number = s.ledger.njobs;

    if (number > 0 && !s.ledger.jobs[number - 1].is_acked)
        number--;
    while (ledger_try_add(&s.ledger, c, number % 4 == 0 ? "flaky" : "work", number, 0)) {
        number++;
        if (number % 10 == 0)
            write_for(c, 30 + (int)(random() % 60));
    }
    client_close(c);
}

static void R3_R4_redis_killed_at_any_moment(void **state)
{
    int kills = test_is_long() ? 100 : 6, own = 0;
    bool has_lost = false; /* Redis lost acknowledged writes */
    struct ledger_sum sum;

    (void)state;
    srandom(20263);
    /* The first attempt fails, so that results of every kind are under way. */
    ledger_script(&s.ledger, "flaky", "[ \"$LATER_ATTEMPT\" != 1 ] || exit 1");
    for (int i = 0; i < 2; i++)
        scene_daemon(&s, i, NULL,
                     "concurrency: 8\ndefaults: { backoff: { first: 0s, jitter: 0% } }");
    for (int i = 0; i < kills; i++) {
        struct proc killer;
        int from;

        kill_later(&killer, 100 + (int)(random() % 1500));
        add_until_it_breaks();
        from = s.ledger.njobs > 200 ? s.ledger.njobs - 200 : 0;
        if (proc_wait(&s.redis.proc, SCENE_LONG_MS) < 0)
            fail_msg("redis-server was not killed");
        proc_done(&killer);
        test_redis_restart(&s.redis);
        /* With everysec a write may wait for the disk and die with the process, though its answer
         * was sent. That can concern only the last moments' adds: any other job counts as lost by
         * us. */
        own += ledger_lost_by_redis(&s.ledger, &s.redis, from);
        has_lost = has_lost || own > 0 || test_int(&s.redis, "GET", "probe") < probe;
        assert_int_equal(test_fsck(&s.redis), 0);
    }
    scene_drained(&s, s.ledger.njobs);
    ledger_sum(&s.ledger, &sum);
    /* A job runs again only if Redis lost its claim or its end, and so other writes too. */
    if (!has_lost) {
        assert_int_equal(sum.duplicates, 0);
        assert_int_equal(sum.double_starts, 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(scene_log(&s, i, "event=reaped"), 0);
    print_message("figure R3: seed 20263, %d kills of redis-server under add, claim and ack: %d "
                  "acknowledged, 0 lost by laterd, %d by Redis itself, %d started twice, %d run "
                  "again\n",
                  kills, sum.acked, own, sum.double_starts, sum.duplicates);
}

/* ---- K10 */

static int64_t epoch_of(int i)
{
    CLEANUP_BUF struct buf log = BUF_INIT;
    int64_t epoch = 0;

    test_read(s.d[i].log, &log);
    for (const char *at = buf_str(&log); (at = strstr(at, "event=registered epoch=")) != NULL; at++)
        epoch = strtoll(at + strlen("event=registered epoch="), NULL, 10);
    return epoch;
}

static void shell(char *command)
{
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", command, NULL};

    assert_int_equal(proc_run(argv, NULL, 0, NULL, NULL), 0);
}

static void save_as(const char *path)
{
    CLEANUP_FREE char *copy = mem_printf("cp %s/dump.rdb %s", s.redis.dir, path);

    scene_redis(&s, "SAVE", NULL);
    shell(copy);
}

static bool nothing_runs(void *arg)
{
    return scene_log(&s, 0, "state=down") > 0 && arg == NULL &&
           ledger_lines(&s.ledger, " start") == ledger_lines(&s.ledger, " end");
}

/* Restart Redis with the old snapshot and its clock set back by back_us. *lines: length of the
 * ledger at that moment; it has all starts of jobs claimed before. */
static struct test_clock *restore(const char *path, int64_t back_us, int *lines)
{
    CLEANUP_FREE char *clock_path = mem_printf("%s/clock", s.dir);
    CLEANUP_FREE char *preload = test_clock_preload();
    CLEANUP_FREE char *copy = mem_printf("cp %s %s/dump.rdb", path, s.redis.dir);
    struct test_clock *clock = test_clock_make(clock_path);

    clock->offset_us = -back_us;
    test_redis_kill(&s.redis, SIGKILL);
    shell(copy);
    test_pause(500); /* for a start that is not in the ledger yet */
    assert_true(test_until(nothing_runs, NULL, SCENE_LONG_MS));
    *lines = ledger_lines(&s.ledger, NULL);
    assert_int_equal(access(strchr(preload, '=') + 1, R_OK), 0);
    (void)setenv("LD_PRELOAD", strchr(preload, '=') + 1, 1);
    (void)setenv("LATER_TEST_CLOCK", clock_path, 1);
    test_redis_restart(&s.redis);
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("LATER_TEST_CLOCK");
    return clock;
}

static void ran_once(int from, int to)
{
    for (int i = from; i < to; i++)
        assert_int_equal(ledger_ends_of(&s.ledger, i), 1);
}

static bool the_last_has_ended(void *arg)
{
    return ledger_ends_of(&s.ledger, s.ledger.njobs - 1) > 0 && arg == NULL;
}

/* A job added now gets a higher id than all before, and runs. */
static void a_new_job_is_newer(void)
{
    const struct ledger_job *job;

    scene_add(&s, "work", 1);
    job = &s.ledger.jobs[s.ledger.njobs - 1];
    assert_true(strcmp(job->id, job[-1].id) > 0);
    assert_true(test_until(the_last_has_ended, NULL, SCENE_LONG_MS));
}

/* All jobs that Redis still had have run, those below number `since` once. Fences after the first
 * `lines` lines of the ledger are higher than before. */
static void ledger_adds_up(int lines, int since, const char *what)
{
    struct ledger_sum sum;
    int64_t highest, lowest, other;

    assert_true(scene_is_drained(&s, 2 * SCENE_LONG_MS));
    ledger_sum(&s.ledger, &sum);
    assert_int_equal(sum.lost, 0);
    assert_int_equal(sum.unexpected, 0);
    ran_once(0, since);
    ledger_fences(&s.ledger, 0, lines, &other, &highest);
    ledger_fences(&s.ledger, lines, INT_MAX, &lowest, &other);
    assert_true(lowest > highest);
    print_message("figure K10: %s: %d jobs run again, 0 lost, ids and fences rose\n", what,
                  sum.duplicates);
}

/* The snapshot was taken while this worker worked, so it knows the worker. */
static void K10_snapshot_of_this_run(void **state)
{
    CLEANUP_FREE char *old = mem_printf("%s/old.rdb", s.dir);
    struct test_clock *clock;
    int settled, kept, lines;

    (void)state;
    scene_daemon(&s, 0, NULL, "concurrency: 4");
    scene_add(&s, "work", 50);
    scene_drained(&s, 0);
    settled = s.ledger.njobs;
    scene_add(&s, "slow", 4);
    scene_add(&s, "work", 300);
    assert_true(ledger_until(&s.ledger, " end", 100, SCENE_LONG_MS));
    save_as(old);
    kept = s.ledger.njobs;
    scene_add(&s, "work", 100); /* not in the snapshot, so lost unless they have run by then */
    assert_true(ledger_until(&s.ledger, " end", 200, SCENE_LONG_MS));
    clock = restore(old, 0, &lines);
    ledger_excuse(&s.ledger, kept);
    a_new_job_is_newer();
    ledger_adds_up(lines, settled, "a snapshot of this run restored under load");
    /* The log tells why jobs ran again. */
    assert_true(scene_log(&s, 0, "event=reconciled") + scene_log(&s, 0, "event=lost") >= 1);
    test_clock_free(clock);
}

/* The snapshot is older than the worker, and the server's clock is wrong, too. */
static void K10_snapshot_from_before(void **state)
{
    CLEANUP_FREE char *old = mem_printf("%s/old.rdb", s.dir);
    struct test_clock *clock;
    int64_t epoch;
    int lines;

    (void)state;
    test_redis_load(&s.redis);
    scene_add(&s, "work", 300);
    save_as(old);
    scene_daemon(&s, 0, NULL, "concurrency: 4");
    scene_add(&s, "slow", 4);
    assert_true(ledger_until(&s.ledger, " end", 100, SCENE_LONG_MS));
    epoch = epoch_of(0);
    clock = restore(old, INT64_C(600000000), &lines);
    ledger_excuse(&s.ledger, 300);
    assert_true(test_until_lines(s.d[0].log, "rewound=1", 1, SCENE_LONG_MS));
    assert_true(epoch_of(0) > epoch);
    a_new_job_is_newer();
    clock->offset_us = 0; /* the other jobs are due by then */
    ledger_adds_up(lines, 0, "an older snapshot, and the clock ten minutes back");
    /* The log tells once why jobs ran again. */
    assert_int_equal(scene_log(&s, 0, "rewound=1"), 1);
    assert_int_equal(scene_log(&s, 0, "event=forgotten"), 1);
    test_clock_free(clock);
}

int main(void)
{
#define T(f, setup) cmocka_unit_test_prestate_setup_teardown(f, setup, scene_teardown, &s)
    const struct CMUnitTest tests[] = {
        T(R3_R4_redis_killed_at_any_moment, setup_aof),
        T(K10_snapshot_of_this_run, scene_setup),
        T(K10_snapshot_from_before, scene_setup),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
