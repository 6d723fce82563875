/*
 * A Redis without the library, with a wrong one, or without any data (R16, R17, R18).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../support/env.h"
#include "base/clock.h"
#include "network.h"

#define RESUME_MS 3000  /* a new connection: 2 s are promised */
#define DENIED_MS 13000 /* after a denial: 10 s at most, 3 for a slow machine */

static void R16_library_flushed_under_load(void **state)
{
    int rounds = test_is_long() ? 50 : 6, loaded = 0;
    int64_t worst = 0;

    (void)state;
    network_daemon(0, NULL, "concurrency: 4");
    for (int i = 0; i < rounds; i++) {
        struct mono begin;
        int before;

        network_add("work", 100);
        assert_true(ledger_until(&net.s.ledger, " end", 100 * i + 20, STAGE_WAIT_MS));
        network_redis("FUNCTION", "FLUSH", NULL);
        begin = mono_now();
        before = ledger_lines(&net.s.ledger, " end");
        /* Count ends beyond the jobs running at the flush. Skip it if this process stood still
         * until nearly all jobs had run. */
        if (before + 5 <= 100 * (i + 1)) {
            assert_true(ledger_until(&net.s.ledger, " end", before + 5, STAGE_WAIT_MS));
            worst = test_ms_since(begin) > worst ? test_ms_since(begin) : worst;
            loaded++;
        }
        assert_true(ledger_until(&net.s.ledger, " end", 100 * (i + 1), STAGE_WAIT_MS));
    }
    assert_in_range(loaded, 1, rounds);
    assert_in_range(worst, 0, RESUME_MS);
    network_drained(0);
    print_message("figure R16: FUNCTION FLUSH %d times under load, on again after %lld ms at "
                  "most\n",
                  loaded, (long long)worst);
}

static void R17_newer_library_without_our_protocol(void **state)
{
    static const char strange[] =
        "#!lua name=laterd\nredis.register_function{function_name='later_version', "
        "flags={'no-writes'}, callback=function() return {99, 'strange', 3} end}";

    (void)state;
    network_daemon(0, NULL, "concurrency: 4");
    network_add("work", 5);
    assert_true(ledger_until(&net.s.ledger, " end", 5, STAGE_WAIT_MS));
    network_redis("FUNCTION", "LOAD", "REPLACE", strange, NULL);
    assert_true(test_laterd_says(&net.d[0], "state=down", STAGE_WAIT_MS));
    assert_true(test_laterd_says(&net.d[0], "protocol", STAGE_WAIT_MS));
    (void)network_is_calm(0, 5000, 3);
    /* laterd did not replace the newer library. */
    assert_null(
        test_redis_call(&net.s.redis, "FCALL", "later_add", "1", STAGE_ROOT, "work", "x", NULL));
    network_redis("FUNCTION", "FLUSH", NULL);
    assert_true(test_until_lines(net.d[0].log, "loaded=1", 2, STAGE_WAIT_MS));
    (void)network_works(DENIED_MS);
    network_drained(0);
}

/* A library that claims a higher number and lacks functions: each connection comes up and its
 * calls are refused. */
static void R17_broken_library(void **state)
{
    (void)state;
    network_daemon(0, NULL, "concurrency: 4");
    network_redis("FUNCTION", "LOAD", "REPLACE",
                  "#!lua name=laterd\nredis.register_function{function_name='later_version', "
                  "flags={'no-writes'}, callback=function() return {99, 'broken', 1} end}",
                  NULL);
    assert_true(test_laterd_says(&net.d[0], "Function not found", STAGE_WAIT_MS));
    (void)network_is_calm(0, 8000, 16);
    network_redis("FUNCTION", "FLUSH", NULL);
    (void)network_works(RESUME_MS);
    network_drained(0);
}

static void R17_older_library(void **state)
{
    (void)state;
    network_daemon(0, NULL, "concurrency: 4");
    network_redis("FUNCTION", "LOAD", "REPLACE",
                  "#!lua name=laterd\nredis.register_function{function_name='later_version', "
                  "flags={'no-writes'}, callback=function() return {-1, 'old', 1} end}",
                  NULL);
    /* The first missing function makes the daemon probe again and replace the library. */
    assert_true(test_until_lines(net.d[0].log, "loaded=1", 2, STAGE_WAIT_MS));
    (void)network_works(RESUME_MS);
    network_drained(0);
}

/* ---- data gone: R18 */

static void R18_flushall_mid_run(void **state)
{
    (void)state;
    network_daemon(0, NULL, "concurrency: 4");
    network_add("slow", 8);
    assert_true(ledger_until(&net.s.ledger, " start", 4, STAGE_WAIT_MS));
    network_redis("FLUSHALL", NULL);
    assert_true(test_laterd_says(&net.d[0], "rewound=1", STAGE_WAIT_MS));
    assert_true(ledger_until(&net.s.ledger, " end", 4, STAGE_WAIT_MS));
    /* The other four are Redis' own loss. */
    ledger_excuse(&net.s.ledger, 0);
    (void)network_works(RESUME_MS);
    /* Results of jobs that Redis forgot are not sent for ever. */
    (void)network_is_calm(0, 3000, 2);
    assert_int_equal(test_laterd_stop(&net.d[0]), 0);
    assert_int_equal(test_lines(net.d[0].log, "event=unconfirmed"), 0);
    assert_int_equal(ledger_lines(&net.s.ledger, " start"), 5);
    network_drained(0);
}

int main(void)
{
#define T_WITH(f, setup) cmocka_unit_test_setup_teardown(f, setup, network_teardown)
#define T(f) T_WITH(f, network_setup)
    const struct CMUnitTest tests[] = {
        T(R16_library_flushed_under_load),
        T(R17_newer_library_without_our_protocol),
        T(R17_broken_library),
        T(R17_older_library),
        T(R18_flushall_mid_run),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
