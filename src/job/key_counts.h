/*
 * What a worker counts of the keys of jobs between two reports: failed attempts, run time and
 * lateness. Only the keys that come first are counted, KEY_COUNTS_MAX of them: a key that comes
 * often is among them. Told are those that have most of one of the three. Pure; used by one thread.
 */
#ifndef LATER_JOB_KEY_COUNTS_H
#define LATER_JOB_KEY_COUNTS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/clock.h"

#define KEY_COUNTS_MAX 2048
#define KEY_COUNTS_TOLD 128 /* of each of the three */

struct key_counts;

struct key_counts *key_counts_new(void);
void key_counts_free(struct key_counts *c); /* NULL is fine */

/* An attempt of a job with this key has ended. */
void key_counts_add(struct key_counts *c, const char *key, bool has_failed, int64_t run_us,
                    int64_t late_us, struct mono now);

/* Append what was counted of the highest ones, as later_v1_tidy reads it, a line each:
 * "<age s> <failed> <busy ms> <late ms> <key>". Forget all. */
void key_counts_take(struct key_counts *c, struct mono now, struct buf *out);

#endif
