/*
 * Loading and upgrading the Lua library on a server.
 *
 * A missing library is loaded, an older number is replaced, the same or a newer one is left alone.
 * All this happens under WATCH on the key later:library, so that racing loaders agree. A downgrade
 * needs a request and pins the library: loaders that come later leave a pinned library alone.
 */
#ifndef LATER_REDIS_LIB_H
#define LATER_REDIS_LIB_H

#include <stdbool.h>

#include "base/err.h"
#include "redis/client.h"

/* Protocol of the functions this program calls. A library serves its own and the one before. */
#define LIB_PROTOCOL 1
#define LIB_LEAST 24 /* number of the oldest library that has all these functions */

enum lib_mode { LIB_ENSURE, LIB_FORCE /* same number, other text too */, LIB_DOWNGRADE };

struct lib_state {
    long number; /* of the library on the server; 0: none */
    char hash[24];
    long protocol;
    bool loaded; /* by this call */
    bool pinned;
};

/* Blocking. 0, or -1: UNAVAILABLE, DENIED (needs +function|load), DATA (the server refused it),
 * TEMP (other loaders win every race). DENIED tells to run later setup as an administrator. */
int lib_ensure(struct client *c, enum lib_mode mode, struct lib_state *ret, struct err *err);

#endif
