/*
 * When a schedule is due: "cron EXPRESSION" in a time zone, or "every DURATION". Pure: instants
 * are arguments. Occurrences are ms since 1970.
 *
 * The rule of the two days on which the clock changes: an expression whose hour field has all 24
 * hours follows the clock (nothing for times that do not exist, both for times that come twice).
 * Any other names times of day, and each happens exactly once: one that does not exist at the end
 * of the gap, one that comes twice the first time. Occurrences at the same instant are one. `every`
 * is real time.
 */
#ifndef LATER_SCHEDULE_TIMING_H
#define LATER_SCHEDULE_TIMING_H

#include <stdint.h>

#include "base/err.h"
#include "schedule/cron.h"
#include "schedule/zone.h"

#define TIMING_NEVER INT64_MAX
#define TIMING_HORIZON_MS (INT64_C(9) * 366 * 86400000) /* nine years: nothing later is found */
#define TIMING_EVERY_MIN_MS 1000
#define TIMING_EVERY_MAX_MS INT64_C(3155760000000) /* 100 years, as the library has it */

struct timing {
    struct cron cron;
    struct zone *zone; /* not owned */
    int64_t every_ms;  /* 0: by cron */
    int64_t anchor_ms; /* of every: one of its instants */
};

/* kind: "cron" or "every"; text: the expression, or a duration from 1s to 100 years. zone may be
 * NULL for every; it must live as long as ret is used. 0, or -1 with code FORMAT. */
int timing_parse(const char *kind, const char *text, struct zone *zone, struct timing *ret,
                 struct err *err);
/* The same of both in one text, as R:schedules has it: "cron 30 2 * * *". */
int timing_parse_when(const char *when, struct zone *zone, struct timing *ret, struct err *err);
/* For what a person wrote: also refuse what has no occurrence in nine years. */
int timing_check(const char *kind, const char *text, struct zone *zone, struct err *err);

/* The first occurrence later than after_ms; TIMING_NEVER: none within nine years. */
int64_t timing_next(const struct timing *t, int64_t after_ms);

#endif
