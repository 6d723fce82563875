/*
 * A Redis Cluster with real servers: three primaries with a third of the slots each, and a replica
 * of each. Errors end the test program.
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
        const char *args[24];
    } nodes[CLUSTER_NODES]; /* i + 3 begins as the replica of i */
    char by[128];           /* the address by two of the nodes */
};

/* Returns when all know all, and each replica has its primary's data. */
void cluster_start(struct cluster *c);
void cluster_stop(struct cluster *c);

/* The node that owns the slot of this namespace, as node `asked` says. */
int cluster_owner(struct cluster *c, int asked, const char *ns);

/* Move the slot of a namespace to another primary, key by key. held_ms: how long it is held once
 * half of its keys have moved. */
void cluster_move(struct cluster *c, const char *ns, int to, int held_ms);

/* Kill the owner of this namespace and let its replica take over. -> the killed one, for
 * cluster_heal, which starts it and waits until it has the data of the new owner. */
int cluster_fail(struct cluster *c, const char *ns);
void cluster_heal(struct cluster *c, int killed);

#endif
