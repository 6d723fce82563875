/*
 * A Redis Cluster with real servers: three primaries with a third of the slots each, and a replica
 * of each. Errors end the test program. With $LATER_TEST_TLS its address is clusters://, and the
 * nodes name each other localhost.
 */
#ifndef LATER_TESTS_SUPPORT_CLUSTER_H
#define LATER_TESTS_SUPPORT_CLUSTER_H

#include "redis.h"

#define CLUSTER_PRIMARIES 3
#define CLUSTER_NODES (2 * CLUSTER_PRIMARIES)
#define CLUSTER_WAIT_MS 60000

struct cluster {
    struct cluster_node {
        struct test_redis redis;
        char port[8], bus[8], id[48];
        const char *args[32];
    } nodes[CLUSTER_NODES + 1]; /* i + 3 begins as the replica of i; the last one may join */
    int n;                      /* how many run */
    char by[128];               /* the address by two of the nodes */
};

/* Returns when all know all, and each replica has its primary's data. */
void cluster_start(struct cluster *c);
void cluster_stop(struct cluster *c);

/* One more primary joins, as nodes[CLUSTER_NODES], without slots and without the library. Returns
 * when all know it. */
void cluster_join(struct cluster *c);

/* The node that owns the slot of this namespace, as node `asked` says. */
int cluster_owner(struct cluster *c, int asked, const char *ns);

/* A slot on its way: half of its keys have moved, and one at least. */
struct cluster_moving {
    struct cluster_node *from, *to;
    char slot[8];
    struct mono begin;
};

/* Move the slot of a namespace to another primary, key by key: the first half, and the rest.
 * -> how long it stood, in ms */
void cluster_begin_move(struct cluster *c, const char *ns, int to, struct cluster_moving *ret);
int64_t cluster_end_move(struct cluster_moving *m);
/* Both. held_ms: how long it is held between them. */
int64_t cluster_move(struct cluster *c, const char *ns, int to, int held_ms);
/* Move it as a whole (CLUSTER MIGRATESLOTS of Valkey 9). -> how long that took, in ms; -1: the
 * server cannot */
int64_t cluster_move_whole(struct cluster *c, const char *ns, int to);
/* How many keys of the slot of this namespace a node has. */
int64_t cluster_keys(struct cluster *c, int node, const char *ns);

/* Kill the owner of this namespace and let its replica take over. -> the killed one, for
 * cluster_heal, which starts it and waits until it has the data of the new owner. */
int cluster_fail(struct cluster *c, const char *ns);
void cluster_heal(struct cluster *c, int killed);

#endif
