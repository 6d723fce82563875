/*
 * Tells Redis what this daemon's configuration says of gates: limits that Redis lacks, and the
 * gates of the queues that the file names. It is told in pieces, after each registration and after
 * a reload that changed it, and again with the next beat until Redis has taken it. A limit that
 * differs in Redis is logged once. Claims do not depend on it: a daemon whose settings are not
 * taken works on.
 *
 * All functions but gate_settings_new take NULL, for a daemon without gate settings. Main thread.
 */
#ifndef LATER_DAEMON_GATE_SETTINGS_H
#define LATER_DAEMON_GATE_SETTINGS_H

#include <stdint.h>

#include "conf/conf.h"
#include "store/store_redis.h"

struct gate_settings;

struct gate_settings *gate_settings_new(struct store_redis *store);
void gate_settings_free(struct gate_settings *g);

/* Tell this configuration from now on; it is not kept. */
void gate_settings_set(struct gate_settings *g, const struct conf *conf);

/* The worker was registered: tell the settings under its new epoch. */
void gate_settings_registered(struct gate_settings *g, int64_t epoch);
void gate_settings_beat(struct gate_settings *g); /* a beat was answered */
/* An answer to store_declare. */
void gate_settings_declared(struct gate_settings *g, const struct store_declare_reply *r);
/* Answers that have not come will not come. */
void gate_settings_link_down(struct gate_settings *g);

#endif
