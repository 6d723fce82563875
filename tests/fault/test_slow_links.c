/*
 * Slow links: a worker that is only late is not reaped (R24, N6).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/env.h"
#include "network.h"

static int reaped(int i)
{
    return test_lines(net.d[i].log, "event=reaped");
}

static void R24_slow_link(void **state)
{
    int jobs = test_is_long() ? 40 : 12;

    (void)state;
    network_daemon(1, net.s.redis.url, "concurrency: 1");
    (void)proxy_tell(&net.proxy, "latency 200");
    network_daemon(0, NULL, "concurrency: 4\nredis_timeout: 10s");
    network_add("work", 50);
    network_drained(0);
    (void)proxy_tell(&net.proxy, "latency 2000");
    /* For longer than it takes until a silent worker is reaped. */
    for (int i = 0; i < jobs; i++) {
        network_add("slow", 5);
        test_pause(2500);
    }
    assert_int_equal(test_lines(net.d[0].log, "state=down"), 0);
    assert_int_equal(reaped(0) + reaped(1), 0);
    (void)proxy_tell(&net.proxy, "pass");
    network_drained(0);
}

static void N6_latency_spikes(void **state)
{
    int jobs = test_is_long() ? 60 : 10, downs;

    (void)state;
    network_daemon(0, NULL, "concurrency: 4");
    network_daemon(1, NULL, "concurrency: 4");
    (void)proxy_tell(&net.proxy, "jitter 20261 5000 10");
    for (int i = 0; i < jobs; i++) {
        network_add("work", 20);
        network_add("slow", 2);
        test_pause(2000);
    }
    downs = test_lines(net.d[0].log, "state=up") + test_lines(net.d[1].log, "state=up") - 2;
    assert_int_equal(reaped(0) + reaped(1), 0);
    (void)proxy_tell(&net.proxy, "pass");
    network_drained(0);
    print_message(
        "figure N6: seed 20261, %d jobs, %d links given up for a delay over 2 s: each job "
        "once\n",
        22 * jobs, downs);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, network_setup_proxy, network_teardown)
    const struct CMUnitTest tests[] = {
        T(N6_latency_spikes),
        T(R24_slow_link),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
