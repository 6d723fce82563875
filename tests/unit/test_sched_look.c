/* Many queues: few are named, of the others one look tells which have to be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "base/log.h"
#include "fake_store.h"

#define J1 "j00000000001"
#define J2 "j00000000002"

/* Of many queues nothing is known at first, nor behind a lost link or a time without claims: the
 * looks of the sweep that follows tell, and one call of it names few. What a new configuration
 * brings is named at once. */
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

/* One look a second, however many queues there are; each of them is named once in 16 sweeps. */
static void test_a_sweep(void **state)
{
    struct fake *f = fake_new(4, "a");
    unsigned looks, before;

    (void)state;
    fake_many_queues(f, "b", 998, "d");
    fake_up(f);
    fake_run(f, 20);
    looks = f->count[LOOK];
    before = fake_named_since(f, 0);
    fake_run(f, 16000);
    assert_in_range(f->count[LOOK] - looks, 14, 18);
    assert_in_range(fake_named_since(f, 0) - before, 14 * 1000 / 16, 18 * 1000 / 16);
    /* Few are named, each time. */
    fake_queues(f, "a b");
    fake_run(f, 1500);
    looks = f->count[LOOK];
    fake_run(f, 10000);
    assert_int_equal(f->count[LOOK], looks);
    fake_free(f);
}

/* Where looks find something for long (marks here), queues are named by the sweeps, not beside them
 * in addition: only now and then one tells of it anew. */
static void test_what_is_found_for_long(void **state)
{
    struct fake *f = fake_new(4, "a");
    unsigned before, steps;

    (void)state;
    fake_many_queues(f, "b", 998, "d");
    for (unsigned i = 0; i < 50; i++) {
        char queue[8];

        (void)snprintf(queue, sizeof(queue), "c%04u", 20 * i);
        fake_add(f, 10 + i, queue, 86400000)->crashes = 2;
    }
    fake_up(f);
    fake_run(f, 3000);
    before = fake_named_since(f, 0);
    steps = f->count[STEP];
    fake_run(f, 30000);
    /* Each of the 50 once a sweep, the others at their turns: two steps. */
    assert_in_range(fake_named_since(f, 0) - before, 27 * (50 + 950 / 16),
                    34 * (50 + 950 / 16) + 50);
    assert_in_range(f->count[STEP] - steps, 27 * 2, 34 * 2 + 50 / 4 + 1);
    for (unsigned i = 0; i < 50; i++)
        f->jobs[i].state = DONE;
    fake_run(f, 70000);
    before = fake_named_since(f, 0);
    fake_run(f, 16000);
    assert_in_range(fake_named_since(f, 0) - before, 14 * 1000 / 16, 18 * 1000 / 16);
    fake_free(f);
}

/* A job of which no message told, while looks take long: who is subscribed anew looks again when
 * the one under way is over, and the steps do not wait for either. */
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
    fake_run(f, 210); /* it has looked */
    fake_add(f, 1, "c0050", 0);
    sched_on_subscribed(f->s, fake_now(f));
    assert_int_equal(f->count[LOOK], looks + 1);
    fake_run(f, 200);
    assert_int_equal(f->count[LOOK], looks + 2);
    fake_run(f, 900);
    assert_non_null(fake_running(f, J1));
    fake_free(f);
}

/* A look that fails, or cannot be asked for, is trouble like any other; the next one counts. */
static void test_looks_that_fail(void **state)
{
    struct fake *f = fake_new(4, "a");

    (void)state;
    fake_many_queues(f, "b", 99, "d");
    fake_up(f);
    fake_run(f, 20);
    f->fault_kinds = 1U << LOOK;
    f->fault = FAULT_WAIT;
    fake_run(f, 1500);
    fake_add(f, 1, "c0050", 0);
    f->fault_kinds = 0;
    fake_run(f, 6000);
    assert_non_null(fake_running(f, J1));
    f->takes_nothing = true;
    fake_run(f, 3000);
    fake_add(f, 2, "c0060", 0);
    f->takes_nothing = false;
    fake_run(f, 6000);
    assert_non_null(fake_running(f, J2));
    /* A library without looks: all are named, at once. */
    f->fault_kinds = 1U << LOOK;
    f->fault = FAULT_CALL;
    fake_run(f, 3000);
    f->fault_kinds = 0;
    fake_add(f, 3, "c0070", 0);
    fake_run(f, 2500);
    assert_int_equal(f->starts, 3);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_queues),
        cmocka_unit_test(test_a_sweep),
        cmocka_unit_test(test_what_is_found_for_long),
        cmocka_unit_test(test_slow_looks),
        cmocka_unit_test(test_looks_that_fail),
    };

    log_set_level((enum log_level)0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
