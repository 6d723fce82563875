/*
 * A row of the series of a queue: what happened in it in a minute, or in an hour, or since it
 * began. src/lua/series/series.lua writes rows to Redis and says which keys have them. Pure.
 *
 * A row has SERIES_COLUMNS numbers of 32 bits; the one of all that was counted has SERIES_TOTALS of
 * 64 bits. Both are unsigned and big-endian, and stop at their highest value. In a minute or an
 * hour a run counts where it ended, a start where it began.
 */
#ifndef LATER_JOB_SERIES_H
#define LATER_JOB_SERIES_H

#include <stddef.h>
#include <stdint.h>

#define SERIES_LATE_CLASSES 18
#define SERIES_RUN_CLASSES 12
#define SERIES_REST "~rest" /* the queues that have no rows of their own, as one */

enum series_column {
    SERIES_ADDED,
    SERIES_DONE,
    SERIES_FAILED, /* attempts */
    SERIES_DEAD,
    SERIES_CANCELLED,
    SERIES_BUSY_MS,                                 /* run times of all attempts */
    SERIES_LATE,                                    /* starts, by how late they were */
    SERIES_RUN = SERIES_LATE + SERIES_LATE_CLASSES, /* attempts, by how long they ran */
    SERIES_COLUMNS = SERIES_RUN + SERIES_RUN_CLASSES,
    SERIES_LATE_US = SERIES_COLUMNS,
    SERIES_RUN_US,
    SERIES_TOTALS
};

/* Class i has what is at most bound i, in ms, and above the bound before; the last class has no
 * bound. The bounds rise. Rows in Redis depend on them: none may change. */
extern const int64_t series_late_ms[SERIES_LATE_CLASSES - 1];
extern const int64_t series_run_ms[SERIES_RUN_CLASSES - 1];

/* The classes of a time; a negative one counts as 0. */
size_t series_late_class(int64_t us);
size_t series_run_class(int64_t us);

/* The time, in us, that a share of the n counts of these classes does not exceed: linear inside a
 * class, as histogram_quantile of Prometheus has it. -1: nothing was counted. Where it is in the
 * last class, that one's lower bound. */
int64_t series_quantile_us(const uint64_t *counts, const int64_t *bounds_ms, size_t nclasses,
                           double share);

/* Add the numbers of row `at` of a text as Redis has it, of SERIES_COLUMNS of 32 bits a row; what
 * the text does not have counts as 0. */
void series_add_row(uint64_t sum[SERIES_COLUMNS], const char *text, size_t n, size_t at);
/* Read the one row of 64 bits. */
void series_read_totals(uint64_t out[SERIES_TOTALS], const char *text, size_t n);

#endif
