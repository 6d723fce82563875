/* When the pool counts as stalled, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/pool/stall.h"

static struct mono at(int64_t s)
{
    return (struct mono){1000000 + s * 1000000};
}

static void test_within_limit(void **state)
{
    struct stall_job job = {at(0), at(0), 3600000, 5000};

    (void)state;
    assert_true(stall_overdue_ms(&job, at(1)) <= 0);
    assert_true(stall_overdue_ms(&job, at(3600)) <= 0);
    assert_true(stall_overdue_ms(&job, at(3600 + 5 + 10)) <= 0);
    assert_int_equal(stall_overdue_ms(&job, at(3600 + 5 + 11)), 1000);
}

static void test_no_limit(void **state)
{
    struct stall_job job = {at(0), at(0), INT64_MAX, 5000};

    (void)state;
    assert_true(stall_overdue_ms(&job, at(INT64_C(100) * 365 * 86400)) <= 0);
}

/* No thread has taken the job yet: its time has not begun. */
static void test_not_taken(void **state)
{
    struct stall_job job = {{0}, {0}, 1000, 5000};

    (void)state;
    assert_true(stall_overdue_ms(&job, at(1000000)) <= 0);
}

static void test_says_something(void **state)
{
    struct stall_job job = {at(0), at(0), 1000, 0};

    (void)state;
    assert_true(stall_overdue_ms(&job, at(12)) > 0);
    job.said = at(60); /* a plug-in past its time, but at work */
    assert_true(stall_overdue_ms(&job, at(70)) <= 0);
    assert_true(stall_overdue_ms(&job, at(71)) > 0);
    job.said = MONO_NEVER; /* killed; the kernel keeps it */
    assert_true(stall_overdue_ms(&job, at(1000000)) <= 0);
}

static void test_work(void **state)
{
    struct stall_work work = {0};

    (void)state;
    assert_false(stall_work(&work, true, true, 7, at(0)));
    assert_false(stall_work(&work, true, true, 7, at(1)));
    assert_false(stall_work(&work, true, true, 7, at(10)));
    assert_true(stall_work(&work, true, true, 7, at(11)));
    assert_true(stall_work(&work, true, true, 7, at(12)));
    assert_false(stall_work(&work, true, true, 8, at(13))); /* one was taken */
    assert_false(stall_work(&work, true, true, 8, at(22)));
    assert_false(
        stall_work(&work, true, false, 8, at(23))); /* all threads are busy: that is load */
    assert_false(stall_work(&work, true, true, 8, at(32)));
    assert_false(stall_work(&work, false, true, 8, at(40)));
    assert_false(stall_work(&work, true, true, 8, at(45)));
    assert_true(stall_work(&work, true, true, 8, at(55)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_within_limit), cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_not_taken),    cmocka_unit_test(test_says_something),
        cmocka_unit_test(test_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
