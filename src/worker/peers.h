/*
 * The other workers, for one that has nothing to do with their jobs: who is to be reaped, and the
 * reaping one after the other. Pure.
 *
 * To be reaped is who fell silent (watch.h), and whose process is certainly gone. The latter only
 * when it is still so at the next accepted beat: its guard needs a moment to kill what it left.
 */
#ifndef LATER_WORKER_PEERS_H
#define LATER_WORKER_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "store/store.h"

struct peers;

typedef bool peers_gone_f(void *ctx, const struct store_peer *peer);

struct peers *peers_new(peers_gone_f *is_gone, void *ctx);
void peers_free(struct peers *p); /* NULL is fine */

/* Our link failed, or one of our calls did: nobody is suspected any more. */
void peers_trouble(struct peers *p);
/* The list that came with our registration: with names, hosts, processes. */
void peers_registered(struct peers *p, struct mono now, const struct store_peer *list, size_t n);
/* The list of an accepted beat: epochs and counters. */
void peers_beat(struct peers *p, struct mono now, const struct store_peer *list, size_t n);

/* Who is to be reaped now, or NULL; peers_reaped takes the answer, peers_refused a fault. */
const struct store_peer *peers_victim(const struct peers *p);
void peers_reaped(struct peers *p, enum store_reap status, int64_t moved);
void peers_refused(struct peers *p);

#endif
