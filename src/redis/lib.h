/*
 * Loading and upgrading the Lua library on a server.
 *
 * A missing library is loaded, an older number is replaced, the same or a newer one is left alone.
 * Number and pin are in the text of the library: no key and no transaction are needed, which some
 * servers refuse. A downgrade needs a request and pins the library: loaders that come later leave a
 * pinned library alone.
 */
#ifndef LATER_REDIS_LIB_H
#define LATER_REDIS_LIB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "redis/client_conn.h"

/* Protocol of the functions this program calls. A library serves its own and the one before. */
#define LIB_PROTOCOL 1
#define LIB_LEAST 24 /* number of the oldest library that has all these functions */

enum lib_mode {
    LIB_ENSURE,
    LIB_FORCE, /* also one of the same number with another text, and one that is pinned */
    LIB_DOWNGRADE
};

struct lib_state {
    long number; /* of the library on the server; 0: none */
    char hash[24];
    long protocol;
    bool loaded; /* by this call */
    bool pinned;
};

/* Only look which library is there; number 0: none. ns: NULL asks without a root, as on a node of a
 * cluster that has another slot. Blocking. 0, or -1: UNFIT (a server without
 * functions), UNAVAILABLE, DENIED, DATA. */
int lib_look(struct client *c, const char *ns, struct lib_state *ret, struct err *err);

/* Blocking; asks with the root of this namespace, or as lib_look. 0, or -1: UNFIT (a server without
 * functions), UNAVAILABLE, DENIED (needs +function|load), DATA (the server refused it), TEMP (other
 * loaders win every race). DENIED tells to run later setup as an administrator. */
int lib_ensure(struct client *c, const char *ns, enum lib_mode mode, struct lib_state *ret,
               struct err *err);

/* Is this number, as a beat tells it, that of a library which this program would replace? */
bool lib_is_older(int64_t number);

#endif
