/*
 * For tests of a Redis Cluster: six nodes, and a daemon for each of some namespaces. $BY is the
 * address of the cluster for lines of shell.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/cluster.h"
#include "../support/env.h"
#include "../support/laterd.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "redis/slot.h"

#define LONG_MS 120000

static struct cluster c;
static char dir[64];
static struct test_laterd d[CLUSTER_PRIMARIES];

static inline long from_env(const char *name, long other)
{
    const char *value = getenv(name);

    return value != NULL ? atol(value) : other;
}

static inline int open_cluster(void **state)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());

    (void)state;
    test_folder_make(dir);
    cluster_start(&c);
    assert_int_equal(setenv("DIR", dir, 1), 0);
    assert_int_equal(setenv("BY", c.by, 1), 0);
    assert_int_equal(setenv("LATER", later, 1), 0);
    test_handler(dir, "work", "echo $LATER_ID >>%s/ran\n", dir);
    test_handler(dir, "doomed", "exit 1\n");
    return 0;
}

static inline int close_cluster(void **state)
{
    (void)state;
    cluster_stop(&c);
    test_folder_remove(dir);
    return 0;
}

static inline int stop_daemons(void **state)
{
    int status = 0;

    (void)state;
    for (int i = 0; i < CLUSTER_PRIMARIES; i++)
        status += test_laterd_stop(&d[i]);
    return status;
}

static inline void start_at(int i, const char *ns, const char *url)
{
    CLEANUP_FREE char *name = mem_printf("d%d", i);
    CLEANUP_FREE char *yaml = mem_printf("namespace: %s\nredis_timeout: 2s\n", ns);

    test_laterd_conf(&d[i], dir, name, url, yaml);
    test_laterd_start(&d[i]);
}

static inline void start(int i, const char *ns)
{
    start_at(i, ns, c.by);
}

/* Run a command of the shell: $L is later at the cluster for this namespace. */
static inline void must(const char *ns, const char *line, const char *says)
{
    CLEANUP_FREE char *whole = mem_printf("L=\"$LATER --redis $BY --namespace %s\"; %s", ns, line);

    test_says(whole, 0, says);
}

/* A namespace whose slot begins at this primary. */
static inline void name_at(int primary, char ns[16])
{
    for (int i = 0;; i++) {
        (void)snprintf(ns, 16, "n%d", i);
        if ((int)(slot_of(ns, strlen(ns)) * CLUSTER_PRIMARIES / SLOTS) == primary)
            return;
    }
}

/* What most people do, in a namespace with a daemon. */
static inline void verbs_work(const char *ns)
{
    must(ns, "$L add work --wait x", "");
    must(ns, "$L add doomed --attempts 1 --key k x", "j");
    must(ns,
         "for i in $(seq 600); do $L ls doomed --state dead 2>&1 | grep 'exit status 1' && break; "
         "sleep 0.1; done",
         "exit status 1");
    must(ns, "$L stats", "work");
    must(ns, "$L lock deploy -- echo inside", "inside");
    must(ns, "$L retry doomed --all", "1");
    must(ns, "$L health --json | grep -o '\"workers\":1'", "workers");
    must(ns, "id=$($L add later --in 1h payload) && $L show $id", "payload");
    must(ns, "$L export later | $L import later2 && $L ls later2", "later2");
    must(ns, "id=$($L add work --in 500ms --keep 1h x) && $L wait --timeout 1m $id", "");
}

static inline int next_primary(int node)
{
    return (node + 1) % CLUSTER_PRIMARIES;
}
