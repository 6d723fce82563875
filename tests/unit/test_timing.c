/* When schedules are due, on the days on which clocks change above all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "schedule/timing.h"

static int64_t utc_ms(const char *text)
{
    struct tm tm = {0};

    assert_non_null(strptime(text, "%Y-%m-%d %H:%M:%S", &tm));
    return timegm(&tm) * INT64_C(1000);
}

static const char *utc_text(int64_t ms, char out[32])
{
    time_t at = (time_t)(ms / 1000);
    struct tm tm;

    (void)gmtime_r(&at, &tm);
    assert_true(strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm) > 0);
    return out;
}

/* after and next are UTC; "" stands for never. */
static const struct {
    const char *zone, *expression, *after, *next[8];
} two_days[] = {
    {"Europe/Berlin",
     "30 2 * * *",
     "2026-03-28 00:00:00",
     {"2026-03-28 01:30:00", "2026-03-29 01:00:00", "2026-03-30 00:30:00", NULL}},
    {"Europe/Berlin",
     "30 2 * * *",
     "2026-10-24 12:00:00",
     {"2026-10-25 00:30:00", "2026-10-26 01:30:00", NULL}},
    /* follows the clock: both times that come twice */
    {"Europe/Berlin",
     "*/20 * * * *",
     "2026-10-24 23:59:59",
     {"2026-10-25 00:00:00", "2026-10-25 00:20:00", "2026-10-25 00:40:00", "2026-10-25 01:00:00",
      "2026-10-25 01:20:00", "2026-10-25 01:40:00", "2026-10-25 02:00:00", NULL}},
    {"Europe/Berlin",
     "30 * * * *",
     "2026-03-29 00:00:00",
     {"2026-03-29 00:30:00", "2026-03-29 01:30:00", NULL}},
    /* several times in the gap are one, and one with that at its end */
    {"Europe/Berlin",
     "0,30 2,3 * * *",
     "2026-03-28 20:00:00",
     {"2026-03-29 01:00:00", "2026-03-29 01:30:00", "2026-03-30 00:00:00", NULL}},
    /* asked in the middle of the hour that comes twice */
    {"Europe/Berlin", "0,30 2 * * *", "2026-10-25 00:30:00", {"2026-10-26 01:00:00", NULL}},
    {"Europe/Berlin", "0 2 * * *", "2026-10-25 01:10:00", {"2026-10-26 01:00:00", NULL}},
    {"Africa/Cairo",
     "0 0 * * *",
     "2026-04-22 23:00:00",
     {"2026-04-23 22:00:00", "2026-04-24 21:00:00", NULL}},
    {"Australia/Lord_Howe",
     "15 2 * * *",
     "2026-10-02 20:00:00",
     {"2026-10-03 15:30:00", "2026-10-04 15:15:00", NULL}},
    {"Australia/Lord_Howe",
     "45 1 * * *",
     "2026-04-04 00:00:00",
     {"2026-04-04 14:45:00", "2026-04-05 15:15:00", NULL}},
    {"Pacific/Apia",
     "0 12 * * *",
     "2011-12-29 00:00:00",
     {"2011-12-29 22:00:00", "2011-12-30 10:00:00", "2011-12-30 22:00:00", NULL}},
    {"Pacific/Apia",
     "0 12 30 12 *",
     "2011-12-29 00:00:00",
     {"2011-12-30 10:00:00", "2012-12-29 22:00:00", NULL}},
    {"America/New_York",
     "30 1 1 11 *",
     "2026-10-01 00:00:00",
     {"2026-11-01 05:30:00", "2027-11-01 05:30:00", NULL}},
    {"UTC", "0 0 29 2 *", "2096-03-01 00:00:00", {"2104-02-29 00:00:00", NULL}},
    {"UTC", "0 0 30 2 *", "2026-01-01 00:00:00", {"", NULL}},
    {"Europe/Berlin", "0 0 31 4 *", "2026-01-01 00:00:00", {"", NULL}},
    {"Asia/Kathmandu", "0 6 * * *", "2026-01-01 00:00:00", {"2026-01-01 00:15:00", NULL}},
};

static void test_two_days(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(two_days) / sizeof(two_days[0]); i++) {
        struct err err = ERR_INIT;
        struct zone *zone = zone_new(two_days[i].zone, &err);
        int64_t at = utc_ms(two_days[i].after);
        struct timing t;

        assert_non_null(zone);
        assert_int_equal(timing_parse("cron", two_days[i].expression, zone, &t, &err), 0);
        for (int k = 0; two_days[i].next[k] != NULL; k++) {
            char text[32] = "";

            at = timing_next(&t, at);
            if (at != TIMING_NEVER)
                (void)utc_text(at, text);
            if (strcmp(text, two_days[i].next[k]) != 0)
                fail_msg("%s %s: %s, not %s", two_days[i].zone, two_days[i].expression, text,
                         two_days[i].next[k]);
        }
        zone_free(zone);
    }
}

static void test_between_milliseconds(void **state)
{
    struct zone *zone = zone_new("UTC", NULL);
    int64_t at = utc_ms("2026-01-01 00:00:00");
    struct timing t;

    (void)state;
    assert_int_equal(timing_parse("cron", "* * * * * *", zone, &t, NULL), 0);
    assert_int_equal(timing_next(&t, at - 1), at);
    assert_int_equal(timing_next(&t, at), at + 1000);
    assert_int_equal(timing_next(&t, at + 999), at + 1000);
    assert_int_equal(timing_next(&t, -1), 0);
    zone_free(zone);
}

static void test_every(void **state)
{
    struct timing t;

    (void)state;
    assert_int_equal(timing_parse("every", "90s", NULL, &t, NULL), 0);
    assert_int_equal(timing_next(&t, 0), 90000);
    assert_int_equal(timing_next(&t, 89999), 90000);
    assert_int_equal(timing_next(&t, 90000), 180000);
    assert_int_equal(timing_next(&t, -1), 0);
    assert_int_equal(timing_next(&t, -90001), -90000);
    t.anchor_ms = 5000;
    assert_int_equal(timing_next(&t, 0), 5000);
    assert_int_equal(timing_next(&t, 5000), 95000);
    assert_int_equal(timing_next(&t, 5000 - 90001), 5000 - 90000);
}

static void test_refused(void **state)
{
    static const struct {
        const char *kind, *text, *says;
    } rows[] = {{"every", "0s", "'0s' is no duration from 1s on"},
                {"every", "999ms", "no duration from 1s on"},
                {"every", "soon", "no duration"},
                {"every", "106751991167d", "longer than 100 years"},
                {"at", "1", "'at' is neither cron nor every"},
                {"cron", "61 * * * *", "column 1"}};
    static const char *const zones[] = {"Europe/Berln", "",       "+01:00", "EST5EDT4", "../passwd",
                                        "leapseconds",  "Europe", "/etc/x", "UTC ",     "CET-1CEST",
                                        "tzdata.zi"};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        struct timing t;

        assert_int_equal(timing_parse(rows[i].kind, rows[i].text, NULL, &t, &err), -1);
        assert_int_equal(err.code, ERR_FORMAT);
        if (strstr(err.text, rows[i].says) == NULL)
            fail_msg("%s", err.text);
    }
    for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
        struct err err = ERR_INIT;

        if (zone_new(zones[i], &err) != NULL)
            fail_msg("zone '%s' is taken", zones[i]);
        assert_non_null(strstr(err.text, "there is no time zone '"));
    }
}

static void test_moved(void **state)
{
    struct zone *zone = zone_new("Europe/Berlin", NULL);

    (void)state;
    assert_int_equal(zone_moved_s(zone, utc_ms("2026-03-28 12:00:00") / 1000), 0);
    assert_int_equal(zone_moved_s(zone, utc_ms("2026-03-28 22:59:59") / 1000), 0);
    assert_int_equal(zone_moved_s(zone, utc_ms("2026-03-28 23:00:00") / 1000), 3600);
    assert_int_equal(zone_moved_s(zone, utc_ms("2026-03-29 21:59:59") / 1000), 3600);
    assert_int_equal(zone_moved_s(zone, utc_ms("2026-03-29 22:00:00") / 1000), 0);
    assert_int_equal(zone_moved_s(zone, utc_ms("2026-10-25 12:00:00") / 1000), -3600);
    zone_free(zone);
    zone = zone_new("UTC", NULL);
    assert_int_equal(zone_moved_s(zone, utc_ms("2026-03-29 12:00:00") / 1000), 0);
    zone_free(zone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_days), cmocka_unit_test(test_between_milliseconds),
        cmocka_unit_test(test_every),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_moved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
