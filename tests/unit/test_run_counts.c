/* Runs by queue: each queue once, whatever the order in which they come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "job/run_counts.h"

static void test_each_queue_once(void **state)
{
    static const char *const names[] = {"mail", "sms", "a", "mail", "b", "sms", "mail"};
    struct run_counts c = {.n = 0};

    (void)state;
    assert_null(run_counts_find(&c, "mail"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        run_counts_of(&c, names[i])->runs++;
    assert_int_equal(c.n, 4);
    assert_int_equal(run_counts_find(&c, "mail")->runs, 3);
    assert_int_equal(run_counts_find(&c, "sms")->runs, 2);
    assert_int_equal(run_counts_find(&c, "a")->runs, 1);
    assert_null(run_counts_find(&c, "aa"));
    assert_null(run_counts_find(&c, "z"));
    run_counts_done(&c);
    assert_int_equal(c.n, 0);
}

static void test_thousands(void **state)
{
    struct run_counts c = {.n = 0};
    char name[16];

    (void)state;
    for (int i = 0; i < 4000; i++) {
        (void)snprintf(name, sizeof(name), "q%d", i * 7919 % 2000);
        run_counts_of(&c, name)->us += 10;
    }
    assert_int_equal(c.n, 2000);
    for (size_t i = 0; i < c.n; i++)
        assert_int_equal(c.at[i].us, 20);
    run_counts_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_queue_once),
                                       cmocka_unit_test(test_thousands)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
