/*
 * Loading and upgrading the Lua library on a server.
 *
 * Rule: missing: loaded. Older number: replaced. Same or newer: left alone. All under WATCH on the
 * key later:library, so that racing loaders agree. A downgrade is made only when asked for, and
 * then pins: later loaders leave a pinned library alone.
 */
#ifndef LATER_REDIS_LIB_H
#define LATER_REDIS_LIB_H

#include <stdbool.h>

#include "base/err.h"
#include "redis/client.h"

/* Of the functions this program calls. A library serves its own protocol and the one before. */
#define LIB_PROTOCOL 1
#define LIB_LEAST 19 /* the oldest that has all of them */

enum lib_mode { LIB_ENSURE, LIB_FORCE /* same number, other text too */, LIB_DOWNGRADE };

struct lib_state {
    long number; /* of what is there now; 0: none */
    char hash[24];
    long protocol;
    bool loaded; /* by this call */
    bool pinned;
};

/* Blocking. 0, or -1: UNAVAILABLE, DENIED (needs +function|load), DATA (the server refused it). */
int lib_ensure(struct client *c, enum lib_mode mode, struct lib_state *ret, struct err *err);

#endif
