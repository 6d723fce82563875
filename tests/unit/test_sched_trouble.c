/* The scheduler in a world that fails: lost links, lost data, error replies, dead entries, chaos.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fake_store.h"

#define J1 "j00000000001"
#define J2 "j00000000002"
#define J3 "j00000000003"

/* A ready worker that runs job 1. */
static struct fake *up_running(unsigned places, const char *queues)
{
    struct fake *f = fake_ready(places, queues);

    fake_add(f, 1, "a", 0);
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 2);
    assert_non_null(fake_running(f, J1));
    return f;
}

static struct sched_status status(const struct fake *f)
{
    struct sched_status st;

    sched_status(f->s, &st);
    return st;
}

/* ---- data loss and dead entries */

static void test_unknown_worker_adopts(void **state)
{
    struct fake *f = up_running(4, "a");

    (void)state;
    fake_lose_data(f, false);
    fake_run(f, 1200);
    assert_int_equal(f->count[REG], 2);
    assert_int_equal(fake_last(f, REG)->nresults, 1);
    assert_true(status(f).is_ready);
    assert_int_equal(fake_state_of(f, J1), HELD);
    assert_int_equal(f->jobs[0].epoch, f->worker);
    fake_run(f, 20000);
    assert_int_equal(f->count[REG], 2);
    assert_int_equal(fake_running(f, J1)->kills, 0);
    fake_end(f, J1, STORE_DONE);
    fake_run(f, 2);
    assert_int_equal(fake_state_of(f, J1), DONE);
    fake_free(f);
}

/* After a failover the worker asks what is left of its jobs, even if Redis still knows it: one
 * whose claim was lost is adopted, one that is lost runs on. */
static void test_failover_adopts(void **state)
{
    struct fake *f = up_running(4, "a");

    (void)state;
    fake_cut(f, false);
    f->jobs[0].state = WAITS;
    f->jobs[0].start = f->jobs[0].attempt = 0;
    sched_failed_over(f->s);
    fake_up(f);
    fake_run(f, 1200);
    assert_int_equal(f->count[REG], 2);
    assert_int_equal(f->count[RECONCILE], 0);
    assert_int_equal(fake_state_of(f, J1), HELD);
    assert_int_equal(f->starts, 1);
    assert_int_equal(fake_running(f, J1)->kills, 0);
    fake_cut(f, false);
    fake_up(f);
    fake_run(f, 1200);
    assert_int_equal(f->count[REG], 2);
    assert_int_equal(f->count[RECONCILE], 1);
    fake_free(f);
}

/* The claim was lost with Redis' last writes: the job waits again, and this worker adopts it. */
static void test_adopts_a_job_whose_claim_was_lost(void **state)
{
    struct fake *f = up_running(4, "a");

    (void)state;
    fake_lose_data(f, false);
    f->jobs[0].state = WAITS;
    f->jobs[0].start = f->jobs[0].attempt = 0;
    fake_run(f, 2000);
    assert_int_equal(fake_state_of(f, J1), HELD);
    assert_int_equal(f->starts, 1);
    fake_end(f, J1, STORE_DONE);
    fake_run(f, 2);
    assert_int_equal(fake_state_of(f, J1), DONE);
    fake_free(f);
}

static void test_a_job_taken_by_another_is_killed(void **state)
{
    struct fake *f = up_running(4, "a");

    (void)state;
    fake_lose_data(f, false);
    f->jobs[0].start += 5;
    f->jobs[0].epoch = 12;
    fake_run(f, 1200);
    assert_null(fake_running(f, J1));
    assert_int_equal(fake_state_of(f, J1), HELD);
    assert_int_equal(status(f).running + status(f).unsent, 0);
    fake_free(f);
}

/* After FLUSHALL the running job may finish and is not killed. Its result is refused once. */
static void test_everything_lost(void **state)
{
    struct fake *f = up_running(4, "a");
    unsigned reconciles;

    (void)state;
    fake_lose_data(f, true);
    fake_run(f, 2000);
    reconciles = f->count[RECONCILE];
    fake_run(f, 60000);
    assert_int_equal(f->count[RECONCILE], reconciles);
    assert_int_equal(fake_running(f, J1)->kills, 0);
    fake_end(f, J1, STORE_DONE);
    fake_run(f, 2);
    assert_int_equal(fake_result_in(fake_last(f, SYNC), J1)->answer, STORE_NOT_HELD);
    assert_int_equal(status(f).unsent, 0);
    fake_free(f);
}

/* A worker was taken for dead while it was frozen: it kills the handler. A late result of that
 * start is not taken for one of the next start, which the same worker may get. */
static void test_dead_worker(void **state)
{
    for (int by_beat = 0; by_beat < 2; by_beat++) {
        struct fake *f = up_running(4, "a");

        (void)state;
        f->is_written_off = true;
        f->jobs[0].state = WAITS;
        if (by_beat)
            sched_on_wake(f->s, fake_now(f), "!beat");
        fake_run(f, by_beat ? 2 : 1102);
        assert_int_equal(fake_last(f, REG)->epoch, f->worker);
        assert_int_equal(fake_last(f, REG)->nresults, 0);
        if (by_beat) {
            assert_int_equal(fake_running(f, J1)->kills, 1);
            /* The handler had finished just then. */
            fake_end(f, J1, STORE_DONE);
        }
        fake_run(f, 20);
        assert_int_not_equal(fake_state_of(f, J1), DONE);
        fake_run(f, 2000);
        assert_int_equal(f->starts, 2);
        assert_true(fake_running(f, J1)->start >= 2);
        fake_end(f, J1, STORE_DONE);
        fake_run(f, 2);
        assert_int_equal(fake_state_of(f, J1), DONE);
        assert_int_equal(status(f).running, 0);
        fake_free(f);
    }
}

static void test_older_link_number(void **state)
{
    struct fake *f = up_running(4, "a");

    (void)state;
    f->worker_link++;
    fake_end(f, J1, STORE_DONE);
    fake_run(f, 5);
    assert_int_equal(f->count[RECONCILE], 1);
    assert_int_equal(fake_state_of(f, J1), DONE);
    assert_true(status(f).is_ready);
    fake_free(f);
}

static void test_count_mismatch(void **state)
{
    struct fake *f = fake_ready(4, "a");
    struct fake_job *j = fake_add(f, 1, "a", 0);

    (void)state;
    /* Claimed for us; the answer was lost. */
    j->state = HELD;
    j->epoch = f->worker;
    j->start = j->attempt = 1;
    fake_run(f, 5100);
    assert_int_equal(fake_last(f, RECONCILE)->released, 1);
    assert_non_null(fake_running(f, J1));
    fake_run(f, 20000);
    assert_int_equal(f->count[RECONCILE], 1);
    fake_free(f);
}

/* ---- the link */

static void test_link_lost_while_jobs_run(void **state)
{
    for (int is_done = 0; is_done < 2; is_done++) {
        struct fake *f = up_running(8, "a");

        (void)state;
        fake_add(f, 2, "a", 0);
        fake_add(f, 3, "a", 0)->is_big = true;
        sched_on_wake(f->s, fake_now(f), "a");
        f->latency_us = 10000;
        fake_run(f, 15);
        assert_int_equal(f->count[FETCH], 1);
        /* One result is under way, another comes later, and a payload never comes. */
        fake_end(f, J1, STORE_DONE);
        fake_cut(f, is_done);
        assert_int_equal(status(f).running, 1);
        fake_end(f, J2, STORE_DONE);
        fake_run(f, 30000);
        assert_int_equal(status(f).unsent, 2);
        f->latency_us = 400;
        fake_up(f);
        assert_int_equal(f->last->kind, BEAT);
        fake_run(f, 20);
        assert_int_equal(f->count[RECONCILE], 1);
        assert_null(fake_result_in(fake_last(f, RECONCILE), J3));
        assert_int_equal(fake_state_of(f, J1), DONE);
        assert_int_equal(fake_state_of(f, J2), DONE);
        assert_int_equal(status(f).unsent, 0);
        /* The job without its payload was given back and claimed anew. */
        assert_int_equal(f->count[FETCH], 2);
        assert_int_equal(fake_running(f, J3)->start, 2);
        assert_int_equal(fake_find(f, J3)->attempt, 1);
        fake_free(f);
    }
}

static void test_relink(void **state)
{
    static const enum error_class classes[] = {ERROR_CLASS_LIBRARY, ERROR_CLASS_MOVED,
                                               ERROR_CLASS_DENIED};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fake *f = up_running(4, "a");

        f->failing_kinds = 1u << SYNC;
        f->class = classes[i];
        fake_run(f, 5000);
        assert_int_equal(f->relinks, 1);
        assert_false(status(f).is_ready);
        f->failing_kinds = 0;
        fake_up(f);
        fake_run(f, 10);
        assert_true(status(f).is_ready);
        assert_int_equal(fake_running(f, J1)->kills + fake_running(f, J1)->terms, 0);
        fake_free(f);
    }
}

/* Silence before an outage does not count: no worker is reaped right after it. */
static void test_outage_excuses_the_silent(void **state)
{
    struct fake *f = fake_ready(4, "a");
    unsigned reaps;

    (void)state;
    f->peers[0] = fake_peer(70, "3");
    f->npeers = 1;
    for (int64_t ms = 0; f->count[REAP] == 0 && ms < 40000; ms++) {
        fake_run(f, 1);
        f->is_held_back = f->count[REAP] > 0;
    }
    assert_int_equal(f->count[REAP], 1);
    fake_cut(f, false);
    f->is_held_back = false;
    fake_run(f, 3600000);
    fake_up(f);
    reaps = f->count[REAP];
    fake_run(f, 19000);
    assert_int_equal(f->count[REAP], reaps);
    fake_run(f, 3000);
    assert_int_equal(f->count[REAP], reaps + 1);
    fake_free(f);
}

/* ---- error replies */

/* Whichever call is refused, and why: calls are paced, running jobs go on, and all heals. */
static void test_error_replies(void **state)
{
    static const enum error_class classes[] = {ERROR_CLASS_WAIT, ERROR_CLASS_FULL, ERROR_CLASS_TYPE,
                                               ERROR_CLASS_CALL};

    (void)state;
    for (int kind = REG; kind <= KINDS; kind++) {
        for (size_t i = 0; i < 4; i++) {
            struct fake *f = up_running(4, "a");
            unsigned before;

            f->peers[0] = fake_peer(70, "dead");
            f->npeers = 1;
            f->class = classes[i];
            f->failing_kinds = kind == KINDS ? ALL_KINDS : 1u << kind;
            if (kind == REG)
                fake_lose_data(f, false);
            else if (kind == RECONCILE)
                f->worker_link++;
            fake_add(f, 2, "a", 0)->is_big = true;
            before = fake_calls(f);
            fake_run(f, 60000);
            if (fake_calls(f) - before > 200)
                fail_msg("kind %d class %zu: %u calls in a minute", kind, i,
                         fake_calls(f) - before);
            assert_int_equal(fake_running(f, J1)->kills + fake_running(f, J1)->terms, 0);
            f->failing_kinds = 0;
            fake_run(f, 6000);
            assert_true(status(f).is_ready);
            assert_non_null(fake_running(f, J2));
            fake_end(f, J1, STORE_DONE);
            fake_run(f, 2);
            assert_int_equal(fake_state_of(f, J1), DONE);
            fake_free(f);
        }
    }
}

/* A refused tidy (one broken key) must not keep a worker from noticing the silence of others. */
static void test_refused_housekeeping_does_not_stop_the_watch(void **state)
{
    struct fake *f = fake_ready(4, "a");

    (void)state;
    f->failing_kinds = 1u << TIDY;
    f->class = ERROR_CLASS_TYPE;
    f->peers[0] = fake_peer(70, "3");
    f->npeers = 1;
    fake_run(f, 60000);
    assert_true(f->count[REAP] > 0);
    fake_free(f);
}

/* Several error replies at the same time make one wait. */
static void test_one_burst_of_errors_is_one_wait(void **state)
{
    struct fake *f = fake_ready(4, "a");
    int64_t begin;

    (void)state;
    f->is_held_back = true;
    fake_run(f, 12000);
    f->failing_kinds = ALL_KINDS;
    f->class = ERROR_CLASS_WAIT;
    f->is_held_back = false;
    begin = f->now_us;
    fake_run(f, 5);
    f->failing_kinds = 0;
    fake_run(f, 200);
    assert_true(fake_last(f, RECONCILE)->at_us > begin);
    assert_true(status(f).is_ready);
    fake_free(f);
}

static void test_a_link_that_takes_nothing(void **state)
{
    struct fake *f = up_running(4, "a");

    (void)state;
    f->takes_nothing = true;
    fake_run(f, 60000);
    f->takes_nothing = false;
    fake_add(f, 2, "a", 0);
    fake_run(f, 6000);
    assert_non_null(fake_running(f, J2));
    fake_free(f);
}

/* Wrong heads must not make the worker spin. */
static void test_wrong_heads(void **state)
{
    static const int64_t heads[] = {1, FAKE_BEGIN_MS, INT64_MIN, INT64_MAX, -2};

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        struct fake *f = fake_ready(4, "a b c");
        unsigned before = fake_calls(f);

        f->head = heads[i];
        fake_run(f, 10000);
        assert_true(fake_calls(f) - before < 1200);
        fake_add(f, 1, "c", 0);
        fake_run(f, 1200);
        assert_non_null(fake_running(f, J1));
        fake_free(f);
    }
}

/* Results that Redis cannot write keep the places of their queue, so that they do not pile up. */
static void test_refused_results(void **state)
{
    struct fake *f = fake_ready(4, "a");

    (void)state;
    f->run_ms = 5;
    f->fails_results = true;
    for (unsigned i = 0; i < 100; i++)
        fake_add(f, i, "a", 0);
    fake_run(f, 60000);
    /* The sync with the first refusals claimed as many jobs again. */
    assert_true(status(f).unsent <= 8);
    assert_true(f->starts <= 8);
    f->fails_results = false;
    fake_run(f, 10000);
    assert_int_equal(status(f).unsent, 0);
    for (size_t i = 0; i < f->njobs; i++)
        assert_int_equal(f->jobs[i].state, DONE);
    fake_free(f);
}

/* Results that a sync leaves for a later one, since it has moved as many bytes as it may, are sent
 * again at once. Meanwhile they keep their places, so that they do not pile up. */
static void test_left_results(void **state)
{
    struct fake *f = fake_ready(8, "a");
    size_t ended = 0;

    (void)state;
    f->run_ms = 1;
    f->latency_us = 1000;
    f->takes_a_sync = 1;
    for (unsigned i = 0; i < 100; i++)
        fake_add(f, i, "a", 0);
    for (int i = 0; i < 400; i++) {
        fake_run(f, 10);
        assert_true(status(f).unsent <= 3 * 8);
        assert_int_equal(status(f).unwritten, 0);
    }
    for (size_t i = 0; i < f->njobs; i++)
        ended += f->jobs[i].state == DONE;
    assert_int_equal(ended, 100);
    assert_int_equal(status(f).unsent, 0);
    fake_free(f);
}

/* Where Redis then cannot write them, they keep the places of their queue, not of the worker. */
static void test_left_results_are_refused(void **state)
{
    struct fake *f = fake_ready(8, "a b");
    size_t running = 0;

    (void)state;
    f->run_ms = 1;
    f->latency_us = 1000;
    f->takes_a_sync = 1;
    for (unsigned i = 0; i < 100; i++)
        fake_add(f, i, "a", 0);
    for (int i = 0; i < 3000 && status(f).unsent < 8; i++)
        fake_run(f, 1);
    assert_true(status(f).unsent >= 8);
    fake_run(f, 10);
    f->fails_results = true;
    fake_run(f, 2000);
    f->run_ms = -1;
    for (unsigned i = 100; i < 108; i++)
        fake_add(f, i, "b", 0);
    fake_run(f, 2000);
    for (size_t i = 0; i < f->nruns; i++)
        running += strcmp(fake_find(f, f->runs[i].id)->queue, "b") == 0;
    assert_int_equal(running, 8);
    fake_free(f);
}

/* The attempt has failed, with the verdict that the daemon gives for that. */
static void test_refused_children(void **state)
{
    struct fake *f = fake_ready(4, "a");

    (void)state;
    f->run_ms = 5;
    f->refuses_children = true;
    fake_add(f, 1, "a", 0);
    for (int i = 0; i < 20 && f->starts == 0; i++)
        fake_run(f, 100);
    fake_run(f, 100);
    assert_int_equal(f->starts, 1);
    assert_int_equal(f->jobs[0].state, WAITS);
    assert_int_equal(status(f).unsent, 0);
    f->refuses_children = false;
    fake_run(f, 2000);
    assert_int_equal(f->starts, 2);
    assert_int_equal(f->jobs[0].state, DONE);
    assert_int_equal(f->jobs[0].attempt, 2);
    fake_free(f);
}

/* ---- the host */

static void test_ill_host(void **state)
{
    struct fake *f = fake_ready(4, "a");

    (void)state;
    f->run_ms = 0;
    f->host_ill = true;
    for (unsigned i = 0; i < 8; i++)
        fake_add(f, i, "a", 0);
    fake_run(f, 60000);
    assert_in_range(f->starts, 11, 24); /* one at once after the first */
    f->host_ill = false;
    fake_run(f, 11000);
    for (size_t i = 0; i < f->njobs; i++) {
        assert_int_equal(f->jobs[i].state, DONE);
        assert_int_equal(f->jobs[i].attempt, 1);
    }
    fake_free(f);
}

/* A host that bears three jobs at once of sixteen: each job over that meets the shortage. */
static void test_small_host(void **state)
{
    struct fake *f = fake_ready(16, "a");
    struct sched_status s;
    unsigned first;

    (void)state;
    f->run_ms = 10;
    f->host_bears = 3;
    for (unsigned i = 0; i < 300; i++)
        fake_add(f, i, "a", 0);
    fake_run(f, 4000);
    sched_status(f->s, &s);
    assert_in_range(s.places, 1, 4);
    for (size_t i = 0; i < f->njobs; i++)
        assert_int_equal(f->jobs[i].state, DONE);
    /* It grows again, and all places are used once nothing is short. */
    f->host_bears = 0;
    first = s.places;
    for (unsigned i = 0; i < 20; i++) {
        fake_add(f, 300 + i, "a", 0);
        fake_run(f, 5100);
    }
    sched_status(f->s, &s);
    assert_int_equal(s.places, 16);
    assert_true(first < 16);
    fake_free(f);
}

/* ---- chaos: whatever happens, every job ends once the trouble is over */

static uint32_t roll(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 16;
}

static void disturb(struct fake *f, uint32_t *seed)
{
    static const enum error_class classes[] = {ERROR_CLASS_WAIT,  ERROR_CLASS_FULL,
                                               ERROR_CLASS_MOVED, ERROR_CLASS_LIBRARY,
                                               ERROR_CLASS_TYPE,  ERROR_CLASS_CALL};
    static const char *const wakes[] = {"a", "b", "!cancel", "!beat"};
    struct fake_job *j = &f->jobs[roll(seed) % f->njobs];

    switch (roll(seed) % 14) {
    case 0:
        if (f->is_up)
            fake_cut(f, roll(seed) % 2);
        break;
    case 1:
        f->failing_kinds = roll(seed) % (ALL_KINDS + 1);
        f->class = classes[roll(seed) % 6];
        break;
    case 2:
        f->is_written_off = f->worker != 0;
        for (size_t i = 0; f->is_written_off && i < f->njobs; i++) {
            if (f->jobs[i].state == HELD)
                f->jobs[i].state = WAITS;
        }
        break;
    case 3:
        f->worker = 0;
        break;
    case 4:
        f->worker_link++;
        break;
    case 5:
        f->is_held_back = roll(seed) % 2;
        break;
    case 6:
        f->latency_us = 100 + roll(seed) % 50000;
        break;
    case 7:
        f->fails_results = roll(seed) % 2;
        break;
    case 8:
        f->host_ill = roll(seed) % 2;
        break;
    case 9:
        j->is_cancelled = j->state == HELD;
        break;
    case 10:
        fake_queues(f, roll(seed) % 2 ? "a b" : "a b c");
        break;
    case 11:
        f->slept_us += roll(seed) % 6000 * 1000;
        break;
    case 12:
        f->is_unguarded = roll(seed) % 2;
        break;
    default:
        sched_on_wake(f->s, fake_now(f), wakes[roll(seed) % 4]);
    }
    if (!f->is_up && roll(seed) % 2)
        fake_up(f);
}

static void calm(struct fake *f)
{
    f->failing_kinds = 0;
    f->is_held_back = f->fails_results = f->host_ill = f->is_unguarded = false;
    f->latency_us = 400;
    if (!f->is_up)
        fake_up(f);
    fake_run(f, 60000);
    if (!f->is_up)
        fake_up(f);
    fake_run(f, 60000);
}

static void test_chaos(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 150; n++) {
        struct fake *f = fake_ready(4, "a b");
        uint32_t seed = n;

        f->run_ms = 20;
        f->dies_when_told = true;
        for (unsigned i = 0; i < 40; i++) {
            struct fake_job *j = fake_add(f, i, i % 2 ? "a" : "b", (int64_t)i * 50);

            j->is_big = i % 5 == 0;
            j->is_guarded = i % 3 == 0;
            j->crashes = i % 13 == 12 ? 2 : 0;
        }
        for (int i = 0; i < 120; i++) {
            disturb(f, &seed);
            fake_run(f, roll(&seed) % 200);
        }
        calm(f);
        for (size_t i = 0; i < f->njobs; i++) {
            if (f->jobs[i].state != DONE)
                fail_msg("seed %u: job %s is left in state %d", n, f->jobs[i].id,
                         (int)f->jobs[i].state);
        }
        assert_true(status(f).is_ready);
        assert_int_equal(status(f).running + status(f).unsent, 0);
        sched_stop(f->s, fake_now(f));
        fake_run(f, 5);
        assert_int_equal(f->gone, 1);
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_worker_adopts),
        cmocka_unit_test(test_failover_adopts),
        cmocka_unit_test(test_adopts_a_job_whose_claim_was_lost),
        cmocka_unit_test(test_a_job_taken_by_another_is_killed),
        cmocka_unit_test(test_everything_lost),
        cmocka_unit_test(test_dead_worker),
        cmocka_unit_test(test_older_link_number),
        cmocka_unit_test(test_count_mismatch),
        cmocka_unit_test(test_link_lost_while_jobs_run),
        cmocka_unit_test(test_relink),
        cmocka_unit_test(test_outage_excuses_the_silent),
        cmocka_unit_test(test_error_replies),
        cmocka_unit_test(test_refused_housekeeping_does_not_stop_the_watch),
        cmocka_unit_test(test_one_burst_of_errors_is_one_wait),
        cmocka_unit_test(test_a_link_that_takes_nothing),
        cmocka_unit_test(test_wrong_heads),
        cmocka_unit_test(test_refused_results),
        cmocka_unit_test(test_left_results),
        cmocka_unit_test(test_left_results_are_refused),
        cmocka_unit_test(test_refused_children),
        cmocka_unit_test(test_ill_host),
        cmocka_unit_test(test_small_host),
        cmocka_unit_test(test_chaos),
    };

    /* Log nothing: each of these worlds is full of warnings. */
    log_set_level((enum log_level)0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
