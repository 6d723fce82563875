/*
 * The share of this daemon in bulks (`later bulk`): while any is active, it asks Redis now and then
 * to change the next of its jobs (src/lua/calls/bulk.lua), and Redis says when to ask again. Redis
 * also decides which of the daemons does it, and tells the others to look again in a second.
 *
 * It begins when Redis wakes the workers for a new bulk, and at a tidy that tells of one. Where
 * none is active, no command is sent. All functions but bulks_new take NULL. Main thread.
 */
#ifndef LATER_DAEMON_BULKS_H
#define LATER_DAEMON_BULKS_H

#include <stdint.h>

#include "loop/loop.h"
#include "redis/link.h"

struct bulks;

/* NULL: no descriptors. */
struct bulks *bulks_new(struct loop *loop, struct link *link, const char *ns);
void bulks_free(struct bulks *b);

void bulks_registered(struct bulks *b, int64_t epoch);
/* A bulk may be active. */
void bulks_wake(struct bulks *b);
/* Answers that have not come will not come. */
void bulks_link_down(struct bulks *b);
/* Ask no more: the daemon stops. */
void bulks_stop(struct bulks *b);

#endif
