/*
 * Since when the jobs of this worker run and how long they may, for people: `later explain`,
 * `later show`, `later ls --running`. A short run is over before anybody asks, so only long ones
 * are told, with the state of the worker.
 */
#ifndef LATER_DAEMON_LONG_RUNS_H
#define LATER_DAEMON_LONG_RUNS_H

#include "base/buf.h"
#include "sched/sched.h"
#include "serve/served_queues.h"

struct long_runs {
    struct buf started;  /* "ID STARTED_MS," of each, by Redis' clock */
    struct buf timeouts; /* "ID TIMEOUT_MS," of those that have a timeout */
};

/* Append each job that runs for 5 s or longer, at most 64. redis_ms: Redis' clock now. */
void long_runs_tell(const struct sched *s, const struct served_queues *served, struct mono now,
                    int64_t redis_ms, struct long_runs *out);
void long_runs_done(struct long_runs *r);

#endif
