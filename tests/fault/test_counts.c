/*
 * What is counted (doc/statistics.md) while daemons are killed, and while the clock of Redis steps.
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
#include "job/series.h"
#include "stage.h"

#define CONFIG                                                                                     \
    "concurrency: 16\ndefaults: { attempts: 100 }\n"                                               \
    "queues: { void: { handler: [/bin/true] } }\n"

static struct stage stage;

static uint64_t totals[SERIES_TOTALS];

static void read_totals(void)
{
    struct reply *r = test_fcall(&stage.redis, "later_v1_series", "void", "total", "0", "1", NULL);

    series_read_totals(totals, reply_str(reply_at(r, 1)), reply_len(reply_at(r, 1)));
    reply_free(r);
}

static uint64_t sum(size_t first, size_t n)
{
    uint64_t all = 0;

    for (size_t i = first; i < first + n; i++)
        all += totals[i];
    return all;
}

static bool are_done(void *arg)
{
    read_totals();
    return totals[SERIES_DONE] == *(const uint64_t *)arg;
}

static void add(int n)
{
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "void", n, 0), n);
}

static void X20_counts_of_killed_daemons(void **state)
{
    int rounds = test_is_long() ? 20 : 3;
    uint64_t jobs = (uint64_t)rounds * 1000, ended, attempts;

    (void)state;
    stage_start_plain(&stage, &stage.b, "b", CONFIG);
    for (int i = 0; i < rounds; i++) {
        stage_start_plain(&stage, &stage.a, "a", CONFIG);
        add(1000);
        test_pause(stage_random(200, 600));
        stage_kill(&stage, &stage.a);
    }
    assert_true(stage_until_drained(&stage, 3 * STAGE_WAIT_MS));
    assert_true(test_until(are_done, &jobs, STAGE_WAIT_MS));
    assert_int_equal(stage_stop(&stage, &stage.b), 0);
    read_totals();
    assert_int_equal(totals[SERIES_ADDED], jobs);
    assert_int_equal(totals[SERIES_DEAD], 0);
    attempts = totals[SERIES_DONE] + totals[SERIES_FAILED];
    ended = sum(SERIES_RUN, SERIES_RUN_CLASSES);
    /* A worker that is killed takes what it has not told yet, and nothing is told twice. */
    assert_in_range(sum(SERIES_LATE, SERIES_LATE_CLASSES), 1, attempts);
    assert_in_range(ended, 1, attempts);
    assert_in_range(ended, sum(SERIES_LATE, SERIES_LATE_CLASSES) - 16 * (uint64_t)rounds, attempts);
    (void)printf(
        "figure X20: %llu jobs, %d kills: all done ones counted once, %llu failed attempts, "
        "%llu runs told of %llu\n",
        (unsigned long long)jobs, rounds, (unsigned long long)totals[SERIES_FAILED],
        (unsigned long long)ended, (unsigned long long)attempts);
}

/* Over midnight and back, an hour back, two weeks ahead: the sums stay. */
static void X21_clock_of_redis_steps(void **state)
{
    static const int64_t hours[] = {0, 24, 0, -1, 14 * 24, 15 * 24};
    uint64_t jobs = 0;

    (void)state;
    stage_start_plain(&stage, &stage.a, "a", CONFIG);
    for (size_t i = 0; i < sizeof(hours) / sizeof(hours[0]); i++) {
        __atomic_store_n(&stage.clock->offset_us, hours[i] * 3600 * INT64_C(1000000),
                         __ATOMIC_SEQ_CST);
        add(100);
        jobs += 100;
        assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    }
    assert_true(test_until(are_done, &jobs, STAGE_WAIT_MS));
    assert_int_equal(totals[SERIES_ADDED], jobs);
    stage.unsound = "the clock stepped";
}

static int setup_clock(void **state)
{
    (void)state;
    stage_begin(&stage);
    stage_clock(&stage);
    test_redis_start(&stage.redis, NULL);
    stage_plain();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(X20_counts_of_killed_daemons, stage_setup,
                                                 stage_teardown, &stage),
        cmocka_unit_test_setup_teardown(X21_clock_of_redis_steps, setup_clock, teardown),
    };

    (void)stage_seed();
    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
