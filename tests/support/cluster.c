#include "cluster.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "redis/slot.h"

static void die(const char *what)
{
    (void)fprintf(stderr, "cluster: %s\n", what);
    abort();
}

#define CALL(node, ...) call(test_redis_call(&(node)->redis, __VA_ARGS__, NULL), #__VA_ARGS__)

static void call(struct reply *r, const char *what)
{
    if (r == NULL)
        die(what);
    reply_free(r);
}

static void start_node(struct cluster_node *node)
{
    /* Only such a cluster tells ports with TLS (Redis 7.0), and names that a certificate is for. */
    const char *const by_tls[] = {"--tls-cluster",
                                  "yes",
                                  "--tls-replication",
                                  "yes",
                                  "--tls-ca-cert-file",
                                  getenv("SSL_CERT_FILE"),
                                  "--cluster-announce-hostname",
                                  "localhost",
                                  "--cluster-preferred-endpoint-type",
                                  "hostname",
                                  NULL};
    /* No node is taken for dead on a busy machine: who dies is replaced by hand. */
    const char *const args[] = {"--cluster-enabled",
                                "yes",
                                "--cluster-node-timeout",
                                "600000",
                                "--cluster-allow-replica-migration",
                                "no",
                                "--repl-diskless-sync-delay",
                                "0",
                                "--bind",
                                "127.0.0.1",
                                "--port",
                                node->port,
                                "--cluster-port",
                                node->bus,
                                NULL};
    struct reply *r;

    (void)snprintf(node->port, sizeof(node->port), "%d", test_free_port());
    (void)snprintf(node->bus, sizeof(node->bus), "%d", test_free_port());
    memcpy(node->args, args, sizeof(args));
    if (getenv("LATER_TEST_TLS") != NULL)
        memcpy(node->args + sizeof(args) / sizeof(args[0]) - 1, by_tls, sizeof(by_tls));
    test_redis_start(&node->redis, node->args);
    r = test_redis_call(&node->redis, "CLUSTER", "MYID", NULL);
    text_copy(node->id, sizeof(node->id), reply_str(r));
    reply_free(r);
}

static bool says(struct cluster_node *node, const char *verb, const char *what, const char *text)
{
    struct reply *r = test_redis_call(&node->redis, verb, what, NULL);
    bool it_does = r != NULL && strstr(reply_str(r), text) != NULL;

    reply_free(r);
    return it_does;
}

static bool are_joined(void *arg)
{
    struct cluster *c = arg;
    char known[32];

    (void)snprintf(known, sizeof(known), "cluster_known_nodes:%d\r", c->n);
    for (int i = 0; i < c->n; i++)
        if (!says(&c->nodes[i], "CLUSTER", "INFO", "cluster_state:ok") ||
            !says(&c->nodes[i], "CLUSTER", "INFO", known))
            return false;
    return true;
}

/* Each replica follows, and all nodes have heard of it. */
static bool are_replicated(void *arg)
{
    struct cluster *c = arg;

    for (int i = 0; i < CLUSTER_NODES; i++) {
        struct reply *r = test_redis_call(&c->nodes[i].redis, "CLUSTER", "NODES", NULL);
        const char *at = reply_str(r);
        int replicas = 0;

        while ((at = strstr(at, "slave ")) != NULL) {
            at++;
            replicas++;
        }
        reply_free(r);
        if (replicas != CLUSTER_PRIMARIES)
            return false;
        if (i >= CLUSTER_PRIMARIES &&
            !says(&c->nodes[i], "INFO", "replication", "master_link_status:up"))
            return false;
    }
    return true;
}

/* The port at which other nodes reach it. */
static const char *port_of(const struct cluster_node *node, char port[8])
{
    (void)snprintf(port, 8, "%d",
                   node->redis.tls_port > 0 ? node->redis.tls_port : atoi(node->port));
    return port;
}

/* With all before it: by gossip alone, and so long a timeout, they hear of it within a minute. */
static void meet(struct cluster *c, int node)
{
    char port[8];

    for (int i = 0; i < node; i++)
        CALL(&c->nodes[node], "CLUSTER", "MEET", "127.0.0.1", port_of(&c->nodes[i], port),
             c->nodes[i].bus);
}

static void until_joined(struct cluster *c)
{
    if (!test_until(are_joined, c, CLUSTER_WAIT_MS))
        die("the nodes do not know each other");
}

void cluster_start(struct cluster *c)
{
    memset(c, 0, sizeof(*c));
    for (; c->n < CLUSTER_NODES; c->n++)
        start_node(&c->nodes[c->n]);
    for (int i = 0; i < CLUSTER_PRIMARIES; i++) {
        char from[8], to[8];

        (void)snprintf(from, sizeof(from), "%d", i * SLOTS / CLUSTER_PRIMARIES);
        (void)snprintf(to, sizeof(to), "%d", (i + 1) * SLOTS / CLUSTER_PRIMARIES - 1);
        CALL(&c->nodes[i], "CLUSTER", "ADDSLOTSRANGE", from, to);
    }
    for (int i = 1; i < CLUSTER_NODES; i++)
        meet(c, i);
    until_joined(c);
    for (int i = 0; i < CLUSTER_PRIMARIES; i++)
        CALL(&c->nodes[i + CLUSTER_PRIMARIES], "CLUSTER", "REPLICATE", c->nodes[i].id);
    if (!test_until(are_replicated, c, CLUSTER_WAIT_MS))
        die("the primaries have no replicas");
    if (c->nodes[0].redis.tls_port > 0)
        (void)snprintf(c->by, sizeof(c->by), "clusters://localhost:%d,localhost:%d",
                       c->nodes[1].redis.tls_port, c->nodes[2].redis.tls_port);
    else
        (void)snprintf(c->by, sizeof(c->by), "cluster://127.0.0.1:%s,127.0.0.1:%s",
                       c->nodes[1].port, c->nodes[2].port);
}

void cluster_join(struct cluster *c)
{
    start_node(&c->nodes[c->n]);
    meet(c, c->n++);
    until_joined(c);
}

void cluster_stop(struct cluster *c)
{
    for (int i = 0; i < c->n; i++)
        test_redis_stop(&c->nodes[i].redis);
}

static bool holds(const struct reply *range, unsigned slot)
{
    return reply_int(reply_at(range, 0)) <= (int64_t)slot &&
           (int64_t)slot <= reply_int(reply_at(range, 1));
}

/* A node tells the ports with TLS to those who ask by TLS. */
static bool is_at(const struct cluster_node *node, int64_t port)
{
    return port == atoi(node->port) || (node->redis.tls_port > 0 && port == node->redis.tls_port);
}

int cluster_owner(struct cluster *c, int asked, const char *ns)
{
    struct reply *r = test_redis_call(&c->nodes[asked].redis, "CLUSTER", "SLOTS", NULL);
    unsigned slot = slot_of(ns, strlen(ns));
    int owner = -1;

    for (size_t i = 0; i < reply_count(r); i++)
        for (int k = 0; k < c->n && holds(reply_at(r, i), slot); k++)
            if (is_at(&c->nodes[k], reply_int(reply_at(reply_at(reply_at(r, i), 2), 1))))
                owner = k;
    reply_free(r);
    if (owner < 0)
        die("no node owns the slot");
    return owner;
}

/* Move up to this many keys. -> how many there were */
static size_t move_keys(struct cluster_node *from, const struct cluster_node *to, const char *slot,
                        const char *most)
{
    struct reply *keys =
        test_redis_call(&from->redis, "CLUSTER", "GETKEYSINSLOT", slot, most, NULL);
    size_t n = reply_count(keys);
    char port[8];

    for (size_t i = 0; i < n; i++)
        CALL(from, "MIGRATE", "127.0.0.1", port_of(to, port), reply_str(reply_at(keys, i)), "0",
             "60000");
    reply_free(keys);
    return n;
}

int64_t cluster_keys(struct cluster *c, int node, const char *ns)
{
    char slot[8];
    struct reply *r;
    int64_t n;

    (void)snprintf(slot, sizeof(slot), "%u", slot_of(ns, strlen(ns)));
    r = test_redis_call(&c->nodes[node].redis, "CLUSTER", "COUNTKEYSINSLOT", slot, NULL);
    n = reply_int(r);
    reply_free(r);
    return n;
}

static int64_t epoch(struct cluster_node *node, const char *name)
{
    struct reply *r = test_redis_call(&node->redis, "CLUSTER", "INFO", NULL);
    const char *at = strstr(reply_str(r), name);
    int64_t n = at != NULL ? strtoll(at + strlen(name), NULL, 10) : -1;

    reply_free(r);
    return n;
}

/* Has the new owner heard of the epoch of the old one? Else it takes the slot with one that is no
 * higher, other nodes tell it that the slot is not its own, and each of the two names the other. */
static bool may_take(void *arg)
{
    const struct cluster_moving *m = arg;

    return epoch(m->to, "cluster_current_epoch:") >= epoch(m->from, "cluster_my_epoch:");
}

void cluster_begin_move(struct cluster *c, const char *ns, int to, struct cluster_moving *ret)
{
    int owner = cluster_owner(c, to, ns);
    char half[24];

    *ret = (struct cluster_moving){.from = &c->nodes[owner], .to = &c->nodes[to]};
    if (!test_until(may_take, ret, CLUSTER_WAIT_MS))
        die("the new owner does not hear of the old one's epoch");
    ret->begin = mono_now();
    (void)snprintf(ret->slot, sizeof(ret->slot), "%u", slot_of(ns, strlen(ns)));
    (void)snprintf(half, sizeof(half), "%lld", (long long)(cluster_keys(c, owner, ns) / 2 + 1));
    CALL(ret->to, "CLUSTER", "SETSLOT", ret->slot, "IMPORTING", ret->from->id);
    CALL(ret->from, "CLUSTER", "SETSLOT", ret->slot, "MIGRATING", ret->to->id);
    (void)move_keys(ret->from, ret->to, ret->slot, half);
}

int64_t cluster_end_move(struct cluster_moving *m)
{
    while (move_keys(m->from, m->to, m->slot, "1000") > 0)
        ;
    CALL(m->to, "CLUSTER", "SETSLOT", m->slot, "NODE", m->to->id);
    CALL(m->from, "CLUSTER", "SETSLOT", m->slot, "NODE", m->to->id);
    return test_ms_since(m->begin);
}

int64_t cluster_move(struct cluster *c, const char *ns, int to, int held_ms)
{
    struct cluster_moving m;

    cluster_begin_move(c, ns, to, &m);
    if (held_ms > 0)
        test_pause(held_ms);
    return cluster_end_move(&m);
}

struct taken {
    struct cluster *c;
    const char *ns;
    int asked, owner;
};

static bool is_taken(void *arg)
{
    struct taken *t = arg;

    return cluster_owner(t->c, t->asked, t->ns) == t->owner;
}

int64_t cluster_move_whole(struct cluster *c, const char *ns, int to)
{
    struct cluster_node *from = &c->nodes[cluster_owner(c, to, ns)];
    struct taken t = {c, ns, to, to};
    struct mono begin = mono_now();
    struct reply *r;
    char slot[8];
    bool it_can;

    (void)snprintf(slot, sizeof(slot), "%u", slot_of(ns, strlen(ns)));
    r = test_redis_call(&from->redis, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE",
                        c->nodes[to].id, NULL);
    it_can = reply_is(r, "OK");
    reply_free(r);
    if (!it_can)
        return -1;
    if (!test_until(is_taken, &t, CLUSTER_WAIT_MS))
        die("the slot does not arrive");
    return test_ms_since(begin);
}

int cluster_fail(struct cluster *c, const char *ns)
{
    int other = cluster_owner(c, 1, ns) % CLUSTER_PRIMARIES == 1 ? 2 : 1;
    int old = cluster_owner(c, other, ns);
    struct taken t = {c, ns, other, (old + CLUSTER_PRIMARIES) % CLUSTER_NODES};

    test_redis_kill(&c->nodes[old].redis, SIGKILL);
    CALL(&c->nodes[t.owner], "CLUSTER", "FAILOVER", "TAKEOVER");
    if (!test_until(is_taken, &t, CLUSTER_WAIT_MS))
        die("nobody has heard of the new owner");
    return old;
}

static bool follows(void *arg)
{
    return says(arg, "INFO", "replication", "master_link_status:up");
}

void cluster_heal(struct cluster *c, int killed)
{
    test_redis_restart(&c->nodes[killed].redis);
    if (!test_until(follows, &c->nodes[killed], CLUSTER_WAIT_MS))
        die("the old primary does not follow the new one");
}
