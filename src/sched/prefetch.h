/*
 * How many jobs beyond its places a worker claims, so that a free place has its next job at once
 * and does not wait for a round trip: as many as its places end in 10 ms, by the time that the last
 * jobs took. It claims none while that time is not known. It also claims none for a while after a
 * job passed a gate (such a job holds what others wait for), had a large payload, or waited for a
 * place in vain. Of fair queues it claims less: who comes next waits behind what is here already,
 * and a place that waits for a round trip now and then costs less than that. Pure.
 */
#ifndef LATER_SCHED_PREFETCH_H
#define LATER_SCHED_PREFETCH_H

#include <stdint.h>

#include "base/clock.h"

#define PREFETCH_WORK_US 10000 /* claim as many jobs as all places end in this time */
#define PREFETCH_SHORT_US 2000 /* the same beside jobs of fair queues */
#define PREFETCH_MAX 320
#define PREFETCH_WAIT_MS 50   /* a job that has waited this long for a place is released */
#define PREFETCH_REST_MS 1000 /* so long none is claimed beyond the places after that, or less */

struct prefetch {
    int64_t run_us; /* how long a job runs: a moving mean over some eight; 0: not known */
    struct mono rest_until, short_until;
};

/* How many jobs may be held beyond the places. */
unsigned prefetch_most(const struct prefetch *p, unsigned places, struct mono now);

/* A job ran for this long. */
void prefetch_ran(struct prefetch *p, int64_t us);
/* A job must not wait here, or found no place in time: claim none beyond the places for a while. */
void prefetch_rest(struct prefetch *p, struct mono now);
/* A job of a fair queue was claimed: claim less beyond the places for a while. */
void prefetch_short(struct prefetch *p, struct mono now);

#endif
