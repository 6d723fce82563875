/*
 * How many jobs beyond its places a worker claims, so that a place that becomes free finds the next
 * one at hand and does not stand idle for a round trip: as many as its places end in 10 ms, by what
 * the last ones took. None while nothing is known, and for a while after one passed a gate
 * (it holds what others wait for), had a large payload or has waited here in vain. Pure.
 */
#ifndef LATER_DAEMON_PREFETCH_H
#define LATER_DAEMON_PREFETCH_H

#include <stdint.h>

#include "base/clock.h"

#define PREFETCH_WORK_US 10000 /* of all places */
#define PREFETCH_MAX 320
#define PREFETCH_WAIT_MS 50   /* a job that has waited so long for a place goes back */
#define PREFETCH_REST_MS 1000 /* and none is claimed beyond the places for so long */

struct prefetch {
    int64_t run_us; /* what a job takes, the last eight weighing most; 0: not known */
    struct mono rest_until;
};

/* Jobs that may be here beyond the places. */
unsigned prefetch_most(const struct prefetch *p, unsigned places, struct mono now);

void prefetch_ran(struct prefetch *p, int64_t us);
/* One is not to wait, or found no place in time. */
void prefetch_rest(struct prefetch *p, struct mono now);

#endif
