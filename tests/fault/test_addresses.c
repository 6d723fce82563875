/*
 * Addresses with something else behind them, with nothing, or where many connect at once (N7 to
 * N10).
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "scene.h"

#define RESUME_MS 3000 /* 2 s are promised; one more for a slow machine */

static struct scene s;

static int setup_aof(void **state)
{
    (void)scene_setup_aof(state);
    scene_proxy(&s);
    return 0;
}

/* ---- no Redis behind the address */

static void is_told_and_left(const char *name)
{
    int64_t connects;

    assert_true(scene_says(&s, 0, "state=down", SCENE_LONG_MS));
    connects = proxy_tell(&s.proxy, "accepted");
    scene_is_calm(&s, 0, 3000, 2);
    /* Full jitter up to 1.2 s: a try every 0.6 s on average. */
    connects = proxy_tell(&s.proxy, "accepted") - connects;
    assert_in_range(connects, 0, 25);
    /* The message names the address. */
    if (scene_log(&s, 0, s.proxy.url + strlen("redis://")) == 0)
        fail_msg("%s: the log does not name %s", name, s.proxy.url);
    (void)proxy_tell(&s.proxy, "pass");
    assert_true(scene_says(&s, 0, "event=registered", SCENE_LONG_MS));
    (void)scene_works(&s, RESUME_MS);
    scene_drained(&s, 0);
}

static void N8_http_server_on_the_port(void **state)
{
    (void)state;
    (void)proxy_tell(
        &s.proxy, "on * bye:%s 0",
        proxy_hex("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
    scene_launch(&s, 0, NULL, "");
    is_told_and_left("http");
}

static void N8_tls_port(void **state)
{
    (void)state;
    (void)proxy_tell(&s.proxy, "on * bye:15030100020216 0");
    scene_launch(&s, 0, NULL, "");
    is_told_and_left("tls");
}

static void N8_silent_listener(void **state)
{
    (void)state;
    (void)proxy_tell(&s.proxy, "mode blackhole");
    scene_launch(&s, 0, NULL, "");
    is_told_and_left("silent");
}

/* ---- addresses that change */

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        fail_msg("%s cannot be written", path);
    (void)close(fd);
}

/* Start daemon 0 in a mount namespace in which the file hosts is /etc/hosts. */
static void launch_with_hosts(const char *hosts, int port)
{
    CLEANUP_FREE char *url = mem_printf("redis://redis.laterd.test:%d", port);
    CLEANUP_FREE char *script =
        mem_printf("mount --bind %s /etc/hosts && exec %s/laterd --config %s/d0.yaml", hosts,
                   test_build_dir(), s.dir);
    char *argv[] = {(char *)(uintptr_t) "unshare",
                    (char *)(uintptr_t) "-m",
                    (char *)(uintptr_t) "sh",
                    (char *)(uintptr_t) "-c",
                    script,
                    NULL};

    test_laterd_conf(&s.d[0], s.dir, "d0", url, "redis_timeout: 2s");
    proc_start(&s.d[0].proc, argv, NULL, s.d[0].log);
    s.d[0].runs = true;
}

static void N7_name_without_an_address_and_with_another(void **state)
{
    CLEANUP_FREE char *hosts = mem_printf("%s/hosts", s.dir);
    int port = (int)proxy_tell(&s.proxy, "port");
    CLEANUP_FREE char *port_text = mem_printf("%d", port);
    const char *args[] = {"--bind", "127.0.0.2", "--port", port_text, NULL};
    struct test_redis other;

    (void)state;
    if (geteuid() != 0)
        skip(); /* no mount namespace without root */
    put(hosts, "127.0.0.1 localhost\n");
    launch_with_hosts(hosts, port);
    assert_true(scene_says(&s, 0, "state=down", SCENE_LONG_MS));
    scene_is_calm(&s, 0, 3000, 3);
    put(hosts, "127.0.0.1 redis.laterd.test\n");
    assert_true(scene_says(&s, 0, "event=registered", SCENE_LONG_MS));
    (void)scene_works(&s, RESUME_MS);
    /* The name leads to another server. The old one still runs, but its connections are reset. */
    test_redis_start(&other, args);
    put(hosts, "127.0.0.2 redis.laterd.test\n");
    (void)proxy_tell(&s.proxy, "reset");
    assert_true(test_until_lines(s.d[0].log, "event=registered", 2, SCENE_LONG_MS));
    assert_int_equal(test_int(&other, "HLEN", SCENE_ROOT ":workers"), 1);
    put(hosts, "127.0.0.1 redis.laterd.test\n");
    test_redis_stop(&other);
    assert_true(scene_says(&s, 0, "state=down", SCENE_LONG_MS));
    (void)scene_works(&s, RESUME_MS + 5000);
    scene_drained(&s, 0);
}

static void N9_unix_socket_deleted(void **state)
{
    int64_t ms;

    (void)state;
    scene_daemon(&s, 0, s.redis.url, "");
    scene_add(&s, "work", 20);
    assert_true(ledger_until(&s.ledger, " end", 20, SCENE_LONG_MS));
    /* An open connection works without the socket's name. */
    assert_int_equal(unlink(s.redis.sock), 0);
    test_pause(2000);
    assert_int_equal(scene_log(&s, 0, "state=down"), 0);
    test_redis_kill(&s.redis, SIGKILL);
    assert_true(scene_says(&s, 0, "state=down", SCENE_LONG_MS));
    scene_is_calm(&s, 0, 2000, 2);
    test_redis_restart(&s.redis);
    ms = scene_works(&s, RESUME_MS);
    scene_drained(&s, 0);
    print_message("figure N9: work again %lld ms after the socket was there again\n",
                  (long long)ms);
}

/* ---- many */

#define HERD 20

static void N10_thundering_herd(void **state)
{
    int64_t down, up;
    struct mono begin;

    (void)state;
    for (int i = 0; i < HERD; i++)
        scene_launch(&s, i, NULL, "concurrency: 1");
    assert_true(test_until_int(&s.redis, "HLEN", SCENE_ROOT ":workers", HERD, SCENE_LONG_MS));
    scene_add(&s, "work", 200);
    assert_true(ledger_until(&s.ledger, " end", 50, SCENE_LONG_MS));
    test_redis_kill(&s.redis, SIGKILL);
    for (int i = 0; i < HERD; i++)
        assert_true(scene_says(&s, i, "state=down", SCENE_LONG_MS));
    /* After the first, short waits between tries. */
    test_pause(2000);
    down = proxy_tell(&s.proxy, "accepted");
    scene_is_calm(&s, 0, 4000, 3);
    down = (proxy_tell(&s.proxy, "accepted") - down) / 4;
    assert_in_range(down, 1, 2 * HERD - 1);
    test_redis_restart(&s.redis);
    begin = mono_now();
    for (int i = 0; i < HERD; i++)
        assert_true(test_until_lines(s.d[i].log, "state=up", 2, SCENE_LONG_MS));
    up = test_ms_since(begin);
    assert_in_range(up, 0, 10000);
    scene_drained(&s, 0);
    for (int i = 0; i < HERD; i++)
        assert_int_equal(scene_log(&s, i, "event=reaped"), 0);
    print_message("figure N10: %d workers, %lld connects a second while Redis was away; all back "
                  "%lld ms after it\n",
                  HERD, (long long)down, (long long)up);
}

int main(void)
{
#define T(f) cmocka_unit_test_prestate_setup_teardown(f, scene_setup_proxy, scene_teardown, &s)
#define T_AOF(f) cmocka_unit_test_prestate_setup_teardown(f, setup_aof, scene_teardown, &s)
    const struct CMUnitTest tests[] = {
        T(N7_name_without_an_address_and_with_another),
        T(N8_http_server_on_the_port),
        T(N8_tls_port),
        T(N8_silent_listener),
        T_AOF(N9_unix_socket_deleted),
        T_AOF(N10_thundering_herd),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
