/*
 * Expressions of cron: which seconds of a local clock match. Pure; it knows nothing of zones.
 *
 *   minute hour day month weekday          as Vixie's cron
 *   second minute hour day month weekday   with seconds in front
 *   @hourly @daily @midnight @weekly @monthly @yearly @annually
 *
 * A field is a list of *, N, N-N, each with an optional /STEP behind * or a range. Months and
 * weekdays may be names (jan, mon); weekday 0 and 7 are Sunday. L as the day is the last one of the
 * month; 5#2 is the second Friday, 5L the last one. When both day and weekday are limited (neither
 * begins with *), a day that fits either one matches, as in Vixie's cron.
 *
 * A local time is seconds since 1970 by the local clock, as timegm would count them.
 */
#ifndef LATER_SCHEDULE_CRON_H
#define LATER_SCHEDULE_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct cron {
    uint64_t seconds, minutes; /* bit N: N matches */
    uint32_t hours, days, months;
    uint32_t weekdays;      /* bits 0 (Sunday) to 6 */
    uint8_t nth[7];         /* by weekday, bits 1 to 5: only that one of the month */
    bool has_last_day;      /* L as the day */
    uint32_t last_weekdays; /* bits 0 to 6: only the last one of the month */
    bool is_either;         /* a day that fits days or weekdays; else it has to fit both */
};

/* 0, or -1 with code FORMAT: err names the column and says what would be right. */
int cron_parse(const char *text, struct cron *ret, struct err *err);

/* Whether all hours of a day match. */
bool cron_has_all_hours(const struct cron *c);

/* The first local time from from_s on that matches and is before until_s. False: there is none. */
bool cron_next(const struct cron *c, int64_t from_s, int64_t until_s, int64_t *ret_s);

#endif
