/*
 * Redis by Sentinel, with real servers: one master, two replicas, three sentinels. Failovers of
 * each kind lose nothing that WAIT had confirmed, let nothing overlap under a lock, and leave
 * handlers alone; sentinels that are dead, locked or wrong have a sentence each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "fixture.h"

#define NODES 3
#define LONG_MS 60000

static struct {
    struct test_redis redis;
    char port[8], master[8];
    const char *args[16];
} nodes[NODES];
static struct {
    struct proc proc;
    int port;
    char conf[96];
} sentinels[NODES + 1]; /* the last one has a password, and is started by its test */
static int nobody;      /* a port that nobody listens on */
static char by[128];    /* the address by all sentinels */

static void start_node(int i)
{
    const char *args[] = {"--port",
                          nodes[i].port,
                          "--bind",
                          "127.0.0.1",
                          "--repl-diskless-sync-delay",
                          "0",
                          "--repl-timeout",
                          "5",
                          i > 0 ? "--replicaof" : NULL,
                          "127.0.0.1",
                          nodes[0].port,
                          NULL};

    (void)snprintf(nodes[i].port, sizeof(nodes[i].port), "%d", test_free_port());
    memcpy(nodes[i].args, args, sizeof(args));
    test_redis_start(&nodes[i].redis, nodes[i].args);
}

/* Of the nodes that answer, the one that the sentinels name. */
static int find_master(void)
{
    struct buf port = BUF_INIT;
    CLEANUP_FREE char *line = mem_printf(
        "redis-cli -p %d sentinel get-master-addr-by-name m | tail -n 1", sentinels[1].port);
    int found = -1;

    (void)test_sh_out(line, &port);
    for (int i = 0; i < NODES; i++)
        if (strncmp(buf_str(&port), nodes[i].port, strlen(nodes[i].port)) == 0)
            found = i;
    buf_done(&port);
    assert_true(found >= 0);
    return found;
}

static void start_sentinel(int i, const char *more)
{
    CLEANUP_FREE char *log = mem_printf("%s/sentinel%d.log", dir, i);
    char *argv[] = {(char *)"redis-server", sentinels[i].conf, (char *)"--sentinel", NULL};
    FILE *f;

    sentinels[i].port = test_free_port();
    (void)snprintf(sentinels[i].conf, sizeof(sentinels[i].conf), "%s/sentinel%d.conf", dir, i);
    f = fopen(sentinels[i].conf, "w");
    assert_non_null(f);
    (void)fprintf(f,
                  "port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor m 127.0.0.1 %s 2\n"
                  "sentinel down-after-milliseconds m 700\nsentinel failover-timeout m 3000\n"
                  "sentinel parallel-syncs m 2\n%s\n",
                  sentinels[i].port, dir, nodes[i < NODES ? 0 : find_master()].port, more);
    assert_int_equal(fclose(f), 0);
    proc_start(&sentinels[i].proc, argv, NULL, log);
}

/* Each sentinel knows the two others and both replicas. */
static bool knows_all(int i)
{
    CLEANUP_FREE char *line =
        mem_printf("redis-cli -p %d sentinel master m | paste - - | grep -qx 'num-slaves.2' && "
                   "redis-cli -p %d "
                   "sentinel master m | paste - - | grep -qx 'num-other-sentinels.2'",
                   sentinels[i].port, sentinels[i].port);

    return test_sh(line) == 0;
}

static bool all_know_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < NODES; i++)
        if (!knows_all(i))
            return false;
    return true;
}

static int open_all(void **state)
{
    CLEANUP_FREE char *later = NULL;

    (void)state;
    test_folder_make(dir);
    (void)snprintf(out, sizeof(out), "%s/out", dir);
    later = mem_printf("%s/later", test_build_dir());
    assert_int_equal(setenv("DIR", dir, 1), 0);
    assert_int_equal(setenv("LATER", later, 1), 0);
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    for (int i = 0; i < NODES; i++)
        start_node(i);
    for (int i = 0; i < NODES; i++)
        start_sentinel(i, "");
    nobody = test_free_port();
    (void)snprintf(by, sizeof(by), "sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/m",
                   sentinels[0].port, sentinels[1].port, sentinels[2].port);
    assert_true(test_until(all_know_all, NULL, LONG_MS));
    return 0;
}

static int close_all(void **state)
{
    int status = test_laterd_stop(&a) + test_laterd_stop(&b);

    (void)state;
    for (int i = 0; i <= NODES; i++)
        proc_done(&sentinels[i].proc);
    for (int i = 0; i < NODES; i++)
        test_redis_stop(&nodes[i].redis);
    test_folder_remove(dir);
    return status;
}

/* ---- what is told */

/* `later stats` by this address, with this in its configuration, says this. */
static void says(const char *yaml, const char *address, int status, const char *text)
{
    CLEANUP_FREE char *line = mem_printf("printf 'redis: %%s\\nredis_timeout: 300ms\\n%s' '%s' "
                                         ">$DIR/c.yaml; $LATER --config $DIR/c.yaml stats",
                                         yaml, address);

    test_says(line, status, text);
}

static void by_one(int port, const char *master, int status, const char *text)
{
    CLEANUP_FREE char *url =
        mem_printf("sentinel://127.0.0.1:%d,127.0.0.1:%d/%s", nobody, port, master);

    says("", url, status, text);
}

static void sentinel_cli(int i, const char *command)
{
    CLEANUP_FREE char *line = mem_printf("redis-cli -p %d %s", sentinels[i].port, command);

    assert_int_equal(test_sh(line), 0);
}

/* sentinel 0 is told what is wrong under this name */
static void lie(const char *name, int port)
{
    CLEANUP_FREE char *command = mem_printf("sentinel monitor %s 127.0.0.1 %d 1", name, port);

    sentinel_cli(0, command);
}

static void test_each_fault_has_its_sentence(void **state)
{
    CLEANUP_FREE char *none = mem_printf("sentinel://127.0.0.1:%d,localhost:%d/m", nobody, nobody);
    CLEANUP_FREE char *map =
        mem_printf("announce: {\"127.0.0.1:%s\": \"127.0.0.1:%d\"}\\n", nodes[0].port, nobody);
    CLEANUP_FREE char *unknown = mem_printf("sentinel://127.0.0.1:%d,127.0.0.1:%d/other",
                                            sentinels[0].port, sentinels[1].port);

    (void)state;
    says("", by, 0, "");
    by_one(sentinels[0].port, "m", 0, "");
    says("", none, 69, "no sentinel answers for 'm': 127.0.0.1:");
    says("", unknown, 78, "no sentinel knows a master 'other'");
    by_one(sentinels[0].port, "other", 69, "and not all answer");
    by_one(atoi(nodes[0].port), "m", 78, "it is no sentinel");
    lie("replica", atoi(nodes[1].port));
    lie("itself", sentinels[0].port);
    lie("another", sentinels[1].port);
    lie("nothing", nobody);
    by_one(sentinels[0].port, "replica", 69, "but it is a replica of 127.0.0.1");
    by_one(sentinels[0].port, "itself", 69, "but it is a sentinel itself");
    by_one(sentinels[0].port, "another", 69, "but it is a sentinel itself");
    by_one(sentinels[0].port, "nothing", 69, "Connection refused");
    says(map, by, 69, "Connection refused");
    says("announce: {\"x\": \"127.0.0.1:1\"}\\n", by, 78, "announce");
}

static bool asks_for_a_password(void *arg)
{
    CLEANUP_FREE char *line =
        mem_printf("redis-cli -p %d ping | grep -q NOAUTH", sentinels[NODES].port);

    (void)arg;
    return test_sh(line) == 0;
}

static void test_a_sentinel_with_a_password(void **state)
{
    CLEANUP_FREE char *url = NULL;
    CLEANUP_FREE char *right = mem_printf("sentinel_password_file: %s/right\\n", dir);
    CLEANUP_FREE char *wrong = mem_printf("sentinel_password_file: %s/wrong\\n", dir);

    (void)state;
    start_sentinel(NODES, "requirepass right");
    url = mem_printf("sentinel://127.0.0.1:%d/m", sentinels[NODES].port);
    assert_true(test_until(asks_for_a_password, NULL, LONG_MS));
    assert_int_equal(test_sh("umask 077 && echo right >$DIR/right && echo wrong >$DIR/wrong"), 0);
    says("", url, 77, "NOAUTH");
    says(wrong, url, 77, "WRONGPASS");
    says(right, url, 0, "");
    says("", by, 0, ""); /* the others have none */
}

/* redis-cli does not ask sentinels: it gets the server that they name. */
static void test_cli_gets_the_master(void **state)
{
    CLEANUP_FREE char *line = mem_printf("$LATER --redis %s cli role", by);

    (void)state;
    test_says(line, 0, "master");
}

static void test_replicas_confirm(void **state)
{
    CLEANUP_FREE char *enough =
        mem_printf("$LATER --redis %s add q --replicas 2 --confirm 5s x", by);
    CLEANUP_FREE char *few =
        mem_printf("$LATER --redis %s add q --replicas 3 --confirm 50ms x", by);
    CLEANUP_FREE char *alone = mem_printf("$LATER --redis %s add q --confirm 50ms x", by);

    (void)state;
    test_says(enough, 0, "");
    test_says(few, 75, "was added, but 2 of 3 replicas confirmed it within 50 ms");
    test_says(alone, 64, "go with --replicas");
}

/* ---- failovers */

static bool has_moved(void *arg)
{
    return find_master() != *(int *)arg;
}

/* Asked anew each time: the master may move once more. */
static bool has_replicas(void *arg)
{
    CLEANUP_FREE char *line = mem_printf(
        "redis-cli -p %s info replication | grep -q connected_slaves:2", nodes[find_master()].port);

    (void)arg;
    return test_sh(line) == 0;
}

enum way { BY_KILL, BY_STOP, BY_PLAN, WAYS };

static void fail_over(enum way way)
{
    int old = find_master();

    if (way == BY_KILL)
        test_redis_kill(&nodes[old].redis, SIGKILL);
    else if (way == BY_STOP)
        test_redis_kill(&nodes[old].redis, SIGSTOP);
    else
        sentinel_cli(1, "sentinel failover m");
    assert_true(test_until(has_moved, &old, LONG_MS));
    if (way == BY_KILL)
        test_redis_restart(&nodes[old].redis);
    else if (way == BY_STOP)
        test_redis_kill(&nodes[old].redis, SIGCONT);
    assert_true(test_until(has_replicas, NULL, LONG_MS));
}

/* Both replicas: one alone may be the one that is not promoted. Adds jobs as quickly as
 * confirmations come; the payloads of those that were confirmed go to $DIR/confirmed. */
#define PRODUCER                                                                                   \
    "sh -c 'i=0; while [ ! -e $DIR/enough ]; do i=$((i+1)); $LATER --redis %s add work "           \
    "--replicas 2 "                                                                                \
    "--confirm 1s p$i >/dev/null 2>>$DIR/adds && echo p$i >>$DIR/confirmed; done'"

static void report(const char *line)
{
    struct buf said = BUF_INIT;

    (void)test_sh_out(line, &said);
    print_message("%s", buf_str(&said));
    buf_done(&said);
}

/* The long form: 200 jobs a second more. */
#define FILLER                                                                                     \
    "sh -c 'while [ ! -e $DIR/enough ]; do seq 200 | $LATER --redis %s add fill --from - "         \
    ">/dev/null 2>>$DIR/fills; sleep 1; done'"

static bool all_have_run(void *arg)
{
    (void)arg;
    return test_sh("sort -u $DIR/confirmed >$DIR/c; grep -o 'p[0-9]*$' $DIR/out | sort -u >$DIR/r; "
                   "test -z \"$(comm -23 $DIR/c $DIR/r)\"") == 0;
}

static void test_failovers_by_sentinel(void **state)
{
    CLEANUP_FREE char *add_long = mem_printf("$LATER --redis %s add long --replicas 2 x", by);
    CLEANUP_FREE char *producer = mem_printf(PRODUCER, by);
    int64_t rounds = test_is_long() ? 20 : WAYS;
    CLEANUP_FREE char *filler = mem_printf(FILLER, by);
    struct proc adding, filling;

    (void)state;
    test_handler(dir, "work",
                 "mkdir %s/held || echo overlap >>%s\necho \"ran $(cat)\" >>%s\nrmdir %s/held", dir,
                 out, out, dir);
    test_handler(dir, "long",
                 "echo \"long $$\" >>%s\nwhile [ ! -e %s/enough ]; do sleep 0.1; done\n"
                 "echo \"longend $$\" >>%s",
                 out, dir, out);
    test_laterd_conf(&a, dir, "a", by,
                     "redis_timeout: 1s\nconcurrency: 8\nqueues: {work: {lock: one}, long: "
                     "{timeout: 1h}}\n");
    test_laterd_start(&a);
    assert_int_equal(test_sh(add_long), 0);
    assert_true(test_until_lines(out, "long ", 1, LONG_MS));
    test_handler(dir, "fill", "exit 0");
    test_sh_start(&adding, producer);
    if (test_is_long())
        test_sh_start(&filling, filler);
    for (int64_t i = 0; i < rounds; i++) {
        int had = test_lines(out, "ran ");

        fail_over((enum way)(i % WAYS));
        assert_true(test_until_lines(out, "ran ", had + 20, LONG_MS));
    }
    assert_int_equal(test_sh("touch $DIR/enough"), 0);
    assert_int_equal(proc_wait(&adding, LONG_MS), 0);
    proc_done(&adding);
    if (test_is_long()) {
        proc_done(&filling);
        report("echo $(wc -l <$DIR/confirmed) confirmed, $(grep -c ran $DIR/out) runs of "
               "them and others, $(grep ran $DIR/out | sort -u | wc -l) different; "
               "failovers told: $(grep -c event=failover $DIR/a.log), lost: "
               "$(grep -c event=data-loss $DIR/a.log) >&2");
    }
    assert_true(test_until(all_have_run, NULL, LONG_MS));
    assert_true(test_until_lines(out, "longend ", 1, LONG_MS));
    assert_int_equal(test_lines(out, "long "), 1);
    assert_int_equal(test_lines(out, "overlap"), 0);
    assert_true(test_laterd_says(&a, "event=failover", LONG_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_fault_has_its_sentence),
        cmocka_unit_test(test_cli_gets_the_master),
        cmocka_unit_test(test_replicas_confirm),
        cmocka_unit_test(test_failovers_by_sentinel),
        cmocka_unit_test(test_a_sentinel_with_a_password),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
