/*
 * The nodes of a Redis Cluster, as one of them tells by CLUSTER SLOTS. A node is asked at each
 * connect, so that a slot that has moved is followed by connecting anew. Blocks: on the probe's
 * thread or in the command only.
 */
#ifndef LATER_REDIS_CLUSTER_H
#define LATER_REDIS_CLUSTER_H

#include "redis/client_conn.h"
#include "redis/url.h"

/* Write where the owner of url->slot is into host, name and port, and take the nodes out; another
 * node than the last time is asked first. 0, or -1: UNAVAILABLE (no node answers, none owns it
 * now), DENIED, CONFIG (it is no cluster). */
int cluster_resolve(struct url *url, int64_t timeout_ms, struct err *err);

/* primary: connected to it as url says, and owner of some slots; has_all: of all, so that a key of
 * any namespace may be named there. NULL: it could not be reached, why tells. */
typedef void cluster_primary_f(void *arg, const struct url *at, bool has_all,
                               struct client *primary, const struct err *why);

/* Call fn with each primary, in the order of its slots. 0, or -1 as cluster_resolve: no node
 * told. */
int cluster_primaries(const struct url *url, int64_t timeout_ms, cluster_primary_f *fn, void *arg,
                      struct err *err);

/* Is the owner of url->slot another node than url names, which has these nodes and what
 * cluster_resolve told as name and port? False when no node tells. */
bool cluster_has_moved(const struct url *url, int64_t timeout_ms);

#endif
