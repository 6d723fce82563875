/*
 * Redis by Sentinel, with real servers: one master, two replicas, three sentinels. All of them
 * speak to a server through a proxy before it (tests/fault/proxy.c), whose port it announces; its
 * own port stays open while that is cut. Errors end the test program.
 */
#ifndef LATER_TESTS_SUPPORT_SENTINELS_H
#define LATER_TESTS_SUPPORT_SENTINELS_H

#include "../fault/proxy_client.h"
#include "proc.h"
#include "redis.h"

#define SENTINELS 3
#define SENTINELS_WAIT_MS 60000

struct sentinel {
    struct proc proc;
    int port;
    char conf[96], log[96];
};

struct sentinels {
    const char *dir;
    struct {
        struct test_redis redis;
        struct proxy proxy;
        char port[8], announced[8], master[8]; /* its own, the proxy's; whom it follows */
        const char *args[24];
    } nodes[SENTINELS];
    struct sentinel at[SENTINELS];
    char by[128];       /* the address by all sentinels */
    char announce[160]; /* a line of the configuration: servers are reached at their own ports */
};

/* Start one with this configuration, without waiting. Its port is the caller's affair. */
void sentinel_start(struct sentinel *one, const char *dir, const char *name, const char *conf);

/* dir: for configurations and logs; stays the caller's. Returns when all know of all. */
void sentinels_start(struct sentinels *s, const char *dir);
void sentinels_stop(struct sentinels *s);

/* One more that watches the master, with these lines in its configuration. */
void sentinels_add(struct sentinels *s, struct sentinel *one, const char *name, const char *more);
/* redis-cli COMMAND at the sentinel of this port. -> its status */
int sentinels_cli(int port, const char *command);

/* The index of the node that the sentinels name. */
int sentinels_master(struct sentinels *s);
/* Wait until they name another than this. */
void sentinels_until_moved(struct sentinels *s, int old);

/* What happens to the master. */
enum way { BY_KILL, BY_STOP, BY_PLAN, BY_CUT, WAYS };

/* Begin it. BY_CUT: it lives on, and whoever uses its own port reaches it; nobody is promoted yet.
 * Returns the index of that node. */
int sentinels_break(struct sentinels *s, enum way way);
/* The sentinels fail over where the master is gone: from the start on only then, so that nobody is
 * taken for dead on a busy machine. BY_CUT: now. */
void sentinels_promote(struct sentinels *s);
/* Undo it. is_slow: the old master hears of its demotion from the sentinels alone, which takes them
 * some 10 s; else at once. Returns when the master has two replicas. */
void sentinels_heal(struct sentinels *s, enum way way, int old, bool is_slow);

/* When a replica was promoted last, in ms of the wall clock, as the sentinels have logged it. */
int64_t sentinels_promoted_ms(const struct sentinels *s);

#endif
