/*
 * cli/when: times as people write them, in zones whose rules are spelled out (POSIX TZ), so that no
 * zone files are needed; both days on which clocks change, in Berlin and in New York.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cli/args/when.h"

#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"
#define NEW_YORK "EST5EDT,M3.2.0,M11.1.0"

static int64_t offset(int64_t utc_s)
{
    time_t seconds = (time_t)utc_s;
    struct tm tm;

    assert_non_null(localtime_r(&seconds, &tm));
    return tm.tm_gmtoff;
}

/* "2026-03-29 00:59 Z" in ms. */
static int64_t utc(const char *text)
{
    struct tm tm = {0};

    assert_non_null(strptime(text, "%Y-%m-%d %H:%M", &tm));
    return (int64_t)timegm(&tm) * 1000;
}

static void zone(const char *tz)
{
    (void)setenv("TZ", tz, 1);
    tzset();
}

static struct when parse(const char *text, const char *now)
{
    struct err err = ERR_INIT;
    struct when w;

    if (when_parse(text, utc(now), offset, &w, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return w;
}

static void assert_is(const char *text, const char *now, enum when_kind kind, const char *want)
{
    struct when w = parse(text, now);

    if (w.kind != kind || w.ms != utc(want))
        fail_msg("%s at %s: kind %d, %lld, not %s (%lld)", text, now, (int)w.kind, (long long)w.ms,
                 want, (long long)utc(want));
}

static void assert_refused(const char *text, const char *says)
{
    struct err err = ERR_INIT;
    struct when w;

    if (when_parse(text, utc("2026-11-22 12:00"), offset, &w, &err) == 0)
        fail_msg("'%s' passes as %lld", text, (long long)w.ms);
    assert_int_equal(err.code, ERR_FORMAT);
    if (strstr(err.text, says) == NULL)
        fail_msg("'%s': %s", text, err.text);
}

/* Now is Sunday, 22 November 2026, 13:00 in Berlin. */
static void test_forms(void **state)
{
    static const struct {
        const char *text, *want;
    } forms[] = {
        {"tomorrow 09:00", "2026-11-23 08:00"},
        {"today 17:30", "2026-11-22 16:30"},
        {"Today 13:00", "2026-11-22 12:00"},
        {"monday 8:00", "2026-11-23 07:00"},
        {"MON 08:00", "2026-11-23 07:00"},
        {"sunday 14:00", "2026-11-22 13:00"},
        {"sunday 12:00", "2026-11-29 11:00"},
        {"sat 00:00", "2026-11-27 23:00"},
        {"wednesday 23:59", "2026-11-25 22:59"},
        {"2026-12-24 18:00", "2026-12-24 17:00"},
        {"2026-12-24T18:00", "2026-12-24 17:00"},
        {"2027-07-01 18:00:00", "2027-07-01 16:00"},
        {"2028-02-29 00:00", "2028-02-28 23:00"},
        {"18:00", "2026-11-22 17:00"},
        {"13:00", "2026-11-23 12:00"},
        {"9:05", "2026-11-23 08:05"},
        {"  tomorrow   09:00 ", "2026-11-23 08:00"},
        {"4999-01-01 00:00", "4998-12-31 23:00"},
    };

    (void)state;
    zone(BERLIN);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        assert_is(forms[i].text, "2026-11-22 12:00", WHEN_INSTANT, forms[i].want);
}

static void test_spans(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } spans[] = {{"90m", 5400000},
                 {"1h30m", 5400000},
                 {"in 90m", 5400000},
                 {"IN  1H30M", 5400000},
                 {"1d2h3m4s5ms", 93784005},
                 {"0s", 0},
                 {"2m500ms", 120500},
                 {"now", 0},
                 {"36525d", INT64_C(3155760000000)}};
    static const char *const none[] = {
        "",   "m",   "1",         "30m1h", "1h1h", "1h 30m",          "1x",   "-1h", "1.5h",
        "in", "in ", "36525d1ms", "1h30",  "1hm",  "99999999999999d", "now1h"};
    struct when w;
    int64_t ms;

    (void)state;
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        w = parse(spans[i].text, "2026-11-22 12:00");
        assert_int_equal(w.kind, WHEN_SPAN);
        assert_int_equal(w.ms, spans[i].ms);
        assert_false(when_needs_clock(spans[i].text));
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        if (when_parse_span(none[i], &ms) == 0)
            fail_msg("'%s' passes as %lld", none[i], (long long)ms);
    }
    assert_true(when_needs_clock("18:00"));
}

static void test_refused(void **state)
{
    static const char *const words[] = {"",
                                        "soon",
                                        "yesterday 9:00",
                                        "next monday 9:00",
                                        "9",
                                        "9am",
                                        "24:00",
                                        "12:60",
                                        "12:00:60",
                                        "1:2",
                                        "123:00",
                                        "12:00 tomorrow",
                                        "mond 9:00",
                                        "2026-02-29 09:00",
                                        "2026-13-01 09:00",
                                        "2026-1-1 09:00",
                                        "-026-01-01 09:00",
                                        "24.12.2026 09:00",
                                        "tomorrow 09:00 UTC",
                                        "2026-12-24 18:00+01:00",
                                        "tomorrow -9:00",
                                        "\x1b[2J",
                                        "-5m"};
    char longer[200];

    (void)state;
    zone(BERLIN);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        assert_refused(words[i], "is no time: write tomorrow 09:00");
    memset(longer, '1', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    assert_refused(longer, "is no time");
    assert_refused("tomorrow", "needs a time of day: tomorrow 09:00");
    assert_refused("2026-12-24", "needs a time of day");
    assert_refused("today 12:59", "is past");
    assert_refused("2025-12-24 18:00", "is past");
}

static void test_machine(void **state)
{
    static const char *const its[] = {"1767225600000",
                                      "@1767225600",
                                      "@1.5",
                                      "+5m",
                                      "",
                                      "2030-01-31T09:00:00Z",
                                      "2030-01-31t09:00:00.25+01:00",
                                      "2030-01-31 09:00:00-05:00"};
    static const char *const ours[] = {"2030-01-31T09:00:00",
                                       "2030-01-31 09:00",
                                       "18:00",
                                       "now",
                                       "in 90m",
                                       "tomorrow 09:00",
                                       "900",
                                       "20301224",
                                       "203012241800"};

    (void)state;
    for (size_t i = 0; i < sizeof(its) / sizeof(its[0]); i++)
        assert_true(when_is_machine(its[i]));
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        assert_false(when_is_machine(ours[i]));
}

/* 29 March 2026: 02:00 to 03:00 is skipped. 25 October: 02:00 to 03:00 comes twice. */
static void test_berlin(void **state)
{
    (void)state;
    zone(BERLIN);
    assert_is("tomorrow 02:30", "2026-03-28 12:00", WHEN_SKIPPED, "2026-03-29 01:30");
    assert_is("2026-03-29 02:00", "2026-03-28 12:00", WHEN_SKIPPED, "2026-03-29 01:00");
    assert_is("2026-03-29 01:59", "2026-03-28 12:00", WHEN_INSTANT, "2026-03-29 00:59");
    assert_is("2026-03-29 03:00", "2026-03-28 12:00", WHEN_INSTANT, "2026-03-29 01:00");
    assert_is("2026-03-29 09:00", "2026-03-28 12:00", WHEN_INSTANT, "2026-03-29 07:00");
    assert_is("2026-10-25 02:30", "2026-10-24 12:00", WHEN_TWICE, "2026-10-25 00:30");
    assert_is("2026-10-25 01:59", "2026-10-24 12:00", WHEN_INSTANT, "2026-10-24 23:59");
    assert_is("2026-10-25 03:00", "2026-10-24 12:00", WHEN_INSTANT, "2026-10-25 02:00");
    /* Now is between the two, then after both. */
    assert_is("02:30", "2026-10-25 00:45", WHEN_TWICE, "2026-10-25 01:30");
    assert_is("today 02:30", "2026-10-25 00:45", WHEN_TWICE, "2026-10-25 01:30");
    assert_is("02:30", "2026-10-25 01:45", WHEN_INSTANT, "2026-10-26 01:30");
    /* From noon to noon these days have 23 and 25 hours. */
    assert_is("tomorrow 12:00", "2026-03-28 11:00", WHEN_INSTANT, "2026-03-29 10:00");
    assert_is("tomorrow 12:00", "2026-10-24 10:00", WHEN_INSTANT, "2026-10-25 11:00");
}

/* 8 March 2026: 02:00 to 03:00 is skipped. 1 November: 01:00 to 02:00 comes twice. */
static void test_new_york(void **state)
{
    (void)state;
    zone(NEW_YORK);
    assert_is("2026-03-08 02:30", "2026-03-07 12:00", WHEN_SKIPPED, "2026-03-08 07:30");
    assert_is("2026-03-08 01:59", "2026-03-07 12:00", WHEN_INSTANT, "2026-03-08 06:59");
    assert_is("2026-03-08 03:00", "2026-03-07 12:00", WHEN_INSTANT, "2026-03-08 07:00");
    assert_is("sunday 01:30", "2026-10-31 12:00", WHEN_TWICE, "2026-11-01 05:30");
    assert_is("01:30", "2026-11-01 05:45", WHEN_TWICE, "2026-11-01 06:30");
    assert_is("2026-11-01 02:00", "2026-10-31 12:00", WHEN_INSTANT, "2026-11-01 07:00");
    /* It is Saturday evening in New York when it is Sunday in UTC. */
    assert_is("today 23:00", "2026-11-22 02:00", WHEN_INSTANT, "2026-11-22 04:00");
    assert_is("sunday 00:00", "2026-11-22 02:00", WHEN_INSTANT, "2026-11-22 05:00");
}

static void test_read_machine(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"1767225600000", 1767225600000},
        {"@1767225600", 1767225600000},
        {"+0ms", 1000},
        {"+5m", 301000},
        {"2026-01-01T00:00:00Z", 1767225600000},
        {"2026-01-01T01:00:00+01:00", 1767225600000},
        {"2025-12-31T18:30:00-05:30", 1767225600000},
    };
    static const char *const bad[] = {
        "", "@", "@x", "+", "+5", "x", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00ZZ",
    };
    int64_t ms;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(when_read_machine(good[i].text, 1000, &ms), 0);
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(when_read_machine(bad[i], 1000, &ms), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_machine),
        cmocka_unit_test(test_read_machine), cmocka_unit_test(test_berlin),
        cmocka_unit_test(test_new_york),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
