/*
 * Tells which of the other workers had their silence. Pure.
 *
 * Silence is counted in our own accepted beats, not in seconds: five in a row, at least
 * SILENCE_GAP_MS apart, in which the counter of the other worker does not move. Any trouble of our
 * own link starts the count anew. So neither a stepped clock nor an outage of Redis makes workers
 * reap each other.
 *
 * How long that is: five beats are four gaps, at least 4 * 4.9 = 19.6 s. They begin with an answer
 * that comes after the other worker sent its last beat. Its guard kills 15 s after its last
 * acknowledged beat was sent (run/guard/guard.h), so the guard has 4.6 s to do so. With beats every
 * 5 s, the first of which comes up to 5 s after that last beat, it is 20 to 25 s.
 */
#ifndef LATER_SCHED_SILENCE_H
#define LATER_SCHED_SILENCE_H

#include <stddef.h>

#include "base/clock.h"
#include "store/store.h"

#define SILENCE_BEATS 5
#define SILENCE_GAP_MS 4900
/* From the first of these beats to the last. */
#define SILENCE_LEAST_MS ((SILENCE_BEATS - 1) * SILENCE_GAP_MS)
#define SILENCE_PEERS_MAX 1024

struct silence;
struct silence *silence_new(void);
void silence_free(struct silence *w);

/* Our link failed, or one of our calls did. All counts start anew: a worker whose counter
 * stood still may have been cut off like us. */
void silence_reset(struct silence *w);

typedef void silence_found_f(void *arg, int64_t epoch, const char *counter);

/*
 * The answer to an accepted beat of our own has these peers. Calls `found` for each that is to be
 * reaped, and again with every further beat until it is gone from the list. A peer with the counter
 * "dead" is told at once: any worker may go on with reaping it.
 */
void silence_beat(struct silence *w, struct mono now, const struct store_peer *peers, size_t n,
                  silence_found_f *found, void *arg);

#endif
