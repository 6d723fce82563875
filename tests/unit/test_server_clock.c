/* The estimate of Redis' clock, from answers that arrive with a delay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched/server_clock.h"

#define UNIX INT64_C(1767225600000000)

/* Redis' clock shows UNIX + us, and the answer arrives way_us later. -> how far the estimate is
 * behind */
static int64_t hear(struct server_clock *c, int64_t us, int64_t way_us)
{
    return UNIX + us + way_us -
           server_clock_note_time(c, (struct mono){1000000 + us},
                                  (struct mono){1000000 + us + way_us}, UNIX + us);
}

static void test_the_fastest_answer_counts(void **state)
{
    struct server_clock c = {0};

    (void)state;
    assert_int_equal(hear(&c, 0, 400), 400);
    assert_int_equal(hear(&c, 1000, 100), 100);
    /* The estimate is slower by a thousandth of the answer's age. */
    assert_int_equal(hear(&c, 11000, 900), 110);
    assert_int_equal(hear(&c, 101000, 900), 200);
    assert_int_equal(hear(&c, 102000, 150), 150);
}

/* The clocks drift as fast as is allowed for: the estimate is never later than Redis' clock. */
static void test_never_early(void **state)
{
    struct server_clock c = {0};

    (void)state;
    for (int64_t us = 0; us < 60000000; us += 7001) {
        int64_t now_us = UNIX + us - us / 1000; /* Redis' clock is the slower one */
        int64_t way_us = us % 1300;
        int64_t shown = server_clock_note_time(&c, (struct mono){1 + us},
                                               (struct mono){1 + us + way_us}, now_us);

        assert_true(shown >= now_us);
        assert_true(shown <= now_us + way_us + 1);
    }
}

/* Redis' clock was set by step_us; the answer takes 400 us. -> how much later the estimate is */
static int64_t hear_set(struct server_clock *c, int64_t us, int64_t step_us)
{
    int64_t now_us = UNIX + us + step_us;
    int64_t shown = server_clock_note_time(c, (struct mono){1000000 + us},
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
    /* Set back by 12 ms. The round trip shows that the answer cannot be as late as that. */
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
