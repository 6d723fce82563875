/* The wait after a failure: growth, cap, spread, and numbers that no sane caller gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "job/backoff.h"

#define MIDDLE (UINT32_MAX / 2)

static void test_table(void **state)
{
    static const struct {
        struct backoff b;
        int64_t failures;
        uint32_t random;
        int64_t min, max; /* bounds of the delay */
    } rows[] = {
        {{15000, 2000, 43200000, 0}, 1, 0, 15000, 15000},
        {{15000, 2000, 43200000, 0}, 2, 0, 30000, 30000},
        {{15000, 2000, 43200000, 0}, 12, 0, 30720000, 30720000},
        {{15000, 2000, 43200000, 0}, 13, 0, 43200000, 43200000},
        {{15000, 2000, 43200000, 0}, INT64_MAX, 0, 43200000, 43200000},
        {{15000, 2000, 43200000, 15}, 1, 0, 12750, 12750},
        {{15000, 2000, 43200000, 15}, 1, UINT32_MAX, 17250, 17250},
        {{15000, 2000, 43200000, 15}, 1, MIDDLE, 14999, 15000},
        /* The cap limits the middle of the spread: many retries at the cap stay spread out. */
        {{15000, 2000, 43200000, 15}, 99, UINT32_MAX, 49680000, 49680000},
        {{1000, 1000, 60000, 0}, 1000000000, 0, 1000, 1000},
        {{1000, 1500, 60000, 0}, 2, 0, 1500, 1500},
        {{1000, 2000, 100, 0}, 1, 0, 100, 100},
        {{1000, 2000, 60000, 100}, 1, 0, 0, 0},
        {{1000, 2000, 60000, 100}, 1, UINT32_MAX, 2000, 2000},
        {{0, 2000, 60000, 50}, 5, UINT32_MAX, 0, 0},
        {{0, 2000, 60000, 50}, INT64_MAX, MIDDLE, 0, 0},
        {{1000, 2000, 0, 50}, 5, UINT32_MAX, 0, 0},
        {{1000, 2000, 60000, 0}, 0, 0, 1000, 1000},
        {{1000, 2000, 60000, 0}, -7, 0, 1000, 1000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t ms = backoff_ms(&rows[i].b, rows[i].failures, rows[i].random);

        if (ms < rows[i].min || ms > rows[i].max)
            fail_msg("row %zu: %lld", i, (long long)ms);
    }
}

static void test_default_policy_lasts_about_a_week(void **state)
{
    struct backoff b = {15000, 2000, 43200000, 15};
    int64_t sum = 0;

    (void)state;
    for (int64_t i = 1; i < 25; i++)
        sum += backoff_ms(&b, i, MIDDLE);
    assert_in_range(sum, INT64_C(6) * 86400000, INT64_C(8) * 86400000);
}

static void test_never_shrinks_with_failures(void **state)
{
    struct backoff b = {7, 1001, 3600000, 20};

    (void)state;
    for (int64_t i = 1, was = 0; i < 5000; i++) {
        int64_t ms = backoff_ms(&b, i, 12345);

        assert_true(ms >= was);
        was = ms;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_default_policy_lasts_about_a_week),
        cmocka_unit_test(test_never_shrinks_with_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
