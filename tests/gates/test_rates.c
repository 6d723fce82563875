/*
 * Rate limits in the claim: what they let start, by Redis' own clock, and what waiting costs (G5).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../fault/watched.h"
#include "base/cleanup.h"
#include "gate_stage.h"

#define SECOND_US 1000000
/* A fence is ahead of Redis' clock by the numbers that were drawn in the same moment. */
#define AHEAD_US 5000

static struct gates g;

struct run {
    struct gate_book b;
    double seconds;
    double calls, commands; /* a start */
    double cpu;             /* percent of a processor, both daemons, without their handlers */
};

static int setup(void **state)
{
    (void)state;
    gates_begin(&g);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return gates_end(&g);
}

/* n waiting jobs under this rate, served by two daemons, to their end. */
static void run(struct run *ret, const char *rate, int n)
{
    CLEANUP_BUF struct buf yaml = BUF_INIT;
    int64_t begin, calls, commands, cpu;

    buf_printf(&yaml, "limits: { pace: { %s } }\nqueues:\n", rate);
    gates_yaml(&g, &yaml, "work", 1, 1, ", rate: pace");
    gates_start(&g, &g.s.a, "a", 32, buf_str(&yaml));
    gates_start(&g, &g.s.b, "b", 32, buf_str(&yaml));
    gates_until_declared(&g, "work");
    calls = gates_calls(&g);
    commands = gates_commands(&g);
    cpu = watched_cpu_ms(g.s.a.proc.pid) + watched_cpu_ms(g.s.b.proc.pid);
    begin = gates_now_us();
    gates_add_many(&g, "work", n);
    assert_true(gates_until_jobs(&g, 0, n * 20 + GATE_WAIT_MS));
    ret->seconds = (double)(gates_now_us() - begin) / SECOND_US;
    ret->calls = (double)(gates_calls(&g) - calls) / n;
    ret->commands = (double)(gates_commands(&g) - commands) / n;
    cpu = watched_cpu_ms(g.s.a.proc.pid) + watched_cpu_ms(g.s.b.proc.pid) - cpu;
    ret->cpu = (double)cpu / ret->seconds / 10;
    gate_book_read(&ret->b, g.path, NULL);
    assert_int_equal(gate_book_starts(&ret->b), n);
}

static void print_cost(const struct run *r)
{
    print_message("figure G5: a start costs %.1f calls, %.0f commands in them; two daemons take "
                  "%.1f %% of a processor\n",
                  r->calls, r->commands, r->cpu);
}

/* The time of the start number i, by its fence. */
static int64_t fence_of(const struct gate_book *b, int i)
{
    for (size_t k = 0; k < b->n; k++)
        if (b->lines[k].is_start && i-- == 0)
            return b->lines[k].fence;
    return 0;
}

static void G5_gcra(void **state)
{
    int n = stage_number("LATER_JOBS", 400, 3000), most, fewest, of_second, first;
    int64_t window_us = stage_is_long() ? 10 * SECOND_US : SECOND_US;
    struct run r;

    (void)state;
    run(&r, "rate: 100/1s, burst: 20", n);
    gate_book_windows(&r.b, window_us, fence_of(&r.b, 0), &first, &fewest);
    gate_book_windows(&r.b, SECOND_US, 0, &of_second, &fewest);
    gate_book_windows(&r.b, window_us, fence_of(&r.b, 0) + SECOND_US / 100, &most, &fewest);
    print_message("figure G5: gcra 100/s burst 20, %d jobs in %.1f s: %d to %d starts in any %d s "
                  "after the burst, %d with it, at most %d in any second\n",
                  n, r.seconds, fewest, most, (int)(window_us / SECOND_US), first, of_second);
    print_cost(&r);
    assert_in_range(of_second, 100, 121);
    if (stage_is_long()) {
        assert_in_range(fewest, 990, 1021);
        assert_in_range(most, 990, 1021);
    }
    /* A step that grants and claims, one that tells the end, and what is seldom. */
    assert_true(r.calls < 6);
    assert_true(r.cpu < 50);
    gate_book_done(&r.b);
}

static void G5_sliding(void **state)
{
    int n = stage_number("LATER_JOBS", 200, 1000), most, fewest;
    struct run r;

    (void)state;
    run(&r, "rate: 50/1s, algorithm: sliding", n);
    gate_book_windows(&r.b, SECOND_US - AHEAD_US, 0, &most, &fewest);
    print_message("figure G5: sliding 50/s, %d jobs in %.1f s: %d to %d starts in any second\n", n,
                  r.seconds, fewest, most);
    print_cost(&r);
    assert_in_range(most, 50, 50);
    assert_true(r.calls < 6);
    gate_book_done(&r.b);
}

static void G5_fixed(void **state)
{
    int n = stage_number("LATER_JOBS", 200, 1000), most, fewest, aligned;
    struct run r;

    (void)state;
    run(&r, "rate: 50/1s, algorithm: fixed", n);
    gate_book_windows(&r.b, SECOND_US, 0, &most, &fewest);
    aligned = gate_book_most_aligned(&r.b, SECOND_US);
    print_message("figure G5: fixed 50/s, %d jobs in %.1f s: at most %d in a second of the clock, "
                  "%d in any\n",
                  n, r.seconds, aligned, most);
    print_cost(&r);
    assert_in_range(aligned, 50, 50);
    assert_in_range(most, 50, 100);
    assert_true(r.calls < 6);
    gate_book_done(&r.b);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(G5_gcra),
        T(G5_sliding),
        T(G5_fixed),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
