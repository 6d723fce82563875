/*
 * Tests of gate_judge, on ledgers of which everything is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../support/laterd.h"
#include "gate_judge.h"

static char dir[64], path[96];

static int setup(void **state)
{
    (void)state;
    test_folder_make(dir);
    (void)snprintf(path, sizeof(path), "%s/ledger", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_folder_remove(dir);
    return 0;
}

static void read_text(struct gate_judge *b, const char *text, const char *queue)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    gate_judge_read(b, path, queue);
}

static void test_at_once(void **state)
{
    struct gate_judge b;

    (void)state;
    /* Lines out of order, a clash, another queue, an end and a start at the same time. */
    read_text(&b,
              "100 start j1 1 a 1 work\n"
              "300 end j1 1 a 1 work\n"
              "200 start j2 1 b 2 work\n"
              "250 clash j9 1 b 2 work\n"
              "250 start j8 1 b 2 other\n"
              "300 start j3 1 a 3 work\n"
              "400 end j2 1 b 2 work\n"
              "500 end j3 1 a 3 work\n",
              "work");
    assert_int_equal(b.n, 6);
    assert_int_equal(gate_judge_starts(&b), 3);
    assert_int_equal(gate_judge_most(&b, NULL), 2);
    assert_int_equal(gate_judge_most(&b, "a"), 1);
    assert_int_equal(gate_judge_most_of_a_key(&b), 1);
    /* From the first start to the last: 100 us with one job, 100 us with two. */
    assert_true(gate_judge_average(&b) > 1.49 && gate_judge_average(&b) < 1.51);
    assert_int_equal(gate_judge_start(&b, "j3")->us, 300);
    assert_null(gate_judge_start(&b, "j8"));
    gate_judge_done(&b);
    read_text(&b,
              "1 start j1 1 a 1 work\n"
              "2 start j2 1 a 1 work\n"
              "3 end j1 1 a 1 work\n",
              NULL);
    assert_int_equal(gate_judge_most_of_a_key(&b), 2);
    gate_judge_done(&b);
}

static void test_handovers(void **state)
{
    struct gate_judge b;
    int64_t *times;
    size_t n;

    (void)state;
    read_text(&b,
              "0 start j1 1 - 1 work\n"
              "0 start j2 1 - 2 work\n"
              "10 end j1 1 - 1 work\n"
              "15 start j3 1 - 3 work\n"
              "20 end j2 1 - 2 work\n"
              "22 start j4 1 - 4 work\n"
              "30 end j3 1 - 3 work\n"
              "30 end j4 1 - 4 work\n",
              NULL);
    n = gate_judge_handovers(&b, 2, &times);
    assert_int_equal(n, 2);
    assert_int_equal(times[0], 2);
    assert_int_equal(times[1], 5);
    assert_int_equal(gate_quantile(times, n, 500), 2);
    assert_int_equal(gate_quantile(times, n, 1000), 5);
    free(times);
    gate_judge_done(&b);
}

static void test_windows(void **state)
{
    struct gate_judge b;
    int most, fewest;

    (void)state;
    read_text(&b,
              "1 start j1 1 - 1000 work\n"
              "2 start j2 1 - 1000 work\n"
              "3 start j3 1 - 1099 work\n"
              "4 start j4 1 - 1100 work\n"
              "5 start j5 1 - 1350 work\n"
              "6 start j6 1 - 1390 work\n"
              "7 start j7 1 - 1500 work\n",
              NULL);
    gate_judge_windows(&b, 100, 0, &most, &fewest);
    assert_int_equal(most, 3);
    assert_int_equal(fewest, 0); /* after 1100, for instance */
    gate_judge_windows(&b, 100, 1350, &most, &fewest);
    assert_int_equal(most, 2);
    gate_judge_windows(&b, 250, 0, &most, &fewest);
    assert_int_equal(fewest, 1); /* after 1100, until 1350 */
    assert_int_equal(gate_judge_most_aligned(&b, 100), 3);
    gate_judge_done(&b);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_at_once),
        T(test_handovers),
        T(test_windows),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
