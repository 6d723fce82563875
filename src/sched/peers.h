/*
 * The other workers: who is to be reaped, and the reaping one after the other. Pure.
 *
 * To be reaped is whose process is certainly gone, once nothing that it left is running any more on
 * this host, and who fell silent (silence.h). Of the silent what runs on this host is ended as
 * well; where that is not known, the full silence has been waited for.
 */
#ifndef LATER_SCHED_PEERS_H
#define LATER_SCHED_PEERS_H

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

/* Whose remains are to be ended now (worker/remains.h); 0: nobody's. peers_cleared takes the
 * answer; peers_not_asked, that nobody could be asked just now: then it is told again. */
int64_t peers_to_clear(struct peers *p);
void peers_not_asked(struct peers *p, int64_t epoch);
void peers_cleared(struct peers *p, int64_t epoch, bool is_clear);

/* Who is to be reaped now, or NULL; peers_reaped takes the answer, peers_refused a fault. */
const struct store_peer *peers_victim(const struct peers *p);
void peers_reaped(struct peers *p, enum store_reap status, int64_t moved);
void peers_refused(struct peers *p);

#endif
