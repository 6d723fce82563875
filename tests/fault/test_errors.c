/*
 * A Redis that refuses: busy, full, unable to save, short of replicas or of client connections
 * (R10, R11, R13, R14, R21).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "network.h"

#define RESUME_MS 3000  /* a new connection: 2 s are promised */
#define REFUSED_MS 7000 /* after a refusal: 5 s at most, 2 for a slow machine */

/* With save points a failed snapshot makes Redis refuse writes. The folder can be changed. */
static int setup_saving(void **state)
{
    static const char *const saving[] = {"--save", "3600 1", "--enable-protected-configs", "local",
                                         NULL};

    (void)state;
    return network_setup_with(saving);
}

/* ---- Redis cannot answer: R10 */

/* Load a library with one function that never returns, and call it. */
static void hang(struct proc *p, const char *writes)
{
    CLEANUP_FREE char *text =
        mem_printf("#!lua name=hang\nredis.register_function('hang', function(keys) %s "
                   "while true do end end)",
                   writes);
    char *argv[] = {(char *)(uintptr_t) "redis-cli",
                    (char *)(uintptr_t) "-s",
                    net.s.redis.sock,
                    (char *)(uintptr_t) "FCALL",
                    (char *)(uintptr_t) "hang",
                    (char *)(uintptr_t) "1",
                    (char *)(uintptr_t) "x",
                    NULL};

    network_redis("CONFIG", "SET", "busy-reply-threshold", "200", NULL);
    network_redis("FUNCTION", "LOAD", "REPLACE", text, NULL);
    proc_start(p, argv, NULL, "/dev/null");
}

static void a_busy_server_is_waited_for(struct proc *p, const char *writes)
{
    CLEANUP_BUF struct buf out = BUF_INIT;

    network_daemon(0, NULL, "concurrency: 2");
    network_add("slow", 6);
    assert_true(ledger_until(&net.s.ledger, " start", 2, STAGE_WAIT_MS));
    hang(p, writes);
    assert_true(
        test_laterd_says(&net.d[0], "FUNCTION KILL", STAGE_WAIT_MS)); /* the log names the cure */
    (void)network_is_calm(0, 4000, 8);
    assert_int_equal(ledger_lines(&net.s.ledger, " end"), 2);
    assert_int_equal(network_later_add(net.s.redis.url, &out, &out), 69);
    assert_non_null(strstr(buf_str(&out), "FUNCTION KILL"));
}

static bool is_free(void *arg)
{
    struct reply *r = test_redis_call(&net.s.redis, "PING", NULL);
    bool free_again = r != NULL;

    (void)arg;
    reply_free(r);
    return free_again;
}

static void R10_busy_before_a_write(void **state)
{
    struct proc p;

    (void)state;
    a_busy_server_is_waited_for(&p, "");
    network_redis("FUNCTION", "KILL", NULL);
    assert_true(test_until(is_free, NULL, STAGE_WAIT_MS)); /* it ends a moment after the KILL */
    (void)network_works(REFUSED_MS + 3000);                /* it waits for the slow jobs */
    proc_done(&p);
    network_drained(0);
}

static void R10_busy_after_a_write(void **state)
{
    struct proc p;

    (void)state;
    a_busy_server_is_waited_for(&p, "redis.call('SET', keys[1], 1)");
    /* A script that wrote is UNKILLABLE: the cure is SHUTDOWN NOSAVE. */
    reply_free(test_redis_call(&net.s.redis, "SHUTDOWN", "NOSAVE", NULL));
    if (proc_wait(&net.s.redis.proc, STAGE_WAIT_MS) < 0)
        fail_msg("redis-server did not end");
    test_redis_restart(&net.s.redis);
    (void)network_works(REFUSED_MS + 3000);
    proc_done(&p);
    network_drained(0);
}

/* ---- full: R11 */

static bool an_add_is_taken(void *arg)
{
    CLEANUP_BUF struct buf out = BUF_INIT;

    return network_later_add(net.s.redis.url, &out, &out) == 0 && arg == NULL;
}

static int64_t used_memory(void)
{
    struct reply *r = test_redis_call(&net.s.redis, "INFO", "memory", NULL);
    const char *at = strstr(reply_str(r), "used_memory:");
    int64_t n = at != NULL ? strtoll(at + 12, NULL, 10) : -1;

    reply_free(r);
    return n;
}

static void R11_full_with_running_jobs(void **state)
{
    int jobs = test_is_long() ? 3000 : 300;
    CLEANUP_BUF struct buf out = BUF_INIT;
    int64_t full, after;
    struct mono begin;
    char limit[24];

    (void)state;
    ledger_script(&net.s.ledger, "long", "sleep 3");
    network_daemon(0, NULL, "concurrency: 8");
    network_add("long", 8);
    assert_true(ledger_until(&net.s.ledger, " start", 8, STAGE_WAIT_MS));
    network_add_large("work", jobs, 15000);
    full = used_memory();
    (void)snprintf(limit, sizeof(limit), "%lld", (long long)(full - jobs * 10000L));
    network_redis("CONFIG", "SET", "maxmemory", limit, NULL);
    begin = mono_now();
    /* `later add` exits with 69 and names the cause and the cure. */
    assert_int_equal(network_later_add(net.s.redis.url, &out, &out), 69);
    assert_non_null(strstr(buf_str(&out), "OOM"));
    assert_non_null(strstr(buf_str(&out), "maxmemory"));
    assert_int_equal(test_int(&net.s.redis, "ZCARD", STAGE_ROOT ":running"), 8);
    /* Nothing is freed by hand: running jobs end and are confirmed, waiting jobs are claimed, until
     * there is memory for new ones. */
    assert_true(test_until(an_add_is_taken, NULL, STAGE_WAIT_MS));
    print_message("figure R11: %d MB over maxmemory with 8 jobs running: adds were taken again "
                  "after %lld ms, by work alone\n",
                  jobs / 100, (long long)test_ms_since(begin));
    network_drained(0);
    after = used_memory();
    assert_true(after < full - jobs * 10000L);
    assert_int_equal(test_lines(net.d[0].log, "event=refused"), 0);
}

/* ---- writes are refused: R13, R14 */

struct refusal {
    void (*inject)(void);
    void (*cure)(void);
    const char *word;
    const char *cause; /* as `later add` tells it */
};

static void writes_are_refused(const struct refusal *r)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    struct mono begin;

    network_daemon(0, NULL, "concurrency: 4");
    network_add("slow", 4);
    assert_true(ledger_until(&net.s.ledger, " start", 4, STAGE_WAIT_MS));
    network_add("work", 20);
    r->inject();
    assert_true(test_laterd_says(&net.d[0], r->word, STAGE_WAIT_MS));
    assert_true(ledger_until(&net.s.ledger, " end", 4, STAGE_WAIT_MS));
    (void)network_is_calm(0, 6000, 6);
    /* The results wait, no job was started, and the connection is still up. */
    assert_int_equal(ledger_lines(&net.s.ledger, " start"), 4);
    assert_int_equal(test_int(&net.s.redis, "ZCARD", STAGE_ROOT ":running"), 4);
    assert_int_equal(network_later_add(net.s.redis.url, &out, &out), 69);
    assert_non_null(strstr(buf_str(&out), r->word));
    assert_non_null(strstr(buf_str(&out), r->cause));
    begin = mono_now();
    r->cure();
    assert_true(ledger_until(&net.s.ledger, " end", 5, STAGE_WAIT_MS));
    assert_in_range(test_ms_since(begin), 0, REFUSED_MS);
    network_drained(0);
}

static void lose_the_data_folder(void)
{
    CLEANUP_FREE char *path = mem_printf("%s/data", net.s.dir);
    struct client *c = network_client();
    static const char *const save[] = {"SAVE"};
    struct err err = ERR_INIT;

    assert_int_equal(mkdir(path, 0755), 0);
    network_redis("CONFIG", "SET", "dir", path, NULL);
    assert_int_equal(rmdir(path), 0);
    assert_null(client_call(c, 1, save, NULL, &err));
    client_close(c);
    reply_free(test_redis_call(&net.s.redis, "BGSAVE", NULL));
}

static void give_a_data_folder(void)
{
    network_redis("CONFIG", "SET", "dir", net.s.dir, NULL);
    network_redis("SAVE", NULL);
    network_redis("BGSAVE", NULL);
}

static void R13_misconf(void **state)
{
    (void)state;
    writes_are_refused(
        &(struct refusal){lose_the_data_folder, give_a_data_folder, "MISCONF", "save to its disk"});
}

static void ask_for_replicas(void)
{
    network_redis("CONFIG", "SET", "min-replicas-to-write", "1", NULL);
}

static void ask_for_none(void)
{
    network_redis("CONFIG", "SET", "min-replicas-to-write", "0", NULL);
}

static void R14_noreplicas(void **state)
{
    (void)state;
    writes_are_refused(
        &(struct refusal){ask_for_replicas, ask_for_none, "NOREPLICAS", "too few replicas"});
}

/* ---- no free client connection: R21 */

static void call(struct client *c, int argc, const char *const *argv)
{
    struct err err = ERR_INIT;
    struct reply *r = client_call(c, argc, argv, NULL, &err);

    if (r == NULL)
        fail_msg("%s: %s", argv[0], err.text);
    reply_free(r);
}

static void R21_maxclients(void **state)
{
    static const char *const low[] = {"CONFIG", "SET", "maxclients", "1"};
    static const char *const high[] = {"CONFIG", "SET", "maxclients", "1000"};
    static const char *const kill_all[] = {"CLIENT", "KILL", "TYPE", "normal"};
    struct client *c = network_client();

    (void)state;
    network_proxy();
    network_daemon(0, NULL, "concurrency: 4");
    call(c, 4, low);
    /* Open connections stay and work. */
    for (int i = 0; i < 20; i++)
        assert_true(ledger_try_add(&net.s.ledger, c, "work", i, 0));
    assert_true(ledger_until(&net.s.ledger, " end", 20, STAGE_WAIT_MS));
    test_pause(1000);
    assert_int_equal(test_lines(net.d[0].log, "state=down"), 0);
    call(c, 4, kill_all);
    assert_true(test_laterd_says(&net.d[0], "state=down", STAGE_WAIT_MS));
    assert_true(ledger_try_add(&net.s.ledger, c, "slow", 20, 0));
    assert_in_range(network_is_calm(0, 5000, 3), 1, 25);
    call(c, 4, high);
    client_close(c);
    (void)network_works(RESUME_MS);
    network_drained(0);
}

int main(void)
{
#define T_WITH(f, setup) cmocka_unit_test_setup_teardown(f, setup, network_teardown)
#define T(f) T_WITH(f, network_setup)
    const struct CMUnitTest tests[] = {
        T(R10_busy_before_a_write),
        T_WITH(R10_busy_after_a_write, network_setup_aof),
        T(R11_full_with_running_jobs),
        T_WITH(R13_misconf, setup_saving),
        T(R14_noreplicas),
        T(R21_maxclients),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
