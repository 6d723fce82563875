/*
 * How many jobs beyond its places a worker claims, so that a place that becomes free finds the next
 * one at hand and does not stand idle for a round trip: as many as its places end in 10 ms, by what
 * the last ones took. None while nothing is known, while a job that is more than plain came lately,
 * and for a while after one has waited here in vain. Pure.
 */
#ifndef LATER_DAEMON_PREFETCH_H
#define LATER_DAEMON_PREFETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define PREFETCH_WORK_US 10000 /* of all places */
#define PREFETCH_MAX 128
#define PREFETCH_WAIT_MS 50   /* a job that has waited so long for a place goes back */
#define PREFETCH_REST_MS 1000 /* and none is claimed beyond the places for so long */

struct prefetch {
    int64_t run_us; /* what a job takes, the last eight weighing most; 0: not known */
    bool are_plain; /* all that the last claims brought */
    struct mono rest_until;
};

/* Jobs that may be here beyond the places. */
unsigned prefetch_most(const struct prefetch *p, unsigned places, struct mono now);

void prefetch_claimed(struct prefetch *p, bool are_plain);
void prefetch_ran(struct prefetch *p, int64_t us);
/* One found no place in time. */
void prefetch_waited(struct prefetch *p, struct mono now);

#endif
