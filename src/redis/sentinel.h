/*
 * Where the master is that sentinels watch. They are asked at each connect, so that a failover is
 * followed by connecting anew; the one that answers is asked first the next time, in this process.
 * An old master that lives on, cut off from them, breaks no link: so links ask now and then.
 *
 * Errors: UNAVAILABLE where another try may help (no sentinel answers, the named server is not the
 * master yet), CONFIG or DENIED where only an operator can (none knows the name, a wrong password).
 */
#ifndef LATER_REDIS_SENTINEL_H
#define LATER_REDIS_SENTINEL_H

#include "redis/client_conn.h"
#include "redis/url.h"

/* How long a connect to the server that the sentinels name may take: it may be the one that died.
 */
#define SENTINEL_CONNECT_MS 1000

/* Before the first connect, on one thread. user, password_file: for the sentinels, "" for none. */
void sentinel_use(const char *user, const char *password_file);

/* Write where the master is into host, name and port, and take the sentinels out. Blocks. 0 or -1.
 */
int sentinel_resolve(struct url *url, struct err *err);

/* What was told last led to no master: ask the next of the list first. url: as before
 * sentinel_resolve. */
void sentinel_doubt(const struct url *url);

/*
 * Do they name another master than url says, which has these sentinels, what sentinel_resolve told
 * as name and port, and as host the address that answered (some may know it by that)? One is asked,
 * by turns; if it says so, all are, and more than half of those that answer must. Where they
 * differ, the next sentinel_resolve asks one of the majority first. Blocks.
 */
bool sentinel_has_moved(const struct url *url);

/* The server must say that it is the master. Blocks. master: its name, for the error. 0 or -1. */
int sentinel_check_role(struct client *c, const char *master, struct err *err);

#endif
