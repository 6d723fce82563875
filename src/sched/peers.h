/*
 * The other workers: which are to be reaped, one after the other. Pure.
 *
 * A worker whose process is certainly gone is reaped once nothing that it left runs on this host
 * any more. A worker after its silence (silence.h) is reaped in any case, since the full silence
 * has been waited for; what it left on this host is ended first, as far as it can be found.
 */
#ifndef LATER_SCHED_PEERS_H
#define LATER_SCHED_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "store/store.h"

struct peers;

typedef bool peers_gone_f(void *ctx, const struct store_peer *peer);

/* is_gone: is the process of this peer certainly gone? Called with ctx. */
struct peers *peers_new(peers_gone_f *is_gone, void *ctx);
void peers_free(struct peers *p); /* NULL is fine */

/* Our link failed, or one of our calls did: start the counts of silence anew, reap none of those
 * found. */
void peers_trouble(struct peers *p);
/* The list that came with our registration: with counters, hosts and processes. */
void peers_registered(struct peers *p, struct mono now, const struct store_peer *list, size_t n);
/* The list of an accepted beat: epochs and counters. */
void peers_beat(struct peers *p, struct mono now, const struct store_peer *list, size_t n);

/* Whether a worker is known to be gone that was not reaped yet. */
bool peers_has_gone(const struct peers *p);
/* The worker whose orphans are to be ended now (worker/orphans.h), 0: none. peers_cleared takes the
 * answer. peers_not_asked: it could not be asked just now, so it is told again. */
int64_t peers_to_clear(struct peers *p);
void peers_not_asked(struct peers *p, int64_t epoch);
void peers_cleared(struct peers *p, int64_t epoch, bool is_clear);

/* The worker that is to be reaped now, or NULL; valid until this is called again. peers_reaped
 * takes the answer, peers_refused an error. */
const struct store_peer *peers_victim(const struct peers *p);
void peers_reaped(struct peers *p, enum store_reap status, int64_t moved);
void peers_refused(struct peers *p);

#endif
