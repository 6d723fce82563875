/*
 * Workers that are killed, restarted or stand still while their jobs hold gates (G6).
 */
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
#include "gate_stage.h"

#define EACH 16
#define HOLD_MS 90000 /* longer than any wait here */
#define FROZEN_MS 60000
/* Silence is five beats of another worker, the first up to 5 s after the last beat of the dead one:
 * 25 s (sched/silence.h). The long form allows 2 s more; without it the machine may be slow. */
#define PASSED_ON_MS (test_is_long() ? 27000 : 60000)

/* ---- jobs of `hold` on daemon a hold gates; jobs of `work` on daemon b wait for the same gates */

struct held_job {
    char ids[2 * EACH][16];
    int locks, places;
};

static void add_holders(struct held_job *h, const char *queue)
{
    for (int i = 0; i < h->locks; i++) {
        CLEANUP_FREE char *name = mem_printf("door:%d", i);

        gates_add(&gates, h->ids[i], queue, "lock", name, "key", name, NULL);
    }
    /* These may run beside each other, so each has its own key. */
    for (int i = 0; i < h->places; i++) {
        CLEANUP_FREE char *key = mem_printf("%s:%d", queue, i);

        gates_add(&gates, h->ids[h->locks + i], queue, "sem", "places", "key", key, NULL);
    }
}

static void start_one(struct test_laterd *d, const char *name, const char *queue, int ms)
{
    CLEANUP_BUF struct buf yaml = BUF_INIT;

    buf_puts(&yaml, "queues:\n");
    gates_yaml_alone(&gates, &yaml, queue, ms, ms, "");
    gates_start(&gates, d, name, 2 * EACH, buf_str(&yaml));
}

static void hold_and_wait(struct held_job *h, int starts)
{
    struct held_job waiting = *h;

    add_holders(h, "hold");
    assert_true(gates_until_lines(&gates, " start ", starts + h->locks + h->places, GATE_WAIT_MS));
    add_holders(&waiting, "work");
    assert_true(gates_until_parked(&gates, "work", h->locks + h->places, GATE_WAIT_MS));
}

/* Wait until all waiting jobs have started. ret_ms: when the first and the last did, in ms. */
static void until_passed_on(const struct held_job *h, int64_t since_us, int rounds,
                            int64_t ret_ms[2])
{
    size_t n = (size_t)(h->locks + h->places) * (size_t)rounds, of_round = 0;
    struct gate_judge b;

    assert_true(gates_until_parked(&gates, "work", 0, 2 * GATE_WAIT_MS));
    assert_true(gates_until_lines(&gates, " end ", (int)n, GATE_WAIT_MS));
    gate_judge_read(&b, gates.path, "work");
    assert_int_equal(gate_judge_starts(&b), n);
    for (size_t i = 0; i < b.n; i++) {
        if (!b.lines[i].is_start || b.lines[i].us < since_us)
            continue;
        ret_ms[of_round++ > 0] = (b.lines[i].us - since_us) / 1000;
    }
    assert_int_equal(of_round, h->locks + h->places);
    gate_judge_done(&b);
    assert_int_equal(test_lines(gates.path, " clash "), 0);
}

/* The jobs that held the gates wait again for a worker that serves them: cancel them. */
static void cancel_holders(const struct held_job *h)
{
    for (int i = 0; i < h->locks + h->places; i++)
        gates_do(&gates, "later_cancel", h->ids[i], NULL);
    assert_true(gates_until_jobs(&gates, 0, GATE_WAIT_MS));
    assert_int_equal(gates_int(&gates, "EXISTS", STAGE_ROOT ":holds", STAGE_ROOT ":parked",
                               STAGE_ROOT ":sem:places", NULL),
                     0);
}

/* Kill the worker whose jobs hold the gates. Returns when, in us. */
static int64_t kill_holder(struct held_job *h)
{
    int64_t since_us;

    gates_do(&gates, "later_limit_set", "places", "semaphore", "16", NULL);
    start_one(&gates.s.a, "a", "hold", HOLD_MS);
    start_one(&gates.s.b, "b", "work", 20);
    hold_and_wait(h, 0);
    test_laterd_kill(&gates.s.a, SIGKILL);
    since_us = gates_now_us();
    (void)test_laterd_wait(&gates.s.a, STAGE_WAIT_MS);
    return since_us;
}

static void G6_killed(void **state)
{
    struct held_job h = {.locks = EACH, .places = EACH};
    int64_t since_us, ms[2] = {0, 0};

    (void)state;
    since_us = kill_holder(&h);
    until_passed_on(&h, since_us, 1, ms);
    print_message("figure G6: kill -9 of a worker with 16 locks and 16 places: passed on after "
                  "%.1f to %.1f s\n",
                  (double)ms[0] / 1000, (double)ms[1] / 1000);
    assert_in_range(ms[1], 0, PASSED_ON_MS);
    cancel_holders(&h);
}

static void G6_started_again(void **state)
{
    struct held_job h = {.locks = EACH, .places = EACH};
    int64_t since_us, ms[2] = {0, 0};

    (void)state;
    since_us = kill_holder(&h);
    start_one(&gates.s.a, "a", "rest", 20);
    until_passed_on(&h, since_us, 1, ms);
    print_message("figure G6: the same, started again in its state folder: passed on after %.1f to "
                  "%.1f s\n",
                  (double)ms[0] / 1000, (double)ms[1] / 1000);
    assert_in_range(ms[1], 0, test_is_long() ? 3000 : 15000); /* not after the silence of 20 s */
    cancel_holders(&h);
}

static bool is_frozen_long_enough(void *arg)
{
    const int64_t *until_us = arg;

    return gates_now_us() >= *until_us;
}

/* The guard kills the handlers before other jobs get their locks; the referee checks that. */
static void G6_stopped(void **state)
{
    int rounds = stage_number("LATER_ROUNDS", 1, 20);
    int64_t first_ms = INT64_MAX, last_ms = 0;
    struct held_job h = {.locks = EACH};

    (void)state;
    start_one(&gates.s.a, "a", "hold", HOLD_MS);
    start_one(&gates.s.b, "b", "work", 20);
    for (int i = 0; i < rounds; i++) {
        int64_t since_us, until_us, ms[2] = {0, 0};

        hold_and_wait(&h, 2 * i * EACH);
        test_laterd_kill(&gates.s.a, SIGSTOP);
        since_us = gates_now_us();
        until_us = since_us + (test_is_long() ? FROZEN_MS * INT64_C(1000) : 0);
        until_passed_on(&h, since_us, i + 1, ms);
        first_ms = ms[0] < first_ms ? ms[0] : first_ms;
        last_ms = ms[1] > last_ms ? ms[1] : last_ms;
        cancel_holders(&h);
        assert_true(test_until(is_frozen_long_enough, &until_us, 2 * FROZEN_MS));
        test_laterd_kill(&gates.s.a, SIGCONT);
        assert_true(test_until_lines(gates.s.a.log, "event=registered", i + 2, GATE_WAIT_MS));
    }
    print_message("figure G6: %d times a worker with 16 locks stopped%s: passed on after %.1f to "
                  "%.1f s, never before their handlers were dead\n",
                  rounds, test_is_long() ? " for 60 s" : "", (double)first_ms / 1000,
                  (double)last_ms / 1000);
    assert_in_range(last_ms, 0, PASSED_ON_MS);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, gates_setup, gates_teardown)
    const struct CMUnitTest tests[] = {
        T(G6_killed),
        T(G6_started_again),
        T(G6_stopped),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
