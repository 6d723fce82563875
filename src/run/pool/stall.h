/*
 * Decides whether the pool still works. Pure.
 *
 * It is stalled in two cases. First, a thread is overdue: the time limit of its job and kill_grace
 * are over, and after that a margin without a sign of life. A sign of life is a call of a plug-in
 * to its host. Once exec has killed its process, none is expected: if the kernel keeps the process,
 * the pool is not to blame. A job within its time limit is never overdue, nor is one without a
 * limit. Second, work waits and a thread is free, but for the margin no thread has taken any.
 */
#ifndef LATER_RUN_POOL_STALL_H
#define LATER_RUN_POOL_STALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define STALL_MARGIN_MS 10000

/* The job of one thread. */
struct stall_job {
    struct mono started; /* when it was started; 0: not yet */
    struct mono said;    /* last sign of life; MONO_NEVER: none is expected any more */
    int64_t timeout_ms;  /* INT64_MAX: none */
    int64_t kill_grace_ms;
};

/* How long the job has been overdue, in ms; 0 or less: it is not. */
int64_t stall_overdue_ms(const struct stall_job *job, struct mono now);

/* Observations of the waiting work. Zeroed at first. */
struct stall_work {
    uint64_t taken;
    struct mono since; /* since when it waits and none was taken; 0: it does not */
};

/* taken: how much work was taken so far. True: work is stalled. Call it about once a second. */
bool stall_work(struct stall_work *work, bool is_waiting, bool is_thread_free, uint64_t taken,
                struct mono now);

#endif
