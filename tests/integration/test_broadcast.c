/* Broadcasts with real daemons: each worker, one of a host, and what goes with its worker. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/fsck.h"
#include "fixture.h"

#define LONG_MS 60000
#define YAML "queues: { q: { backoff: { first: 0s } } }\n"

#define broadcast(...) test_fcall(&redis, "later_broadcast", "q", __VA_ARGS__, NULL)

static void start_both(void)
{
    start_a(YAML);
    start(&b, "b", YAML);
    assert_true(test_laterd_says(&a, "event=registered", LONG_MS));
    assert_true(test_laterd_says(&b, "event=registered", LONG_MS));
}

static void test_each_worker(void **state)
{
    struct reply *r;

    (void)state;
    test_handler(dir, "q", "echo \"$LATER_ID $(cat)\" >> %s\n", out);
    start_both();
    r = broadcast("hello");
    assert_int_equal(reply_int(reply_at(r, 0)), 2);
    for (size_t i = 1; i <= 2; i++) {
        const struct reply *row = reply_at(r, i);
        CLEANUP_FREE char *line = mem_printf("%s ", reply_str(reply_at(row, 1)));
        CLEANUP_FREE char *epoch =
            mem_printf("event=registered epoch=%s ", reply_str(reply_at(row, 0)));
        CLEANUP_FREE char *end = mem_printf("event=end job=%s", reply_str(reply_at(row, 1)));
        const struct test_laterd *d = test_lines(a.log, epoch) > 0 ? &a : &b;

        assert_true(test_until_lines(out, line, 1, LONG_MS));
        assert_true(test_until_lines(d->log, end, 1, LONG_MS));
    }
    reply_free(r);
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_true(test_until_lines(out, NULL, 2, LONG_MS));
    /* Of a host one runs it, at its millisecond. */
    reply_free(broadcast("per", "host", "in", "300ms", "later"));
    assert_true(test_until_lines(out, NULL, 3, LONG_MS));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(test_fsck(&redis), 0);
}

/* Killed while it runs: the next worker of the host runs it. */
static void test_host_after_a_kill(void **state)
{
    CLEANUP_FREE char *mark = mem_printf("%s/mark", dir);

    (void)state;
    test_handler(
        dir, "q",
        "if [ ! -e %s ]; then echo runs > %s; exec sleep 100; fi; echo \"again $(cat)\" >> "
        "%s\n",
        mark, mark, out);
    start_a(YAML);
    assert_true(test_laterd_says(&a, "event=registered", LONG_MS));
    reply_free(broadcast("per", "host", "x"));
    assert_true(test_until_lines(mark, "runs", 1, LONG_MS));
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    test_laterd_start(&a);
    assert_true(test_until_lines(out, "again x", 1, LONG_MS));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
}

static bool is_one_left(void *arg)
{
    (void)arg;
    return test_int(&redis, "HLEN", ROOT ":jobs") == 1;
}

/* A worker that stops takes along what waits for it, and nothing else. */
static void test_its_worker_stops(void **state)
{
    (void)state;
    test_handler(dir, "q", "cat\n");
    start_both();
    reply_free(broadcast("in", "1h", "x"));
    assert_int_equal(test_int(&redis, "HLEN", ROOT ":jobs"), 2);
    assert_int_equal(test_laterd_stop(&b), 0);
    assert_true(test_until(is_one_left, NULL, LONG_MS));
    assert_int_equal(test_fsck(&redis), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_worker, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_host_after_a_kill, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_its_worker_stops, fx_open, fx_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
