/*
 * Whether the pool still works, from what can be seen of it. Pure.
 *
 * It does not where a thread should have come back and has said nothing: the time limit of its job,
 * kill_grace and a margin are over, and since then neither did a plug-in call its host nor had exec
 * killed its process (one that the kernel keeps all the same is not the pool's fault). A job within
 * its time limit may take as long as it does, and one without a limit for ever. Nor does it where
 * work waits, a thread is free, and none has taken any.
 */
#ifndef LATER_RUN_POOL_STALL_H
#define LATER_RUN_POOL_STALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define WEDGE_MARGIN_MS 10000

/* Of one thread's job. */
struct wedge_job {
    struct mono taken;  /* by the thread; 0: it waits */
    struct mono said;   /* the last sign of life, MONO_NEVER: none is expected any more */
    int64_t timeout_ms; /* INT64_MAX: none */
    int64_t kill_grace_ms;
};

/* How long it has been overdue, in ms; 0 or less: it is not. */
int64_t stall_overdue_ms(const struct wedge_job *job, struct mono now);

/* Of the work that waits. Zeroed at first. */
struct stall_line {
    uint64_t taken;
    struct mono since; /* 0: nothing waits, or somebody took some */
};

/* taken: what was taken so far. True: it waits in vain. To be asked about once a second. */
bool stall_line(struct stall_line *line, bool is_waiting, bool is_thread_free, uint64_t taken,
                struct mono now);

#endif
