/* What Redis' clock shows, by answers that took their time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched/server_clock.h"

#define UNIX INT64_C(1767225600000000)

/* It shows UNIX + us; the answer took way_us. -> how far what we take it for is behind */
static int64_t hear(struct server_clock *c, int64_t us, int64_t way_us)
{
    return UNIX + us + way_us -
           server_clock_hear(c, (struct mono){1000000 + us}, (struct mono){1000000 + us + way_us},
                             UNIX + us);
}

static void test_the_fastest_answer_counts(void **state)
{
    struct server_clock c = {0};

    (void)state;
    assert_int_equal(hear(&c, 0, 400), 400);
    assert_int_equal(hear(&c, 1000, 100), 100);
    /* A thousandth of its age. */
    assert_int_equal(hear(&c, 11000, 900), 110);
    assert_int_equal(hear(&c, 101000, 900), 200);
    assert_int_equal(hear(&c, 102000, 150), 150);
}

/* Clocks that drift as fast as they may: never ahead of it. */
static void test_never_early(void **state)
{
    struct server_clock c = {0};

    (void)state;
    for (int64_t us = 0; us < 60000000; us += 7001) {
        int64_t now_us = UNIX + us - us / 1000; /* Redis' second is the longer one */
        int64_t way_us = us % 1300;
        int64_t shown =
            server_clock_hear(&c, (struct mono){1 + us}, (struct mono){1 + us + way_us}, now_us);

        assert_true(shown >= now_us);
        assert_true(shown <= now_us + way_us + 1);
    }
}

/* It was set by step_us, and answers within 400 us. -> how far what we take it for is ahead of it
 */
static int64_t hear_set(struct server_clock *c, int64_t us, int64_t step_us)
{
    int64_t now_us = UNIX + us + step_us;
    int64_t shown = server_clock_hear(c, (struct mono){1000000 + us},
                                      (struct mono){1000000 + us + 400}, now_us);

    return shown > now_us + 400 ? shown - now_us - 400 : 0;
}

static void test_it_is_set(void **state)
{
    struct server_clock c = {0};

    (void)state;
    (void)hear(&c, 0, 100);
    assert_int_equal(hear_set(&c, 10000, -3600000000), 0);
    assert_int_equal(hear_set(&c, 20000, 3600000000), 0);
    /* By less than an answer may be late by: its question tells. */
    assert_int_equal(hear_set(&c, 30000, 3600000000 - 12000), 0);
    assert_int_equal(hear_set(&c, 31000, 3600000000 - 12000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_fastest_answer_counts),
        cmocka_unit_test(test_never_early),
        cmocka_unit_test(test_it_is_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
