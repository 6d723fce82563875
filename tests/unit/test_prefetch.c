/* Jobs that a worker claims beyond its places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "sched/prefetch.h"
#include "fake_store.h"

#define NOW ((struct mono){1000000})

/* ---- how many */

static void test_as_many_as_end_in_ten_ms(void **state)
{
    struct prefetch p = {0};

    (void)state;
    assert_int_equal(prefetch_most(&p, 16, NOW), 0);
    prefetch_ran(&p, 20000);
    assert_int_equal(prefetch_most(&p, 16, NOW), 8);
    assert_int_equal(prefetch_most(&p, 1, NOW), 0);
    for (int i = 0; i < 100; i++)
        prefetch_ran(&p, 10);
    assert_int_equal(prefetch_most(&p, 16, NOW), PREFETCH_MAX);
    /* A job that took a minute counts for a while. */
    prefetch_ran(&p, 60000000);
    for (int i = 0; i < 20; i++) {
        prefetch_ran(&p, 10);
        assert_int_equal(prefetch_most(&p, 16, NOW), 0);
    }
}

static void test_none_for_a_while(void **state)
{
    struct prefetch p = {0};

    (void)state;
    prefetch_ran(&p, 0); /* less than a microsecond */
    assert_int_equal(prefetch_most(&p, 1, NOW), PREFETCH_MAX);
    prefetch_rest(&p, NOW);
    assert_int_equal(prefetch_most(&p, 1, mono_add_ms(NOW, PREFETCH_REST_MS - 1)), 0);
    assert_int_equal(prefetch_most(&p, 1, mono_add_ms(NOW, PREFETCH_REST_MS)), PREFETCH_MAX);
}

/* A fifth of that beside jobs of fair queues, and as much as before when none has come for a while.
 */
static void test_fewer_of_fair_queues(void **state)
{
    struct prefetch p = {0};

    (void)state;
    prefetch_ran(&p, 2000);
    assert_int_equal(prefetch_most(&p, 16, NOW), 80);
    prefetch_short(&p, NOW);
    assert_int_equal(prefetch_most(&p, 16, NOW), 16);
    assert_int_equal(prefetch_most(&p, 16, mono_add_ms(NOW, PREFETCH_REST_MS - 1)), 16);
    assert_int_equal(prefetch_most(&p, 16, mono_add_ms(NOW, PREFETCH_REST_MS)), 80);
}

/* ---- in the scheduler */

static void add_plain(struct fake *f, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        fake_add(f, i, "a", 0)->is_small = true;
    sched_on_wake(f->s, fake_now(f), "a");
}

static unsigned count_held(const struct fake *f)
{
    unsigned n = 0;

    for (size_t i = 0; i < f->njobs; i++)
        n += f->jobs[i].state == HELD;
    return n;
}

/* The most jobs that were held at once while ms passed. */
static unsigned most_held(struct fake *f, int64_t ms)
{
    unsigned most = 0;

    for (int64_t i = 0; i < ms; i++) {
        fake_run(f, 1);
        if (count_held(f) > most)
            most = count_held(f);
    }
    return most;
}

/* A worker of four places that has run some jobs of 5 ms. */
static struct fake *warm(void)
{
    struct fake *f = fake_new_prefetching(4, "a");

    fake_up(f);
    fake_run(f, 20);
    f->run_ms = 5;
    add_plain(f, 0, 8);
    fake_run(f, 100);
    assert_int_equal(count_held(f), 0);
    return f;
}

/* Jobs that were claimed and wait again, without an attempt spent. */
static unsigned count_given_back(const struct fake *f)
{
    unsigned n = 0;

    for (size_t i = 0; i < f->njobs; i++) {
        if (f->jobs[i].state == WAITS)
            assert_int_equal(f->jobs[i].attempt, 0);
        n += f->jobs[i].state == WAITS && f->jobs[i].start > 0;
    }
    return n;
}

/* The jobs get places in this order, each as soon as the one before it has ended. */
static void assert_in_order(struct fake *f, unsigned from, unsigned to)
{
    int64_t began = 0;

    for (unsigned i = from; i < to; i++) {
        char id[JOB_ID_LEN + 1];

        (void)snprintf(id, sizeof(id), "j%011u", i);
        assert_non_null(fake_running(f, id));
        assert_true(fake_running(f, id)->began_us >= began);
        began = fake_running(f, id)->began_us;
        fake_end(f, id, STORE_DONE);
        fake_run(f, 1);
    }
    assert_int_equal(count_held(f), 0);
}

/* A place that becomes free does not wait for a round trip. */
static void test_prefetches(void **state)
{
    struct fake *f = warm();
    unsigned held = 0, ms = 0;

    (void)state;
    f->latency_us = 2000;
    add_plain(f, 100, 300);
    for (; count_held(f) == 0; ms++)
        fake_run(f, 1);
    for (; f->nruns > 0 || count_held(f) > 0; ms++) {
        fake_run(f, 1);
        if (count_held(f) > held)
            held = count_held(f);
    }
    /* 4 run, 8 end in 10 ms, and up to 8 have ended but the store does not know it yet. */
    assert_in_range(held, 9, 4 + 8 + 8);
    /* 50 rounds of 5 ms; with a round trip in each it would be 350 ms. */
    assert_in_range(ms, 250, 280);
    assert_int_equal(f->starts, 208);
    fake_free(f);
}

/* Where tenants take turns less waits here before the job of the next one. */
static void test_prefetches_less_of_a_fair_queue(void **state)
{
    struct fake *f = warm();

    (void)state;
    f->is_fair = true;
    fake_queues(f, "a");
    f->latency_us = 200;
    add_plain(f, 100, 300);
    fake_run(f, 10); /* the first claim does not know it yet */
    assert_in_range(most_held(f, 200), 4, 4 + 2 + 4);
    fake_free(f);
}

/* Jobs take longer than before: those beyond the places go back as if they had not been claimed,
 * and for a while no more are claimed beyond the places. */
static void test_prefetched_goes_back(void **state)
{
    struct fake *f = warm();

    (void)state;
    f->run_ms = -1;
    add_plain(f, 100, 140);
    assert_in_range(most_held(f, 10), 9, 12);
    fake_run(f, PREFETCH_WAIT_MS - 5);
    assert_int_equal(count_held(f), 4);
    assert_in_range(count_given_back(f), 5, 8);
    assert_int_equal(most_held(f, 900), 4);
    f->run_ms = 5;
    fake_end_all(f, STORE_DONE);
    fake_run(f, 200);
    assert_int_equal(count_held(f), 0);
    assert_int_equal(f->starts, 48);
    fake_free(f);
}

static void test_stop_gives_back_what_was_prefetched(void **state)
{
    struct fake *f = warm();

    (void)state;
    f->run_ms = 15;
    add_plain(f, 100, 140);
    assert_in_range(most_held(f, 5), 9, 12);
    sched_stop(f->s, fake_now(f));
    fake_run(f, 40);
    assert_int_equal(f->gone, 1);
    assert_int_equal(f->starts, 8 + 4);
    for (size_t i = 0; i < f->njobs; i++)
        assert_true(f->jobs[i].state == DONE || f->jobs[i].attempt == 0);
    fake_free(f);
}

/* Jobs with gates, for which others wait, or with large payloads (as here) are not claimed beyond
 * the places. */
static void test_prefetches_plain_jobs_alone(void **state)
{
    struct fake *f = warm();

    (void)state;
    add_plain(f, 100, 140);
    for (size_t i = 0; i < f->njobs; i++)
        f->jobs[i].is_small = false;
    /* The worker learns it from the first of them. */
    assert_in_range(most_held(f, 4), 5, 12);
    fake_run(f, 10);
    assert_int_equal(most_held(f, 30), 4);
    fake_free(f);
}

/* A worker with endless jobs in its four places and others that wait for a place. */
static struct fake *crowded(unsigned jobs)
{
    struct fake *f = warm();

    f->run_ms = -1;
    add_plain(f, 100, 100 + jobs);
    fake_run(f, 3);
    assert_int_equal(f->nruns, 4);
    return f;
}

/* Waiting jobs get places in the order of their claims. */
static void test_places_in_the_order_of_claims(void **state)
{
    struct fake *f = crowded(12);

    (void)state;
    assert_in_order(f, 100, 112);
    fake_free(f);
}

/* Jobs beyond the places go back when fewer of their queue may run at once, or when cancelled. */
static void test_waiting_jobs_go_back(void **state)
{
    struct fake *f = crowded(40);

    (void)state;
    assert_in_range(count_held(f), 9, 12);
    f->jobs[8 + 6].is_cancelled = true;
    sched_on_wake(f->s, fake_now(f), "!cancel");
    fake_run(f, 3);
    /* Redis would end the cancelled job; the fake store hands it out again. */
    assert_true(f->jobs[8 + 6].state == WAITS || f->jobs[8 + 6].start == 2);
    f->jobs[8 + 6].is_cancelled = false;
    assert_int_equal(f->starts, 8 + 4);
    sched_set_max_at_once(f->s, fake_now(f), "a", 2);
    fake_run(f, 3);
    assert_int_equal(count_held(f), 4);
    fake_end_all(f, STORE_DONE);
    fake_run(f, 5);
    assert_int_equal(count_held(f), 2);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_many_as_end_in_ten_ms),
        cmocka_unit_test(test_none_for_a_while),
        cmocka_unit_test(test_fewer_of_fair_queues),
        cmocka_unit_test(test_prefetches),
        cmocka_unit_test(test_prefetches_less_of_a_fair_queue),
        cmocka_unit_test(test_prefetched_goes_back),
        cmocka_unit_test(test_stop_gives_back_what_was_prefetched),
        cmocka_unit_test(test_prefetches_plain_jobs_alone),
        cmocka_unit_test(test_places_in_the_order_of_claims),
        cmocka_unit_test(test_waiting_jobs_go_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
