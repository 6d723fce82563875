/*
 * What a worker counts by itself and tells the others of now and then: its starts by how late they
 * were, and its attempts that will be made again. Pure; in the memory of one thread.
 *
 * Each count has a field in R:stats, to which v1_tidy adds it: "late:<ms>" starts that were at most
 * so late and later than the bound before, "late:inf" the rest, "late:us" the sum of their
 * lateness, "retried".
 */
#ifndef LATER_JOB_COUNTS_H
#define LATER_JOB_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#define COUNTS_BOUNDS 17

enum { COUNTS_INF = COUNTS_BOUNDS, COUNTS_LATE_US, COUNTS_RETRIED, COUNTS_FIELDS };

/* Ms, rising. Fields in Redis have them in their names: a bound may be added, none may change. */
extern const int64_t counts_bounds_ms[COUNTS_BOUNDS];

struct counts {
    uint64_t at[COUNTS_FIELDS]; /* buckets (not cumulative), COUNTS_INF, and the two others */
};

/* A start; one before its time counts as on time. */
static inline void counts_start(struct counts *c, int64_t late_us)
{
    size_t i = 0;

    while (i < COUNTS_BOUNDS && late_us > counts_bounds_ms[i] * 1000)
        i++;
    c->at[i]++;
    c->at[COUNTS_LATE_US] += late_us > 0 ? (uint64_t)late_us : 0;
}

/* The name of its field. */
const char *counts_field(size_t i, char out[24]);

#endif
