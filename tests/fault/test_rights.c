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

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "scene.h"

#define RESUME_MS 3000  /* a new connection: 2 s are promised */
#define DENIED_MS 13000 /* after a denial: 10 s at most, 3 for a slow machine */

static struct scene s;

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
    CLEANUP_FREE char *path = mem_printf("%s/password", s.dir);
    CLEANUP_FREE char *yaml = mem_printf("concurrency: 4\nredis_password_file: %s", path);
    CLEANUP_FREE char *url = NULL;

    scene_proxy(&s);
    test_redis_load(&s.redis);
    url = mem_printf("redis://worker@%s", s.proxy.url + strlen("redis://"));
    scene_redis(&s, "ACL", "SETUSER", "worker", "on", ">first", "~*", "&*", "+@all", without, NULL);
    put_password(path, "first\n");
    scene_daemon(&s, 0, url, yaml);
}

static void R16_library_flushed_without_the_right_to_load(void **state)
{
    (void)state;
    start_as_worker("-function");
    scene_redis(&s, "FUNCTION", "FLUSH", NULL);
    assert_true(scene_says(&s, 0, "class=denied", SCENE_LONG_MS));
    scene_is_calm(&s, 0, 5000, 6);
    /* An administrator loads the library. */
    test_redis_load(&s.redis);
    (void)scene_works(&s, DENIED_MS);
    scene_drained(&s, 0);
}

static void R19_password_rotated_live(void **state)
{
    CLEANUP_FREE char *path = mem_printf("%s/password", s.dir);
    int64_t connects;

    (void)state;
    start_as_worker("+ping");
    scene_add(&s, "slow", 2);
    assert_true(ledger_until(&s.ledger, " start", 2, SCENE_LONG_MS));
    scene_redis(&s, "ACL", "SETUSER", "worker", "resetpass", ">second", NULL);
    scene_redis(&s, "CLIENT", "KILL", "USER", "worker", NULL);
    assert_true(scene_says(&s, 0, "class=denied", SCENE_LONG_MS));
    assert_int_equal(scene_log(&s, 0, "redis_password_file"), 1); /* the cure */
    connects = proxy_tell(&s.proxy, "accepted");
    scene_is_calm(&s, 0, 6000, 4);
    /* Full jitter up to 10 s between tries. */
    assert_in_range(proxy_tell(&s.proxy, "accepted") - connects, 0, 8);
    put_password(path, "second\n");
    test_laterd_kill(&s.d[0], SIGHUP);
    (void)scene_works(&s, RESUME_MS);
    scene_drained(&s, 0);
}

static bool is_subscribed(void *arg)
{
    struct reply *r = test_redis_call(&s.redis, "PUBSUB", "NUMSUB", SCENE_ROOT ":wake", NULL);
    bool one = reply_int(reply_at(r, 1)) == 1;

    (void)arg;
    reply_free(r);
    return one;
}

/* Rotated while both connections are up: their next logins use the new password. */
static void R19_password_rotated_in_time(void **state)
{
    CLEANUP_FREE char *path = mem_printf("%s/password", s.dir);

    (void)state;
    start_as_worker("+ping");
    assert_true(test_until(is_subscribed, NULL, SCENE_LONG_MS));
    scene_redis(&s, "ACL", "SETUSER", "worker", "resetpass", ">second", NULL);
    put_password(path, "second\n");
    test_laterd_kill(&s.d[0], SIGHUP);
    assert_true(scene_says(&s, 0, "event=reload result=done", SCENE_LONG_MS));
    scene_redis(&s, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    assert_true(test_until(is_subscribed, NULL, SCENE_LONG_MS));
    assert_int_equal(scene_log(&s, 0, "WRONGPASS"), 0);
    scene_drained(&s, 0);
}

static void R20_one_command_denied(void **state)
{
    (void)state;
    start_as_worker("+ping");
    scene_add(&s, "slow", 2);
    assert_true(ledger_until(&s.ledger, " start", 2, SCENE_LONG_MS));
    scene_redis(&s, "ACL", "SETUSER", "worker", "-zadd", "-zrem", NULL);
    assert_true(scene_says(&s, 0, "class=denied", SCENE_LONG_MS));
    assert_true(scene_says(&s, 0, "this user may not ZREM", SCENE_LONG_MS));
    /* The check of rights at the next login names both. */
    assert_true(scene_says(&s, 0, "may not: ZADD ZREM", SCENE_LONG_MS));
    scene_is_calm(&s, 0, 8000, 20);
    scene_redis(&s, "ACL", "SETUSER", "worker", "+zadd", "+zrem", NULL);
    (void)scene_works(&s, DENIED_MS);
    scene_drained(&s, 0);
}

int main(void)
{
#define T_WITH(f, setup) cmocka_unit_test_prestate_setup_teardown(f, setup, scene_teardown, &s)
#define T(f) T_WITH(f, scene_setup)
    const struct CMUnitTest tests[] = {
        T(R16_library_flushed_without_the_right_to_load),
        T(R19_password_rotated_live),
        T(R19_password_rotated_in_time),
        T(R20_one_command_denied),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
