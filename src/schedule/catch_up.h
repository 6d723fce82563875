/*
 * Which occurrences of a schedule get a job now, and when the next one is. Pure. All times are ms
 * since 1970.
 */
#ifndef LATER_SCHEDULE_CATCH_UP_H
#define LATER_SCHEDULE_CATCH_UP_H

#include <stddef.h>
#include <stdint.h>

#include "schedule/timing.h"

#define CATCH_UP_TIMES 100 /* jobs that one decision adds; what is left comes with the next one */
#define CATCH_UP_MAX 1000  /* past occurrences that `all` adds */
#define CATCH_UP_LATE_MS 60000 /* `none` takes one that is no later than this */

/* What becomes of occurrences whose time passed while no worker was there: none of them, but for
 * the newest if it is hardly late; the newest; all. */
enum catch_up { CATCH_UP_NONE, CATCH_UP_LAST, CATCH_UP_ALL };

struct catch_up_rule {
    struct timing timing;
    enum catch_up mode;
    int64_t window_ms;         /* of LAST and ALL: older ones are missed */
    int64_t from_ms, until_ms; /* the first and last time; 0, TIMING_NEVER: no bound */
};

struct catch_up_plan {
    int64_t at[CATCH_UP_TIMES]; /* rising; each gets a job */
    size_t n;
    int64_t missed; /* how many get none; of very many an estimate from below */
    int64_t next;   /* TIMING_NEVER: none is left */
};

/* "none" "last" "all". 0 or -1. */
int catch_up_parse(const char *text, enum catch_up *ret);

/* The first occurrence later than after_ms and within the bounds; TIMING_NEVER: none is left. */
int64_t catch_up_first(const struct catch_up_rule *rule, int64_t after_ms);

/* Decide at now_ms. next_ms: the first occurrence that nothing was decided about. */
void catch_up_decide(const struct catch_up_rule *rule, int64_t next_ms, int64_t now_ms,
                     struct catch_up_plan *ret);

#endif
