/*
 * How many lines of one kind the log takes: a token bucket for each, as one timestamp (GCRA). A
 * kind is a place in the source, a level and a name, the queue say: a storm of one hides no other.
 * Pure: `now` is an argument. No lock of its own.
 */
#ifndef LATER_BASE_LOG_RATE_H
#define LATER_BASE_LOG_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define LOG_RATE_BURST_S 50    /* so many seconds' worth at once */
#define LOG_RATE_TELL_MS 10000 /* how often what was left out is told */
#define LOG_RATE_KINDS 512     /* known at a time; more share */

struct log_kind {
    const void *site;
    int level;
    char name[80];     /* cut */
    struct mono empty; /* when the bucket will be as new */
    struct mono since; /* the first line left out that was not told of */
    uint64_t left_out;
};

struct log_rate {
    int64_t per_s; /* 0: no limit */
    struct log_kind kinds[LOG_RATE_KINDS];
};

/* What was left out. */
struct log_left_out {
    int level;
    char name[80];
    uint64_t lines;
};

/*
 * May this line be written? weight: of so many lines each costs what one does elsewhere. ret->lines
 * is not 0 where it is time to tell what was left out of its kind.
 */
bool log_rate_take(struct log_rate *r, const void *site, int level, const char *name, int weight,
                   struct mono now, struct log_left_out *ret);

/* A kind of which it is time to tell; false: none. Call until then. */
bool log_rate_tell(struct log_rate *r, struct mono now, struct log_left_out *ret);

#endif
