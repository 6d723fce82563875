/*
 * A cluster of two nodes, and a slot that is on its way from one to the other: MIGRATING here,
 * IMPORTING there, with no key moved yet, some, or all, and with the keys that the check of a slot
 * asks for made by hand. Every function is called at both, also by a client that
 * follows ASK. Each call is refused, and neither node has changed. When the slot has arrived, fsck
 * finds nothing new. Then the check is taken out of one function after the other, and is missed.
 *
 *     tests/lua/test_slot [--calls N] [--seed N]
 *
 * LATER_FULL=1: 100,000 calls.
 */
#include "fixture.h"

#include <getopt.h>

#include "base/cleanup.h"
#include "lua/lua_lib.h"

#include "../support/clock.h"
#include "../support/env.h"
#include "town.h"

#include "rig.h"

#define NODES 2
#define FUNCTIONS_MAX 128

static struct {
    struct test_redis redis[NODES];
    struct client *c[NODES];
    char port[NODES][8], bus[NODES][8], id[NODES][48], slot[8];
    int owner;
    char functions[FUNCTIONS_MAX][40];
    int called[FUNCTIONS_MAX];
    size_t nfunctions;
} nodes;

/* The keys that the check of a slot asks for, and that nobody but a person makes. */
enum by_hand { NO_KEY, THE_ROOT, THE_NONE, BOTH };

static const struct shape {
    int moved; /* percent of the keys */
    enum by_hand made;
} shapes[] = {{0, NO_KEY},    {30, NO_KEY},   {100, NO_KEY}, {70, NO_KEY}, {0, THE_ROOT},
              {50, THE_ROOT}, {50, THE_NONE}, {0, BOTH},     {50, BOTH},   {100, BOTH}};

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

/* ---- the town, and what is called there */

/* -> what later fsck says at the owner */
static const char *fsck(const char *option)
{
    CLEANUP_FREE char *program = mem_printf("%s/later", test_build_dir());
    CLEANUP_BUF struct buf out = BUF_INIT, err = BUF_INIT;
    const char *argv[] = {
        program, "--redis", nodes.redis[nodes.owner].url, "--namespace", "t", "fsck", option, NULL};
    int status = proc_run((char *const *)(uintptr_t)argv, NULL, 0, &out, &err);

    if (status != 0 && status != 1)
        fail_msg("fsck ended with %d: %s", status, buf_str(&err));
    return text("%s", buf_str(&out));
}

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
    /* The town is damaged on purpose: fsck puts right what it can, and a bulk stays under way. */
    (void)fsck("--repair");
    build_line("bulk retry web dead rate 1/1h");
}

static void read_functions(void)
{
    int n;

    (void)ask(0, "FUNCTION LIST");
    n = len_at(0, 5, -1);
    for (int i = 0; i < n; i++) {
        /* This one needs no namespace. */
        if (strcmp(at(0, 5, i, 1, -1), "later_version") == 0)
            continue;
        assert_true(nodes.nfunctions < FUNCTIONS_MAX);
        (void)snprintf(nodes.functions[nodes.nfunctions++], sizeof(nodes.functions[0]), "%s",
                       at(0, 5, i, 1, -1) + strlen("later_"));
    }
    assert_true(nodes.nfunctions > 60);
}

/* -> the place of the function that a line calls; -1: it is none of them */
static int function_of(const char *line)
{
    size_t len;
    const char *name = town_function(line, &len);

    for (size_t i = 0; i < nodes.nfunctions; i++)
        if (strlen(nodes.functions[i]) == len && strncmp(nodes.functions[i], name, len) == 0)
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

/* Where both keys are in the way a function says so, and nothing else on the node that has them. */
static bool is_refusal(const char *said, int where, const struct shape *shape)
{
    static const char in_the_way[] = "!ELATER_TYPE " ROOT " and " ROOT ":none ";
    int all = where == nodes.owner ? 0 : 100; /* so many have moved when all are here */
    bool has_both = shape->made == BOTH && shape->moved == all;

    return strncmp(said, "!MOVED ", 7) == 0 || strncmp(said, "!ASK ", 5) == 0 ||
           (!has_both && strncmp(said, "!TRYAGAIN ", 10) == 0) ||
           (shape->made == BOTH && strncmp(said, in_the_way, strlen(in_the_way)) == 0);
}

/* -> a command that a node has run since CONFIG RESETSTAT, beside those of a call that is refused;
 * NULL: none */
static const char *ran_beside(int where)
{
    static const char *const known[] = {
        "asking:", "config|resetstat:", "exists:", "fcall:", "info:", "time:"};
    const char *at = ask(where, "INFO commandstats");

    while ((at = strstr(at, "cmdstat_")) != NULL) {
        bool is_known = false;

        at += strlen("cmdstat_");
        for (size_t i = 0; i < COUNT(known); i++)
            is_known |= strncmp(at, known[i], strlen(known[i])) == 0;
        if (!is_known)
            return text("%.*s", (int)strcspn(at, ":"), at);
    }
    return NULL;
}

/* Call the last function of a line at one of the nodes, asking or not. -> what is wrong with that;
 * NULL: it was refused before it did anything, and nothing has changed */
static const char *call_once(const char *line, int where, bool asks, const struct shape *shape,
                             char before[NODES][48])
{
    const char *last = strrchr(line, ';'), *said, *ran;
    char after[NODES][48];

    last = last != NULL ? last + 1 : line;
    must(where, "CONFIG RESETSTAT");
    if (asks)
        must(where, "ASKING");
    fx.client = nodes.c[where];
    said = call(last);
    ran = ran_beside(where);
    digests(after);
    if (!is_refusal(said, where, shape))
        return text("later_%.60s, %s%s: %.200s", last, where == nodes.owner ? "owner" : "the other",
                    asks ? ", asking" : "", said);
    if (strcmp(before[0], after[0]) != 0 || strcmp(before[1], after[1]) != 0)
        return text("later_%.60s was refused, and yet it wrote", last);
    if (ran != NULL)
        return text("later_%.60s was refused, but not before it ran %s", last, ran);
    return NULL;
}

/* What has expired is deleted at some time, or by this. */
static void come_to_rest(char ret[NODES][48])
{
    for (int i = 0; i < NODES; i++)
        must(i, "SCAN 0 COUNT 1000000");
    digests(ret);
}

static void call_at_random(long n, const struct shape *shape)
{
    char before[NODES][48];

    come_to_rest(before);
    while (n > 0) {
        const char *line = town_calls[rand_r(&seed) % COUNT(town_calls)].line, *wrong;
        int function = function_of(line);

        (void)fx_forget(NULL);
        rig.big = text("%020000d", 1);
        if (function < 0)
            continue;
        wrong =
            call_once(line, (int)(rand_r(&seed) % NODES), rand_r(&seed) % 2 == 0, shape, before);
        if (wrong != NULL)
            fail_msg("%s", wrong);
        nodes.called[function]++;
        n--;
    }
}

/* Make the keys of a shape, or delete them. */
static void by_hand(enum by_hand made, const char *command)
{
    const char *value = strcmp(command, "SET") == 0 ? " x" : "";

    if (made == THE_ROOT || made == BOTH)
        must(nodes.owner, text("%s " ROOT "%s", command, value));
    if (made == THE_NONE || made == BOTH)
        must(nodes.owner, text("%s " ROOT ":none%s", command, value));
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
static void assert_arrived(struct buf *before, const char *findings, enum by_hand made)
{
    CLEANUP_BUF struct buf after = BUF_INIT;

    put_namespace(&after);
    assert_true(before->len > 10000);
    assert_string_equal(buf_str(&after), buf_str(before));
    (void)ask(1 - nodes.owner, text("CLUSTER COUNTKEYSINSLOT %s", nodes.slot));
    assert_int_equal(int_at(-1), 0);
    by_hand(made, "DEL");
    assert_string_equal(fsck(NULL), findings);
    fx.client = nodes.c[nodes.owner];
    assert_starts(call("add whole x"), "[j");
}

/* ---- tests */

static void test_no_function_writes_while_its_slot_moves(void **state)
{
    (void)state;
    build_town();
    read_functions();
    for (size_t i = 0; i < COUNT(shapes); i++) {
        CLEANUP_BUF struct buf before = BUF_INIT;
        CLEANUP_FREE char *findings = mem_strdup(fsck(NULL));

        by_hand(shapes[i].made, "SET");
        put_namespace(&before);
        hold();
        move_keys(shapes[i].moved);
        call_at_random(calls_wanted / (long)COUNT(shapes), &shapes[i]);
        arrive();
        assert_arrived(&before, findings, shapes[i].made);
    }
    for (size_t i = 0; i < nodes.nfunctions; i++)
        if (nodes.called[i] == 0)
            fail_msg("later_%s was not called", nodes.functions[i]);
}

/* Load the library, but one function does not ask whether its slot moves. */
static void load_without_check(const char *function)
{
    static const char check[] = "    if slot.need_whole(R) == 'plain server' then\n";
    const char *at = strstr(lua_lib_text, check);
    const char *load[] = {"FUNCTION", "LOAD", "REPLACE", NULL};

    assert_non_null(at);
    load[3] = text("%.*s    if name == 'later_%s' or slot.need_whole(R) == 'plain server' then\n%s",
                   (int)(at - lua_lib_text), lua_lib_text, function, at + strlen(check));
    for (int i = 0; i < NODES; i++) {
        fx.client = nodes.c[i];
        assert_string_equal(send_args(4, load, NULL), "laterd");
    }
}

static bool is_missed(size_t function, const struct shape *shape)
{
    char before[NODES][48];

    come_to_rest(before);
    for (size_t i = 0; i < COUNT(town_calls); i++) {
        const char *line = town_calls[i].line;

        if (function_of(line) == (int)function &&
            call_once(line, 1 - nodes.owner, true, shape, before) != NULL)
            return true;
    }
    return false;
}

/* This proof would name each function that is without the check. What they write stays. */
static void test_a_function_without_the_check_is_found(void **state)
{
    static const struct shape shape = {100, BOTH};
    int unfound = 0;

    (void)state;
    by_hand(shape.made, "SET");
    hold();
    move_keys(shape.moved);
    for (size_t i = 0; i < nodes.nfunctions; i++) {
        (void)fx_forget(NULL);
        rig.big = text("%020000d", 1);
        load_without_check(nodes.functions[i]);
        if (!is_missed(i, &shape)) {
            print_message("later_%s is refused without the check\n", nodes.functions[i]);
            unfound++;
        }
    }
    assert_int_equal(unfound, 0);
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"calls", required_argument, NULL, 'c'}, {"seed", required_argument, NULL, 's'}, {0}};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_function_writes_while_its_slot_moves),
        cmocka_unit_test(test_a_function_without_the_check_is_found)};

    if (test_is_long())
        calls_wanted = 100000;

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
