/*
 * A broken network between laterd and Redis: links that are silent, that take one byte at a time,
 * or that carry garbage (R23, R26, N1, N4, N5).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/env.h"
#include "base/clock.h"
#include "network.h"
#include "usage.h"

#define RESUME_MS 3000 /* 2 s are promised; one more for a slow machine */

/* ---- silent links */

static void is_noticed_and_left(const char *mode, int line)
{
    int lasts_ms = test_is_long() ? 30000 : 4000;
    int64_t noticed, resumed;
    struct mono begin;

    network_daemon(0, NULL, "concurrency: 2");
    network_add("slow", 2);
    assert_true(ledger_until(&net.s.ledger, " start", 2, STAGE_WAIT_MS));
    begin = mono_now();
    (void)proxy_tell(&net.proxy, "mode %s", mode);
    assert_true(test_laterd_says(&net.d[0], "state=down", STAGE_WAIT_MS));
    noticed = test_ms_since(begin);
    /* A look is sent every second, and 2 s later its missing answer is noticed. */
    assert_in_range(noticed, 0, 5000);
    assert_in_range(network_is_calm(0, lasts_ms, 6), 0, lasts_ms / 1000 + 2);
    /* Running jobs have ended, and no job was started. */
    assert_int_equal(ledger_lines(&net.s.ledger, " end"), 2);
    (void)proxy_tell(&net.proxy, "pass");
    resumed = network_works(RESUME_MS + 2000); /* a hanging connection attempt ends after 2 s */
    network_drained(0);
    print_message("figure N%d: %s noticed after %lld ms, work again %lld ms after its end\n", line,
                  mode, (long long)noticed, (long long)resumed);
}

static void N1_half_open_bytes_are_gone(void **state)
{
    (void)state;
    is_noticed_and_left("blackhole", 1);
}

static void N1_half_open_bytes_come_later(void **state)
{
    (void)state;
    is_noticed_and_left("stall", 1);
}

static void R23_pubsub_link_goes_silent(void **state)
{
    int64_t worst = 0, ms;

    (void)state;
    network_daemon(0, NULL, "concurrency: 2");
    (void)network_works(RESUME_MS);
    (void)proxy_tell(&net.proxy, "on SUBSCRIBE blackhole 0");
    (void)proxy_tell(&net.proxy, "mute");
    for (int i = 0; i < 6; i++) {
        ms = network_works(2500); /* a look comes every 0.9 to 1.1 s */
        worst = ms > worst ? ms : worst;
    }
    assert_int_equal(test_lines(net.d[0].log, "state=down"), 0);
    (void)proxy_tell(&net.proxy, "pass");
    network_drained(0);
    print_message("figure R23: without wake-ups a due job started after %lld ms at most\n",
                  (long long)worst);
}

/* ---- links that take little at a time */

static void N4_one_byte_at_a_time(void **state)
{
    (void)state;
    (void)proxy_tell(&net.proxy, "mode slice");
    network_daemon(0, NULL, "concurrency: 4\nredis_timeout: 20s");
    network_add("work", 100);
    for (int i = 0; i < 5; i++)
        assert_int_equal(network_later_add(net.proxy.url, NULL, NULL), 0);
    network_drained(0);
    assert_int_equal(test_lines(net.d[0].log, "state=down"), 0);
}

static bool all_are_kept(void *arg)
{
    (void)arg;
    return test_int(&net.s.redis, "ZCARD", STAGE_ROOT ":done:loud") == 32;
}

/* Each sync carries 16 results of 16 KiB, of which the socket takes at most three bytes a call. */
static void N5_short_writes(void **state)
{
    (void)state;
    ledger_script(&net.s.ledger, "loud",
                  "sleep 0.5; for i in 1 2 3 4; do "
                  "echo \"result $(head -c 4000 /dev/zero | tr '\\0' r)\" >&3; done");
    stage_preload("shortwrite", NULL, NULL);
    network_daemon(0, NULL, "concurrency: 16\nredis_timeout: 20s\ndefaults: { keep: 1h }");
    stage_plain();
    network_add("loud", 32);
    assert_true(ledger_until(&net.s.ledger, " end", 32, STAGE_WAIT_MS));
    /* Sending the last results takes a while, at a few bytes a call. */
    assert_true(test_until(all_are_kept, NULL, STAGE_WAIT_MS));
    (void)network_is_calm(0, 3000, 40);
    assert_int_equal(test_lines(net.d[0].log, "state=down"), 0);
    /* Outcomes are kept, so it never drains. Each job ran once. */
    assert_int_equal(ledger_lines(&net.s.ledger, " start"), 32);
}

/* ---- answers that are not valid */

static void R26_resp_garbage(void **state)
{
    static const char *const bad[] = {
        "*4611686018427387904\r\n",
        "*1000000000\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        "?what\r\n",
        "$-7\r\n",
        "$999999999999999999\r\nx",
        "*-2\r\n",
        "+OK\r\n",
        ":1\r\n",
        "*0\r\n",
        "-ERR\r\n",
        "\r\n\r\n\r\n",
        "*8\r\n:1\r\n+ok\r\n*-1\r\n$-1\r\n:3\r\n*0\r\n*0\r\n:0\r\n",
        "*8\r\n:1\r\n+ok\r\n*0\r\n*1\r\n*8\r\n$1\r\nx\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n+y\r\n"
        "*0\r\n*1\r\n:1\r\n*0\r\n:0\r\n",
    };
    static const char *const where[] = {"later_v1_sync", "later_v1_beat", "INFO",
                                        "later_version", "SUBSCRIBE",     "later_v2_look"};
    int64_t before, fired = 0;
    pid_t pid;

    (void)state;
    network_daemon(0, NULL, "concurrency: 2\nredis_timeout: 1s");
    pid = net.d[0].proc.pid;
    before = usage_kib(pid, "VmRSS");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        (void)proxy_tell(&net.proxy, "pass");
        /* The first two in every answer, the others in answers to a sync (all in the long form). */
        for (size_t k = 0; k < (i < 2 || test_is_long() ? 6 : 1); k++) {
            (void)proxy_tell(&net.proxy, "on %s garbage:%s", where[k], proxy_hex(bad[i]));
            if (k != 0)
                (void)proxy_tell(&net.proxy, "reset");
            if (k < 2)
                network_redis("PUBLISH", STAGE_ROOT ":wake", k == 0 ? "work" : "!beat", NULL);
            fired++;
            if (!proxy_until_fired(&net.proxy, fired, STAGE_WAIT_MS))
                fail_msg("%s was not answered with garbage %zu", where[k], i);
        }
        (void)proxy_tell(&net.proxy, "pass");
        print_message("garbage %zu: work after %lld ms\n", i, (long long)network_works(20000));
    }
    assert_int_equal(net.d[0].proc.pid, pid);
    assert_in_range(usage_kib(pid, "VmRSS"), 1, before + 65536);
    network_drained(0);
    print_message("figure R26: %d answers of garbage, memory %lld to %lld KiB\n", (int)fired,
                  (long long)before, (long long)usage_kib(pid, "VmRSS"));
}

/* On both links of an idle worker: an answer that nobody asked for ends the link, not the process.
 * Eight would be more lines in 30 s than the log takes of this kind. The last one is what a
 * subscriber gets, so it ends only the link for calls. */
static void R26_answers_that_nobody_asked_for(void **state)
{
    static const char *const shapes[] = {
        "+OK\r\n",
        "$-1\r\n",
        "*0\r\n",
        "-ERR unasked\r\n",
        ">2\r\n+invalidate\r\n*-1\r\n",
        "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n",
        "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$1\r\ny\r\n",
    };
    int downs = 0;
    pid_t pid;

    (void)state;
    network_daemon(0, NULL, "concurrency: 2");
    pid = net.d[0].proc.pid;
    (void)network_works(20000);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        (void)proxy_tell(&net.proxy, "say %s", proxy_hex(shapes[i]));
        downs++;
        assert_true(test_until_lines(net.d[0].log, "state=down", downs, STAGE_WAIT_MS));
        (void)network_works(20000);
    }
    assert_int_equal(net.d[0].proc.pid, pid);
    network_drained(0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, network_setup_proxy, network_teardown)
    const struct CMUnitTest tests[] = {
        T(N1_half_open_bytes_are_gone),
        T(N1_half_open_bytes_come_later),
        T(R23_pubsub_link_goes_silent),
        T(N4_one_byte_at_a_time),
        T(N5_short_writes),
        T(R26_resp_garbage),
        T(R26_answers_that_nobody_asked_for),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
