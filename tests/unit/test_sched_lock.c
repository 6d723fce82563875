/*
 * The scheduler and guarded jobs. They start only behind a fresh beat. While the beat is
 * old they wait here for the answer to a new one: if they went back, they would lose their turn at
 * their lock.
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
#include "sched/session.h"

#define J1 "j00000000001"
#define J2 "j00000000002"
#define J3 "j00000000003"

static struct sched_status status(const struct fake *f)
{
    struct sched_status st;

    sched_status(f->s, &st);
    return st;
}

/* The machine sleeps. By the monotonic clock, which stops, the last beat is as fresh as before. */
static void sleep_on(struct fake *f)
{
    f->slept_us += 6000000;
}

/* A ready worker whose last beat has this age, and n due jobs (1, 2 ...) that are guarded. */
static struct fake *with_locks(unsigned n, int64_t acked_ms_ago)
{
    struct fake *f = fake_new(4, "a");

    fake_up(f);
    fake_run(f, 20);
    for (unsigned i = 1; i <= n; i++)
        fake_add(f, i, "a", 0)->is_guarded = true;
    f->slept_us = acked_ms_ago * 1000 - (f->now_us - f->acked_us);
    return f;
}

/* The jobs are claimed, and the beat that they wait for is under way. */
static struct fake *waiting(unsigned n)
{
    struct fake *f = with_locks(n, 6000);
    unsigned beats = f->count[BEAT];

    f->latency_us = 10000;
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 12);
    assert_int_equal(f->count[BEAT], beats + 1);
    assert_int_equal(status(f).running, n);
    assert_int_equal(f->starts, 0);
    return f;
}

/* The job was claimed this many times, and only the last claim spent an attempt. */
static void assert_claims(struct fake *f, const char *id, int64_t claims)
{
    assert_int_equal(fake_find(f, id)->start, claims);
    assert_int_equal(fake_find(f, id)->attempt, 1);
}

/* ---- fresh, stale, and between */

/* The age of the beat counts when the answer to the claim comes, 400 us after the sync was sent.
 * The thread that starts the job asks again later, so a moment must be left. */
static void test_fresh_beat(void **state)
{
    struct fake *f = with_locks(1, (FAKE_FRESH_US - FAKE_SPARE_US) / 1000);
    unsigned beats = f->count[BEAT];

    (void)state;
    f->slept_us -= f->latency_us + 1;
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 1);
    assert_non_null(fake_running(f, J1));
    assert_int_equal(f->count[BEAT], beats);
    assert_claims(f, J1, 1);
    fake_free(f);
}

static void test_stale_beat(void **state)
{
    struct fake *f = with_locks(1, (FAKE_FRESH_US - FAKE_SPARE_US) / 1000);
    unsigned beats = f->count[BEAT], syncs = f->count[SYNC];

    (void)state;
    f->slept_us -= f->latency_us;
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 2);
    assert_non_null(fake_running(f, J1));
    assert_claims(f, J1, 1);
    assert_int_equal(f->count[BEAT], beats + 1);
    assert_true(f->count[SYNC] <= syncs + 2);
    fake_free(f);
}

/* Jobs that wait for the beat start in the order of their claims. */
static void test_order_of_claims(void **state)
{
    struct fake *f = waiting(3);

    (void)state;
    fake_run(f, 30);
    assert_int_equal(f->nruns, 3);
    assert_string_equal(f->runs[0].id, J1);
    assert_string_equal(f->runs[1].id, J2);
    assert_string_equal(f->runs[2].id, J3);
    assert_claims(f, J1, 1);
    assert_claims(f, J2, 1);
    assert_claims(f, J3, 1);
    fake_free(f);
}

/* Jobs that are not guarded do not wait for the beat. */
static void test_the_others_do_not_wait(void **state)
{
    struct fake *f = with_locks(1, 6000);

    (void)state;
    fake_add(f, 2, "a", 0);
    f->latency_us = 10000;
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 12);
    assert_non_null(fake_running(f, J2));
    assert_null(fake_running(f, J1));
    fake_run(f, 30);
    assert_non_null(fake_running(f, J1));
    fake_free(f);
}

/* A beat that is already under way is enough. Its answer counts from when that beat was sent. */
static void test_a_beat_is_out(void **state)
{
    struct fake *f = with_locks(1, 0);
    unsigned beats;

    (void)state;
    fake_find(f, J1)->due_ms += 5000;
    fake_run(f, 4900);
    beats = f->count[BEAT];
    f->latency_us = 200000;
    fake_run(f, 2000);
    assert_non_null(fake_running(f, J1));
    assert_claims(f, J1, 1);
    assert_int_equal(f->count[BEAT], beats + 1);
    fake_free(f);
}

/* The answer comes so late that its beat is too old: a beat is sent first, then the jobs go
 * back. */
static void test_still_stale(void **state)
{
    struct fake *f = waiting(2);
    unsigned beats = f->count[BEAT];

    (void)state;
    sleep_on(f);
    fake_run(f, 10);
    assert_int_equal(f->starts, 0);
    assert_int_equal(status(f).running, 0);
    assert_int_equal(f->count[BEAT], beats + 1);
    assert_non_null(fake_result_in(fake_last(f, BEAT)->next, J1));
    assert_non_null(fake_result_in(fake_last(f, BEAT)->next, J2));
    fake_run(f, 1300);
    assert_int_equal(f->starts, 2);
    assert_claims(f, J1, 2);
    assert_claims(f, J2, 2);
    assert_int_equal(f->count[BEAT], beats + 1);
    fake_free(f);
}

/* The beat for such a job is an extra one. If it moved the rhythm, and its answer took less time
 * than the one before, only every second beat would count for the silence of others
 * (sched/silence.h). */
static void test_rhythm_is_kept(void **state)
{
    struct fake *f = with_locks(0, 0);
    int64_t begin_us = f->now_us;

    (void)state;
    f->run_ms = 1;
    f->peers[0] = fake_peer(70, "3");
    f->npeers = 1;
    for (unsigned i = 1; f->count[REAP] == 0 && f->now_us < begin_us + 60000000; i++) {
        const struct fake_call *beat = fake_last(f, BEAT);

        /* Every second beat is slow. */
        f->latency_us =
            beat != NULL && !beat->is_answered && f->count[BEAT] % 2 == 0 ? 40000 : 2000;
        fake_run(f, 1);
        if (i % 4 > 0 || f->now_us - f->acked_us < FAKE_FRESH_US - 2 * FAKE_SPARE_US)
            continue;
        fake_add(f, i, "a", 0)->is_guarded = true;
        sched_on_wake(f->s, fake_now(f), "a");
    }
    assert_in_range(f->now_us - begin_us, 19500000, 26000000);
    fake_free(f);
}

/* ---- no guard, large payloads */

static void test_no_guard(void **state)
{
    struct fake *f = with_locks(1, 0);
    struct fake_job *j;
    unsigned beats = f->count[BEAT];

    (void)state;
    fake_add(f, 2, "a", 0);
    f->is_unguarded = true;
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 2500);
    assert_non_null(fake_running(f, J2));
    assert_null(fake_running(f, J1));
    j = fake_find(f, J1);
    assert_in_range(j->start, 2, 4); /* tried once a second */
    assert_int_equal(f->count[BEAT], beats);
    f->is_unguarded = false;
    fake_run(f, 1100);
    assert_non_null(fake_running(f, J1));
    assert_int_equal(j->attempt, 1);
    fake_free(f);
}

/* The guard dies while a job waits for the beat: the job goes back. */
static void test_guard_dies_meanwhile(void **state)
{
    struct fake *f = waiting(1);

    (void)state;
    f->is_unguarded = true;
    fake_run(f, 30);
    assert_int_equal(f->starts, 0);
    assert_int_equal(fake_find(f, J1)->state, WAITS);
    assert_int_equal(fake_find(f, J1)->attempt, 0);
    fake_free(f);
}

/* After a failover the others come over within seconds, and one of them may hold the lock by a
 * claim that was lost: nothing starts under a lock until then. Other jobs do not wait. */
static void test_failover_holds_locks_back(void **state)
{
    struct fake *f = with_locks(1, 0);

    (void)state;
    fake_add(f, 2, "a", 0);
    fake_add(f, 3, "a", 0)->is_guarded = true;
    fake_find(f, J3)->is_big = true;
    fake_cut(f, false);
    sched_failed_over(f->s);
    fake_up(f);
    fake_run(f, SESSION_FAILOVER_MS - 100);
    assert_non_null(fake_running(f, J2));
    assert_int_equal(f->starts, 1);
    fake_run(f, 200);
    assert_int_equal(f->starts, 3);
    assert_claims(f, J1, 1);
    /* A server that only was away a moment. */
    fake_add(f, 4, "a", 0)->is_guarded = true;
    fake_cut(f, false);
    fake_up(f);
    fake_run(f, 1500);
    assert_int_equal(f->starts, 4);
    fake_free(f);
}

/* A new master may take no writes until it has a replica. The others come when it does, within a
 * second: the time counts from then. */
static void test_failover_to_one_that_refuses(void **state)
{
    struct fake *f = with_locks(1, 0);

    (void)state;
    fake_cut(f, false);
    sched_failed_over(f->s);
    f->failing_kinds = 1U << REG;
    f->class = ERROR_CLASS_FULL;
    fake_up(f);
    fake_run(f, 2 * SESSION_FAILOVER_MS);
    f->failing_kinds = 0;
    fake_run(f, 1050);
    assert_claims(f, J1, 1);
    fake_run(f, SESSION_FAILOVER_MS - 1100);
    assert_int_equal(f->starts, 0);
    fake_run(f, 1200);
    assert_int_equal(f->starts, 1);
    /* Who starts it adds what it has waited here. */
    assert_in_range(fake_running(f, J1)->late_us, 1, (2 * SESSION_FAILOVER_MS + 1050) * 1000);
    fake_free(f);
}

/* The beat is too old when the large payload comes: the job waits for a new beat. */
static void test_big_payload(void **state)
{
    struct fake *f = with_locks(1, 0);

    (void)state;
    fake_find(f, J1)->is_big = true;
    f->latency_us = 5000;
    sched_on_wake(f->s, fake_now(f), "a");
    while (f->count[FETCH] == 0)
        fake_run(f, 1);
    sleep_on(f);
    fake_run(f, 6);
    assert_int_equal(f->starts, 0);
    /* A second answer to the fetch, as after an earlier claim, starts nothing. */
    sched_on_fetched(f->s, fake_now(f), J1, "big payload", 11);
    assert_int_equal(f->starts, 0);
    fake_run(f, 10);
    assert_non_null(fake_running(f, J1));
    assert_claims(f, J1, 1);
    assert_int_equal(f->count[FETCH], 1);
    fake_free(f);
}

/* ---- the end of the wait */

static void test_stop(void **state)
{
    struct fake *f = waiting(2);

    (void)state;
    sched_stop(f->s, fake_now(f));
    fake_run(f, 60);
    assert_int_equal(f->starts, 0);
    assert_int_equal(f->gone, 1);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f->jobs[i].state, WAITS);
        assert_int_equal(f->jobs[i].attempt, 0);
        assert_int_equal(f->jobs[i].start, 1);
    }
    fake_free(f);
}

static void test_link_lost(void **state)
{
    for (int is_done = 0; is_done < 2; is_done++) {
        struct fake *f = waiting(2);

        (void)state;
        fake_cut(f, is_done);
        assert_int_equal(status(f).running + status(f).unsent, 0);
        fake_run(f, 30000);
        fake_up(f);
        fake_run(f, 1300);
        assert_int_equal(fake_last(f, RECONCILE)->released, 2);
        assert_int_equal(f->starts, 2);
        assert_claims(f, J1, 2);
        fake_free(f);
    }
}

static void test_error_reply(void **state)
{
    struct fake *f = waiting(1);

    (void)state;
    f->failing_kinds = 1u << BEAT;
    f->class = ERROR_CLASS_WAIT;
    fake_run(f, 10);
    assert_int_equal(status(f).running, 0);
    f->failing_kinds = 0;
    fake_run(f, 1500);
    assert_non_null(fake_running(f, J1));
    assert_claims(f, J1, 2);
    fake_free(f);
}

static void test_dead_or_unknown(void **state)
{
    for (int is_dead = 0; is_dead < 2; is_dead++) {
        struct fake *f = waiting(1);

        (void)state;
        f->is_written_off = is_dead;
        if (is_dead)
            fake_find(f, J1)->state = WAITS;
        else
            fake_lose_data(f, false);
        fake_run(f, 10);
        assert_int_equal(f->count[REG], 2);
        assert_int_equal(status(f).running, 0);
        fake_run(f, 1500);
        assert_int_equal(f->starts, 1);
        assert_int_equal(fake_running(f, J1)->start, 2);
        fake_free(f);
    }
}

/* The beat counts one job fewer than we hold: nothing starts before the reconcile says which. */
static void test_lost_meanwhile(void **state)
{
    struct fake *f = waiting(2);

    (void)state;
    fake_find(f, J1)->state = DONE;
    fake_run(f, 12);
    assert_int_equal(f->count[RECONCILE], 1);
    assert_int_equal(f->starts, 0);
    fake_run(f, 20);
    assert_null(fake_running(f, J1));
    assert_non_null(fake_running(f, J2));
    assert_claims(f, J2, 1);
    fake_free(f);
}

/* ---- lost by Redis */

/* Redis lost the job and its lock, which may be another's by now: the handler is killed. */
static void test_forgotten_with_its_lock(void **state)
{
    struct fake *f = with_locks(1, 0);

    (void)state;
    fake_add(f, 2, "a", 0);
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 50);
    assert_int_equal(f->starts, 2);
    fake_lose_data(f, true);
    fake_run(f, 6000);
    assert_int_equal(status(f).epoch, f->worker);
    assert_null(fake_running(f, J1)); /* killed: in this test no job ends by itself */
    assert_non_null(fake_running(f, J2));
    assert_int_equal(fake_running(f, J2)->kills, 0);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fresh_beat),
        cmocka_unit_test(test_stale_beat),
        cmocka_unit_test(test_order_of_claims),
        cmocka_unit_test(test_the_others_do_not_wait),
        cmocka_unit_test(test_a_beat_is_out),
        cmocka_unit_test(test_still_stale),
        cmocka_unit_test(test_rhythm_is_kept),
        cmocka_unit_test(test_no_guard),
        cmocka_unit_test(test_guard_dies_meanwhile),
        cmocka_unit_test(test_failover_holds_locks_back),
        cmocka_unit_test(test_failover_to_one_that_refuses),
        cmocka_unit_test(test_big_payload),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_link_lost),
        cmocka_unit_test(test_error_reply),
        cmocka_unit_test(test_dead_or_unknown),
        cmocka_unit_test(test_lost_meanwhile),
        cmocka_unit_test(test_forgotten_with_its_lock),
    };

    log_set_level((enum log_level)0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
