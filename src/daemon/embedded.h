/*
 * The embedded Redis: a private redis-server on <state_dir>/redis.sock, started before the loop,
 * watched and restarted while the loop runs, stopped after everything else. Append-only file on,
 * no eviction, keyspace events for the raw sets, no TCP port.
 *
 * A server that a killed daemon left behind is taken over. Main thread.
 */
#ifndef LATER_DAEMON_EMBEDDED_H
#define LATER_DAEMON_EMBEDDED_H

#include "base/err.h"
#include "loop/loop.h"

struct embedded;

/* NULL: err says why (no redis-server installed, path too long …). */
struct embedded *embedded_start(struct loop *loop, const char *state_dir, struct err *err);
/* TERM, wait for it to write its data, KILL after 30 s; blocks. NULL is fine. */
void embedded_stop(struct embedded *e);
const char *embedded_socket(const struct embedded *e); /* path of its socket; owned by e */

#endif
