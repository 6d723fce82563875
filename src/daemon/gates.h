/*
 * What this daemon's configuration says of gates, told to the fleet: limits that Redis lacks and
 * the gates of the queues that the file names. Told after each registration and after a reload that
 * changed it, in pieces, and again with the next beat until it was taken. What differs in the fleet
 * is logged once. It is no part of the claims: a daemon that cannot tell it works on.
 *
 * Every function takes NULL, for a daemon without. Main thread.
 */
#ifndef LATER_DAEMON_GATES_H
#define LATER_DAEMON_GATES_H

#include <stdint.h>

#include "conf/conf.h"
#include "store/store_redis.h"

struct gates;

struct gates *gates_new(struct store_redis *store);
void gates_free(struct gates *g);

/* The configuration in force from now on; it is not kept. */
void gates_set(struct gates *g, const struct conf *conf);

void gates_registered(struct gates *g, int64_t epoch);
void gates_beat(struct gates *g); /* one was answered */
void gates_declared(struct gates *g, const struct store_declare_reply *r);
/* Answers that have not come will not come. */
void gates_link_down(struct gates *g);

#endif
