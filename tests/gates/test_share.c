/*
 * Gates that several queues share, jobs that need two gates, and jobs that are cancelled in each
 * state (G9).
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "gate_stage.h"

#define FULL_MS 5000 /* duration of a job of `full` */
#define IDLE_JOBS 20

/* Daemon a serves `idle`, and `full` with one place. Daemon b serves `gone`. */
static void start_a(void)
{
    CLEANUP_BUF struct buf yaml = BUF_INIT;

    buf_puts(&yaml, "queues:\n");
    gates_yaml(&gates, &yaml, "idle", 1, 5, "");
    gates_yaml(&gates, &yaml, "full", FULL_MS, FULL_MS, ", concurrency: 1");
    gates_start(&gates, &gates.s.a, "a", 16, buf_str(&yaml));
}

static void start_b(int ms)
{
    CLEANUP_BUF struct buf yaml = BUF_INIT;

    buf_puts(&yaml, "queues:\n");
    gates_yaml(&gates, &yaml, "gone", ms, ms, "");
    gates_start(&gates, &gates.s.b, "b", 16, buf_str(&yaml));
}

static void until_started(const char *id)
{
    (void)gates_started_us(&gates, id, GATE_WAIT_MS);
}

/* Occupy the one place of `full` with a job without gates. */
static void fill_full(char id[16])
{
    gates_add(&gates, id, "full", NULL);
    until_started(id);
}

static void shut(void)
{
    gates_do(&gates, "later_lock", "door", "outside", "ttl", "1h", NULL);
}

static int64_t open_it(void)
{
    int64_t now = gates_now_us();

    gates_do(&gates, "later_unlock", "door", "outside", NULL);
    return now;
}

static void park(char id[16], const char *queue, int n)
{
    gates_add(&gates, id, queue, "lock", "door", NULL);
    assert_true(gates_until_parked(&gates, queue, n, GATE_WAIT_MS));
}

/* No gate has a holder, and no job waits. */
static void assert_no_gates(void)
{
    static const char *const kinds[] = {"granted", "line", "lock", "sem", "wait"};

    assert_int_equal(gates_int(&gates, "EXISTS", STAGE_ROOT ":holds", STAGE_ROOT ":parked", NULL),
                     0);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        CLEANUP_FREE char *pattern = mem_printf("%s:%s:*", STAGE_ROOT, kinds[i]);
        struct reply *r = gates_call(&gates, "KEYS", pattern, NULL);

        assert_int_equal(reply_count(r), 0);
        reply_free(r);
    }
}

/* ---- a lock shared with a queue that cannot run its jobs */

/*
 * A job of such a queue is parked first. Park jobs of `idle` behind it and open the gate. Check
 * how long the first of them had to wait, and the longest gap between two of them.
 */
static void idle_behind_it(const char *what)
{
    int64_t begin, first_us, gap_us = 0, last_end = 0;
    struct gate_judge b;

    for (int i = 0; i < IDLE_JOBS; i++)
        gates_add(&gates, NULL, "idle", "lock", "door", NULL);
    assert_true(gates_until_parked(&gates, "idle", IDLE_JOBS, GATE_WAIT_MS));
    begin = open_it();
    assert_true(gates_until_lines(&gates, " idle", 2 * IDLE_JOBS, GATE_WAIT_MS));
    gate_judge_read(&b, gates.path, "idle");
    first_us = b.lines[0].us - begin;
    for (size_t i = 0; i < b.n; i++) {
        if (!b.lines[i].is_start)
            last_end = b.lines[i].us;
        else if (last_end != 0 && b.lines[i].us - last_end > gap_us)
            gap_us = b.lines[i].us - last_end;
    }
    print_message("figure G9: a lock shared with a queue that is %s: held up %.0f ms once, then at "
                  "most %.1f ms\n",
                  what, (double)first_us / 1000, (double)gap_us / 1000);
    assert_int_equal(gate_judge_most(&b, NULL), 1);
    gate_judge_done(&b);
    /* They do not wait for the job of `full`. */
    assert_in_range(first_us, 0, test_is_long() ? 500000 : (FULL_MS - 500) * 1000);
    assert_in_range(gap_us, 0, test_is_long() ? 500000 : (FULL_MS - 500) * 1000);
}

static void G9_shared_with_a_full_queue(void **state)
{
    char waits[16], fills[16];

    (void)state;
    start_a();
    shut();
    park(waits, "full", 1);
    fill_full(fills);
    idle_behind_it("full");
    /* The first job kept its turn and is started. */
    until_started(waits);
    assert_true(gates_until_jobs(&gates, 0, GATE_WAIT_MS));
    assert_no_gates();
}

static void G9_shared_with_a_paused_queue(void **state)
{
    char waits[16];

    (void)state;
    start_a();
    shut();
    park(waits, "full", 1);
    gates_do(&gates, "later_pause", "full", NULL);
    idle_behind_it("paused");
    gates_do(&gates, "later_resume", "full", NULL);
    until_started(waits);
    assert_true(gates_until_jobs(&gates, 0, GATE_WAIT_MS));
    assert_no_gates();
}

static void G9_shared_with_an_unserved_queue(void **state)
{
    char waits[16];

    (void)state;
    start_a();
    start_b(1);
    shut();
    park(waits, "gone", 1);
    assert_int_equal(test_laterd_stop(&gates.s.b), 0);
    idle_behind_it("served by nobody");
    start_b(1);
    until_started(waits);
    assert_true(gates_until_jobs(&gates, 0, GATE_WAIT_MS));
    assert_no_gates();
}

/* ---- two gates at once */

/* Add n more to each queue and wait until they are parked. */
static void add_streams(int n)
{
    int64_t locked = gates_int(&gates, "ZCARD", STAGE_ROOT ":parked:locked", NULL);
    int64_t placed = gates_int(&gates, "ZCARD", STAGE_ROOT ":parked:placed", NULL);

    for (int i = 0; i < n; i++) {
        gates_add(&gates, NULL, "locked", "lock", "door", NULL);
        gates_add(&gates, NULL, "placed", "sem", "one", NULL);
    }
    assert_true(gates_until_parked(&gates, "locked", locked + n, GATE_WAIT_MS));
    assert_true(gates_until_parked(&gates, "placed", placed + n, GATE_WAIT_MS));
}

/* One job needs both gates, a stream of others needs one of them. It is passed over a bounded
 * number of times. */
static void G9_two_gates_under_a_stream(void **state)
{
    CLEANUP_BUF struct buf yaml = BUF_INIT;
    int before = 20, behind = 300, passed = 0;
    bool is_open = false;
    char both[16];
    struct gate_judge b;

    (void)state;
    gates_do(&gates, "later_limit_set", "one", "semaphore", "0", NULL);
    buf_puts(&yaml, "queues:\n");
    gates_yaml(&gates, &yaml, "locked", 3, 9, "");
    gates_yaml(&gates, &yaml, "placed", 3, 9, "");
    gates_yaml(&gates, &yaml, "both", 3, 9, "");
    gates_start(&gates, &gates.s.a, "a", 16, buf_str(&yaml));
    shut();
    add_streams(before);
    gates_add(&gates, both, "both", "lock", "door", "sem", "one", NULL);
    assert_true(gates_until_parked(&gates, "both", 1, GATE_WAIT_MS));
    add_streams(behind);
    gates_do(&gates, "later_limit_set", "one", "semaphore", "1", NULL);
    (void)open_it();
    assert_true(gates_until_jobs(&gates, 0, 2 * GATE_WAIT_MS));
    gate_judge_read(&b, gates.path, NULL);
    /* It is not passed over while the other gate is shut: until the first start there. */
    for (size_t i = 0; i < b.n && strcmp(b.lines[i].id, both) != 0; i++) {
        is_open = is_open || strcmp(b.lines[i].queue, "locked") == 0;
        passed += is_open && b.lines[i].is_start;
    }
    print_message(
        "figure G9: a job with a lock and a place behind %d and before %d that need one of "
        "them: started after %d of these\n",
        2 * before, 2 * behind, passed);
    assert_int_equal(gate_judge_starts(&b), 2 * (before + behind) + 1);
    /* It is passed over 16 times, then it keeps the gates that it gets: one or two starts each
     * time. */
    assert_in_range(passed, 0, 2 * before + 3 * 17);
    gate_judge_done(&b);
    assert_no_gates();
}

/* ---- cancelled in each state */

static void assert_gone(const char *id, int starts)
{
    CLEANUP_FREE char *text = mem_printf(" start %s ", id);

    assert_true(gates_until_jobs(&gates, 0, GATE_WAIT_MS));
    test_pause(1500); /* time for a look */
    assert_int_equal(test_lines(gates.path, text), starts);
    assert_no_gates();
}

static void G9_cancelled_while_parked(void **state)
{
    char id[16], next[16];

    (void)state;
    start_a();
    shut();
    park(id, "idle", 1);
    park(next, "idle", 2);
    gates_do(&gates, "later_cancel", id, NULL);
    (void)open_it();
    until_started(next);
    assert_gone(id, 0);
}

/* The worker is stopped, so the granted job is not claimed. */
static void G9_cancelled_when_granted(void **state)
{
    char id[16], next[16];
    int64_t begin;

    (void)state;
    start_a();
    shut();
    park(id, "full", 1);
    park(next, "idle", 1);
    assert_int_equal(kill(gates.s.a.proc.pid, SIGSTOP), 0);
    (void)open_it();
    assert_int_equal(gates_int(&gates, "ZCARD", STAGE_ROOT ":granted:full", NULL), 1);
    gates_do(&gates, "later_cancel", id, NULL);
    begin = gates_now_us();
    assert_int_equal(kill(gates.s.a.proc.pid, SIGCONT), 0);
    begin = gates_started_us(&gates, next, GATE_WAIT_MS) - begin;
    assert_true(!test_is_long() || begin <= 500000);
    assert_gone(id, 0);
}

static void G9_cancelled_while_running(void **state)
{
    char id[16], next[16];
    CLEANUP_FREE char *end = NULL;

    (void)state;
    start_a();
    gates_add(&gates, id, "full", "lock", "door", NULL);
    until_started(id);
    park(next, "idle", 1);
    gates_do(&gates, "later_cancel", id, NULL);
    until_started(next);
    assert_gone(id, 1);
    end = mem_printf(" end %s ", id);
    assert_int_equal(test_lines(gates.path, end), 0);
}

static void G9_cancelled_before_its_worker_is_reaped(void **state)
{
    char id[16], next[16];

    (void)state;
    start_a();
    start_b(60000);
    gates_add(&gates, id, "gone", "lock", "door", NULL);
    until_started(id);
    park(next, "idle", 1);
    test_laterd_kill(&gates.s.b, SIGKILL);
    (void)test_laterd_wait(&gates.s.b, STAGE_WAIT_MS);
    gates_do(&gates, "later_cancel", id, NULL);
    assert_int_equal(test_lines(gates.path, " start "), 1);
    start_b(1);
    until_started(next);
    assert_gone(id, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, gates_setup, gates_teardown)
    const struct CMUnitTest tests[] = {
        T(G9_shared_with_a_full_queue),      T(G9_shared_with_a_paused_queue),
        T(G9_shared_with_an_unserved_queue), T(G9_two_gates_under_a_stream),
        T(G9_cancelled_while_parked),        T(G9_cancelled_when_granted),
        T(G9_cancelled_while_running),       T(G9_cancelled_before_its_worker_is_reaped),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
