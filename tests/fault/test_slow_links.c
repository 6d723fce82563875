/*
 * Slow links: a worker that is only late is not reaped (R24, N6).
 */
#include <fcntl.h>
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
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "scene.h"

static struct scene s;

static int reaped(int i)
{
    return scene_log(&s, i, "event=reaped");
}

static void R24_slow_link(void **state)
{
    int jobs = test_is_long() ? 40 : 12;

    (void)state;
    scene_daemon(&s, 1, s.redis.url, "concurrency: 1");
    (void)proxy_tell(&s.proxy, "latency 200");
    scene_daemon(&s, 0, NULL, "concurrency: 4\nredis_timeout: 10s");
    scene_add(&s, "work", 50);
    scene_drained(&s, 0);
    (void)proxy_tell(&s.proxy, "latency 2000");
    /* For longer than it takes until a silent worker is reaped. */
    for (int i = 0; i < jobs; i++) {
        scene_add(&s, "slow", 5);
        test_pause(2500);
    }
    assert_int_equal(scene_log(&s, 0, "state=down"), 0);
    assert_int_equal(reaped(0) + reaped(1), 0);
    (void)proxy_tell(&s.proxy, "pass");
    scene_drained(&s, 0);
}

static void N6_latency_spikes(void **state)
{
    int jobs = test_is_long() ? 60 : 10, downs;

    (void)state;
    scene_daemon(&s, 0, NULL, "concurrency: 4");
    scene_daemon(&s, 1, NULL, "concurrency: 4");
    (void)proxy_tell(&s.proxy, "jitter 20261 5000 10");
    for (int i = 0; i < jobs; i++) {
        scene_add(&s, "work", 20);
        scene_add(&s, "slow", 2);
        test_pause(2000);
    }
    downs = scene_log(&s, 0, "state=up") + scene_log(&s, 1, "state=up") - 2;
    assert_int_equal(reaped(0) + reaped(1), 0);
    (void)proxy_tell(&s.proxy, "pass");
    scene_drained(&s, 0);
    print_message(
        "figure N6: seed 20261, %d jobs, %d links given up for a delay over 2 s: each job "
        "once\n",
        22 * jobs, downs);
}

int main(void)
{
#define T(f) cmocka_unit_test_prestate_setup_teardown(f, scene_setup_proxy, scene_teardown, &s)
    const struct CMUnitTest tests[] = {
        T(N6_latency_spikes),
        T(R24_slow_link),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
