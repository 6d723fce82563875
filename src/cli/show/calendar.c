#include "cli/show/calendar.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/show/json.h"
#include "cli/show/out.h"

#define ROW_BYTES 64
#define DAY_S 86400

enum row { DUE, OK, FAILED, MISSED, ROWS };

static const char *const names[ROWS] = {"due", "ok", "failed", "missed"};

/* A year of one schedule. Days are numbered from 0. */
struct year {
    const unsigned char *bits;
    size_t n;
    int year, days;
    int64_t first;     /* days since 1970 of 1 January */
    int first_weekday; /* of it; 0: Monday */
};

/* How its due days went one after the other. A day that has not ended yet neither adds nor ends. */
struct streaks {
    int current, longest;
};

static bool has(const struct year *y, enum row row, int day)
{
    size_t at = (size_t)row * ROW_BYTES + (size_t)day / 8;

    return at < y->n && (y->bits[at] >> (7 - day % 8) & 1) != 0;
}

static struct year year_of(int year, const char *bits, size_t n)
{
    struct tm tm = {.tm_year = year - 1900, .tm_mday = 1};
    int64_t first = timegm(&tm) / DAY_S;

    tm = (struct tm){.tm_year = year - 1899, .tm_mday = 1};
    return (struct year){.bits = (const unsigned char *)bits,
                         .n = n,
                         .year = year,
                         .days = (int)(timegm(&tm) / DAY_S - first),
                         .first = first,
                         .first_weekday = (int)((first + 3) % 7)};
}

static bool is_bad(const struct year *y, int day)
{
    return has(y, FAILED, day) || has(y, MISSED, day);
}

static int count(const struct year *y, enum row row)
{
    int n = 0;

    for (int day = 0; day < y->days; day++)
        n += has(y, row, day);
    return n;
}

static struct streaks streaks_of(const struct year *y)
{
    struct streaks s = {0, 0};

    for (int day = 0; day < y->days; day++) {
        if (is_bad(y, day))
            s.current = 0;
        else if (has(y, OK, day))
            s.current++;
        if (s.current > s.longest)
            s.longest = s.current;
    }
    return s;
}

/* The first bad day, -1: there is none. */
static int first_failure(const struct year *y)
{
    for (int day = 0; day < y->days; day++)
        if (is_bad(y, day))
            return day;
    return -1;
}

/* "2026-03-29" */
static const char *date(const struct year *y, int day, char out[16])
{
    time_t at = (time_t)(y->first + day) * DAY_S;
    struct tm tm;

    (void)gmtime_r(&at, &tm);
    (void)strftime(out, 16, "%Y-%m-%d", &tm);
    return out;
}

/* ---- the picture */

static void put_cell(const struct year *y, int day, int64_t today)
{
    enum out_style style = OUT_PLAIN;
    char letter = '.';

    if (day < 0 || day >= y->days || y->first + day > today) {
        out_printf(" ");
        return;
    }
    if (has(y, FAILED, day)) {
        letter = 'F';
        style = OUT_BAD;
    } else if (has(y, MISSED, day)) {
        letter = 'm';
        style = OUT_BAD;
    } else if (has(y, OK, day)) {
        letter = 'o';
        style = OUT_GOOD;
    } else if (has(y, DUE, day)) {
        letter = '?';
        style = OUT_BOLD;
    }
    out_printf("%s%c%s", out_style(style), letter, out_style(OUT_PLAIN));
}

/* The months, each over the week of its first day. */
static void put_months(const struct year *y)
{
    char line[64];
    int width = (y->first_weekday + y->days + 6) / 7;

    (void)memset(line, ' ', sizeof(line));
    for (int month = 0; month < 12; month++) {
        struct tm tm = {.tm_year = y->year - 1900, .tm_mon = month, .tm_mday = 1};
        int day = (int)(timegm(&tm) / DAY_S - y->first);
        char name[8];

        (void)strftime(name, sizeof(name), "%b", &tm);
        (void)memcpy(line + (y->first_weekday + day) / 7, name, 3);
    }
    out_printf("    %.*s\n", width, line);
}

static void put_weeks(const struct year *y, int64_t today)
{
    static const char *const weekdays[] = {"Mon", "   ", "Wed", "   ", "Fri", "   ", "Sun"};
    int width = (y->first_weekday + y->days + 6) / 7;

    for (int weekday = 0; weekday < 7; weekday++) {
        out_printf("%s ", weekdays[weekday]);
        for (int week = 0; week < width; week++)
            put_cell(y, 7 * week + weekday - y->first_weekday, today);
        out_printf("\n");
    }
}

static void put_sums(const struct year *y)
{
    struct streaks s = streaks_of(y);
    int failure = first_failure(y);
    char text[16];

    out_printf("\no ok  F failed  m missed  ? not ended  . not due\n");
    out_printf("%d days due, %d ok, %d failed, %d missed\n", count(y, DUE), count(y, OK),
               count(y, FAILED), count(y, MISSED));
    if (failure >= 0)
        out_printf("first failure: %s\n", date(y, failure, text));
    out_printf("streak: %d days now, %d the longest\n", s.current, s.longest);
}

static void print_json(const struct year *y, const char *name)
{
    json_t *object = json_object();
    struct streaks s = streaks_of(y);
    int failure = first_failure(y);
    char text[16];

    json_put_text(object, "schedule", name, strlen(name));
    json_put_int(object, "year", y->year);
    for (enum row row = DUE; row < ROWS; row++) {
        json_t *days = json_array();

        for (int day = 0; day < y->days; day++) {
            if (has(y, row, day))
                (void)json_array_append_new(days, json_string(date(y, day, text)));
        }
        (void)json_object_set_new(object, names[row], days);
    }
    if (failure >= 0)
        json_put_text(object, "first_failure", date(y, failure, text), 10);
    json_put_int(object, "streak", s.current);
    json_put_int(object, "longest_streak", s.longest);
    json_print(object);
}

void calendar_show(const struct cli *cli, const char *name, int year, const char *bits, size_t n,
                   int64_t today)
{
    struct year y = year_of(year, bits, n);

    if (cli->json) {
        print_json(&y, name);
        return;
    }
    out_printf("%s%d%s\n", out_style(OUT_BOLD), year, out_style(OUT_PLAIN));
    put_months(&y);
    put_weeks(&y, today);
    put_sums(&y);
}
