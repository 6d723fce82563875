/*
 * Daemons that are killed: at random under load, between any two steps of a job, by a job, and with
 * handlers left behind. Each test is named after its entry in the fault catalogue.
 */
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
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "stage.h"

static struct stage stage;

/* ---- L1: at random, under load */

static const char under_kills[] = "concurrency: 16\ndefaults: { crashes: 1000 }\n";

/* Two of three times the queue is fair when the victim comes back, and becomes so, or plain again,
 * while jobs wait. The newest settings win. */
static void come_back(struct test_laterd *victim, int round)
{
    int tenants = stage.ledger.tenants;

    stage.ledger.tenants = round % 3 != 2 ? tenants : 0;
    stage_start(&stage, victim, victim == &stage.a ? "a" : "b", under_kills);
    stage.ledger.tenants = tenants;
}

/* Returns how many adds were acknowledged: not all, if the machine stands still for a while. */
static int one_round(int round, int jobs, int *starts)
{
    struct test_laterd *victim = stage_random(0, 1) == 0 ? &stage.a : &stage.b;
    int acked = ledger_add(&stage.ledger, &stage.redis, "work", jobs, 0);

    assert_true(acked > 0);
    if (starts != NULL)
        assert_true(ledger_until(&stage.ledger, " start", *starts + 1, STAGE_WAIT_MS));
    test_pause(test_is_long() && jobs >= 1000 ? stage_random(100, 2000) : stage_random(10, 300));
    stage_kill(&stage, victim);
    come_back(victim, round);
    assert_true(stage_until_drained(&stage, 10 * STAGE_WAIT_MS));
    assert_true(stage_until_fair(&stage, round % 3 != 2));
    assert_true(stage_tenants_are_gone(&stage, "work"));
    if (starts != NULL)
        *starts = ledger_lines(&stage.ledger, " start");
    return acked;
}

static void L1_kills_under_load(void **state)
{
    int rounds = stage_number("LATER_ROUNDS", 3, 100),
        jobs = stage_number("LATER_JOBS", 300, 10000);
    CLEANUP_BUF struct buf text = BUF_INIT;
    unsigned seed = stage_seed();
    struct ledger_sum sum;
    int starts = 0, acked = 0;

    (void)state;
    stage_start(&stage, &stage.a, "a", under_kills);
    stage_start(&stage, &stage.b, "b", under_kills);
    stage.ledger.tenants = 3;
    for (int i = 0; i < rounds; i++)
        /* Do not count starts among millions of lines: counting would be the load. */
        acked += one_round(i, jobs, rounds * jobs <= 50000 ? &starts : NULL);
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    assert_int_equal(sum.acked, acked);
    assert_int_equal(sum.attempted, rounds * jobs);
    /* At most the jobs that ran at each kill, or had ended without Redis knowing. Each crash that
     * was counted belongs to a job that was reaped. */
    assert_in_range(sum.again, 1, rounds * 32);
    assert_true(sum.crashes <= stage.ledger.reaped);
    ledger_print(&sum, &text);
    (void)printf("figure L1: %d kills -9, %s (seed %u)\n", rounds, buf_str(&text), seed);
}

/* Both die and one comes back. It sees that the process of the other is gone, and does not wait for
 * its silence. */
static void L1_both_killed(void **state)
{
    struct ledger_sum sum;
    struct mono begin;

    (void)state;
    stage_start(&stage, &stage.a, "a", under_kills);
    stage_start(&stage, &stage.b, "b", under_kills);
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 400, 0), 400);
    assert_true(ledger_until(&stage.ledger, " start", 40, STAGE_WAIT_MS));
    test_laterd_kill(&stage.b, SIGKILL);
    stage_kill(&stage, &stage.a);
    stage_kill(&stage, &stage.b);
    begin = mono_now();
    test_laterd_start(&stage.a);
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    assert_in_range(test_ms_since(begin), 0, 24000);
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    assert_in_range(sum.again, 1, 64);
    /* Reaped jobs include those that were claimed and waited for a place. */
    assert_true(sum.crashes <= stage.ledger.reaped && stage.ledger.reaped <= 96);
}

/* The epoch in R:workers that is not `other`; the caller's to free. */
static char *epoch_beside(const char *other)
{
    struct reply *r = test_redis_call(&stage.redis, "HKEYS", STAGE_ROOT ":workers", NULL);
    bool is_other = reply_is(reply_at(r, 0), other);
    char *epoch = mem_printf("%s", reply_str(reply_at(r, is_other ? 1 : 0)));

    reply_free(r);
    return epoch;
}

static bool all_run(void *arg)
{
    (void)arg;
    return test_int(&stage.redis, "ZCARD", STAGE_ROOT ":running") == 300;
}

/* A reaper dies after it has taken back the first 128 of 300 jobs. Another worker goes on, and no
 * crash is counted twice. */
static void L1_reaper_dies_half_way(void **state)
{
    CLEANUP_BUF struct buf yaml = BUF_INIT;
    CLEANUP_FREE char *dead = NULL;
    CLEANUP_FREE char *living = NULL;
    struct ledger_sum sum;
    struct mono begin;
    struct reply *r, *counter;

    (void)state;
    ledger_yaml(&stage.ledger, &yaml, "work", 3000, 4000);
    buf_puts(&yaml, "concurrency: 300\ndefaults: { crashes: 1000 }\n");
    stage_start_plain(&stage, &stage.a, "a", buf_str(&yaml));
    dead = epoch_beside("");
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 300, 0), 300);
    assert_true(ledger_until(&stage.ledger, " start", 300, STAGE_WAIT_MS));
    stage_kill(&stage, &stage.a);
    assert_true(all_run(NULL));
    /* Give the worker that died another boot id, so that b takes it for one of another host.
     * Otherwise b would reap it before this test does. */
    {
        CLEANUP_FREE char *key = mem_printf("%s:worker:%s", STAGE_ROOT, dead);

        reply_free(test_redis_call(&stage.redis, "HSET", key, "boot", "another", NULL));
    }
    stage_start_plain(&stage, &stage.b, "b", buf_str(&yaml));
    living = epoch_beside(dead);
    counter = test_redis_call(&stage.redis, "HGET", STAGE_ROOT ":workers", dead, NULL);
    r = test_fcall(&stage.redis, "later_v1_reap", living, dead, reply_str(counter), "1000", "10000",
                   NULL);
    begin = mono_now();
    assert_true(reply_is(reply_at(r, 0), "more"));
    assert_int_equal(reply_int(reply_at(r, 1)), 128);
    reply_free(counter);
    reply_free(r);
    /* R:workers lists it as dead, so b reaps the rest without waiting for its silence. */
    assert_true(ledger_until(&stage.ledger, " start", 600, STAGE_WAIT_MS));
    assert_in_range(test_ms_since(begin), 0, 24000);
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    assert_int_equal(sum.again, 300);
    assert_int_equal(stage.ledger.reaped, 300 - 128);
}

/* ---- L2: between two steps */

/* The jobs are claimed, but no process is started yet. */
static void L2_kill_before_spawn(void **state)
{
    struct ledger_sum sum;

    (void)state;
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 8, 0), 8);
    stage_preload("point", "LATER_TEST_POINT", "spawn");
    {
        CLEANUP_BUF struct buf yaml = BUF_INIT;

        ledger_yaml(&stage.ledger, &yaml, "work", 20, 50);
        test_laterd_conf(&stage.a, stage.dir, "a", stage.redis.url, buf_str(&yaml));
        test_laterd_launch(&stage.a);
    }
    assert_int_equal(test_laterd_wait(&stage.a, STAGE_WAIT_MS), 128 + SIGKILL);
    stage_plain();
    assert_int_equal(test_int(&stage.redis, "ZCARD", STAGE_ROOT ":running"), 8);
    assert_int_equal(ledger_lines(&stage.ledger, NULL), 0);
    test_laterd_start(&stage.a);
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    assert_int_equal(stage.ledger.reaped, 8);
    assert_int_equal(sum.starts, 8);
}

static bool has_ended(void *id)
{
    CLEANUP_FREE char *text = mem_printf("event=end job=%s", (char *)id);

    return proc_has_logged(&stage.a.proc, text);
}

/* How many connections of laterd Redis has. */
static int clients(void)
{
    struct reply *r = test_redis_call(&stage.redis, "CLIENT", "LIST", NULL);
    int n = 0;

    for (const char *at = reply_str(r); (at = strstr(at, " name=laterd")) != NULL; at++)
        n++;
    reply_free(r);
    return n;
}

static bool are_gone(void *arg)
{
    (void)arg;
    return clients() == 0;
}

/* Killed after the process has ended and before Redis knows: the one window that no order of syncs
 * closes. */
static void L2_kill_between_exit_and_ack(void **state)
{
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *starts = NULL;
    CLEANUP_FREE char *crashes = NULL;

    (void)state;
    test_handler(stage.dir, "once", "echo begin$LATER_ATTEMPT >> %s; sleep 2; echo end >> %s",
                 stage.out, stage.out);
    stage_start_plain(&stage, &stage.a, "a", "");
    id = stage_add(&stage, "once", "keep", "1h");
    assert_true(test_until_lines(stage.out, "begin1", 1, STAGE_WAIT_MS));
    /* Redis holds the sync with the result back and drops it with the connection. A stopped server
     * would not do: it would find the sync in its socket. */
    reply_free(test_redis_call(&stage.redis, "CLIENT", "PAUSE", "600000", "WRITE", NULL));
    assert_true(test_until(has_ended, id, STAGE_WAIT_MS));
    stage_kill(&stage, &stage.a);
    assert_true(test_until(are_gone, NULL, STAGE_WAIT_MS));
    reply_free(test_redis_call(&stage.redis, "CLIENT", "UNPAUSE", NULL));
    test_laterd_start(&stage.a);
    assert_true(test_until_lines(stage.out, "end", 2, STAGE_WAIT_MS));
    assert_true(test_until_lines(stage.a.log, "outcome=done", 1, STAGE_WAIT_MS));
    assert_int_equal(stage_stop(&stage, &stage.a), 0);
    assert_int_equal(test_lines(stage.out, "begin2"), 1);
    assert_int_equal(test_lines(stage.out, NULL), 4);
    /* Redis has counted the crash that caused the second run. */
    starts = test_shown(&stage.redis, id, "starts");
    crashes = test_shown(&stage.redis, id, "crashes");
    assert_string_equal(starts, "2");
    assert_string_equal(crashes, "1");
}

/* Killed after Redis knows and before the daemon got the answer: the job is done. */
static void L2_kill_after_ack(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(stage.dir, "once", "echo begin$LATER_ATTEMPT >> %s; sleep 0.5", stage.out);
    stage_start_plain(&stage, &stage.a, "a", "");
    id = stage_add(&stage, "once", NULL, NULL);
    assert_true(test_until_lines(stage.out, "begin1", 1, STAGE_WAIT_MS));
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    stage_kill(&stage, &stage.a);
    test_laterd_start(&stage.a);
    free(stage_add(&stage, "once", NULL, NULL));
    assert_true(test_until_lines(stage.out, "begin", 2, STAGE_WAIT_MS));
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    assert_int_equal(test_lines(stage.out, "begin2"), 0);
}

/* ---- L3: what a killed daemon leaves */

/* The number at the start of the line with this text. */
static long long fence_before(const char *path, const char *text)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    const char *at;

    test_read(path, &all);
    at = strstr(buf_str(&all), text);
    assert_non_null(at);
    while (at > all.data && at[-1] != '\n')
        at--;
    return strtoll(at, NULL, 10);
}

/* No daemon starts in the state folder of the killed one. Another daemon of the host runs the job,
 * after the end of the orphan and with a higher fence. */
static void L3_orphans_have_an_older_fence(void **state)
{
    struct mono begin;

    (void)state;
    test_handler(stage.dir, "slow",
                 "out=%s; first=$(sed -n 's/.* begin1 //p' $out)\n"
                 "grep -qs '^State:.[^ZX]' /proc/${first:-none}/status && echo both >> $out\n"
                 "echo \"$LATER_FENCE begin$LATER_ATTEMPT $$\" >> $out\n"
                 "[ $LATER_ATTEMPT = 2 ] || exec sleep 600\n"
                 "echo \"$LATER_FENCE end$LATER_ATTEMPT\" >> $out",
                 stage.out);
    stage_start_plain(&stage, &stage.a, "a", "");
    free(stage_add(&stage, "slow", NULL, NULL));
    assert_true(test_until_lines(stage.out, "begin1", 1, STAGE_WAIT_MS));
    stage_start_plain(&stage, &stage.b, "b", "");
    stage_kill(&stage, &stage.a);
    begin = mono_now();
    assert_true(test_until_lines(stage.out, "end2", 1, 40000));
    (void)printf(
        "figure L3: taken over by another daemon in %.1f s, the orphan was dead, its fence "
        "is older\n",
        (double)mono_until_us(begin, mono_now()) / 1e6);
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    assert_int_equal(test_lines(stage.out, "both"), 0);
    assert_true(fence_before(stage.out, " begin1") > 0);
    assert_true(fence_before(stage.out, " begin1") < fence_before(stage.out, " end2"));
}

/* ---- P15, L16: a job that kills its worker */

static bool one_is_dead(void *arg)
{
    (void)arg;
    return test_int(&stage.redis, "ZCARD", STAGE_ROOT ":dead:pill") == 1;
}

static void P15_a_poison_among_innocents(void **state)
{
    static const char yaml[] = "concurrency: 16\n";
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *crashes = NULL;
    CLEANUP_FREE char *outcome = NULL;
    int kills = 0;

    (void)state;
    test_handler(stage.dir, "pill",
                 "echo pill >> %s; while [ $(grep -c begin %s) -lt 15 ]; do sleep 0.05; done; "
                 "kill -9 $PPID; sleep 5",
                 stage.out, stage.out);
    test_handler(stage.dir, "good",
                 "echo \"begin $LATER_ID\" >> %s; sleep 1; echo \"end $LATER_ID\" >> %s", stage.out,
                 stage.out);
    test_laterd_conf(&stage.a, stage.dir, "a", stage.redis.url, yaml);
    test_redis_load(&stage.redis);
    for (int i = 0; i < 15; i++)
        free(stage_add(&stage, "good", NULL, NULL));
    id = stage_add(&stage, "pill", NULL, NULL);
    test_laterd_launch(&stage.a);
    while (!one_is_dead(NULL)) {
        /* Restart it, as systemd would. */
        if (proc_wait(&stage.a.proc, 100) < 0)
            continue;
        assert_int_equal(test_laterd_wait(&stage.a, STAGE_WAIT_MS), 128 + SIGKILL);
        assert_in_range(++kills, 1, 3);
        test_laterd_launch(&stage.a);
    }
    assert_true(test_until_lines(stage.out, "end j", 15, STAGE_WAIT_MS));
    assert_int_equal(kills, 3);
    assert_int_equal(test_lines(stage.out, "pill"), 3);
    crashes = test_shown(&stage.redis, id, "crashes");
    outcome = test_shown(&stage.redis, id, "outcome");
    assert_string_equal(crashes, "3");
    assert_non_null(strstr(outcome, "poison pill"));
    assert_int_equal(test_int(&stage.redis, "ZCARD", STAGE_ROOT ":dead:good"), 0);
    assert_int_equal(test_lines(stage.out, "end j"), 15);
    (void)printf("figure P15: dead after its third crash, 15 of 15 innocents done\n");
    (void)printf("figure L16: buried after 3 deaths of the worker, 15 of 15 others done\n");
}

int main(void)
{
#define T(f) cmocka_unit_test_prestate_setup_teardown(f, stage_setup, stage_teardown, &stage)
    const struct CMUnitTest tests[] = {
        T(L1_kills_under_load),
        T(L1_both_killed),
        T(L1_reaper_dies_half_way),
        T(L2_kill_before_spawn),
        T(L2_kill_between_exit_and_ack),
        T(L2_kill_after_ack),
        T(L3_orphans_have_an_older_fence),
        T(P15_a_poison_among_innocents),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
