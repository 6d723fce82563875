/* Series: the classes of times, what a worker counts between two reports, and rows as Redis has
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "job/key_counts.h"
#include "job/queue_counts.h"

static void test_each_queue_once(void **state)
{
    static const char *const names[] = {"mail", "sms", "a", "mail", "b", "sms", "mail"};
    struct queue_counts c = {.n = 0};

    (void)state;
    assert_null(queue_counts_find(&c, "mail"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        queue_count_run(queue_counts_of(&c, names[i]), 10);
    assert_int_equal(c.n, 4);
    assert_int_equal(queue_counts_find(&c, "mail")->at[SERIES_RUN], 3);
    assert_int_equal(queue_counts_find(&c, "sms")->at[SERIES_RUN], 2);
    assert_int_equal(queue_counts_find(&c, "a")->at[SERIES_RUN_US], 10);
    assert_null(queue_counts_find(&c, "aa"));
    assert_null(queue_counts_find(&c, "z"));
    queue_counts_done(&c);
    assert_int_equal(c.n, 0);
}

static void test_thousands_of_queues(void **state)
{
    struct queue_counts c = {.n = 0};
    char name[16];

    (void)state;
    for (int i = 0; i < 4000; i++) {
        (void)snprintf(name, sizeof(name), "q%d", i * 7919 % 2000);
        queue_count_run(queue_counts_of(&c, name), 10);
    }
    assert_int_equal(c.n, 2000);
    for (size_t i = 0; i < c.n; i++)
        assert_int_equal(c.at[i].at[SERIES_RUN_US], 20);
    queue_counts_done(&c);
}

/* A time that is a bound is in the class that ends there. */
static void test_classes(void **state)
{
    (void)state;
    for (size_t i = 0; i + 1 < SERIES_LATE_CLASSES; i++) {
        assert_int_equal(series_late_class(series_late_ms[i] * 1000), i);
        assert_int_equal(series_late_class(series_late_ms[i] * 1000 + 1), i + 1);
    }
    for (size_t i = 0; i + 1 < SERIES_RUN_CLASSES; i++) {
        assert_int_equal(series_run_class(series_run_ms[i] * 1000), i);
        assert_int_equal(series_run_class(series_run_ms[i] * 1000 + 1), i + 1);
    }
    assert_int_equal(series_late_class(-5), 0);
    assert_int_equal(series_late_class(INT64_MAX), SERIES_LATE_CLASSES - 1);
}

/* Half milliseconds are not lost: they add up from report to report. */
static void test_report_of_a_queue(void **state)
{
    struct queue_count c = {.queue = "mail"};
    CLEANUP_BUF struct buf text = BUF_INIT;

    (void)state;
    assert_false(queue_count_take(&c, &text));
    queue_count_start(&c, 1500);
    queue_count_start(&c, -3);
    queue_count_run(&c, 2500);
    assert_true(queue_count_take(&c, &text));
    assert_string_equal(buf_str(&text), "6:2 7:1 8:1 26:1 37:1500 38:2500");
    assert_false(queue_count_take(&c, &text));
    buf_clear(&text);
    queue_count_run(&c, 500);
    assert_true(queue_count_take(&c, &text));
    assert_string_equal(buf_str(&text), "6:1 25:1 38:500");
}

static void test_report_of_keys(void **state)
{
    struct key_counts *c = key_counts_new();
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct mono now = {.us = 5000000};
    char key[24];
    int lines = 0;

    (void)state;
    key_counts_take(c, now, &text);
    assert_int_equal(text.len, 0);
    key_counts_add(c, "user:7", true, 1500, 2000, now);
    key_counts_add(c, "user:7", false, 1500, -2000, mono_add_ms(now, 900));
    key_counts_take(c, mono_add_ms(now, 2100), &text);
    assert_string_equal(buf_str(&text), "2 1 3 2 user:7\n");
    buf_clear(&text);
    for (int i = 0; i < 2 * KEY_COUNTS_MAX; i++) {
        (void)snprintf(key, sizeof(key), "%d", i);
        key_counts_add(c, key, true, 0, i == 1500 ? 7000 : 0, now);
    }
    key_counts_add(c, "2000", true, 0, 0, now);
    key_counts_add(c, "2500", true, 0, 0, now);
    key_counts_take(c, now, &text);
    assert_non_null(strstr(buf_str(&text), "0 2 0 0 2000\n"));
    assert_non_null(strstr(buf_str(&text), "\n0 1 0 7 1500\n"));
    assert_null(strstr(buf_str(&text), " 2500\n"));
    for (const char *p = buf_str(&text); (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    assert_int_equal(lines, KEY_COUNTS_TOLD + 1);
    key_counts_add(c, "left", true, 0, 0, now);
    key_counts_free(c);
    key_counts_free(NULL);
}

static void test_quantiles(void **state)
{
    uint64_t counts[SERIES_LATE_CLASSES] = {0};

    (void)state;
    assert_int_equal(series_quantile_us(counts, series_late_ms, SERIES_LATE_CLASSES, 0.5), -1);
    counts[2] = 100; /* 2 to 5 ms */
    assert_int_equal(series_quantile_us(counts, series_late_ms, SERIES_LATE_CLASSES, 0.5), 3500);
    assert_int_equal(series_quantile_us(counts, series_late_ms, SERIES_LATE_CLASSES, 1), 5000);
    counts[SERIES_LATE_CLASSES - 1] = 1000;
    assert_int_equal(series_quantile_us(counts, series_late_ms, SERIES_LATE_CLASSES, 0.99),
                     3600000000);
}

/* A text that is shorter or longer than rows is read as far as it goes. */
static void test_rows(void **state)
{
    static const char text[SERIES_COLUMNS * 4 + 6] = {[3] = 7, [SERIES_COLUMNS * 4] = 1};
    uint64_t row[SERIES_COLUMNS] = {1}, totals[SERIES_TOTALS];

    (void)state;
    series_add_row(row, text, sizeof(text), 0);
    assert_int_equal(row[SERIES_ADDED], 8);
    series_add_row(row, text, sizeof(text), 1);
    assert_int_equal(row[SERIES_ADDED], 8 + (1 << 24));
    series_add_row(row, text, sizeof(text), 1000000);
    series_add_row(row, NULL, 0, 0);
    assert_int_equal(row[SERIES_ADDED], 8 + (1 << 24));
    series_read_totals(totals, "\0\0\0\0\0\0\1\2\377\377\377\377\377\377\377\377\0", 17);
    assert_int_equal(totals[SERIES_ADDED], 258);
    assert_int_equal(totals[SERIES_DONE], 0);
    assert_int_equal(totals[SERIES_RUN_US], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_queue_once),
        cmocka_unit_test(test_thousands_of_queues),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_report_of_a_queue),
        cmocka_unit_test(test_report_of_keys),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
