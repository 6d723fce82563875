/*
 * Random expressions in random zones, each next occurrence of three years against another way to
 * find it: a walk over all minutes with the local time of the C library, under the rule of
 * schedule/timing.h. The other way shares no code with the one that is tested, and reads the
 * expressions itself.
 *
 * LATER_EXPRESSIONS (default 60) expressions in each of LATER_ZONES (default 8, most 40) zones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "schedule/timing.h"

#define FIRST_S INT64_C(1735603200) /* 2024-12-31 */
#define MINUTES (3 * 366 * 1440)
#define LOCAL_FIRST (FIRST_S / 60 - 2 * 1440) /* minutes since 1970, some before the first */
#define LOCAL_MINUTES (MINUTES + 4 * 1440)

static const char *const names[] = {
    "Europe/Berlin",       "Australia/Lord_Howe", "Africa/Cairo",
    "America/New_York",    "Europe/Dublin",       "Africa/Casablanca",
    "America/Santiago",    "Asia/Kathmandu",      "UTC",
    "Pacific/Chatham",     "Asia/Tehran",         "Asia/Gaza",
    "Asia/Beirut",         "America/St_Johns",    "America/Havana",
    "America/Asuncion",    "America/Nuuk",        "Antarctica/Troll",
    "Atlantic/Azores",     "Europe/London",       "Europe/Moscow",
    "Europe/Lisbon",       "Europe/Chisinau",     "Asia/Kolkata",
    "Asia/Tokyo",          "Asia/Jerusalem",      "Australia/Adelaide",
    "Australia/Sydney",    "Pacific/Auckland",    "Pacific/Apia",
    "Pacific/Kiritimati",  "Pacific/Easter",      "Pacific/Norfolk",
    "America/Los_Angeles", "America/Phoenix",     "America/Sao_Paulo",
    "America/Mexico_City", "America/Miquelon",    "Asia/Famagusta",
    "Africa/El_Aaiun",
};
#define NZONES (sizeof(names) / sizeof(names[0]))

static uint64_t seed = 42;

static unsigned dice(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % n;
}

/* ---- the other way to read and match an expression */

struct naive {
    char text[5][64];
    bool minute[60], hour[24];
    bool *days; /* by day since 1970 - LOCAL_FIRST / 1440 */
};

/* Whether a list has a value. last: the value of L. */
static bool list_has(const char *text, int value, int min, int max, int last)
{
    CLEANUP_FREE char *copy = mem_strdup(text);
    char *rest = copy, *part;

    while ((part = strsep(&rest, ",")) != NULL) {
        int from = min, to = max, step = 1;

        if (strcmp(part, "L") == 0)
            from = to = last;
        else if (part[0] == '*')
            (void)sscanf(part, "*/%d", &step);
        else if (sscanf(part, "%d-%d/%d", &from, &to, &step) == 1)
            to = from;
        if (value >= from && value <= to && (value - from) % step == 0)
            return true;
    }
    return false;
}

static bool weekdays_have(const char *text, const struct tm *day, int length)
{
    int wday, nth;

    if (sscanf(text, "%d#%d", &wday, &nth) == 2)
        return day->tm_wday == wday % 7 && (day->tm_mday + 6) / 7 == nth;
    if (text[strlen(text) - 1] == 'L')
        return day->tm_wday == atoi(text) % 7 && day->tm_mday > length - 7;
    return list_has(text, day->tm_wday, 0, 6, -1) ||
           (day->tm_wday == 0 && text[0] != '*' && list_has(text, 7, 0, 7, -1));
}

static bool day_matches(const struct naive *n, int64_t number)
{
    time_t at = (time_t)number * 86400, next = at;
    struct tm day, other;
    int length = 31;
    bool fits_day, fits_weekday;

    (void)gmtime_r(&at, &day);
    for (int i = day.tm_mday + 1;; i++) { /* the day before the first of the next month */
        next += 86400;
        (void)gmtime_r(&next, &other);
        if (other.tm_mday == 1) {
            length = i - 1;
            break;
        }
    }
    if (!list_has(n->text[3], day.tm_mon + 1, 1, 12, -1))
        return false;
    fits_day = list_has(n->text[2], day.tm_mday, 1, 31, length);
    fits_weekday = weekdays_have(n->text[4], &day, length);
    if (n->text[2][0] == '*' || n->text[4][0] == '*')
        return fits_day && fits_weekday;
    return fits_day || fits_weekday;
}

static void naive_read(struct naive *n)
{
    for (int i = 0; i < 60; i++)
        n->minute[i] = list_has(n->text[0], i, 0, 59, -1);
    for (int i = 0; i < 24; i++)
        n->hour[i] = list_has(n->text[1], i, 0, 23, -1);
    for (int i = 0; i < LOCAL_MINUTES / 1440; i++)
        n->days[i] = day_matches(n, LOCAL_FIRST / 1440 + i);
}

static bool naive_matches(const struct naive *n, int64_t local)
{
    int of_day = (int)(local % 1440);

    return n->hour[of_day / 60] && n->minute[of_day % 60] && n->days[(local - LOCAL_FIRST) / 1440];
}

static bool naive_has_all_hours(const struct naive *n)
{
    for (int i = 0; i < 24; i++)
        if (!n->hour[i])
            return false;
    return true;
}

/* ---- random expressions */

static void put_list(char out[64], int min, int max)
{
    int parts = 1 + (int)dice(3);
    size_t n = 0;

    for (int i = 0; i < parts; i++) {
        int a = min + (int)dice((unsigned)(max - min + 1)),
            b = a + (int)dice((unsigned)(max - a + 1));
        const char *comma = i > 0 ? "," : "";

        if (dice(3) == 0)
            n += (size_t)snprintf(out + n, 64 - n, "%s%d-%d/%u", comma, a, b, 1 + dice(7));
        else if (dice(2) == 0)
            n += (size_t)snprintf(out + n, 64 - n, "%s%d-%d", comma, a, b);
        else
            n += (size_t)snprintf(out + n, 64 - n, "%s%d", comma, a);
    }
}

static void make(struct naive *n)
{
    static const int bounds[5][2] = {{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}};
    static const unsigned stars[5] = {15, 25, 50, 70, 50}; /* of 100 */

    for (int i = 0; i < 5; i++) {
        if (dice(100) < stars[i])
            (void)snprintf(n->text[i], 64, "*");
        else if (dice(8) == 0)
            (void)snprintf(n->text[i], 64, "*/%u", 1 + dice((unsigned)(bounds[i][1] - 1)));
        else
            put_list(n->text[i], bounds[i][0], bounds[i][1]);
    }
    if (dice(12) == 0)
        (void)snprintf(n->text[2], 64, dice(2) == 0 ? "L" : "3,L");
    if (dice(12) == 0)
        (void)snprintf(n->text[4], 64, "%u#%u", dice(8), 1 + dice(5));
    else if (dice(12) == 0)
        (void)snprintf(n->text[4], 64, "%uL", dice(8));
    if (dice(3) == 0) /* about the hours in which clocks change */
        (void)snprintf(n->text[1], 64, "%s", dice(2) == 0 ? "1-3" : "0,2");
    naive_read(n);
}

/* ---- the walk */

/* The local minute of each minute, by the C library. */
static void walk(const char *zone, int64_t *local)
{
    assert_int_equal(setenv("TZ", zone, 1), 0);
    tzset();
    for (int i = 0; i < MINUTES; i++) {
        time_t at = (time_t)(FIRST_S + 60 * (int64_t)i);
        struct tm tm;

        (void)localtime_r(&at, &tm);
        local[i] = timegm(&tm) / 60;
    }
}

/* Whether the rule has an occurrence at minute i. *shown: the latest local minute that was shown.
 */
static bool occurs(const struct naive *n, bool has_all_hours, int64_t local, int64_t *shown)
{
    bool is_one = false;

    if (has_all_hours)
        return naive_matches(n, local);
    for (; *shown < local; ++*shown)
        is_one = naive_matches(n, *shown + 1) || is_one;
    return is_one;
}

static size_t compare(const struct naive *n, const char *zone_name, struct zone *zone,
                      const int64_t *local)
{
    CLEANUP_FREE char *text =
        mem_printf("%s %s %s %s %s", n->text[0], n->text[1], n->text[2], n->text[3], n->text[4]);
    int64_t shown = local[0] - 1, next;
    bool has_all_hours = naive_has_all_hours(n);
    struct err err = ERR_INIT;
    struct timing t;
    size_t found = 0;

    if (timing_parse("cron", text, zone, &t, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    next = timing_next(&t, FIRST_S * 1000 - 1);
    for (int i = 0; i < MINUTES; i++) {
        int64_t at_ms = (FIRST_S + 60 * (int64_t)i) * 1000;

        if (occurs(n, has_all_hours, local[i], &shown) != (next == at_ms))
            fail_msg("%s in %s: minute %lld, next %lld", text, zone_name, (long long)at_ms / 1000,
                     (long long)next / 1000);
        if (next == at_ms) {
            next = timing_next(&t, next);
            found++;
        }
    }
    return found;
}

static size_t setting(const char *name, size_t standard, size_t most)
{
    const char *text = getenv(name);
    size_t n = text == NULL ? standard : strtoul(text, NULL, 10);

    return n > most ? most : n;
}

static void test_against_a_walk(void **state)
{
    size_t expressions = setting("LATER_EXPRESSIONS", 60, 1000000), found = 0;
    size_t nzones = setting("LATER_ZONES", 8, NZONES);
    CLEANUP_FREE int64_t *local = mem_new(MINUTES * sizeof(*local));
    CLEANUP_FREE struct naive *all = mem_new(expressions * sizeof(*all));
    CLEANUP_FREE bool *days = mem_new(expressions * (LOCAL_MINUTES / 1440));

    (void)state;
    for (size_t k = 0; k < expressions; k++) {
        all[k].days = days + k * (LOCAL_MINUTES / 1440);
        make(&all[k]);
    }
    for (size_t i = 0; i < nzones; i++) {
        struct zone *zone = zone_new(names[i], NULL);

        assert_non_null(zone);
        walk(names[i], local);
        for (size_t k = 0; k < expressions; k++)
            found += compare(&all[k], names[i], zone, local);
        zone_free(zone);
    }
    print_message("%zu expressions in %zu zones, %zu occurrences\n", expressions, nzones, found);
    assert_true(found > expressions * nzones);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_a_walk)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
