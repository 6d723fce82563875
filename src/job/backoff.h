/*
 * How long to wait after a failure: first * factor^(attempts - 1), at most max, spread by jitter.
 * Pure: the random number is an argument.
 */
#ifndef LATER_JOB_BACKOFF_H
#define LATER_JOB_BACKOFF_H

#include <stdint.h>

struct backoff {
    int64_t first_ms;
    int64_t factor_milli; /* 2000 doubles */
    int64_t max_ms;
    int64_t jitter_pct; /* plus or minus */
};

/* attempts counts from 1; random is uniform over all 32 bits. Never negative. */
int64_t backoff_ms(const struct backoff *b, int64_t attempts, uint32_t random);

#endif
