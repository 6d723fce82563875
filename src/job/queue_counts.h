/*
 * What a worker counts of each queue between two reports: how late its attempts started, and how
 * long they ran. Pure; used by one thread.
 */
#ifndef LATER_JOB_QUEUE_COUNTS_H
#define LATER_JOB_QUEUE_COUNTS_H

#include <stdbool.h>

#include "base/buf.h"
#include "job/job.h"
#include "job/series.h"

struct queue_count {
    char queue[JOB_QUEUE_MAX + 1];
    bool has_any;
    uint64_t at[SERIES_TOTALS]; /* of which those from SERIES_BUSY_MS on are used */
    int64_t rest_us;            /* of run times, which SERIES_BUSY_MS does not have yet */
};

/* Empty when zeroed. */
struct queue_counts {
    struct queue_count *at; /* sorted by queue, each once */
    size_t n;
};

void queue_counts_done(struct queue_counts *c);

/* The count of this queue; it is added where there is none. Valid until the next call of this. */
struct queue_count *queue_counts_of(struct queue_counts *c, const char *queue);
/* NULL: nothing was ever counted for this queue. Valid as that of queue_counts_of. */
struct queue_count *queue_counts_find(const struct queue_counts *c, const char *queue);

void queue_count_start(struct queue_count *c, int64_t late_us);
void queue_count_run(struct queue_count *c, int64_t us);

/* Append what was counted, as later_v1_tidy reads it: "<column>:<n> ...", columns from 1. Forget
 * it; false where nothing was counted. */
bool queue_count_take(struct queue_count *c, struct buf *out);

#endif
