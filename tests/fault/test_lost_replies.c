/*
 * Lost answers, late calls and cut connections: calls that were executed without the caller knowing
 * (N2, N3, a sync that comes after the reconnect).
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/env.h"
#include "base/cleanup.h"
#include "network.h"

#define NO_WAIT "concurrency: 4\ndefaults: { backoff: { first: 0s, jitter: 0% } }"

static void await_fired(int64_t n)
{
    if (!proxy_until_fired(&net.proxy, n, STAGE_WAIT_MS))
        fail_msg("the fault was not injected: %s", net.proxy.said);
}

/* ---- N3: executed, reply lost */

static void N3_reply_lost_add(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    CLEANUP_BUF struct buf err = BUF_INIT;

    (void)state;
    test_redis_load(&net.s.redis);
    (void)proxy_tell(&net.proxy, "on later_add dropreply");
    assert_int_equal(network_later_add(net.proxy.url, &out, &err), 0);
    assert_int_equal(proxy_tell(&net.proxy, "seen later_add"), 2);
    assert_int_equal(out.len, 13); /* the id and a line feed */
    assert_int_equal(test_int(&net.s.redis, "HLEN", STAGE_ROOT ":jobs"), 1);
    /* Both answers lost: the command reports an error, but the job exists, once. */
    (void)proxy_tell(&net.proxy, "on later_add dropreply 2");
    assert_int_equal(network_later_add(net.proxy.url, &out, &err), 69);
    assert_non_null(strstr(buf_str(&err), net.proxy.url + strlen("redis://")));
    assert_int_equal(test_int(&net.s.redis, "HLEN", STAGE_ROOT ":jobs"), 2);
    ledger_note(&net.s.ledger, 1, ""); /* so it must run */
    network_daemon(0, NULL, NO_WAIT);
    network_drained(0);
}

/* A flaky job fails once and is retried at once, so that a result that is sent again meets the next
 * start of its job. */
static void each_flaky_job_had_two_starts(int jobs)
{
    struct ledger_sum sum;

    network_drained(0);
    ledger_sum(&net.s.ledger, &sum);
    assert_int_equal(sum.starts, 2 * jobs);
    assert_int_equal(sum.ends, jobs);
    assert_int_equal(test_int(&net.s.redis, "ZCARD", STAGE_ROOT ":running"), 0);
}

static void N3_reply_lost_sync(void **state)
{
    int rounds = test_is_long() ? 200 : 20, jobs = 0;

    (void)state;
    network_daemon(0, NULL, NO_WAIT);
    for (int i = 1; i <= rounds; i++) {
        network_add("flaky", 10);
        jobs += 10;
        (void)proxy_tell(&net.proxy, "pass");
        (void)proxy_tell(&net.proxy, "on later_v1_sync dropreply 1");
        await_fired(i);
    }
    (void)proxy_tell(&net.proxy, "pass");
    each_flaky_job_had_two_starts(jobs);
    print_message("figure N3: %d replies of a sync lost, %d jobs: 0 lost, 0 doubled\n", rounds,
                  jobs);
}

static void N3_reply_lost_beat(void **state)
{
    (void)state;
    network_daemon(0, NULL, NO_WAIT);
    for (int i = 1; i <= 5; i++) {
        network_add("flaky", 10);
        (void)proxy_tell(&net.proxy, "pass");
        (void)proxy_tell(&net.proxy, "on later_v1_beat dropreply 1");
        network_redis("PUBLISH", STAGE_ROOT ":wake", "!beat", NULL);
        await_fired(i);
    }
    (void)proxy_tell(&net.proxy, "pass");
    each_flaky_job_had_two_starts(50);
    assert_int_equal(test_int(&net.s.redis, "HLEN", STAGE_ROOT ":workers"), 1);
}

static void N3_reply_lost_reconcile(void **state)
{
    (void)state;
    network_daemon(0, NULL, NO_WAIT);
    for (int i = 1; i <= 4; i++) {
        network_add("flaky", 10);
        (void)proxy_tell(&net.proxy, "pass");
        (void)proxy_tell(&net.proxy, "on later_v1_reconcile dropreply 2");
        (void)proxy_tell(&net.proxy, "reset");
        await_fired(2 * i);
    }
    (void)proxy_tell(&net.proxy, "pass");
    each_flaky_job_had_two_starts(40);
}

static void N3_reply_lost_register(void **state)
{
    (void)state;
    (void)proxy_tell(&net.proxy, "on later_v1_register dropreply 3");
    network_daemon(0, NULL, NO_WAIT);
    assert_int_equal(proxy_tell(&net.proxy, "fired"), 3);
    assert_int_equal(test_int(&net.s.redis, "HLEN", STAGE_ROOT ":workers"), 1);
    network_add("flaky", 20);
    each_flaky_job_had_two_starts(20);
}

static void N3_reply_lost_reap(void **state)
{
    struct ledger_sum sum;

    (void)state;
    network_daemon(0, NULL, NO_WAIT);
    network_add("slow", 4);
    assert_true(ledger_until(&net.s.ledger, " start", 4, STAGE_WAIT_MS));
    test_laterd_kill(&net.d[0], SIGKILL);
    (void)test_laterd_wait(&net.d[0], STAGE_WAIT_MS);
    (void)proxy_tell(&net.proxy, "on later_v1_reap dropreply 2");
    network_daemon(0, NULL, NO_WAIT);
    await_fired(1);
    network_drained(0);
    ledger_sum(&net.s.ledger, &sum);
    assert_int_equal(sum.starts, 8);
    assert_int_equal(test_int(&net.s.redis, "HLEN", STAGE_ROOT ":workers"), 1);
}

static void N3_reply_lost_tidy(void **state)
{
    (void)state;
    (void)proxy_tell(&net.proxy, "on later_v1_tidy dropreply 1");
    network_daemon(0, NULL, NO_WAIT);
    network_add("work", 20);
    await_fired(1);
    network_drained(0);
    (void)network_works(10000);
}

static void N3_reply_lost_leave(void **state)
{
    (void)state;
    network_daemon(0, NULL, NO_WAIT);
    network_add("work", 4);
    network_drained(0);
    (void)proxy_tell(&net.proxy, "on later_v1_leave dropreply 1");
    assert_int_equal(test_laterd_stop(&net.d[0]), 0);
    assert_int_equal(proxy_tell(&net.proxy, "fired"), 1);
    assert_int_equal(test_int(&net.s.redis, "HLEN", STAGE_ROOT ":workers"), 0);
}

/* A sync and a beat are under way when the connection breaks; both were executed. */
static void N3_two_replies_lost_in_flight(void **state)
{
    int rounds = test_is_long() ? 50 : 8;

    (void)state;
    network_daemon(0, NULL, NO_WAIT);
    for (int i = 1; i <= rounds; i++) {
        (void)proxy_tell(&net.proxy, "pass");
        (void)proxy_tell(&net.proxy, "latency 60");
        (void)proxy_tell(&net.proxy, "on %s dropreply 1",
                         i % 2 == 0 ? "later_v1_beat" : "later_v1_sync");
        network_add("flaky", 10);
        network_redis("PUBLISH", STAGE_ROOT ":wake", "!beat", NULL);
        await_fired(i);
    }
    (void)proxy_tell(&net.proxy, "pass");
    each_flaky_job_had_two_starts(10 * rounds);
}

/* ---- the delayed call */

static bool has_said(void *arg)
{
    (void)proxy_tell(&net.proxy, "said");
    return strstr(net.proxy.said, arg) != NULL;
}

/* Let the held call through: it must be refused with this word. */
static void comes_late(const char *refusal)
{
    assert_int_equal(proxy_tell(&net.proxy, "release"), 1);
    if (!test_until(has_said, (void *)(uintptr_t)refusal, STAGE_WAIT_MS))
        fail_msg("the late call was answered: %s", net.proxy.said);
}

static void N3_sync_delayed_past_the_reconnect(void **state)
{
    (void)state;
    network_daemon(0, NULL, "redis_timeout: 1s\n" NO_WAIT);
    (void)proxy_tell(&net.proxy, "on later_v1_sync hold 1");
    network_add("flaky", 20);
    await_fired(1);
    /* The worker is back on a new connection, was answered there, and works. */
    assert_true(ledger_until(&net.s.ledger, " end", 20, STAGE_WAIT_MS));
    network_add("flaky", 20);
    comes_late("link");
    each_flaky_job_had_two_starts(40);
    print_message("figure N3: a sync delayed past the reconnect: refused, nothing held\n");
}

static void N3_reconcile_delayed_past_the_reconnect(void **state)
{
    (void)state;
    network_daemon(0, NULL, "redis_timeout: 1s\n" NO_WAIT);
    (void)proxy_tell(&net.proxy, "on later_v1_reconcile hold 1");
    (void)proxy_tell(&net.proxy, "reset");
    await_fired(1);
    network_add("flaky", 20);
    assert_true(ledger_until(&net.s.ledger, " end", 20, STAGE_WAIT_MS));
    network_add("flaky", 20);
    comes_late("link");
    each_flaky_job_had_two_starts(40);
}

static void N3_registration_delayed_past_the_reconnect(void **state)
{
    (void)state;
    (void)proxy_tell(&net.proxy, "on later_v1_register hold 1");
    network_daemon(0, NULL, "redis_timeout: 1s\n" NO_WAIT);
    comes_late("ELATER_WORKER");
    (void)network_works(10000);
    assert_int_equal(test_int(&net.s.redis, "HLEN", STAGE_ROOT ":workers"), 1);
    network_drained(0);
}

/* ---- N2 */

static void N2_rst_mid_reply(void **state)
{
    static const int cuts[] = {0, 1, 5, 30, 80, 200};
    int rounds = test_is_long() ? 120 : 18;

    (void)state;
    network_daemon(0, NULL, NO_WAIT);
    for (int i = 1; i <= rounds; i++) {
        (void)proxy_tell(&net.proxy, "pass");
        if (i % 6 == 0)
            (void)proxy_tell(&net.proxy, "on later_v1_sync rst 1");
        else
            (void)proxy_tell(&net.proxy, "on later_v1_sync cut:%d 1", cuts[i % 6]);
        network_add("flaky", 10);
        await_fired(i);
    }
    (void)proxy_tell(&net.proxy, "pass");
    each_flaky_job_had_two_starts(10 * rounds);
    print_message("figure N2: %d resets in the middle of a reply, %d jobs: 0 lost, 0 doubled\n",
                  rounds, 10 * rounds);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, network_setup_proxy, network_teardown)
    const struct CMUnitTest tests[] = {
        T(N3_reply_lost_add),
        T(N3_reply_lost_sync),
        T(N3_reply_lost_beat),
        T(N3_reply_lost_reconcile),
        T(N3_reply_lost_register),
        T(N3_reply_lost_reap),
        T(N3_reply_lost_tidy),
        T(N3_reply_lost_leave),
        T(N3_two_replies_lost_in_flight),
        T(N3_sync_delayed_past_the_reconnect),
        T(N3_reconcile_delayed_past_the_reconnect),
        T(N3_registration_delayed_past_the_reconnect),
        T(N2_rst_mid_reply),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
