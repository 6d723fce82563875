/*
 * A cluster of two nodes, and a slot that is on its way from one to the other: MIGRATING here,
 * IMPORTING there, with no key moved yet, some, or all. Every function that may write is called at
 * both, also by a client that follows ASK. Each call is refused, and neither node has changed.
 *
 *     tests/lua/test_slot [--calls N] [--seed N]
 */
#include "fixture.h"

#include <getopt.h>

#include "base/cleanup.h"
#include "lua/lua_lib.h"

#include "../support/clock.h"
#include "town.h"

#include "rig.h"

#define NODES 2
#define WRITERS_MAX 128

static struct {
    struct test_redis redis[NODES];
    struct client *c[NODES];
    char port[NODES][8], bus[NODES][8], id[NODES][48], slot[8];
    int owner;
    char writers[WRITERS_MAX][40];
    int called[WRITERS_MAX];
    size_t nwriters;
} nodes;

static long calls_wanted = 3000;
static unsigned seed = 1;

/* ---- two nodes */

static const char *ask(int node, const char *line)
{
    const char *said;

    fx.client = nodes.c[node];
    said = command(line);
    fx.client = nodes.c[nodes.owner];
    return said;
}

static void must(int node, const char *line)
{
    const char *said = ask(node, line);

    if (said[0] == '!')
        fail_msg("node %d, %s: %s", node, line, said);
}

static bool are_joined(void *arg)
{
    (void)arg;
    (void)fx_forget(NULL);
    for (int i = 0; i < NODES; i++)
        if (strstr(ask(i, "CLUSTER INFO"), "cluster_state:ok") == NULL ||
            strstr(ask(i, "CLUSTER INFO"), "cluster_known_nodes:2") == NULL)
            return false;
    return true;
}

static void start_node(int i)
{
    static const char *args[NODES][16];
    const char *load[] = {"FUNCTION", "LOAD", lua_lib_text};
    const char *const own[] = {"--enable-debug-command",
                               "yes",
                               "--cluster-enabled",
                               "yes",
                               "--cluster-node-timeout",
                               "600000",
                               "--cluster-allow-replica-migration",
                               "no",
                               "--port",
                               nodes.port[i],
                               "--cluster-port",
                               nodes.bus[i],
                               NULL};
    struct err err = ERR_INIT;
    struct url url;

    (void)snprintf(nodes.port[i], sizeof(nodes.port[i]), "%d", test_free_port());
    (void)snprintf(nodes.bus[i], sizeof(nodes.bus[i]), "%d", test_free_port());
    memcpy(args[i], own, sizeof(own));
    test_redis_start(&nodes.redis[i], args[i]);
    assert_int_equal(url_parse(nodes.redis[i].url, &url, &err), 0);
    nodes.c[i] = client_open(&url, TEST_CALL_MS, &err);
    assert_non_null(nodes.c[i]);
    fx.client = nodes.c[i];
    assert_string_equal(send_args(3, load, NULL), "laterd");
}

static int start_nodes(void **state)
{
    (void)state;
    for (int i = 0; i < NODES; i++)
        start_node(i);
    return 0;
}

/* Their clock stands still once they know each other. */
static int open_nodes(void **state)
{
    still_start(start_nodes, state);
    must(0, "CLUSTER ADDSLOTSRANGE 0 16383");
    must(0, text("CLUSTER MEET 127.0.0.1 %s %s", nodes.port[1], nodes.bus[1]));
    assert_true(test_until(are_joined, NULL, TEST_CALL_MS));
    for (int i = 0; i < NODES; i++)
        (void)snprintf(nodes.id[i], sizeof(nodes.id[i]), "%s", ask(i, "CLUSTER MYID"));
    (void)snprintf(nodes.slot, sizeof(nodes.slot), "%s", ask(0, "CLUSTER KEYSLOT " ROOT));
    return 0;
}

static int close_nodes(void **state)
{
    (void)state;
    for (int i = 0; i < NODES; i++) {
        client_close(nodes.c[i]);
        test_redis_stop(&nodes.redis[i]);
    }
    test_clock_free(still_clock);
    return 0;
}

/* ---- the town, and who may write in it */

static void build_town(void)
{
    fx.client = nodes.c[nodes.owner];
    still_set(START_US);
    rig.big = text("%020000d", 1);
    for (size_t i = 0; i < COUNT(town); i++)
        build_line(town[i]);
    for (size_t i = 0; i < COUNT(rig.kept); i++)
        if (rig.kept[i][0] == '\0')
            (void)strcpy(rig.kept[i], "1");
}

static void read_writers(void)
{
    int n;

    (void)ask(0, "FUNCTION LIST");
    n = len_at(0, 5, -1);
    for (int i = 0; i < n; i++) {
        if (strstr(at(0, 5, i, 5, -1), "no-writes") != NULL)
            continue;
        assert_true(nodes.nwriters < WRITERS_MAX);
        (void)snprintf(nodes.writers[nodes.nwriters++], sizeof(nodes.writers[0]), "%s",
                       at(0, 5, i, 1, -1) + strlen("later_"));
    }
    assert_true(nodes.nwriters > 30);
}

/* -> the place of the function that a line calls; -1: it writes nothing */
static int writer_of(const char *line)
{
    size_t len;
    const char *name = town_function(line, &len);

    for (size_t i = 0; i < nodes.nwriters; i++)
        if (strlen(nodes.writers[i]) == len && strncmp(nodes.writers[i], name, len) == 0)
            return (int)i;
    return -1;
}

/* ---- a slot on its way */

static void hold(void)
{
    int to = 1 - nodes.owner;

    must(to, text("CLUSTER SETSLOT %s IMPORTING %s", nodes.slot, nodes.id[nodes.owner]));
    must(nodes.owner, text("CLUSTER SETSLOT %s MIGRATING %s", nodes.slot, nodes.id[to]));
}

/* Move about so many percent of the keys. */
static void move_keys(int percent)
{
    int n = 0;
    CLEANUP_FREE char **keys = NULL;

    (void)ask(nodes.owner, text("CLUSTER GETKEYSINSLOT %s 100000", nodes.slot));
    n = len_at(-1);
    keys = mem_new((size_t)n * sizeof(*keys) + 1);
    for (int i = 0; i < n; i++)
        keys[i] = mem_strdup(reply_str(node(i, -1)));
    for (int i = 0; i < n; i++) {
        const char *argv[] = {"MIGRATE", "127.0.0.1", nodes.port[1 - nodes.owner],
                              keys[i],   "0",         "60000"};

        if ((int)(rand_r(&seed) % 100) < percent) {
            fx.client = nodes.c[nodes.owner];
            assert_string_equal(send_args(6, argv, NULL), "OK");
        }
        free(keys[i]);
    }
}

/* The slot arrives, with all keys. */
static void arrive(void)
{
    int to = 1 - nodes.owner;

    move_keys(100);
    must(to, text("CLUSTER SETSLOT %s NODE %s", nodes.slot, nodes.id[to]));
    must(nodes.owner, text("CLUSTER SETSLOT %s NODE %s", nodes.slot, nodes.id[to]));
    nodes.owner = to;
    fx.client = nodes.c[to];
}

static void digests(char ret[NODES][48])
{
    for (int i = 0; i < NODES; i++)
        (void)snprintf(ret[i], sizeof(ret[0]), "%s", ask(i, "DEBUG DIGEST"));
}

static bool is_refusal(const char *said)
{
    return strncmp(said, "!MOVED ", 7) == 0 || strncmp(said, "!ASK ", 5) == 0 ||
           strncmp(said, "!TRYAGAIN ", 10) == 0;
}

/* Call the last function of a line at one of the nodes, asking or not. */
static void call_once(const char *line, char before[NODES][48])
{
    const char *last = strrchr(line, ';'), *said;
    int where = (int)(rand_r(&seed) % NODES);
    bool asks = rand_r(&seed) % 2 == 0;
    char after[NODES][48];

    last = last != NULL ? last + 1 : line;
    if (asks)
        must(where, "ASKING");
    fx.client = nodes.c[where];
    said = call(last);
    if (!is_refusal(said))
        fail_msg("later_%.60s, %s%s: %.200s", last, where == nodes.owner ? "owner" : "the other",
                 asks ? ", asking" : "", said);
    digests(after);
    if (strcmp(before[0], after[0]) != 0 || strcmp(before[1], after[1]) != 0)
        fail_msg("later_%.60s was refused, and yet it wrote", last);
    nodes.called[writer_of(line)]++;
}

static void call_at_random(long n)
{
    char before[NODES][48];

    /* What has expired is deleted at some time, or by this. */
    for (int i = 0; i < NODES; i++)
        must(i, "SCAN 0 COUNT 1000000");
    digests(before);
    while (n > 0) {
        const char *line = town_calls[rand_r(&seed) % COUNT(town_calls)].line;

        (void)fx_forget(NULL);
        rig.big = text("%020000d", 1);
        if (writer_of(line) >= 0) {
            call_once(line, before);
            n--;
        }
    }
}

/* Every field and member of the namespace, where it is. The town has foreign keys in other slots.
 */
static void put_namespace(struct buf *out)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    const char *line;
    char *rest, *start;

    rig.all = nodes.c[nodes.owner];
    put_rows(&all);
    start = rest = mem_strdup(buf_str(&all));
    while ((line = strsep(&rest, "\n")) != NULL)
        if (strncmp(line, ROOT, sizeof(ROOT) - 1) == 0)
            buf_printf(out, "%s\n", line);
    free(start);
}

/* What was here is there now, and works. */
static void assert_arrived(struct buf *before)
{
    CLEANUP_BUF struct buf after = BUF_INIT;

    put_namespace(&after);
    assert_true(before->len > 10000);
    assert_string_equal(buf_str(&after), buf_str(before));
    (void)ask(1 - nodes.owner, text("CLUSTER COUNTKEYSINSLOT %s", nodes.slot));
    assert_int_equal(int_at(-1), 0);
    assert_starts(call("add whole x"), "[j");
}

/* ---- tests */

static void test_no_function_writes_while_its_slot_moves(void **state)
{
    static const int moved[] = {0, 30, 100, 70};

    (void)state;
    build_town();
    read_writers();
    for (size_t i = 0; i < COUNT(moved); i++) {
        CLEANUP_BUF struct buf before = BUF_INIT;

        put_namespace(&before);
        hold();
        move_keys(moved[i]);
        call_at_random(calls_wanted / (long)COUNT(moved));
        arrive();
        assert_arrived(&before);
    }
    for (size_t i = 0; i < nodes.nwriters; i++)
        if (nodes.called[i] == 0)
            fail_msg("later_%s was not called", nodes.writers[i]);
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"calls", required_argument, NULL, 'c'}, {"seed", required_argument, NULL, 's'}, {0}};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_function_writes_while_its_slot_moves)};

    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) >= 0;) {
        if (c == 'c')
            calls_wanted = atol(optarg);
        else if (c == 's')
            seed = (unsigned)atol(optarg);
        else
            return 64;
    }
    return cmocka_run_group_tests(tests, open_nodes, close_nodes);
}
