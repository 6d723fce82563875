/*
 * Counts that a worker keeps itself and reports with a tidy: its starts by how late they were, and
 * its attempts that will be retried. Pure; used by one thread.
 *
 * Each count has a field in R:stats, to which later_v1_tidy adds it. "late:<ms>": starts that were
 * at most this late and later than the bound before. "late:inf": later starts. "late:us": the sum
 * of all lateness. "retried": attempts.
 */
#ifndef LATER_JOB_COUNTS_H
#define LATER_JOB_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#define COUNTS_BOUNDS 17

enum { COUNTS_INF = COUNTS_BOUNDS, COUNTS_LATE_US, COUNTS_RETRIED, COUNTS_FIELDS };

/* In ms, rising. Field names in Redis contain them: a bound may be added, none may change. */
extern const int64_t counts_bounds_ms[COUNTS_BOUNDS];

struct counts {
    uint64_t at[COUNTS_FIELDS]; /* buckets (not cumulative), COUNTS_INF, and the two others */
};

/* Count a start; an early one counts as on time. */
static inline void counts_start(struct counts *c, int64_t late_us)
{
    size_t i = 0;

    while (i < COUNTS_BOUNDS && late_us > counts_bounds_ms[i] * 1000)
        i++;
    c->at[i]++;
    c->at[COUNTS_LATE_US] += late_us > 0 ? (uint64_t)late_us : 0;
}

/* The field of count i in R:stats; static or in out. */
const char *counts_field(size_t i, char out[24]);

#endif
