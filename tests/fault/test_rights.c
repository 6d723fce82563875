/*
 * A Redis that takes rights and passwords away (R16, R19, R20).
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "network.h"

#define RESUME_MS 3000  /* a new connection: 2 s are promised */
#define DENIED_MS 13000 /* after a denial: 10 s at most, 3 for a slow machine */

static void put_password(const char *path, const char *password)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_true(fputs(password, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

/* Start daemon 0 through the proxy as user `worker`, with all rights except this one. */
static void start_as_worker(const char *without)
{
    CLEANUP_FREE char *path = mem_printf("%s/password", net.s.dir);
    CLEANUP_FREE char *yaml = mem_printf("concurrency: 4\nredis_password_file: %s", path);
    CLEANUP_FREE char *url = NULL;

    network_proxy();
    test_redis_load(&net.s.redis);
    url = mem_printf("redis://worker@%s", net.proxy.url + strlen("redis://"));
    network_redis("ACL", "SETUSER", "worker", "on", ">first", "~*", "&*", "+@all", without, NULL);
    put_password(path, "first\n");
    network_daemon(0, url, yaml);
}

static void R16_library_flushed_without_the_right_to_load(void **state)
{
    (void)state;
    start_as_worker("-function");
    network_redis("FUNCTION", "FLUSH", NULL);
    assert_true(test_laterd_says(&net.d[0], "class=denied", STAGE_WAIT_MS));
    (void)network_is_calm(0, 5000, 6);
    /* An administrator loads the library. */
    test_redis_load(&net.s.redis);
    (void)network_works(DENIED_MS);
    network_drained(0);
}

static void R19_password_rotated_live(void **state)
{
    CLEANUP_FREE char *path = mem_printf("%s/password", net.s.dir);

    (void)state;
    start_as_worker("+ping");
    network_add("slow", 2);
    assert_true(ledger_until(&net.s.ledger, " start", 2, STAGE_WAIT_MS));
    network_redis("ACL", "SETUSER", "worker", "resetpass", ">second", NULL);
    network_redis("CLIENT", "KILL", "USER", "worker", NULL);
    assert_true(test_laterd_says(&net.d[0], "class=denied", STAGE_WAIT_MS));
    assert_int_equal(test_lines(net.d[0].log, "redis_password_file"), 1); /* the cure */
    /* Full jitter up to 10 s between tries. */
    assert_in_range(network_is_calm(0, 6000, 4), 0, 8);
    put_password(path, "second\n");
    test_laterd_kill(&net.d[0], SIGHUP);
    (void)network_works(RESUME_MS);
    network_drained(0);
}

static bool is_subscribed(void *arg)
{
    struct reply *r = test_redis_call(&net.s.redis, "PUBSUB", "NUMSUB", STAGE_ROOT ":wake", NULL);
    bool one = reply_int(reply_at(r, 1)) == 1;

    (void)arg;
    reply_free(r);
    return one;
}

/* Rotated while both connections are up: their next logins use the new password. */
static void R19_password_rotated_in_time(void **state)
{
    CLEANUP_FREE char *path = mem_printf("%s/password", net.s.dir);

    (void)state;
    start_as_worker("+ping");
    assert_true(test_until(is_subscribed, NULL, STAGE_WAIT_MS));
    network_redis("ACL", "SETUSER", "worker", "resetpass", ">second", NULL);
    put_password(path, "second\n");
    test_laterd_kill(&net.d[0], SIGHUP);
    assert_true(test_laterd_says(&net.d[0], "event=reload result=done", STAGE_WAIT_MS));
    network_redis("CLIENT", "KILL", "TYPE", "pubsub", NULL);
    assert_true(test_until(is_subscribed, NULL, STAGE_WAIT_MS));
    assert_int_equal(test_lines(net.d[0].log, "WRONGPASS"), 0);
    network_drained(0);
}

static void R20_one_command_denied(void **state)
{
    (void)state;
    start_as_worker("+ping");
    network_add("slow", 2);
    assert_true(ledger_until(&net.s.ledger, " start", 2, STAGE_WAIT_MS));
    network_redis("ACL", "SETUSER", "worker", "-zadd", "-zrem", NULL);
    assert_true(test_laterd_says(&net.d[0], "class=denied", STAGE_WAIT_MS));
    assert_true(test_laterd_says(&net.d[0], "this user may not ZREM", STAGE_WAIT_MS));
    /* The check of rights at the next login names both. */
    assert_true(test_laterd_says(&net.d[0], "may not: ZADD ZREM", STAGE_WAIT_MS));
    (void)network_is_calm(0, 8000, 20);
    network_redis("ACL", "SETUSER", "worker", "+zadd", "+zrem", NULL);
    (void)network_works(DENIED_MS);
    network_drained(0);
}

int main(void)
{
#define T_WITH(f, setup) cmocka_unit_test_setup_teardown(f, setup, network_teardown)
#define T(f) T_WITH(f, network_setup)
    const struct CMUnitTest tests[] = {
        T(R16_library_flushed_without_the_right_to_load),
        T(R19_password_rotated_live),
        T(R19_password_rotated_in_time),
        T(R20_one_command_denied),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
