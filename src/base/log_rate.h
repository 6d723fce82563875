/*
 * Limits how many lines of one kind the log takes: a token bucket for each kind, kept as one
 * timestamp (GCRA). A kind is a call site, a level and a name (event and queue), so that a storm of
 * one kind does not hide another. Pure: `now` is an argument. No lock of its own.
 */
#ifndef LATER_BASE_LOG_RATE_H
#define LATER_BASE_LOG_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define LOG_RATE_BURST_S 50    /* a burst may have this many seconds' worth of lines */
#define LOG_RATE_TELL_MS 10000 /* from the first line left out to the report */
#define LOG_RATE_KINDS 512     /* known at a time; further kinds share a bucket */

struct log_kind {
    const void *site;
    int level;
    char name[80];     /* cut to fit */
    struct mono empty; /* when the bucket will be empty, as if never used */
    struct mono since; /* when the first unreported line was left out */
    uint64_t left_out;
};

struct log_rate {
    int64_t per_s; /* 0: no limit */
    struct log_kind kinds[LOG_RATE_KINDS];
};

/* Lines left out, to be reported. */
struct log_left_out {
    int level;
    char name[80];
    uint64_t lines;
};

/*
 * May this line be written? weight: this many lines of the kind cost as much as one line of weight
 * 1. ret->lines is not 0 when lines left out of its kind are to be reported now.
 */
bool log_rate_take(struct log_rate *r, const void *site, int level, const char *name, int weight,
                   struct mono now, struct log_left_out *ret);

/* A kind whose lines left out are to be reported now; false: none. Call it until it says false. */
bool log_rate_tell(struct log_rate *r, struct mono now, struct log_left_out *ret);

#endif
