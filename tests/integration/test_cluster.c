/*
 * laterd and later on a Redis Cluster, with real nodes: namespaces on several of them, a slot that
 * moves while jobs are added and run, and primaries that die.
 *
 *     LATER_JOBS=20000 LATER_FAILOVERS=10 tests/integration/test_cluster
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
#include "lua/lua_lib.h"
#include "redis/slot.h"

#define LONG_MS 120000

static struct cluster c;
static char dir[64];
static struct test_laterd d[CLUSTER_PRIMARIES];

static long from_env(const char *name, long other)
{
    const char *value = getenv(name);

    return value != NULL ? atol(value) : other;
}

static int open_all(void **state)
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

static int close_all(void **state)
{
    (void)state;
    cluster_stop(&c);
    test_folder_remove(dir);
    return 0;
}

static int stop_daemons(void **state)
{
    int status = 0;

    (void)state;
    for (int i = 0; i < CLUSTER_PRIMARIES; i++)
        status += test_laterd_stop(&d[i]);
    return status;
}

static void start(int i, const char *ns)
{
    CLEANUP_FREE char *name = mem_printf("d%d", i);
    CLEANUP_FREE char *yaml = mem_printf("namespace: %s\nredis_timeout: 2s\n", ns);

    test_laterd_conf(&d[i], dir, name, c.by, yaml);
    test_laterd_start(&d[i]);
}

/* Run a command of the shell: $L is later at the cluster for this namespace. */
static void must(const char *ns, const char *line, const char *says)
{
    CLEANUP_FREE char *whole = mem_printf("L=\"$LATER --redis $BY --namespace %s\"; %s", ns, line);

    test_says(whole, 0, says);
}

/* ---- namespaces on several nodes */

/* A namespace whose slot begins at this primary. */
static void name_at(int primary, char ns[16])
{
    for (int i = 0;; i++) {
        (void)snprintf(ns, 16, "n%d", i);
        if ((int)(slot_of(ns, strlen(ns)) * CLUSTER_PRIMARIES / SLOTS) == primary)
            return;
    }
}

static void test_each_namespace_works_where_it_is(void **state)
{
    (void)state;
    for (int i = 0; i < CLUSTER_PRIMARIES; i++) {
        char ns[16];

        name_at(i, ns);
        assert_int_equal(cluster_owner(&c, 0, ns), i);
        start(i, ns);
        must(ns, "$L add work --wait x", "");
        must(ns, "$L add doomed --attempts 1 --key k x", "j");
        assert_true(test_laterd_says(&d[i], "outcome=dead", LONG_MS));
        must(ns, "$L ls doomed --state dead", "exit status 1");
        must(ns, "$L stats", "work");
        must(ns, "$L lock deploy -- echo inside", "inside");
        must(ns, "$L retry doomed --all", "1");
        must(ns, "$L health --json | grep -o '\"workers\":1'", "workers");
        must(ns, "$L add later --in 1h payload", "j");
        must(ns, "$L export later | $L import later2 && $L ls later2", "later2");
        must(ns, "$L fsck", "");
        must(ns, "$L cli dbsize", "");
    }
    /* Functions do not travel with a slot: each primary has them. */
    for (int i = 0; i < CLUSTER_PRIMARIES; i++) {
        struct reply *r =
            test_redis_call(&c.nodes[i].redis, "FCALL_RO", "later_version", "0", NULL);

        assert_int_equal(reply_int(reply_at(r, 0)), lua_lib_number);
        reply_free(r);
    }
}

static void test_other_addresses_are_told_what_to_write(void **state)
{
    CLEANUP_FREE char *node =
        mem_printf("$LATER --redis redis://127.0.0.1:%s --namespace n0 add work x",
                   c.nodes[(cluster_owner(&c, 0, "n0") + 1) % CLUSTER_PRIMARIES].port);
    CLEANUP_FREE char *plain = NULL;
    struct test_redis lone;
    char port[8];
    const char *const args[] = {"--port", port, NULL};

    (void)state;
    (void)snprintf(port, sizeof(port), "%d", test_free_port());
    test_redis_start(&lone, args);
    plain = mem_printf("$LATER --redis cluster://127.0.0.1:%s add work x", port);
    test_says(node, 69, "write cluster://");
    test_says(plain, 78, "it is no node of a cluster: write redis://");
    test_says("$LATER --redis cluster://127.0.0.1:1/1 add work x", 78, "one database, 0");
    test_redis_stop(&lone);
}

/* ---- a slot that moves */

/* Add jobs one by one, until there are enough; the ids of those that were added to $DIR/added. */
static void begin_producer(struct proc *p, long jobs)
{
    CLEANUP_FREE char *line =
        mem_printf("exec >/dev/null 2>>$DIR/refused; i=0; while [ $i -lt %ld ]; do i=$((i+1)); "
                   "id=$($LATER --redis $BY add work $i) && echo $id >>$DIR/added; done",
                   jobs);
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", line, NULL};

    proc_start(p, argv, NULL, NULL);
}

static void begin_ledgers(void)
{
    assert_int_equal(test_sh("cd $DIR && rm -f ran added refused && touch ran added refused"), 0);
}

static int lines(const char *name)
{
    CLEANUP_FREE char *path = mem_printf("%s/%s", dir, name);

    return test_lines(path, NULL);
}

static bool have_run(void *arg)
{
    (void)arg;
    return test_sh("cd $DIR && sort -u ran >r && sort -u added >a && [ -z \"$(comm -13 r a)\" ]") ==
           0;
}

static void test_a_slot_that_moves_loses_and_doubles_nothing(void **state)
{
    long jobs = from_env("LATER_JOBS", 400);
    struct proc producer;
    int moves = 0;

    (void)state;
    begin_ledgers();
    start(0, "default");
    begin_producer(&producer, jobs);
    while (proc_wait(&producer, 100) < 0) {
        int owner = cluster_owner(&c, 0, "default");

        cluster_move(&c, "default", (owner + 1) % CLUSTER_PRIMARIES, moves % 3 == 0 ? 1000 : 0);
        moves++;
    }
    assert_int_equal(producer.status, 0);
    proc_done(&producer);
    assert_true(test_until(have_run, NULL, LONG_MS));
    assert_int_equal(lines("added"), jobs);
    assert_int_equal(lines("ran"), jobs);
    assert_int_equal(test_sh("cd $DIR && [ $(sort -u ran | wc -l) -eq $(wc -l <added) ]"), 0);
    assert_true(moves > 1);
    print_message("%ld jobs, %d moves\n", jobs, moves);
    must("default", "$L fsck", "");
    assert_true(test_lines(d[0].log, "event=slot-moves") > 0);
}

/* ---- a primary that dies */

static bool is_empty(void *arg)
{
    (void)arg;
    return test_sh("left=$($LATER --redis $BY ls work --state due,running --json) && [ -z "
                   "\"$left\" ]") == 0;
}

static void test_a_replica_takes_over(void **state)
{
    long failovers = from_env("LATER_FAILOVERS", 2);
    struct proc producer;

    (void)state;
    begin_ledgers();
    start(0, "default");
    begin_producer(&producer, failovers * 150);
    for (long i = 0; i < failovers; i++) {
        int told = test_lines(d[0].log, "event=link state=up"), killed;

        test_pause(300);
        killed = cluster_fail(&c, "default");
        assert_true(test_until_lines(d[0].log, "event=link state=up", told + 1, LONG_MS));
        cluster_heal(&c, killed);
    }
    while (proc_wait(&producer, LONG_MS) < 0)
        fail_msg("the producer hangs");
    proc_done(&producer);
    /* What was added just before a kill may not have reached the replica. */
    assert_true(test_until(is_empty, NULL, LONG_MS));
    must("default", "$L fsck", "");
    /* An end that had not reached the replica is run again, so twice is told, and none is wrong. */
    assert_int_equal(test_sh("cd $DIR && sort ran | uniq -d >twice"), 0);
    print_message("%ld failovers: %d added, %d ran, %d of them twice\n", failovers, lines("added"),
                  lines("ran"), lines("twice"));
    assert_true(lines("ran") > 0);
}

int main(void)
{
#define DAEMON_TEST(f) cmocka_unit_test_teardown(f, stop_daemons)
    const struct CMUnitTest tests[] = {
        DAEMON_TEST(test_each_namespace_works_where_it_is),
        cmocka_unit_test(test_other_addresses_are_told_what_to_write),
        DAEMON_TEST(test_a_slot_that_moves_loses_and_doubles_nothing),
        DAEMON_TEST(test_a_replica_takes_over),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
