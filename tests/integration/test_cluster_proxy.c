/*
 * laterd and later at a service that shows a cluster as one endpoint, like ElastiCache Serverless
 * (tests/support/endpoint.c): it refuses what such a service refuses, and hides who owns a slot.
 *
 *     LATER_JOBS=5000 LATER_ONLY='*slot*' tests/integration/test_cluster_proxy
 */
#include "cluster_fixture.h"

#include <signal.h>

#include "redis/client.h"

#define JOBS 200

/* Of the service: generous or strict. */
struct service {
    const char *mode;
    char log[96], url[64];
    int port;
    struct proc proc;
};

static struct service service;

static int open_service(void **state)
{
    CLEANUP_FREE char *program = mem_printf("%s/tests/support/endpoint", test_build_dir());
    static int opened;
    char port[8];
    char *argv[] = {
        program,         port, (char *)(uintptr_t)*state, c.nodes[0].port, c.nodes[1].port,
        c.nodes[2].port, NULL};

    service.mode = *state;
    service.port = test_free_port();
    (void)snprintf(port, sizeof(port), "%d", service.port);
    (void)snprintf(service.url, sizeof(service.url), "cluster://127.0.0.1:%d", service.port);
    (void)snprintf(service.log, sizeof(service.log), "%s/service%d", dir, opened++);
    proc_start(&service.proc, argv, NULL, service.log);
    assert_true(test_until_lines(service.log, "listening", 1, LONG_MS));
    assert_int_equal(setenv("BY", service.url, 1), 0);
    return test_sh("cd $DIR && rm -f ran && touch ran");
}

static int close_service(void **state)
{
    int failed = stop_daemons(state);

    proc_done(&service.proc);
    return failed;
}

static int refused(const char *what)
{
    CLEANUP_FREE char *line = mem_printf("refused %s", what);

    return test_lines(service.log, line);
}

/* ---- the service itself */

/* The words are parted by a space. The answer, or the error, begins with this. */
static void it_answers(const char *line, const char *begin)
{
    CLEANUP_FREE char *words = mem_strdup(line),
                      *at = mem_printf("redis://127.0.0.1:%d", service.port);
    const char *argv[8];
    struct err err = ERR_INIT;
    char *save = NULL;
    struct client *client;
    struct reply *r;
    struct url url;
    int n = 0;

    for (char *w = strtok_r(words, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
        argv[n++] = w;
    assert_int_equal(url_parse(at, &url, &err), 0);
    client = client_connect(&url, LONG_MS, &err);
    assert_non_null(client);
    r = client_call(client, n, argv, NULL, &err);
    if (strncmp(r != NULL ? reply_str(r) : err.text, begin, strlen(begin)) != 0)
        fail_msg("%s: %s", line, r != NULL ? reply_str(r) : err.text);
    reply_free(r);
    client_close(client);
}

static void test_the_service_hides_its_nodes(void **state)
{
    (void)state;
    for (int i = 0; i < CLUSTER_PRIMARIES; i++) {
        CLEANUP_FREE char *set = NULL, *get = NULL;
        char ns[16];

        name_at(i, ns);
        set = mem_printf("SET probe:{%s} at%d", ns, i);
        get = mem_printf("GET probe:{%s}", ns);
        it_answers(set, "OK");
        (void)cluster_move(&c, ns, next_primary(i), 0);
        it_answers(get, "at");
        assert_int_equal(cluster_keys(&c, next_primary(i), ns), 1);
        (void)cluster_move(&c, ns, i, 0);
    }
    it_answers("FCALL_RO later_version 0", "ERR Lua scripts without any input keys");
    it_answers("MULTI", "ERR unknown command 'MULTI'");
    it_answers("CONFIG GET save", "ERR unknown command 'CONFIG'");
    it_answers("SELECT 1", "ERR DB index");
    it_answers("SELECT 0", "OK");
    it_answers("INFO server",
               strcmp(service.mode, "strict") == 0 ? "ERR unknown command 'INFO'" : "# Server");
    assert_int_equal(refused(""), strcmp(service.mode, "strict") == 0 ? 5 : 4);
}

/* ---- what laterd and later do there */

static void more_verbs_work(const char *ns)
{
    must(ns, "$L health --server", "FUNCTION LOAD");
    must(ns, "$L limits set two semaphore 2 && $L sem two -- echo inside", "inside");
    must(ns, "$L once nightly$$ --per 1h -- echo once", "once");
    must(ns, "$L seen names key$$", "");
    must(ns, "seq 300 | $L batch run many$$ work --from - && $L batch wait many$$ --timeout 2m",
         "");
    must(ns, "$L gates", "");
    must(ns, "$L purge later2 --state due --yes", "");
    must(ns, "$L setup", "was there already");
    must(ns, "$L fsck", "clean");
    must(ns, "$L cli dbsize", "");
}

/* A wake goes through a node that does not own the slot, and so do the events of tail. */
static void tail_hears(const char *ns)
{
    CLEANUP_FREE char *path = mem_printf("%s/said", dir);
    CLEANUP_FREE char *line = mem_printf("$LATER --redis $BY --namespace %s tail", ns);
    struct proc tail;

    assert_int_equal(test_sh("rm -f $DIR/said"), 0);
    test_sh_start(&tail, line);
    for (int tries = 0; tries < 600; tries++) {
        must(ns, "$L add probe --in 10h x", "");
        if (test_until_lines(path, "probe", 1, 200))
            break;
    }
    assert_true(test_lines(path, "probe") > 0);
    proc_signal(&tail, SIGINT);
    assert_int_equal(proc_wait(&tail, LONG_MS), 130);
    proc_done(&tail);
}

static void three_namespaces_work(void)
{
    for (int i = 0; i < CLUSTER_PRIMARIES; i++) {
        char ns[16];

        name_at(i, ns);
        start_at(i, ns, service.url);
        assert_int_equal(cluster_owner(&c, 0, ns), i);
        verbs_work(ns);
        more_verbs_work(ns);
        tail_hears(ns);
        /* They went where the slot is, and nowhere else. */
        for (int k = 0; k < CLUSTER_PRIMARIES; k++)
            assert_int_equal(cluster_keys(&c, k, ns) > 0, k == i);
        assert_int_equal(test_lines(d[i].log, "event=link state=down"), 0);
        assert_int_equal(test_lines(d[i].log, "check=cluster"), 0);
    }
}

/* Only later health --server asks CONFIG, to tell of it. */
static void test_three_namespaces_work(void **state)
{
    (void)state;
    three_namespaces_work();
    assert_int_equal(refused("CONFIG"), CLUSTER_PRIMARIES);
    assert_int_equal(refused(""), CLUSTER_PRIMARIES);
}

static void test_they_work_without_info(void **state)
{
    (void)state;
    three_namespaces_work();
    must("n0", "$L health --server", "INFO");
    must("n0", "$L add later --in 1h --replicas 1 x; [ $? = 75 ]", "nobody confirms it");
    assert_int_equal(refused("WAIT"), 1);
    assert_true(refused("INFO") > 0);
    assert_true(refused("CLIENT SETNAME") > 0);
    assert_true(refused("PSUBSCRIBE") > 0);
    assert_int_equal(refused(""), refused("CONFIG") + refused("INFO") + refused("CLIENT SETNAME") +
                                      refused("PSUBSCRIBE") + refused("WAIT"));
}

/* ---- a slot that moves behind it */

static bool have_all_run(void *jobs)
{
    CLEANUP_FREE char *path = mem_printf("%s/ran", dir);

    return test_lines(path, NULL) >= *(long *)jobs;
}

static void test_a_slot_moves_and_each_job_runs_once(void **state)
{
    long jobs = from_env("LATER_JOBS", JOBS);
    CLEANUP_FREE char *ran = mem_printf("%s/ran", dir);
    CLEANUP_FREE char *add = mem_printf(
        "sh -c 'for i in $(seq %ld); do $LATER --redis $BY add work $i || exit 1; done'", jobs);
    struct proc producer;
    int moves = 0;

    (void)state;
    start_at(0, "default", service.url);
    test_sh_start(&producer, add);
    while (proc_wait(&producer, 100) < 0) {
        (void)cluster_move(&c, "default", next_primary(cluster_owner(&c, 0, "default")),
                           moves % 3 == 0 ? 1000 : 0);
        moves++;
    }
    assert_int_equal(producer.status, 0);
    proc_done(&producer);
    assert_true(test_until(have_all_run, &jobs, LONG_MS));
    must("default", "$L stats work --json | grep -o '\"running\":0'", "running");
    assert_int_equal(test_lines(ran, NULL), jobs);
    test_says("sort $DIR/ran | uniq -d | wc -l", 0, "0\n");
    assert_true(moves > 1);
    must("default", "$L fsck", "clean");
    print_message("%ld jobs ran once each, %d moves, %d times the daemon was told that it moves\n",
                  jobs, moves, test_lines(d[0].log, "event=slot-moves"));
}

int main(void)
{
#define SERVICE_TEST(f, mode)                                                                      \
    cmocka_unit_test_prestate_setup_teardown(f, open_service, close_service,                       \
                                             (void *)(uintptr_t)(mode))
    const struct CMUnitTest tests[] = {
        SERVICE_TEST(test_the_service_hides_its_nodes, "generous"),
        SERVICE_TEST(test_the_service_hides_its_nodes, "strict"),
        SERVICE_TEST(test_three_namespaces_work, "generous"),
        SERVICE_TEST(test_they_work_without_info, "strict"),
        SERVICE_TEST(test_a_slot_moves_and_each_job_runs_once, "generous"),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
