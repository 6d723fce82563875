/*
 * The ledger's arithmetic on forged ledgers: each kind of error is found, and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/laterd.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "ledger.h"

static char dir[64];
static struct ledger ledger;

static int setup(void **state)
{
    (void)state;
    test_folder_make(dir);
    ledger_open(&ledger, dir);
    ledger_note(&ledger, 0, "j0");
    ledger_note(&ledger, 1, "j1");
    ledger_note(&ledger, 2, NULL); /* only attempted */
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ledger_close(&ledger);
    test_folder_remove(dir);
    return 0;
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static struct ledger_sum sum_of(const char *lines, const char *log)
{
    CLEANUP_FREE char *path = mem_printf("%s/a.log", dir);
    struct ledger_sum sum;

    write_text(ledger.path, lines);
    write_text(path, log);
    ledger_log(&ledger, path);
    ledger_sum(&ledger, &sum);
    return sum;
}

static bool is_sound(int again)
{
    struct ledger_sum sum;

    return ledger_is_sound(&ledger, again, &sum);
}

#define ONCE(n, id) #n " " id " 1 1" #n " start\n" #n " " id " 1 1" #n " end\n"

static void test_each_once_is_sound(void **state)
{
    struct ledger_sum s = sum_of(ONCE(0, "j0") ONCE(1, "j1") ONCE(2, "j2"), "");

    (void)state;
    assert_true(is_sound(LEDGER_WITH_CAUSE));
    assert_int_equal(s.attempted, 3);
    assert_int_equal(s.acked, 2);
    assert_int_equal(s.starts, 3);
    assert_int_equal(s.ends, 3);
}

static void test_what_was_not_acknowledged_cannot_be_lost(void **state)
{
    (void)state;
    (void)sum_of(ONCE(0, "j0") ONCE(1, "j1"), "");
    assert_true(is_sound(LEDGER_WITH_CAUSE));
}

static void test_a_start_without_an_end_is_lost(void **state)
{
    struct ledger_sum s = sum_of(ONCE(0, "j0") "1 j1 1 11 start\n", "");

    (void)state;
    assert_false(is_sound(LEDGER_WITH_CAUSE));
    assert_int_equal(s.lost, 1);
}

static void test_what_is_excused_is_not_lost(void **state)
{
    struct ledger_sum s;

    (void)state;
    ledger_excuse(&ledger, 1);
    s = sum_of(ONCE(0, "j0") "1 j1 1 11 start\n", "");
    assert_true(is_sound(LEDGER_WITH_CAUSE));
    assert_int_equal(s.acked, 2);
    assert_int_equal(s.lost, 0);
}

static void test_a_stranger_is_unexpected(void **state)
{
    struct ledger_sum s = sum_of(ONCE(0, "j0") ONCE(1, "j1") ONCE(7, "j7") "what is this\n", "");

    (void)state;
    assert_false(is_sound(LEDGER_WITH_CAUSE));
    assert_int_equal(s.unexpected, 3);
}

static void test_two_ids_for_one_add(void **state)
{
    struct ledger_sum s =
        sum_of(ONCE(0, "j0") ONCE(1, "j1") "1 j9 1 99 start\n1 j9 1 99 end\n", "");

    (void)state;
    assert_false(is_sound(LEDGER_WITH_CAUSE));
    assert_int_equal(s.twins, 1);
    assert_int_equal(s.double_starts, 0);
}

static void test_one_id_for_two_adds(void **state)
{
    struct ledger_sum s = sum_of(ONCE(0, "j0") ONCE(1, "j0"), "");

    (void)state;
    assert_false(is_sound(LEDGER_WITH_CAUSE));
    assert_int_equal(s.twins, 1);
}

static void test_one_attempt_started_twice(void **state)
{
    struct ledger_sum s =
        sum_of(ONCE(0, "j0") ONCE(1, "j1") "1 j1 1 12 start\n",
               "event=start job=j1 queue=q start=2 attempt=1 crashes=1 late_us=1\n");

    (void)state;
    assert_false(is_sound(LEDGER_WITH_CAUSE));
    assert_int_equal(s.double_starts, 1);
    assert_int_equal(s.unexplained, 0);
}

static const char second[] = ONCE(0, "j0") "1 j1 1 11 start\n1 j1 2 12 start\n1 j1 2 12 end\n";

static void test_a_second_start_needs_a_cause(void **state)
{
    struct ledger_sum s = sum_of(second, "event=end job=j0 queue=q outcome=retry again_in_ms=1\n"
                                         "event=end job=j1 queue=q outcome=done code=0\n");

    (void)state;
    assert_false(is_sound(LEDGER_WITH_CAUSE));
    assert_int_equal(s.again, 1);
    assert_int_equal(s.unexplained, 1);
}

static void test_each_kind_of_cause_will_do(void **state)
{
    static const char *const causes[] = {
        "x notice event=start job=j1 queue=q start=2 attempt=2 crashes=1 late_us=5\n",
        "x warn event=end job=j1 queue=q start=1 attempt=1 outcome=retry again_in_ms=1\n",
        "x info event=end job=j1 queue=q start=1 attempt=1 outcome=released code=0\n",
        "x warn event=late-result-refused job=j1 queue=q start=1 reason=\"\"\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        struct ledger_sum s;

        if (i > 0) {
            (void)teardown(NULL);
            (void)setup(NULL);
        }
        s = sum_of(second, causes[i]);
        assert_true(is_sound(LEDGER_WITH_CAUSE));
        assert_int_equal(s.crashes, i == 0);
    }
}

static void test_one_cause_explains_one_second_start(void **state)
{
    struct ledger_sum s =
        sum_of(ONCE(0, "j0") "1 j1 1 11 start\n1 j1 2 12 start\n1 j1 3 13 start\n1 j1 3 13 end\n",
               "event=start job=j1 queue=q start=3 attempt=3 crashes=1 late_us=5\n"
               "event=start job=j1 queue=q start=3 attempt=3 crashes=1 late_us=5\n");

    (void)state;
    assert_false(is_sound(LEDGER_WITH_CAUSE));
    assert_int_equal(s.again, 2);
    assert_int_equal(s.crashes, 1);
    assert_int_equal(s.unexplained, 1);
}

/* Each kind is forged alone: an attempt started twice, a number under two ids, two ends. */
static void test_second_runs_up_to_the_number_permitted(void **state)
{
    static const char *const lines[] = {"1 j1 1 12 start\n", "1 j9 1 12 start\n",
                                        "1 j1 1 11 end\n"};

    (void)state;
    for (int i = 0; i < 3; i++) {
        CLEANUP_FREE char *all = mem_printf("%s%s", ONCE(0, "j0") ONCE(1, "j1"), lines[i]);
        struct ledger_sum s = sum_of(all, "");

        assert_int_equal(s.double_starts, i == 0);
        assert_int_equal(s.twins, i == 1);
        assert_int_equal(s.duplicates, i == 2);
        assert_true(is_sound(1));
        assert_false(is_sound(0));
    }
}

static void test_no_number_permits_a_lost_job_or_a_stranger(void **state)
{
    (void)state;
    (void)sum_of(ONCE(0, "j0"), "");
    assert_false(is_sound(9));
    (void)sum_of(ONCE(0, "j0") ONCE(1, "j1") "7 j7 1 17 start\n", "");
    assert_false(is_sound(9));
}

static void test_fences_and_ends_of_a_number(void **state)
{
    int64_t lowest, highest;

    (void)state;
    (void)sum_of("1 j1 1 11 start\n0 j0 1 13 start\n1 j1 1 11 end\n0 j0 1 9 start\n", "");
    ledger_fences(&ledger, 0, 2, &lowest, &highest);
    assert_int_equal(lowest, 11);
    assert_int_equal(highest, 13);
    ledger_fences(&ledger, 2, 4, &lowest, &highest);
    assert_int_equal(lowest, 9);
    assert_int_equal(ledger_ends_of(&ledger, 1), 1);
    assert_int_equal(ledger_ends_of(&ledger, 0), 0);
}

static void test_reaped_jobs_are_added_up(void **state)
{
    (void)state;
    (void)sum_of("", "event=reaped epoch=1 jobs=128 more=1\nevent=reaped epoch=1 jobs=3\n");
    assert_int_equal(ledger.reaped, 131);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_each_once_is_sound),
        T(test_what_was_not_acknowledged_cannot_be_lost),
        T(test_a_start_without_an_end_is_lost),
        T(test_what_is_excused_is_not_lost),
        T(test_a_stranger_is_unexpected),
        T(test_two_ids_for_one_add),
        T(test_one_id_for_two_adds),
        T(test_one_attempt_started_twice),
        T(test_a_second_start_needs_a_cause),
        T(test_each_kind_of_cause_will_do),
        T(test_one_cause_explains_one_second_start),
        T(test_second_runs_up_to_the_number_permitted),
        T(test_no_number_permits_a_lost_job_or_a_stranger),
        T(test_fences_and_ends_of_a_number),
        T(test_reaped_jobs_are_added_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
