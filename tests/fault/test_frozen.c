/*
 * A Redis that stands still, or whose data are suddenly other data (R8, R25).
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
#include "network.h"

#define RESUME_MS 3000 /* 2 s are promised; one more for a slow machine */

static int setup(void **state)
{
    static const char *const args[] = {"--enable-debug-command", "yes", NULL};

    (void)state;
    return network_setup_with(args);
}

static int reaped(int daemons)
{
    int n = 0;

    for (int i = 0; i < daemons; i++)
        n += test_lines(net.d[i].log, "event=reaped") + test_lines(net.d[i].log, "event=given-up");
    return n;
}

/* ---- standing still */

static void stand_still(int ms)
{
    test_redis_kill(&net.s.redis, SIGSTOP);
    test_pause(ms);
    test_redis_kill(&net.s.redis, SIGCONT);
}

static void R8_frozen_under_three_workers(void **state)
{
    static const int full[] = {1000, 20000, 60000}, quick[] = {1000, 9000};
    const int *ms = test_is_long() ? full : quick;
    int n = test_is_long() ? 3 : 2;

    (void)state;
    for (int i = 0; i < 3; i++)
        network_daemon(i, NULL, "concurrency: 2");
    for (int i = 0; i < n; i++) {
        int ends = ledger_lines(&net.s.ledger, " end");

        network_add("slow", 12);
        assert_true(ledger_until(&net.s.ledger, " start", ends + 6, STAGE_WAIT_MS));
        stand_still(ms[i]);
        /* The handlers ended meanwhile, and no result was lost. */
        assert_true(ledger_until(&net.s.ledger, " end", ends + 6, 2000));
        (void)network_works(RESUME_MS + 4000); /* it waits for the slow jobs */
        network_drained(0);
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
        network_daemon(i, NULL, "concurrency: 2");
    network_add("slow", 8);
    network_redis("CLIENT", "PAUSE", "4000", "ALL", NULL);
    test_pause(4000);
    (void)network_works(RESUME_MS + 4000);
    network_add("slow", 8);
    network_redis("DEBUG", "SLEEP", "3", NULL);
    (void)network_works(RESUME_MS + 4000);
    network_drained(0);
    assert_int_equal(reaped(2), 0);
}

/* ---- another database */

static void R25_databases_swapped(void **state)
{
    struct ledger_sum sum;
    int before;

    (void)state;
    network_daemon(0, NULL, "concurrency: 4");
    network_add("slow", 12);
    assert_true(ledger_until(&net.s.ledger, " start", 4, STAGE_WAIT_MS));
    network_redis("SWAPDB", "0", "1", NULL);
    assert_true(test_laterd_says(&net.d[0], "event=forgotten", STAGE_WAIT_MS));
    assert_true(ledger_until(&net.s.ledger, " end", 4, STAGE_WAIT_MS));
    /* It serves the database that is there now, and starts no job of the other one. */
    before = ledger_lines(&net.s.ledger, " end");
    (void)network_works(RESUME_MS);
    assert_in_range(ledger_lines(&net.s.ledger, " end"), before + 1, before + 1);
    network_redis("SWAPDB", "0", "1", NULL);
    assert_true(test_until_lines(net.d[0].log, "event=forgotten", 2, STAGE_WAIT_MS));
    assert_true(network_is_drained(2 * STAGE_WAIT_MS));
    ledger_sum(&net.s.ledger, &sum);
    assert_int_equal(sum.lost + sum.unexpected + sum.twins + sum.double_starts, 0);
    /* The four jobs that ended while their data was away run again, once their former epoch has
     * been silent for long enough. The log says so. */
    assert_in_range(sum.duplicates, 0, 4);
    assert_in_range(test_lines(net.d[0].log, "event=registered"), 3, 3);
    print_message("figure R25: swapped away and back: 0 lost, %d run again\n", sum.duplicates);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, network_teardown)
    const struct CMUnitTest tests[] = {
        T(R8_frozen_under_three_workers),
        T(R8_paused_and_asleep),
        T(R25_databases_swapped),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
