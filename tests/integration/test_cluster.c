/*
 * laterd and later on a Redis Cluster, with real nodes: namespaces on several of them, what other
 * addresses are told, and a primary that joins.
 */
#include "cluster_fixture.h"

#include "lua/lua_lib.h"

/* ---- namespaces on several nodes */

static void test_each_namespace_works_where_it_is(void **state)
{
    (void)state;
    for (int i = 0; i < CLUSTER_PRIMARIES; i++) {
        char ns[16];

        name_at(i, ns);
        assert_int_equal(cluster_owner(&c, 0, ns), i);
        start(i, ns);
        verbs_work(ns);
        assert_true(test_laterd_says(&d[i], "outcome=dead", LONG_MS));
        must(ns, "$L add work --wait told", "");
        must(ns, "$L add doomed --attempts 1 x && $L wait --timeout 1m $($L add work --keep 1h x)",
             "");
        must(ns, "$L explain later2", "later2");
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

/* ---- addresses */

/* A node is asked for the owner, whether it is it or not. */
static void test_one_node_is_enough(void **state)
{
    (void)state;
    for (int i = 0; i < CLUSTER_NODES; i++) {
        CLEANUP_FREE char *line =
            mem_printf("$LATER --redis cluster://127.0.0.1:%s --namespace one add later --in 1h x",
                       c.nodes[i].port);

        test_says(line, 0, "");
    }
    must("one", "$L stats later --json | grep -o '\"waiting\":6'", "6");
}

/* How often a node was asked who owns a slot. */
static int asked(int i)
{
    struct reply *r = test_redis_call(&c.nodes[i].redis, "INFO", "commandstats", NULL);
    const char *at = strstr(reply_str(r), "cmdstat_cluster|slots:calls=");
    int n = at != NULL ? atoi(strchr(at, '=') + 1) : 0;

    reply_free(r);
    return n;
}

/* One that is cut off from the others, and tells of an old owner, is not believed for ever. */
static void test_nodes_take_turns(void **state)
{
    int before[2] = {asked(0), asked(1)};
    CLEANUP_FREE char *line =
        mem_printf("for i in $(seq 20); do $LATER --redis "
                   "cluster://127.0.0.1:%s,127.0.0.1:%s --namespace n0 stats || exit 1; done",
                   c.nodes[0].port, c.nodes[1].port);

    (void)state;
    test_says(line, 0, "");
    assert_true(asked(0) > before[0] && asked(1) > before[1]);
}

/* One that is gone costs a try. */
static void test_nodes_that_do_not_answer_are_passed_over(void **state)
{
    CLEANUP_FREE char *line =
        mem_printf("$LATER --redis cluster://127.0.0.1:%d,127.0.0.1:%s --namespace two add q x",
                   test_free_port(), c.nodes[0].port);

    (void)state;
    test_says(line, 0, "");
}

static void test_a_daemon_at_one_node_is_warned(void **state)
{
    CLEANUP_FREE char *url =
        mem_printf("redis://127.0.0.1:%s", c.nodes[cluster_owner(&c, 0, "default")].port);

    (void)state;
    start_at(0, "default", url);
    assert_true(test_laterd_says(&d[0], "event=preflight check=cluster", LONG_MS));
    assert_true(test_laterd_says(&d[0], "write cluster://", LONG_MS));
}

/* ---- a primary that joins */

static bool has_library(void *arg)
{
    struct reply *r =
        test_redis_call(&((struct cluster_node *)arg)->redis, "FUNCTION", "LIST", NULL);
    bool it_has = reply_count(r) > 0;

    reply_free(r);
    return it_has;
}

/* At once when our own slot goes there, else within a minute: that is in the long form only, since
 * timers of the loop are the kernel's, and no preloaded clock moves them. */
static void test_a_new_primary_gets_the_library(void **state)
{
    struct cluster_node *joined = &c.nodes[CLUSTER_NODES];

    (void)state;
    cluster_join(&c);
    start(0, "default");
    assert_false(has_library(joined));
    if (test_is_long()) {
        /* Of a primary without slots nobody tells. */
        (void)cluster_move(&c, "another", CLUSTER_NODES, 0);
        assert_false(has_library(joined));
        assert_true(test_until(has_library, joined, LONG_MS));
        assert_int_equal(test_lines(d[0].log, "event=link state=down"), 0);
        reply_free(test_redis_call(&joined->redis, "FUNCTION", "FLUSH", NULL));
        (void)cluster_move(&c, "another", 0, 0);
    }
    (void)cluster_move(&c, "default", CLUSTER_NODES, 0);
    assert_true(test_until(has_library, joined, LONG_MS));
    must("default", "$L add work --wait x", "");
    assert_int_equal(cluster_owner(&c, 0, "default"), CLUSTER_NODES);
    (void)cluster_move(&c, "default", 0, 0);
}

int main(void)
{
#define DAEMON_TEST(f) cmocka_unit_test_teardown(f, stop_daemons)
    const struct CMUnitTest tests[] = {
        DAEMON_TEST(test_each_namespace_works_where_it_is),
        cmocka_unit_test(test_other_addresses_are_told_what_to_write),
        cmocka_unit_test(test_one_node_is_enough),
        cmocka_unit_test(test_nodes_take_turns),
        cmocka_unit_test(test_nodes_that_do_not_answer_are_passed_over),
        DAEMON_TEST(test_a_daemon_at_one_node_is_warned),
        DAEMON_TEST(test_a_new_primary_gets_the_library),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
