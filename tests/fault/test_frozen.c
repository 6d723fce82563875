/*
 * A Redis that stands still, or whose data are suddenly other data (R8, R25).
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

#include "../support/env.h"
#include "scene.h"

#define RESUME_MS 3000 /* 2 s are promised; one more for a slow machine */

static struct scene s;

static int setup(void **state)
{
    static const char *const args[] = {"--enable-debug-command", "yes", NULL};

    (void)state;
    scene_open(&s, args);
    return 0;
}

static int reaped(int daemons)
{
    int n = 0;

    for (int i = 0; i < daemons; i++)
        n += scene_log(&s, i, "event=reaped") + scene_log(&s, i, "event=given-up");
    return n;
}

/* ---- standing still */

static void stand_still(int ms)
{
    test_redis_kill(&s.redis, SIGSTOP);
    test_pause(ms);
    test_redis_kill(&s.redis, SIGCONT);
}

static void R8_frozen_under_three_workers(void **state)
{
    static const int full[] = {1000, 20000, 60000}, quick[] = {1000, 9000};
    const int *ms = test_is_long() ? full : quick;
    int n = test_is_long() ? 3 : 2;

    (void)state;
    for (int i = 0; i < 3; i++)
        scene_daemon(&s, i, NULL, "concurrency: 2");
    for (int i = 0; i < n; i++) {
        int ends = ledger_lines(&s.ledger, " end");

        scene_add(&s, "slow", 12);
        assert_true(ledger_until(&s.ledger, " start", ends + 6, SCENE_LONG_MS));
        stand_still(ms[i]);
        /* The handlers ended meanwhile, and no result was lost. */
        assert_true(ledger_until(&s.ledger, " end", ends + 6, 2000));
        (void)scene_works(&s, RESUME_MS + 4000); /* it waits for the slow jobs */
        scene_drained(&s, 0);
    }
    /* Time enough for a reap to show in the log, if a worker had been taken for dead. */
    test_pause(test_is_long() ? 30000 : 6000);
    assert_int_equal(reaped(3), 0);
    print_message("figure R8: Redis stopped for %d s under three workers: nobody reaped, every "
                  "job once\n",
                  ms[n - 1] / 1000);
}

static void R8_paused_and_asleep(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        scene_daemon(&s, i, NULL, "concurrency: 2");
    scene_add(&s, "slow", 8);
    scene_redis(&s, "CLIENT", "PAUSE", "4000", "ALL", NULL);
    test_pause(4000);
    (void)scene_works(&s, RESUME_MS + 4000);
    scene_add(&s, "slow", 8);
    scene_redis(&s, "DEBUG", "SLEEP", "3", NULL);
    (void)scene_works(&s, RESUME_MS + 4000);
    scene_drained(&s, 0);
    assert_int_equal(reaped(2), 0);
}

/* ---- another database */

static void R25_databases_swapped(void **state)
{
    struct ledger_sum sum;
    int before;

    (void)state;
    scene_daemon(&s, 0, NULL, "concurrency: 4");
    scene_add(&s, "slow", 12);
    assert_true(ledger_until(&s.ledger, " start", 4, SCENE_LONG_MS));
    scene_redis(&s, "SWAPDB", "0", "1", NULL);
    assert_true(scene_says(&s, 0, "event=forgotten", SCENE_LONG_MS));
    assert_true(ledger_until(&s.ledger, " end", 4, SCENE_LONG_MS));
    /* It serves the database that is there now, and starts no job of the other one. */
    before = ledger_lines(&s.ledger, " end");
    (void)scene_works(&s, RESUME_MS);
    assert_in_range(ledger_lines(&s.ledger, " end"), before + 1, before + 1);
    scene_redis(&s, "SWAPDB", "0", "1", NULL);
    assert_true(test_until_lines(s.d[0].log, "event=forgotten", 2, SCENE_LONG_MS));
    assert_true(scene_is_drained(&s, 2 * SCENE_LONG_MS));
    ledger_sum(&s.ledger, &sum);
    assert_int_equal(sum.lost + sum.unexpected + sum.twins + sum.double_starts, 0);
    /* The four jobs that ended while their data was away run again, once their former epoch has
     * been silent for long enough. The log says so. */
    assert_in_range(sum.duplicates, 0, 4);
    assert_in_range(scene_log(&s, 0, "event=registered"), 3, 3);
    print_message("figure R25: swapped away and back: 0 lost, %d run again\n", sum.duplicates);
}

int main(void)
{
#define T(f) cmocka_unit_test_prestate_setup_teardown(f, setup, scene_teardown, &s)
    const struct CMUnitTest tests[] = {
        T(R8_frozen_under_three_workers),
        T(R8_paused_and_asleep),
        T(R25_databases_swapped),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
