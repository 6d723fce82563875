/* A job that killed two workers is a suspect: it runs alone, soon, whichever queue it is in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "fake_store.h"

#define J1 "j00000000001"

/* Jobs of run_ms keep the worker busy when a suspect of this queue comes. It runs alone. -> how
 * long it waited, in ms */
static int64_t wait_of_suspect(struct fake *f, const char *queue, int64_t run_ms, unsigned jobs,
                               int64_t busy_ms)
{
    int64_t waited_ms = 0;

    f->run_ms = run_ms;
    for (unsigned i = 10; i < jobs; i++)
        fake_add(f, i, "a", 0);
    fake_run(f, busy_ms);
    fake_add(f, 1, queue, 0)->crashes = 2;
    for (; fake_running(f, J1) == NULL && waited_ms < 60000; waited_ms += 10)
        fake_run(f, 10);
    assert_int_equal(f->nruns, 1);
    return waited_ms;
}

/* A suspect in a busy worker: its neighbours end, it runs alone, and then all goes on. */
static void test_suspects_run_alone(void **state)
{
    struct fake *f = fake_ready(4, "a b");
    int64_t waited_ms = wait_of_suspect(f, "b", 700, 500, 2000);
    unsigned starts = f->starts;

    (void)state;
    assert_in_range(waited_ms, SCHED_SOLO_WAIT_MS, SCHED_SOLO_WAIT_MS + 4000);
    assert_int_equal(f->emptyings, 1);
    assert_false(f->is_emptying);
    fake_run(f, 650);
    assert_int_equal(f->starts, starts);
    fake_run(f, 5000);
    assert_int_equal(fake_state_of(f, J1), DONE);
    assert_true(f->starts > starts + 8);
    fake_free(f);
}

static void suspect_among_many_queues(unsigned queues, const char *queue)
{
    struct fake *f = fake_ready(4, "a b");
    int64_t waited_ms;
    unsigned starts;

    fake_many_queues(f, "a b", queues, "z");
    waited_ms = wait_of_suspect(f, queue, 5000, 300, 12000);
    assert_in_range(waited_ms, SCHED_SOLO_WAIT_MS, SCHED_SOLO_WAIT_MS + 9000);
    starts = f->starts;
    fake_run(f, 60000);
    assert_int_equal(fake_state_of(f, J1), DONE);
    assert_in_range(f->starts, starts + 36, starts + 48);
    fake_free(f);
}

/* The same when not all queues fit into one call, or into one look, whichever queue has the
 * suspect. Once it has run, the other jobs go on. */
static void test_suspects_among_many_queues(void **state)
{
    (void)state;
    suspect_among_many_queues(97, "b");
    suspect_among_many_queues(97, "z");
    suspect_among_many_queues(1997, "b");
    suspect_among_many_queues(1997, "z");
}

/* Another worker takes the suspect while this one runs dry for it. One sync a second asks for
 * suspects, so the worker learns it and claims again. */
static void test_a_suspect_that_went_elsewhere(void **state)
{
    struct fake *f = fake_ready(4, "a b");
    struct fake_job *suspect;
    unsigned starts, named;

    (void)state;
    f->run_ms = 3600000;
    fake_add(f, 500, "a", 0);
    fake_run(f, 1500);
    f->run_ms = 500;
    for (unsigned i = 10; i < 150; i++)
        fake_add(f, i, "a", 0);
    suspect = fake_add(f, 1, "b", 0);
    suspect->crashes = 2;
    fake_run(f, SCHED_SOLO_WAIT_MS + 5000);
    starts = f->starts;
    named = fake_named_since(f, 0);
    fake_run(f, 5000);
    assert_int_equal(f->starts, starts);
    assert_in_range(fake_named_since(f, 0) - named, 4, 2 * 6);
    suspect->state = DONE;
    fake_run(f, 1200);
    assert_true(f->starts >= starts + 3);
    fake_free(f);
}

/* A neighbour runs for hours, so this worker never becomes idle: other jobs start again. */
static void test_a_suspect_does_not_starve_the_others(void **state)
{
    struct fake *f = fake_ready(2, "a b");
    unsigned starts;

    (void)state;
    f->run_ms = 3600000;
    fake_add(f, 500, "a", 0);
    fake_run(f, 1500);
    f->run_ms = 1000;
    fake_add(f, 1, "b", 0)->crashes = 2;
    for (unsigned i = 10; i < 150; i++)
        fake_add(f, i, "a", 0);
    fake_run(f, SCHED_SOLO_WAIT_MS + 5000);
    starts = f->starts;
    fake_run(f, SCHED_SOLO_DRY_MS - 10000);
    assert_int_equal(f->starts, starts); /* the worker runs dry */
    fake_run(f, 60000);
    assert_true(f->starts > starts + 20);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suspects_run_alone),
        cmocka_unit_test(test_suspects_among_many_queues),
        cmocka_unit_test(test_a_suspect_that_went_elsewhere),
        cmocka_unit_test(test_a_suspect_does_not_starve_the_others),
    };

    log_set_level((enum log_level)0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
