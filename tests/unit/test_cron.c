/* Expressions of cron: what they match, and what is refused with which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/text.h"
#include "schedule/cron.h"

#define YEAR_S (INT64_C(366) * 86400)

static int64_t local(const char *text)
{
    struct tm tm = {0};

    assert_non_null(strptime(text, "%Y-%m-%d %H:%M:%S", &tm));
    return timegm(&tm);
}

static const char *text_of(int64_t local_s, char out[32])
{
    time_t at = (time_t)local_s;
    struct tm tm;

    (void)gmtime_r(&at, &tm);
    assert_true(strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm) > 0);
    return out;
}

static void test_next(void **state)
{
    static const struct {
        const char *expression, *from, *next[3];
    } rows[] = {
        {"* * * * *", "2026-01-01 00:00:01", {"2026-01-01 00:01:00", "2026-01-01 00:02:00", NULL}},
        {"* * * * * *",
         "2026-01-01 23:59:59",
         {"2026-01-01 23:59:59", "2026-01-02 00:00:00", NULL}},
        {"30 2 * * *", "2026-01-01 02:30:01", {"2026-01-02 02:30:00", NULL, NULL}},
        {"*/20 * * * *",
         "2026-01-01 00:41:00",
         {"2026-01-01 01:00:00", "2026-01-01 01:20:00", NULL}},
        {"5-10/2,58 1,13 * * *",
         "2026-01-01 01:08:00",
         {"2026-01-01 01:09:00", "2026-01-01 01:58:00", "2026-01-01 13:05:00"}},
        {"0 0 1 jan,Jul *",
         "2026-02-01 00:00:00",
         {"2026-07-01 00:00:00", "2027-01-01 00:00:00", NULL}},
        {"0 9 * * mon-fri", "2026-11-27 09:00:01", {"2026-11-30 09:00:00", NULL, NULL}},
        {"0 9 * * 5-7",
         "2026-11-26 09:00:00",
         {"2026-11-27 09:00:00", "2026-11-28 09:00:00", "2026-11-29 09:00:00"}},
        {"0 0 * * 0", "2026-11-26 00:00:00", {"2026-11-29 00:00:00", "2026-12-06 00:00:00", NULL}},
        {"0 0 * * 7", "2026-11-26 00:00:00", {"2026-11-29 00:00:00", NULL, NULL}},
        {"0 0 L * *", "2028-02-01 00:00:00", {"2028-02-29 00:00:00", "2028-03-31 00:00:00", NULL}},
        {"0 0 1,L * *",
         "2027-02-02 00:00:00",
         {"2027-02-28 00:00:00", "2027-03-01 00:00:00", NULL}},
        {"0 0 * * 5#2",
         "2026-11-01 00:00:00",
         {"2026-11-13 00:00:00", "2026-12-11 00:00:00", NULL}},
        {"0 0 * * fri#5", "2026-11-01 00:00:00", {"2027-01-29 00:00:00", NULL, NULL}},
        {"0 0 * * 5L", "2026-11-01 00:00:00", {"2026-11-27 00:00:00", "2026-12-25 00:00:00", NULL}},
        {"0 0 13 * 5",
         "2026-11-10 00:00:00",
         {"2026-11-13 00:00:00", "2026-11-20 00:00:00", "2026-11-27 00:00:00"}},
        {"0 0 */2 * 5",
         "2026-11-10 00:00:00",
         {"2026-11-13 00:00:00", "2026-11-27 00:00:00", NULL}},
        {"0 0 13 * *", "2026-11-14 00:00:00", {"2026-12-13 00:00:00", NULL, NULL}},
        {"0 0 31 * *",
         "2026-11-01 00:00:00",
         {"2026-12-31 00:00:00", "2027-01-31 00:00:00", "2027-03-31 00:00:00"}},
        {"0 0 29 2 *", "2026-11-01 00:00:00", {"2028-02-29 00:00:00", "2032-02-29 00:00:00", NULL}},
        {"\t 1  2\t3 4 * ", "2026-01-01 00:00:00", {"2026-04-03 02:01:00", NULL, NULL}},
        {"59 59 23 31 12 *", "1969-12-01 00:00:00", {"1969-12-31 23:59:59", NULL, NULL}},
        {"@hourly", "2026-01-01 00:00:01", {"2026-01-01 01:00:00", NULL, NULL}},
        {"@daily", "2026-01-01 00:00:01", {"2026-01-02 00:00:00", NULL, NULL}},
        {"@Midnight", "2026-01-01 00:00:01", {"2026-01-02 00:00:00", NULL, NULL}},
        {"@weekly", "2026-01-01 00:00:01", {"2026-01-04 00:00:00", NULL, NULL}},
        {"@monthly", "2026-01-01 00:00:01", {"2026-02-01 00:00:00", NULL, NULL}},
        {"@yearly", "2026-01-01 00:00:01", {"2027-01-01 00:00:00", NULL, NULL}},
        {"@annually", "2026-01-01 00:00:01", {"2027-01-01 00:00:00", NULL, NULL}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        struct cron c;
        int64_t at = local(rows[i].from);

        if (cron_parse(rows[i].expression, &c, &err) < 0)
            fail_msg("%s: %s", rows[i].expression, err.text);
        for (int k = 0; k < 3 && rows[i].next[k] != NULL; k++) {
            char text[32];

            assert_true(cron_next(&c, at, at + 6 * YEAR_S, &at));
            if (strcmp(text_of(at, text), rows[i].next[k]) != 0)
                fail_msg("%s: %s, not %s", rows[i].expression, text, rows[i].next[k]);
            at++;
        }
    }
}

static void test_none(void **state)
{
    struct cron c;
    int64_t at = local("2026-01-01 00:00:00"), ret = -7;

    (void)state;
    assert_int_equal(cron_parse("0 0 30 2 *", &c, NULL), 0);
    assert_false(cron_next(&c, at, at + 9 * YEAR_S, &ret));
    assert_int_equal(cron_parse("0 12 * * *", &c, NULL), 0);
    assert_false(cron_next(&c, at, at + 12 * 3600, &ret)); /* the end is not in it */
    assert_int_equal(ret, -7);
    assert_true(cron_next(&c, at, at + 12 * 3600 + 1, &ret));
}

static void test_all_hours(void **state)
{
    static const struct {
        const char *expression;
        bool has;
    } rows[] = {{"* * * * *", true},     {"0 */1 * * *", true},
                {"0 0-23 * * *", true},  {"0 0-11,12-23 1 * *", true},
                {"0 1-23 * * *", false}, {"0 */2 * * *", false},
                {"@hourly", true},       {"@daily", false}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cron c;

        assert_int_equal(cron_parse(rows[i].expression, &c, NULL), 0);
        assert_int_equal(cron_has_all_hours(&c), rows[i].has);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *expression, *says;
    } rows[] = {
        {"", "not 0"},
        {"* * * *", "5 fields (minute hour day month weekday) or 6 (second first), not 4"},
        {"* * * * * * *", "not 7"},
        {"61 * * * *", "column 1: '61' is no minute: write 0 to 59"},
        {"* 24 * * *", "column 3: '24' is no hour: write 0 to 23"},
        {"* * 0 * *", "column 5: '0' is no day: write 1 to 31"},
        {"* * * 13 *", "column 7: '13' is no month: write 1 to 12, or jan to dec"},
        {"* * * * 8", "column 9: '8' is no weekday: write 0 to 7, or sun to sat"},
        {"* * * * funday", "column 9: 'funday' is no weekday"},
        {"* * * * monday", "column 12: 'day' is no weekday"},
        {"60 * * * * *", "column 1: '60' is no second"},
        {"-1 * * * *", "column 1: '-1' is no minute"},
        {"1,,2 * * * *", "column 3: ',' is no minute"},
        {"1, * * * *", "column 3: ' ' is no minute"},
        {"*/0 * * * *", "column 3: the step of a minute is 1 to 59"},
        {"*/60 * * * *", "column 3: the step of a minute is 1 to 59"},
        {"*/x * * * *", "column 3: the step"},
        {"5/10 * * * *", "column 2: a step needs a range: write 5-59/ or */"},
        {"* 22-2 * * *", "column 3: the range ends before it begins: write 22-23,0-2"},
        {"* * ? * *", "column 5: '?' is not taken here: write *"},
        {"* * 15W * *", "column 7: 'W' is not taken here"},
        {"* * W * *", "column 5: 'W' is not taken here"},
        {"* * * * 5#6", "column 11: behind # comes 1 to 5"},
        {"* * * * L", "column 9: 'L' is no weekday"},
        {"* L * * *", "column 3: 'L' is no hour"},
        {"* * L-3 * *", "column 6: '-3' is no day"},
        {"99999999999999999999 * * * *", "is no minute"},
        {"@reboot", "@reboot is no time: add a job where the system starts"},
        {"@fortnightly", "'@fortnightly' is none of @hourly @daily"},
        {"* * * * *\n", "is no weekday"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        struct cron c;

        if (cron_parse(rows[i].expression, &c, &err) == 0)
            fail_msg("'%s' is taken", rows[i].expression);
        assert_int_equal(err.code, ERR_FORMAT);
        if (strstr(err.text, rows[i].says) == NULL)
            fail_msg("'%s': %s", rows[i].expression, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_all_hours),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
