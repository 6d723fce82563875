/*
 * Daemons and handlers that are killed at any moment on a Redis Cluster: three namespaces, each on
 * another primary, with two daemons each. Jobs without a gate, under a lock, and under a semaphore
 * of two.
 *
 *     LATER_KILLS=500 LATER_SEED=7 tests/integration/test_cluster_kills
 */
#include "cluster_fixture.h"

#include <signal.h>

#define KILLS 14
#define EACH 2 /* daemons of a namespace */

static struct namespace
{
    char name[16];
    struct test_laterd d[EACH];
    struct proc producer;
}
namespaces[CLUSTER_PRIMARIES];

static const char *const queues[] = {"free", "held", "few"};

/* A handler under a gate holds a lock of the kernel, which is free when it has ended, however that
 * was. One that finds it taken runs beside another. Each job whose number ends with 7 kills its
 * first handler. No child keeps the lock. */
static void make_handlers(void)
{
    static const char body[] =
        "read ns n\n"
        "case $LATER_ATTEMPT.$n in 1.*7) me=$$; (sleep 0.03; kill -9 $me) >/dev/null 2>&1 & esac\n"
        "exec 8>>%s/$ns.%s.1 9>>%s/$ns.%s.2\n"
        "echo begin $ns %s $n >>%s/ran\n"
        "%s || echo $ns %s $n >>%s/overlap\n"
        "sleep 0.06 8>&- 9>&-\n"
        "echo end $ns %s $n >>%s/ran\n";
    static const char *const takes[] = {"true", "flock -n 9", "flock -n 8 || flock -n 9"};

    for (size_t i = 0; i < 3; i++)
        test_handler(dir, queues[i], body, dir, queues[i], dir, queues[i], queues[i], dir, takes[i],
                     queues[i], dir, queues[i], dir);
}

static void start_daemon(struct namespace *ns, int which)
{
    CLEANUP_FREE char *name = mem_printf("%s-%d", ns->name, which);
    CLEANUP_FREE char *yaml = mem_printf(
        "namespace: %s\nredis_timeout: 2s\nconcurrency: 8\n"
        "defaults: { attempts: 1000, crashes: 1000, backoff: { first: 0s, jitter: 0%% } }\n"
        "limits: { two: { semaphore: 2, on_lost: kill } }\n",
        ns->name);

    test_laterd_conf(&ns->d[which], dir, name, c.by, yaml);
    test_laterd_start(&ns->d[which]);
}

/* One job for each queue in turn, until $DIR/enough is there. What later says is added stands in
 * $DIR/added. */
static void start_producer(struct namespace *ns)
{
    CLEANUP_FREE char *line = mem_printf(
        "L=\"$LATER --redis $BY --namespace %s add\"; exec >/dev/null 2>>$DIR/refused; n=0\n"
        "add() { q=$1; shift; $L $q \"$@\" \"%s $n\" && echo %s $q $n >>$DIR/added; }\n"
        "while [ ! -e $DIR/enough ]; do n=$((n+1)); "
        "add free; add held --lock one; add few --sem two; sleep 0.05; done; true",
        ns->name, ns->name, ns->name);
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", line, NULL};

    proc_start(&ns->producer, argv, NULL, NULL);
}

static void kill_one(struct namespace *ns, int which)
{
    test_laterd_kill(&ns->d[which], SIGKILL);
    assert_int_equal(test_laterd_wait(&ns->d[which], LONG_MS), 128 + SIGKILL);
}

/* Every third time both die, and nobody is left who could take the jobs over. */
static void kill_some(long i)
{
    struct namespace *ns = &namespaces[random() % CLUSTER_PRIMARIES];
    int which = (int)(random() % EACH);
    bool are_both = i % 3 == 2;

    test_pause(50 + random() % 300);
    kill_one(ns, which);
    if (are_both)
        kill_one(ns, 1 - which);
    test_pause(random() % 300);
    start_daemon(ns, which);
    if (are_both)
        start_daemon(ns, 1 - which);
}

static int lines(const char *name, const char *text)
{
    CLEANUP_FREE char *path = mem_printf("%s/%s", dir, name);

    return test_lines(path, text);
}

/* Its end is counted once for each job of the queue, and nothing of it is left. */
static bool is_settled(const struct namespace *ns, const char *queue)
{
    CLEANUP_FREE char *jobs = mem_printf("%s %s ", ns->name, queue);
    CLEANUP_FREE char *line = mem_printf(
        "s=$($LATER --redis $BY --namespace %s stats %s --json) || exit 1; "
        "for says in '\"waiting\":0' '\"running\":0' '\"parked\":0' '\"dead\":0' '\"done\":%d' "
        "'\"died\":0' '\"cancelled\":0'; do case $s in *$says[,}]*) ;; *) exit 1; esac; done",
        ns->name, queue, lines("added", jobs));

    return test_sh(line) == 0;
}

static bool are_settled(void *arg)
{
    const struct namespace *ns = arg;

    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++)
        if (!is_settled(ns, queues[i]))
            return false;
    return true;
}

static void end_producers(void)
{
    assert_int_equal(test_sh("touch $DIR/enough"), 0);
    for (int i = 0; i < CLUSTER_PRIMARIES; i++) {
        assert_int_equal(proc_wait(&namespaces[i].producer, LONG_MS), 0);
        proc_done(&namespaces[i].producer);
    }
    assert_int_equal(lines("refused", NULL), 0);
}

static void nothing_is_amiss(struct namespace *ns)
{
    if (!test_until(are_settled, ns, LONG_MS))
        must(ns->name, "$L stats; $L ls; $L gates; false", "");
    must(ns->name, "$L fsck", "clean");
    must(ns->name, "! $L gates 2>/dev/null | grep -E '^(lock|sem)'", "");
}

static void test_killed_daemons_lose_nothing_and_no_lock(void **state)
{
    long kills = from_env("LATER_KILLS", KILLS), seed = from_env("LATER_SEED", getpid());

    (void)state;
    srandom((unsigned)seed);
    for (long i = 0; i < kills; i++)
        kill_some(i);
    end_producers();
    for (int i = 0; i < CLUSTER_PRIMARIES; i++)
        nothing_is_amiss(&namespaces[i]);
    print_message("%ld kills (seed %ld): %d jobs, %d begun, %d ended\n", kills, seed,
                  lines("added", NULL), lines("ran", "begin"), lines("ran", "end"));
    test_says("cat $DIR/overlap; [ ! -s $DIR/overlap ]", 0, "");
    /* Each ran to its end, and nothing ran that was not added. */
    assert_int_equal(test_sh("cd $DIR && sort -u added >a && sed -n 's/^end //p' ran | sort -u | "
                             "cmp - a && sed 's/^[a-z]* //' ran | sort -u | cmp - a"),
                     0);
    assert_int_equal(test_sh("cd $DIR && [ $(wc -l <added) = $(wc -l <a) ]"), 0);
    /* The kills met running handlers. */
    assert_true(lines("ran", "begin") > lines("ran", "end"));
    assert_true(lines("added", NULL) > 9);
}

static int open_kills(void **state)
{
    int failed = open_cluster(state);

    make_handlers();
    assert_int_equal(test_sh("cd $DIR && touch ran added refused overlap"), 0);
    for (int i = 0; i < CLUSTER_PRIMARIES; i++) {
        name_at(i, namespaces[i].name);
        for (int k = 0; k < EACH; k++)
            start_daemon(&namespaces[i], k);
        assert_int_equal(cluster_owner(&c, 0, namespaces[i].name), i);
        start_producer(&namespaces[i]);
    }
    return failed;
}

static int close_kills(void **state)
{
    int status = 0;

    for (int i = 0; i < CLUSTER_PRIMARIES; i++) {
        proc_done(&namespaces[i].producer);
        for (int k = 0; k < EACH; k++)
            status += test_laterd_stop(&namespaces[i].d[k]);
    }
    return status + close_cluster(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_daemons_lose_nothing_and_no_lock),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, open_kills, close_kills);
}
