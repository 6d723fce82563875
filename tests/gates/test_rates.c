/*
 * Rate limits: how many starts they allow by Redis' clock, and what waiting for them costs (G5).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../fault/usage.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "gate_stage.h"

#define SECOND_US 1000000
struct run {
    struct gate_judge b;
    struct gate_judge granted; /* lines with the times at which Redis counted starts, as fences */
    double seconds;
    double calls, commands; /* per start */
    double cpu;             /* percent of a processor, both daemons without their handlers */
};

/* Add new entries of the sliding rate's log to r->granted; Redis keeps them for a second. */
static void sample(struct run *r)
{
    struct gate_judge *b = &r->granted;
    struct reply *log = gates_call(&gates, "ZRANGE", STAGE_ROOT ":rate:sliding:pace", "0", "-1",
                                   "WITHSCORES", NULL);
    int64_t last = b->n > 0 ? b->lines[b->n - 1].us : 0;

    b->lines = mem_grow(b->lines, b->n + reply_count(log) + 1, sizeof(*b->lines));
    /* The members are rising numbers. */
    for (size_t i = 0; i + 1 < reply_count(log); i += 2) {
        if (reply_int(reply_at(log, i)) <= last)
            continue;
        b->lines[b->n++] = (struct gate_line){.us = reply_int(reply_at(log, i)),
                                              .is_start = true,
                                              .fence = reply_int(reply_at(log, i + 1))};
    }
    reply_free(log);
}

static bool is_through(void *arg)
{
    sample(arg);
    return gates_int(&gates, "HLEN", STAGE_ROOT ":jobs", NULL) == 0;
}

static void start_two(const char *rate)
{
    CLEANUP_BUF struct buf yaml = BUF_INIT;

    buf_printf(&yaml, "limits: { pace: { %s } }\nqueues:\n", rate);
    gates_yaml(&gates, &yaml, "work", 1, 1, ", rate: pace");
    gates_start(&gates, &gates.s.a, "a", 32, buf_str(&yaml));
    gates_start(&gates, &gates.s.b, "b", 32, buf_str(&yaml));
    gates_until_declared(&gates, "work");
}

/* Add n jobs and wait until two daemons have run them all. */
static void run(struct run *ret, int n)
{
    int64_t begin, calls, commands, cpu;

    memset(ret, 0, sizeof(*ret));
    assert_int_equal(truncate(gates.path, 0), 0);
    calls = gates_calls(&gates);
    commands = gates_commands(&gates);
    cpu = usage_cpu_ms(gates.s.a.proc.pid) + usage_cpu_ms(gates.s.b.proc.pid);
    begin = gates_now_us();
    gates_add_many(&gates, "work", n);
    assert_true(test_until(is_through, ret, n * 20 + GATE_WAIT_MS));
    ret->seconds = (double)(gates_now_us() - begin) / SECOND_US;
    ret->calls = (double)(gates_calls(&gates) - calls) / n;
    ret->commands = (double)(gates_commands(&gates) - commands) / n;
    cpu = usage_cpu_ms(gates.s.a.proc.pid) + usage_cpu_ms(gates.s.b.proc.pid) - cpu;
    ret->cpu = (double)cpu / ret->seconds / 10;
    gate_judge_read(&ret->b, gates.path, NULL);
    assert_int_equal(gate_judge_starts(&ret->b), n);
}

static void run_done(struct run *r)
{
    gate_judge_done(&r->b);
    gate_judge_done(&r->granted);
}

static void print_cost(const struct run *r)
{
    print_message("figure G5: a start costs %.1f calls, %.0f commands in them; two daemons take "
                  "%.1f %% of a processor\n",
                  r->calls, r->commands, r->cpu);
}

/* The fence of start number i, from 0. */
static int64_t fence_of(const struct gate_judge *b, int i)
{
    for (size_t k = 0; k < b->n; k++)
        if (b->lines[k].is_start && i-- == 0)
            return b->lines[k].fence;
    return 0;
}

/* Fails if more starts than the rate allows. The long form returns whether also no start was lost:
 * if the machine delays the workers for longer than the burst covers, starts are lost for good. */
static bool gcra(int n)
{
    int most, fewest, of_second, first;
    int64_t window_us = test_is_long() ? 10 * SECOND_US : SECOND_US;
    struct run r;

    run(&r, n);
    gate_judge_windows(&r.b, window_us, 0, &first, &fewest);
    gate_judge_windows(&r.b, SECOND_US, 0, &of_second, &fewest);
    gate_judge_windows(&r.b, window_us, fence_of(&r.b, 0) + SECOND_US / 100, &most, &fewest);
    print_message("figure G5: gcra 100/s burst 20, %d jobs in %.1f s: %d to %d starts in any %d s "
                  "after the burst, %d with it, at most %d in any second\n",
                  n, r.seconds, fewest, most, (int)(window_us / SECOND_US), first, of_second);
    print_cost(&r);
    assert_in_range(of_second, 1, 121);
    assert_in_range(most, 1, window_us / SECOND_US * 100 + 21);
    /* A start costs a sync that grants and claims, a sync of the other daemon, and one that tells
     * the end. */
    assert_true(r.calls < 6);
    assert_true(!test_is_long() || r.cpu < 50);
    run_done(&r);
    return !test_is_long() || fewest >= 990;
}

static void G5_gcra(void **state)
{
    int n = stage_number("LATER_JOBS", 400, 5000);
    bool is_even = false;

    (void)state;
    start_two("rate: 100/1s, burst: 20");
    for (int i = 0; i < 3 && !is_even; i++)
        is_even = gcra(n);
    assert_true(is_even);
}

/* If the worker that opened the gate has no room for all, others claim a moment later. */
static void G5_sliding(void **state)
{
    int n = stage_number("LATER_JOBS", 200, 1000), most, fewest, claimed;
    struct run r;

    (void)state;
    start_two("rate: 50/1s, algorithm: sliding");
    run(&r, n);
    gate_judge_windows(&r.b, SECOND_US, 0, &claimed, &fewest);
    gate_judge_windows(&r.granted, SECOND_US, 0, &most, &fewest);
    print_message("figure G5: sliding 50/s, %d jobs in %.1f s: at most %d granted in any second of "
                  "Redis, at most %d claimed\n",
                  n, r.seconds, most, claimed);
    print_cost(&r);
    assert_int_equal(r.granted.n, n);
    assert_in_range(most, test_is_long() ? 50 : 1, 50);
    assert_true(r.calls < 6);
    run_done(&r);
}

static void G5_fixed(void **state)
{
    int n = stage_number("LATER_JOBS", 200, 1000), most, fewest, aligned;
    struct run r;

    (void)state;
    start_two("rate: 50/1s, algorithm: fixed");
    run(&r, n);
    gate_judge_windows(&r.b, SECOND_US, 0, &most, &fewest);
    aligned = gate_judge_most_aligned(&r.b, SECOND_US);
    print_message("figure G5: fixed 50/s, %d jobs in %.1f s: at most %d in a second of the clock, "
                  "%d in any\n",
                  n, r.seconds, aligned, most);
    print_cost(&r);
    assert_in_range(aligned, test_is_long() ? 50 : 1, 50);
    assert_in_range(most, 1, 100);
    assert_true(r.calls < 6);
    run_done(&r);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, gates_setup, gates_teardown)
    const struct CMUnitTest tests[] = {
        T(G5_gcra),
        T(G5_sliding),
        T(G5_fixed),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
