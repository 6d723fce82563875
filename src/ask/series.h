/*
 * The series of queues, as later_v1_series tells them (job/series.h). Bytes from Redis are read up
 * to their bounds: a text that somebody shortened or enlarged gives wrong numbers, and no more.
 */
#ifndef LATER_ASK_SERIES_H
#define LATER_ASK_SERIES_H

#include "ask/ask.h"
#include "job/job.h"
#include "job/series.h"

#define SERIES_MINUTES_KEPT (6 * 60)
#define SERIES_HOURS_KEPT (15 * 24)

/* All that was counted of a queue. */
struct series_total {
    char queue[JOB_QUEUE_MAX + 1];
    uint64_t at[SERIES_TOTALS];
};

struct series_totals {
    struct series_total *of; /* sorted by queue; SERIES_REST may be among them */
    size_t n;
};

/* Read those of all queues, a call each; none with a library before number 26, which counts none.
 * 0, or -1 with err. Call series_totals_done in any case. */
int series_totals_read(struct series_totals *t, struct ask_server *s, struct err *err);
void series_totals_done(struct series_totals *t);

/* The names of the queues that have series. The caller frees the reply; NULL with err. */
struct reply *series_names(struct ask_server *s, struct err *err);

/* A part of the past in buckets of the same length. */
struct series_span {
    int64_t from, bucket; /* minutes since 1970 (hours if by_hour); its length, likewise */
    size_t nbuckets;
    bool by_hour;
};

/* The n buckets of this span; *ret is owned by the caller. 0, or -1 with err. */
int series_read(struct ask_server *s, const char *queue, const struct series_span *span,
                uint64_t (*ret)[SERIES_COLUMNS], struct err *err);
/* How many different keys the jobs had that were started first on the days from first to last (days
 * since 1970); of more than the 8 days that are kept, the last ones. -1 with err. */
int64_t series_distinct(struct ask_server *s, const char *queue, int64_t first, int64_t last,
                        struct err *err);

#endif
