/*
 * What gates cost: jobs that wait at a shut gate, and a gate that is never full (G3, G4).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../fault/usage.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "gate_stage.h"

#define IDLE_MS 10000 /* two beats and a tidy of each daemon */
#define ROUNDS_MAX 9

static struct gates bare;

static int setup_two(void **state)
{
    gates_begin(&bare);
    return gates_setup(state);
}

static int teardown_two(void **state)
{
    return gates_end(&bare) + gates_teardown(state);
}

/* Append a queue of jobs that do nothing. */
static void noop_yaml(struct buf *ret, const char *queue, const char *more)
{
    buf_printf(ret, "  %s: { handler: [/bin/true]%s }\n", queue, more);
}

/* Jobs per second, for n jobs that become due when the queue is resumed; `rest` other jobs
 * remain. */
static double throughput(struct gates *at, const char *queue, int n, int64_t rest)
{
    int64_t begin;

    gates_do(at, "later_pause", queue, NULL);
    gates_add_many(at, queue, n);
    begin = gates_now_us();
    gates_do(at, "later_resume", queue, NULL);
    assert_true(gates_until_jobs(at, rest, GATE_WAIT_MS));
    return (double)n * 1e6 / (double)(gates_now_us() - begin);
}

/* ---- G3: parked jobs */

struct idle {
    double calls;    /* function calls by the daemons, per second */
    double commands; /* per second, also inside functions; depends on the kinds of calls */
    double cpu;      /* percent of a processor, of the busier daemon */
};

static struct idle watch_idle(struct gates *at)
{
    int64_t a = usage_cpu_ms(at->s.a.proc.pid);
    int64_t b = at->s.b.runs ? usage_cpu_ms(at->s.b.proc.pid) : 0;
    int64_t commands = gates_commands(at), calls = gates_calls(at), begin = gates_now_us();
    struct idle ret;
    double s;

    test_pause(IDLE_MS);
    s = (double)(gates_now_us() - begin) / 1e6;
    ret.calls = (double)(gates_calls(at) - calls) / s;
    ret.commands = (double)(gates_commands(at) - commands) / s;
    a = usage_cpu_ms(at->s.a.proc.pid) - a;
    b = at->s.b.runs ? usage_cpu_ms(at->s.b.proc.pid) - b : 0;
    ret.cpu = (double)(a > b ? a : b) / s / 10;
    return ret;
}

static void park(struct gates *at, int n)
{
    gates_do(at, "later_lock", "one", "outside", "ttl", "1h", NULL);
    gates_add_many(at, "work", n);
    assert_true(gates_until_parked(at, "work", n, 3 * GATE_WAIT_MS));
}

static void G3_parked_before_a_shut_lock(void **state)
{
    int n = stage_number("LATER_JOBS", 5000, 100000);
    CLEANUP_BUF struct buf yaml = BUF_INIT;
    struct idle before, with;
    int64_t begin, parked_us, first_us;
    struct gate_judge b;

    (void)state;
    buf_puts(&yaml, "queues:\n");
    gates_yaml(&gates, &yaml, "work", 1, 1, ", lock: one");
    gates_start(&gates, &gates.s.a, "a", 16, buf_str(&yaml));
    gates_start(&gates, &gates.s.b, "b", 16, buf_str(&yaml));
    gates_until_declared(&gates, "work");
    before = watch_idle(&gates);
    begin = gates_now_us();
    park(&gates, n);
    parked_us = gates_now_us() - begin;
    with = watch_idle(&gates);
    begin = gates_now_us();
    gates_do(&gates, "later_unlock", "one", "outside", NULL);
    assert_true(gates_until_lines(&gates, " end ", 20, GATE_WAIT_MS));
    gate_judge_read(&b, gates.path, NULL);
    first_us = b.lines[0].us - begin;
    print_message("figure G3: %d jobs parked in %.1f s; two idle daemons: %.1f calls and %.1f "
                  "commands/s before, %.1f and %.1f with them; the busier laterd %.2f %% of a "
                  "processor before, %.2f %% with "
                  "them; the first started %.1f ms after the unlock\n",
                  n, (double)parked_us / 1e6, before.calls, before.commands, with.calls,
                  with.commands, before.cpu, with.cpu, (double)first_us / 1000);
    assert_int_equal(gate_judge_most(&b, NULL), 1);
    gate_judge_done(&b);
    assert_true(with.calls - before.calls <= 1 && before.calls - with.calls <= 1);
    assert_true(with.commands < before.commands * 1.3);
    assert_true(!test_is_long() || (with.cpu < 0.5 && first_us <= 5000));
}

static void G3_another_queue_beside_them(void **state)
{
    int n = stage_number("LATER_JOBS", 5000, 100000), jobs = 3000, rounds = 7;
    CLEANUP_BUF struct buf yaml = BUF_INIT;
    double with[ROUNDS_MAX], without[ROUNDS_MAX], part;

    (void)state;
    if (!test_is_long())
        skip();
    buf_puts(&yaml, "queues:\n");
    gates_yaml(&gates, &yaml, "work", 1, 1, ", lock: one");
    noop_yaml(&yaml, "other", "");
    gates_start(&gates, &gates.s.a, "a", 16, buf_str(&yaml));
    gates_start(&bare, &bare.s.a, "a", 16, buf_str(&yaml));
    gates_until_declared(&gates, "work");
    park(&gates, n);
    for (int i = 0; i < rounds; i++) {
        with[i] = throughput(&gates, "other", jobs, n);
        without[i] = throughput(&bare, "other", jobs, 0);
    }
    part = gates_median(with, rounds) / gates_median(without, rounds);
    print_message("figure G3: another queue: %.0f jobs/s beside %d parked ones, %.0f without "
                  "(medians of %d): %.1f %%\n",
                  gates_median(with, rounds), n, gates_median(without, rounds), rounds, part * 100);
    assert_true(part > 0.95);
}

/* ---- G4: a gate that is never full */

static void G4_a_semaphore_that_is_never_full(void **state)
{
    int jobs = stage_number("LATER_JOBS", 400, 3000), rounds = test_is_long() ? 9 : 3;
    CLEANUP_BUF struct buf yaml = BUF_INIT;
    double plain[ROUNDS_MAX], gated[ROUNDS_MAX], cost;
    int64_t commands[2] = {0, 0}, us[2] = {0, 0};

    (void)state;
    buf_puts(&yaml, "limits: { wide: { semaphore: 1000000 } }\nqueues:\n");
    noop_yaml(&yaml, "plain", "");
    noop_yaml(&yaml, "gated", ", semaphore: wide");
    gates_start(&gates, &gates.s.a, "a", 16, buf_str(&yaml));
    gates_until_declared(&gates, "gated");
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < 2; k++) {
            int64_t c = gates_commands(&gates), t = gates_busy_us(&gates);
            double *rate = k == 0 ? &plain[i] : &gated[i];

            *rate = throughput(&gates, k == 0 ? "plain" : "gated", jobs, 0);
            commands[k] += gates_commands(&gates) - c;
            us[k] += gates_busy_us(&gates) - t;
        }
    }
    cost = 1 - gates_median(gated, rounds) / gates_median(plain, rounds);
    print_message(
        "figure G4: no-ops: %.0f/s without a gate, %.0f/s under a semaphore that is never "
        "full (medians of %d): %.1f %% less; Redis: %.1f commands and %.0f us a job "
        "without, %.1f and %.0f under it\n",
        gates_median(plain, rounds), gates_median(gated, rounds), rounds, cost * 100,
        (double)commands[0] / rounds / jobs, (double)us[0] / rounds / jobs,
        (double)commands[1] / rounds / jobs, (double)us[1] / rounds / jobs);
    /* The slower the machine, the fewer jobs share a sync, and the more a gate weighs. */
    assert_true((double)commands[1] <= 4.0 * (double)commands[0]);
    assert_true(!test_is_long() || cost <= 0.25);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, gates_setup, gates_teardown)
    const struct CMUnitTest tests[] = {
        T(G3_parked_before_a_shut_lock),
        cmocka_unit_test_setup_teardown(G3_another_queue_beside_them, setup_two, teardown_two),
        T(G4_a_semaphore_that_is_never_full),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
