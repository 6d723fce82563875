/*
 * Since when the jobs of this worker run, for people: `later explain` and `later show`. A short run
 * is over before anybody asks, so only long ones are told, with the state of the worker.
 */
#ifndef LATER_DAEMON_LONG_RUNS_H
#define LATER_DAEMON_LONG_RUNS_H

#include "base/buf.h"
#include "sched/sched.h"

/* Append "ID STARTED_MS," for each job that runs for 5 s or longer, at most 64. redis_ms: Redis'
 * clock now. */
void long_runs_tell(const struct sched *s, struct mono now, int64_t redis_ms, struct buf *out);

#endif
