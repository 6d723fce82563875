/*
 * What this daemon's configuration says of gates, told to the fleet: limits that Redis lacks and
 * the gates of the queues that the file names. Told after each registration and after a reload that
 * changed it, in pieces, and again with the next beat until it was taken. What differs in the fleet
 * is logged once. It is no part of the claims: a daemon that cannot tell it works on.
 *
 * Every function takes NULL, for a daemon without. Main thread.
 */
#ifndef LATER_DAEMON_GATE_SETTINGS_H
#define LATER_DAEMON_GATE_SETTINGS_H

#include <stdint.h>

#include "conf/conf.h"
#include "store/store_redis.h"

struct gate_settings;

struct gate_settings *gate_settings_new(struct store_redis *store);
void gate_settings_free(struct gate_settings *g);

/* The configuration in force from now on; it is not kept. */
void gate_settings_set(struct gate_settings *g, const struct conf *conf);

void gate_settings_registered(struct gate_settings *g, int64_t epoch);
void gate_settings_beat(struct gate_settings *g); /* one was answered */
void gate_settings_declared(struct gate_settings *g, const struct store_declare_reply *r);
/* Answers that have not come will not come. */
void gate_settings_link_down(struct gate_settings *g);

#endif
