/*
 * How many runs of each queue have ended in this worker, and how long they took together, since it
 * was last reported. Pure; used by one thread.
 *
 * Fields of R:stats, to which later_v1_tidy adds them: "runs:<queue>", "run_us:<queue>".
 */
#ifndef LATER_JOB_RUN_COUNTS_H
#define LATER_JOB_RUN_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "job/job.h"

struct run_count {
    char queue[JOB_QUEUE_MAX + 1];
    uint64_t runs, us; /* us: microseconds of all of them */
};

/* Empty when zeroed. */
struct run_counts {
    struct run_count *at; /* sorted by queue, each once */
    size_t n;
};

void run_counts_done(struct run_counts *c);

/* The count of this queue; it is added where there is none. Valid until the next call of this. */
struct run_count *run_counts_of(struct run_counts *c, const char *queue);
/* NULL: nothing was ever counted for this queue. Valid as that of run_counts_of. */
struct run_count *run_counts_find(const struct run_counts *c, const char *queue);

#endif
