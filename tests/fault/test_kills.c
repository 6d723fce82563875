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

#include "../support/env.h"
#include "../support/fsck.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "network.h"

static int setup_aof(void **state)
{
    static const char *const aof[] = {"--appendonly", "yes", "--appendfsync", "everysec", NULL};

    (void)state;
    return network_setup_with(aof);
}

static int setup_always(void **state)
{
    static const char *const aof[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};

    (void)state;
    return network_setup_with(aof);
}

static int setup_never(void **state)
{
    static const char *const aof[] = {"--appendonly", "yes", "--appendfsync", "no", NULL};

    (void)state;
    return network_setup_with(aof);
}

/* ---- R3, R4 */

/* Kill redis-server after ms, whatever it is doing then. */
static void kill_later(struct proc *p, int ms)
{
    CLEANUP_FREE char *script =
        mem_printf("sleep %d.%03d; kill -9 %d", ms / 1000, ms % 1000, (int)net.s.redis.pid);
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

/* When the add of each number was answered. */
static struct mono answered[50000];

/* As ledger_try_add, of a job that waits: only such a one is there to be lost. */
static bool add_waiting(struct client *c, int number)
{
    CLEANUP_FREE char *payload = mem_printf("%d\n", number);
    CLEANUP_FREE char *token = mem_printf("token-%d", number);
    CLEANUP_FREE char *tenant = ledger_tenant(&net.s.ledger, number);
    const char *argv[] = {"work", "in", "3s", "token", token, "key", tenant, payload};
    struct err err = ERR_INIT;
    struct reply *r;

    ledger_note(&net.s.ledger, number, NULL);
    r = c != NULL ? client_fcall(c, "default", "later_add", 8, argv, NULL, &err) : NULL;
    if (r == NULL)
        return false;
    ledger_note(&net.s.ledger, number, reply_str(reply_at(r, 0)));
    reply_free(r);
    return true;
}

static bool add_one(struct client *c, int number)
{
    return number % 4 == 1
               ? add_waiting(c, number)
               : ledger_try_add(&net.s.ledger, c, number % 4 == 0 ? "flaky" : "work", number, 0);
}

/* Add jobs until the connection breaks. The next call repeats the failed add with its token. The
 * pauses let the workers keep up, so that adds, claims and results of every kind are under way. */
static void add_until_it_breaks(void)
{
    struct client *c = network_client();
    int number = net.s.ledger.njobs;

    if (number > 0 && !net.s.ledger.jobs[number - 1].is_acked)
        number--;
    while (add_one(c, number)) {
        assert_true((size_t)number < sizeof(answered) / sizeof(answered[0]));
        answered[number] = mono_now();
        number++;
        if (number % 10 == 0)
            write_for(c, 30 + (int)(random() % 60));
    }
    client_close(c);
}

/* The first number whose add was answered in the last ms. */
static int answered_within(int ms)
{
    int from = net.s.ledger.njobs;

    while (from > 0 &&
           (!net.s.ledger.jobs[from - 1].is_acked || test_ms_since(answered[from - 1]) < ms))
        from--;
    return from;
}

/* Restart redis-server on a disk whose flushes take so much longer. */
static void restart_on(const char *fsync_ms)
{
    if (fsync_ms != NULL)
        stage_preload("slow_fsync", "LATER_TEST_FSYNC_MS", fsync_ms);
    test_redis_restart(&net.s.redis);
    stage_plain();
}

/* Of how much Redis may forget, once it has answered: with everysec it puts off a write for up to
 * two seconds while a flush runs, and the process may die meanwhile. */
#define PUT_OFF_MS 5000

struct killed {
    int kills, own;
    bool has_lost; /* Redis lost acknowledged writes */
    struct ledger_sum sum;
};

#define KILLED_YAML "concurrency: 8\ndefaults: { backoff: { first: 0s, jitter: 0% } }\n"
#define KILLED_FAIR "queues: { work: { " LEDGER_FAIR " }, flaky: { " LEDGER_FAIR " } }\n"

/* Kill redis-server again and again, each time after least_ms and up to span_ms more. What Redis
 * loses may only be what it had answered last; any other job counts as lost by us. */
static void kill_again_and_again(const char *fsync_ms, int least_ms, int span_ms, struct killed *k)
{
    srandom(20263);
    for (int i = 0; i < 2; i++)
        network_daemon(i, NULL, net.s.ledger.tenants > 0 ? KILLED_YAML KILLED_FAIR : KILLED_YAML);
    for (int i = 0; i < k->kills; i++) {
        struct proc killer;
        int from;

        kill_later(&killer, least_ms + (int)(random() % span_ms));
        add_until_it_breaks();
        from = answered_within(PUT_OFF_MS);
        if (proc_wait(&net.s.redis.proc, STAGE_WAIT_MS) < 0)
            fail_msg("redis-server was not killed");
        proc_done(&killer);
        restart_on(fsync_ms);
        k->own += ledger_lost_by_redis(&net.s.ledger, &net.s.redis, from);
        k->has_lost = k->own > 0 || k->has_lost || test_int(&net.s.redis, "GET", "probe") < probe;
        assert_int_equal(test_fsck(&net.s.redis), 0);
    }
    network_drained(net.s.ledger.njobs);
    ledger_sum(&net.s.ledger, &k->sum);
    /* A job runs again only if Redis lost its claim or its end, and so other writes too. */
    if (!k->has_lost) {
        assert_int_equal(k->sum.duplicates, 0);
        assert_int_equal(k->sum.double_starts, 0);
    }
    assert_true(stage_until_fair(&net.s, net.s.ledger.tenants > 0 ? 2 : 0));
    assert_true(stage_tenants_are_gone(&net.s, "work") && stage_tenants_are_gone(&net.s, "flaky"));
    for (int i = 0; i < 2; i++)
        assert_int_equal(test_lines(net.d[i].log, "event=reaped"), 0);
}

static void R3_R4_redis_killed_at_any_moment(void **state)
{
    struct killed k = {.kills = test_is_long() ? 100 : 6};

    (void)state;
    probe = 0;
    net.s.ledger.tenants = 5;
    kill_again_and_again(NULL, 100, 1500, &k);
    print_message("figure R3: seed 20263, %d kills of redis-server under add, claim and ack: %d "
                  "acknowledged, 0 lost by laterd, %d by Redis itself, %d started twice, %d run "
                  "again\n",
                  k.kills, k.sum.acked, k.own, k.sum.double_starts, k.sum.duplicates);
}

/* everysec on a disk where a flush does not end: Redis loses what it answered within two seconds,
 * and no more. The rest must hold all the same. */
static void R3_killed_while_the_disk_is_busy(void **state)
{
    struct killed k = {.kills = test_is_long() ? 20 : 3};

    (void)state;
    probe = 0;
    test_redis_kill(&net.s.redis, SIGKILL);
    restart_on("60000");
    kill_again_and_again("60000", 2500, 2000, &k);
    assert_true(k.own > 0); /* else the disk was not busy */
    print_message(
        "             %d kills while the disk is busy: %d acknowledged, %d lost by Redis\n",
        k.kills, k.sum.acked, k.own);
}

/* With always and with no, Redis writes before it answers, whatever the disk does. */
static void R3_other_policies_lose_nothing(void **state)
{
    struct killed k = {.kills = 2};

    (void)state;
    probe = 0;
    test_redis_kill(&net.s.redis, SIGKILL);
    restart_on("20");
    kill_again_and_again("20", 1500, 1000, &k);
    assert_false(k.has_lost);
}

/* ---- K10 */

static int64_t epoch_of(int i)
{
    CLEANUP_BUF struct buf log = BUF_INIT;
    int64_t epoch = 0;

    test_read(net.d[i].log, &log);
    for (const char *at = buf_str(&log); (at = strstr(at, "event=registered epoch=")) != NULL; at++)
        epoch = strtoll(at + strlen("event=registered epoch="), NULL, 10);
    return epoch;
}

static void save_as(const char *path)
{
    CLEANUP_FREE char *copy = mem_printf("cp %s/dump.rdb %s", net.s.redis.dir, path);

    network_redis("SAVE", NULL);
    assert_int_equal(test_sh(copy), 0);
}

static bool nothing_runs(void *arg)
{
    return test_lines(net.d[0].log, "state=down") > 0 && arg == NULL &&
           ledger_lines(&net.s.ledger, " start") == ledger_lines(&net.s.ledger, " end");
}

/* Restart Redis with the old snapshot and its clock set back by back_us. Returns the length of the
 * ledger at that moment; it has all starts of jobs claimed before. */
static int restore(const char *path, int64_t back_us)
{
    CLEANUP_FREE char *copy = mem_printf("cp %s %s/dump.rdb", path, net.s.redis.dir);
    int lines;

    net.s.clock->offset_us = -back_us;
    test_redis_kill(&net.s.redis, SIGKILL);
    assert_int_equal(test_sh(copy), 0);
    test_pause(500); /* for a start that is not in the ledger yet */
    assert_true(test_until(nothing_runs, NULL, STAGE_WAIT_MS));
    lines = ledger_lines(&net.s.ledger, NULL);
    stage_clock(&net.s);
    test_redis_restart(&net.s.redis);
    stage_plain();
    return lines;
}

static void ran_once(int from, int to)
{
    for (int i = from; i < to; i++)
        assert_int_equal(ledger_ends_of(&net.s.ledger, i), 1);
}

static bool the_last_has_ended(void *arg)
{
    return ledger_ends_of(&net.s.ledger, net.s.ledger.njobs - 1) > 0 && arg == NULL;
}

/* A job added now gets a higher id than all before, and runs. */
static void a_new_job_is_newer(void)
{
    const struct ledger_job *job;

    network_add("work", 1);
    job = &net.s.ledger.jobs[net.s.ledger.njobs - 1];
    assert_true(strcmp(job->id, job[-1].id) > 0);
    assert_true(test_until(the_last_has_ended, NULL, STAGE_WAIT_MS));
}

/* All jobs that Redis still had have run, those below number `since` once. Fences after the first
 * `lines` lines of the ledger are higher than before. */
static void ledger_adds_up(int lines, int since, const char *what)
{
    struct ledger_sum sum;
    int64_t highest, lowest, other;

    assert_true(network_is_drained(2 * STAGE_WAIT_MS));
    ledger_sum(&net.s.ledger, &sum);
    assert_int_equal(sum.lost, 0);
    assert_int_equal(sum.unexpected, 0);
    ran_once(0, since);
    ledger_fences(&net.s.ledger, 0, lines, &other, &highest);
    ledger_fences(&net.s.ledger, lines, INT_MAX, &lowest, &other);
    assert_true(lowest > highest);
    print_message("figure K10: %s: %d jobs run again, 0 lost, ids and fences rose\n", what,
                  sum.duplicates);
}

/* The snapshot was taken while this worker worked, so it knows the worker. */
static void K10_snapshot_of_this_run(void **state)
{
    CLEANUP_FREE char *old = mem_printf("%s/old.rdb", net.s.dir);
    int settled, kept, lines;

    (void)state;
    network_daemon(0, NULL, "concurrency: 4");
    network_add("work", 50);
    network_drained(0);
    settled = net.s.ledger.njobs;
    network_add("slow", 4);
    network_add("work", 300);
    assert_true(ledger_until(&net.s.ledger, " end", 100, STAGE_WAIT_MS));
    save_as(old);
    kept = net.s.ledger.njobs;
    network_add("work", 100); /* not in the snapshot, so lost unless they have run by then */
    assert_true(ledger_until(&net.s.ledger, " end", 200, STAGE_WAIT_MS));
    lines = restore(old, 0);
    ledger_excuse(&net.s.ledger, kept);
    a_new_job_is_newer();
    ledger_adds_up(lines, settled, "a snapshot of this run restored under load");
    /* The log tells why jobs ran again. */
    assert_true(
        test_lines(net.d[0].log, "event=reconciled") + test_lines(net.d[0].log, "event=lost") >= 1);
}

/* The snapshot is older than the worker, and the server's clock is wrong, too. */
static void K10_snapshot_from_before(void **state)
{
    CLEANUP_FREE char *old = mem_printf("%s/old.rdb", net.s.dir);
    int64_t epoch;
    int lines;

    (void)state;
    test_redis_load(&net.s.redis);
    network_add("work", 300);
    save_as(old);
    network_daemon(0, NULL, "concurrency: 4");
    network_add("slow", 4);
    assert_true(ledger_until(&net.s.ledger, " end", 100, STAGE_WAIT_MS));
    epoch = epoch_of(0);
    lines = restore(old, INT64_C(600000000));
    ledger_excuse(&net.s.ledger, 300);
    assert_true(test_until_lines(net.d[0].log, "rewound=1", 1, STAGE_WAIT_MS));
    assert_true(epoch_of(0) > epoch);
    a_new_job_is_newer();
    net.s.clock->offset_us = 0; /* the other jobs are due by then */
    ledger_adds_up(lines, 0, "an older snapshot, and the clock ten minutes back");
    /* The log tells once why jobs ran again. */
    assert_int_equal(test_lines(net.d[0].log, "rewound=1"), 1);
    assert_int_equal(test_lines(net.d[0].log, "event=forgotten"), 1);
}

int main(void)
{
#define T(f, setup) cmocka_unit_test_setup_teardown(f, setup, network_teardown)
    const struct CMUnitTest tests[] = {
        T(R3_R4_redis_killed_at_any_moment, setup_aof),
        T(R3_killed_while_the_disk_is_busy, setup_aof),
        T(R3_other_policies_lose_nothing, setup_always),
        T(R3_other_policies_lose_nothing, setup_never),
        T(K10_snapshot_of_this_run, network_setup),
        T(K10_snapshot_from_before, network_setup),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
