/* Looks: once a second the next thousand queues by turns, and a sync names what they found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "fake_store.h"

#define J1 "j00000000001"
#define J2 "j00000000002"

/* Looks find jobs in queues of which nothing is known: at first, after a lost link, and after a
 * time in which the worker claimed nothing or did not serve the queue. Syncs name few queues all
 * the time. */
static void test_many_queues(void **state)
{
    struct fake *f = fake_new(4, "a");

    (void)state;
    fake_many_queues(f, "b", 99, "d");
    fake_add(f, 1, "b", 0);
    fake_up(f);
    fake_run(f, 20);
    assert_non_null(fake_running(f, J1));
    assert_in_range(fake_named_since(f, 0), 1, 20);
    fake_cut(f, true);
    fake_add(f, 2, "b", 0);
    fake_up(f);
    fake_run(f, 20);
    assert_non_null(fake_running(f, J2));
    f->quiet = true;
    sched_on_wake(f->s, fake_now(f), "!beat");
    fake_run(f, 2000);
    fake_add(f, 3, "b", 0);
    fake_run(f, 2000);
    assert_int_equal(f->starts, 2);
    f->quiet = false;
    sched_on_wake(f->s, fake_now(f), "!beat");
    fake_run(f, 20);
    assert_int_equal(f->starts, 3);
    fake_queues(f, "a");
    fake_run(f, 2000);
    fake_add(f, 4, "b", 0);
    fake_many_queues(f, "b", 99, "d");
    fake_run(f, 5);
    assert_int_equal(f->starts, 4);
    fake_free(f);
}

/* How often looks named each of the 2,500 c queues since then. The numbers differ by one at most.
 * -> the largest */
static unsigned looks_of_each(const struct fake *f, int64_t since_us)
{
    unsigned n[10000] = {0}, least = UINT32_MAX, most = 0, queues = 0;

    for (const struct fake_call *c = f->asked; c != NULL; c = c->next) {
        for (size_t i = 0; c->kind == LOOK && c->at_us >= since_us && i < c->nrooms; i++)
            n[atoi(c->rooms[i].queue + 1)] += c->rooms[i].queue[0] == 'c';
    }
    for (; n[queues] > 0; queues++) {
        most = n[queues] > most ? n[queues] : most;
        least = n[queues] < least ? n[queues] : least;
    }
    assert_int_equal(queues, 2500);
    assert_true(most - least <= 1);
    return most;
}

/* At first looks follow each other until all queues had their turn, then a thousand queues a second
 * have theirs. Queues in which nothing was found cause no sync. */
static void test_turns(void **state)
{
    struct fake *f = fake_new(4, "a");
    int64_t since_us;

    (void)state;
    fake_many_queues(f, "a", 2500, "z");
    fake_up(f);
    fake_run(f, 20);
    assert_int_equal(f->count[LOOK], 3);
    assert_int_equal(looks_of_each(f, 0), 1);
    since_us = f->now_us;
    fake_run(f, 30000);
    assert_in_range(f->count[LOOK], 3 + 28, 3 + 33);
    assert_in_range(looks_of_each(f, since_us), 10, 11);
    assert_int_equal(f->count[SYNC], 0);
    /* All queues are new after a change of their names. */
    since_us = f->now_us;
    fake_many_queues(f, "b", 2500, "z");
    fake_run(f, 20);
    assert_int_equal(looks_of_each(f, since_us), 1);
    fake_free(f);
}

/* A job that no message told of is found in the turn of its queue. After that, a job that is due
 * later starts in time. */
static void test_how_late(void **state)
{
    for (unsigned n = 1000; n <= 4000; n += 1000) {
        struct fake *f = fake_new(4, "a");
        int64_t late_ms = 0;

        (void)state;
        fake_many_queues(f, "a", n - 2, "z");
        fake_up(f);
        fake_run(f, 20);
        fake_add(f, 1, "c0500", 0);
        for (; fake_running(f, J1) == NULL && late_ms < 60000; late_ms += 10)
            fake_run(f, 10);
        assert_in_range(late_ms, 10, 1100 * n / 1000 + 10);
        fake_add(f, 2, "c0900", 20000);
        fake_run(f, 20010);
        assert_non_null(fake_running(f, J2));
        assert_in_range(fake_running(f, J2)->began_us / 1000,
                        fake_find(f, J2)->due_ms - FAKE_BEGIN_MS,
                        fake_find(f, J2)->due_ms - FAKE_BEGIN_MS + 1);
        fake_free(f);
    }
}

/* Queues in which looks find something for long (here suspects, which have marks) are named once a
 * second. */
static void test_what_is_found_for_long(void **state)
{
    struct fake *f = fake_new(64, "a");
    unsigned before, syncs;

    (void)state;
    fake_many_queues(f, "b", 998, "d");
    for (unsigned i = 0; i < 50; i++) {
        char queue[8];

        (void)snprintf(queue, sizeof(queue), "c%04u", 19 * i);
        fake_add(f, 10 + i, queue, 86400000)->crashes = 2;
    }
    fake_up(f);
    fake_run(f, 3000);
    before = fake_named_since(f, 0);
    syncs = f->count[SYNC];
    fake_run(f, 30000);
    assert_in_range(fake_named_since(f, 0) - before, 27 * 50, 34 * 50);
    assert_in_range(f->count[SYNC] - syncs, 2 * 27, 2 * 34);
    for (unsigned i = 0; i < 50; i++)
        f->jobs[i].state = DONE;
    fake_run(f, 1200);
    syncs = f->count[SYNC];
    fake_run(f, 16000);
    assert_int_equal(f->count[SYNC], syncs);
    fake_free(f);
}

/* A sync names few queues, however many are due, so that each gives several jobs at once. */
static void test_a_sync_names_few(void **state)
{
    struct fake *f = fake_new(128, "a");
    const struct fake_call *sync;

    (void)state;
    fake_many_queues(f, "a", 98, "z");
    for (unsigned i = 0; i < 490; i++) {
        char queue[8];

        (void)snprintf(queue, sizeof(queue), "c%04u", i % 98);
        fake_add(f, i, queue, 0);
    }
    fake_up(f);
    fake_run(f, 20);
    sync = fake_last(f, SYNC);
    assert_int_equal(f->starts, 128);
    assert_int_equal(sync->nrooms, 32);
    for (size_t i = 0; i < sync->nrooms; i++)
        assert_int_equal(sync->rooms[i].room, 4);
    fake_free(f);
}

/* While a job runs, a sync follows each look, since the job may have been cancelled. */
static void test_cancel_without_a_message(void **state)
{
    struct fake *f = fake_ready(4, "a");

    (void)state;
    fake_add(f, 1, "a", 0);
    fake_run(f, 1200);
    f->jobs[0].is_cancelled = true;
    fake_run(f, 1200);
    assert_int_equal(fake_running(f, J1)->terms, 1);
    fake_end(f, J1, STORE_DONE);
    fake_free(f);
}

/* The cancel of a running job is noticed even when no queue is served. */
static void test_no_queues(void **state)
{
    struct fake *f = fake_new(4, "");

    (void)state;
    fake_up(f);
    fake_run(f, 3000);
    assert_in_range(f->count[SYNC], 2, 5);
    fake_queues(f, "a");
    fake_add(f, 1, "a", 0);
    fake_run(f, 1200);
    fake_queues(f, "");
    f->jobs[0].is_cancelled = true;
    fake_run(f, 1200);
    assert_int_equal(fake_running(f, J1)->terms, 1);
    assert_int_equal(f->count[LOOK], 2);
    fake_free(f);
}

/* A look tells when a gate needs a sync, also when no sync is sent. */
static void test_timer_of_a_gate(void **state)
{
    struct fake *f = fake_ready(4, "a");
    int64_t at_us = f->now_us + 1500 * 1000;

    (void)state;
    f->timer_ms = FAKE_BEGIN_MS + at_us / 1000;
    fake_run(f, 1499);
    assert_int_equal(f->count[SYNC], 0);
    fake_run(f, 2);
    assert_int_equal(f->count[SYNC], 1);
    fake_run(f, 5000);
    assert_int_equal(f->count[SYNC], 1);
    fake_free(f);
}

/* Looks take long, and no message told of the job. After a new subscription another look follows
 * the one under way, and syncs wait for neither. */
static void test_slow_looks(void **state)
{
    struct fake *f = fake_new(4, "a");
    unsigned looks;

    (void)state;
    fake_many_queues(f, "b", 99, "d");
    fake_up(f);
    fake_run(f, 1500);
    f->latency_us = 400000;
    looks = f->count[LOOK];
    while (f->count[LOOK] == looks)
        fake_run(f, 10);
    fake_run(f, 210); /* carried out, not answered yet */
    fake_add(f, 1, "c0050", 0);
    sched_on_subscribed(f->s, fake_now(f));
    assert_int_equal(f->count[LOOK], looks + 1);
    fake_run(f, 200);
    assert_int_equal(f->count[LOOK], looks + 2);
    fake_run(f, 900);
    assert_non_null(fake_running(f, J1));
    fake_free(f);
}

/* A look that fails, or that the link does not take, is trouble like any other. The next one finds
 * the job. */
static void test_looks_that_fail(void **state)
{
    struct fake *f = fake_new(4, "a");

    (void)state;
    fake_many_queues(f, "b", 99, "d");
    fake_up(f);
    fake_run(f, 20);
    f->failing_kinds = 1U << LOOK;
    f->class = ERROR_CLASS_WAIT;
    fake_run(f, 1500);
    fake_add(f, 1, "c0050", 0);
    f->failing_kinds = 0;
    fake_run(f, 6000);
    assert_non_null(fake_running(f, J1));
    f->takes_nothing = true;
    fake_run(f, 3000);
    fake_add(f, 2, "c0060", 0);
    f->takes_nothing = false;
    fake_run(f, 6000);
    assert_non_null(fake_running(f, J2));
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_queues),      cmocka_unit_test(test_turns),
        cmocka_unit_test(test_how_late),         cmocka_unit_test(test_what_is_found_for_long),
        cmocka_unit_test(test_a_sync_names_few), cmocka_unit_test(test_cancel_without_a_message),
        cmocka_unit_test(test_no_queues),        cmocka_unit_test(test_timer_of_a_gate),
        cmocka_unit_test(test_slow_looks),       cmocka_unit_test(test_looks_that_fail),
    };

    log_set_level((enum log_level)0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
