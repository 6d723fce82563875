/*
 * What a worker is to Redis, be it a scheduler or the keeper of `later lock`: its epoch, what it
 * has seen of the clock, and whether a failover may have lost it. Its functions are the only ones
 * that write it. Pure.
 */
#ifndef LATER_SCHED_SESSION_H
#define LATER_SCHED_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "store/store.h"

/* So long after a failover nothing guarded starts: by then the others have left the old server, if
 * it lives (redis/link.c looks every second), and have said what they hold. */
#define SESSION_FAILOVER_MS 3000

/* Without an epoch when zeroed. */
struct session {
    int64_t epoch; /* 0: not registered */
    int64_t seen;  /* highest clock number */
    int64_t seq;
    bool has_moved;           /* a replica took over, and has accepted nothing of us yet */
    struct mono guarded_from; /* nothing guarded starts before: Redis failed over */
};

/* The next registration, which takes over from the epoch of before; without held jobs. */
struct store_register session_request(struct session *s);
void session_registered(struct session *s, struct mono now, int64_t epoch);
/* Redis gave the worker up, or forgot it: it has no epoch any more. */
void session_lost(struct session *s);
/* Redis told this number of its clock. */
void session_saw(struct session *s, int64_t number);
/* A replica has taken over from the server that we were linked to. */
void session_failed_over(struct session *s);
/* Redis took a call that writes. session_registered says so, too. */
void session_accepted(struct session *s, struct mono now);

#endif
