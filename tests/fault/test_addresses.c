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
#include "network.h"

#define RESUME_MS 3000 /* 2 s are promised; one more for a slow machine */

static int setup_aof(void **state)
{
    (void)network_setup_aof(state);
    network_proxy();
    return 0;
}

/* ---- no Redis behind the address */

static void is_told_and_left(const char *name)
{
    assert_true(test_laterd_says(&net.d[0], "state=down", STAGE_WAIT_MS));
    /* Full jitter up to 1.2 s: a try every 0.6 s on average. */
    assert_in_range(network_is_calm(0, 3000, 2), 0, 25);
    /* The message names the address. */
    if (test_lines(net.d[0].log, net.proxy.url + strlen("redis://")) == 0)
        fail_msg("%s: the log does not name %s", name, net.proxy.url);
    (void)proxy_tell(&net.proxy, "pass");
    assert_true(test_laterd_says(&net.d[0], "event=registered", STAGE_WAIT_MS));
    (void)network_works(RESUME_MS);
    network_drained(0);
}

static void N8_http_server_on_the_port(void **state)
{
    (void)state;
    (void)proxy_tell(
        &net.proxy, "on * bye:%s 0",
        proxy_hex("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
    network_launch(0, NULL, "");
    is_told_and_left("http");
}

static void N8_tls_port(void **state)
{
    (void)state;
    (void)proxy_tell(&net.proxy, "on * bye:15030100020216 0");
    network_launch(0, NULL, "");
    is_told_and_left("tls");
}

static void N8_silent_listener(void **state)
{
    (void)state;
    (void)proxy_tell(&net.proxy, "mode blackhole");
    network_launch(0, NULL, "");
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
                   test_build_dir(), net.s.dir);
    char *argv[] = {(char *)(uintptr_t) "unshare",
                    (char *)(uintptr_t) "-m",
                    (char *)(uintptr_t) "sh",
                    (char *)(uintptr_t) "-c",
                    script,
                    NULL};

    test_laterd_conf(&net.d[0], net.s.dir, "d0", url, "redis_timeout: 2s");
    proc_start(&net.d[0].proc, argv, NULL, net.d[0].log);
    net.d[0].runs = true;
}

static void N7_name_without_an_address_and_with_another(void **state)
{
    CLEANUP_FREE char *hosts = mem_printf("%s/hosts", net.s.dir);
    int port = (int)proxy_tell(&net.proxy, "port");
    CLEANUP_FREE char *port_text = mem_printf("%d", port);
    const char *args[] = {"--bind", "127.0.0.2", "--port", port_text, NULL};
    struct test_redis other;

    (void)state;
    if (geteuid() != 0)
        skip(); /* no mount namespace without root */
    put(hosts, "127.0.0.1 localhost\n");
    launch_with_hosts(hosts, port);
    assert_true(test_laterd_says(&net.d[0], "state=down", STAGE_WAIT_MS));
    (void)network_is_calm(0, 3000, 3);
    put(hosts, "127.0.0.1 redis.laterd.test\n");
    assert_true(test_laterd_says(&net.d[0], "event=registered", STAGE_WAIT_MS));
    (void)network_works(RESUME_MS);
    /* The name leads to another server. The old one still runs, but its connections are reset. */
    test_redis_start(&other, args);
    put(hosts, "127.0.0.2 redis.laterd.test\n");
    (void)proxy_tell(&net.proxy, "reset");
    assert_true(test_until_lines(net.d[0].log, "event=registered", 2, STAGE_WAIT_MS));
    assert_int_equal(test_int(&other, "HLEN", STAGE_ROOT ":workers"), 1);
    put(hosts, "127.0.0.1 redis.laterd.test\n");
    test_redis_stop(&other);
    assert_true(test_laterd_says(&net.d[0], "state=down", STAGE_WAIT_MS));
    (void)network_works(RESUME_MS + 5000);
    network_drained(0);
}

static void N9_unix_socket_deleted(void **state)
{
    int64_t ms;

    (void)state;
    network_daemon(0, net.s.redis.url, "");
    network_add("work", 20);
    assert_true(ledger_until(&net.s.ledger, " end", 20, STAGE_WAIT_MS));
    /* An open connection works without the socket's name. */
    assert_int_equal(unlink(net.s.redis.sock), 0);
    test_pause(2000);
    assert_int_equal(test_lines(net.d[0].log, "state=down"), 0);
    test_redis_kill(&net.s.redis, SIGKILL);
    assert_true(test_laterd_says(&net.d[0], "state=down", STAGE_WAIT_MS));
    (void)network_is_calm(0, 2000, 2);
    test_redis_restart(&net.s.redis);
    ms = network_works(RESUME_MS);
    network_drained(0);
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
        network_launch(i, NULL, "concurrency: 1");
    assert_true(test_until_int(&net.s.redis, "HLEN", STAGE_ROOT ":workers", HERD, STAGE_WAIT_MS));
    network_add("work", 200);
    assert_true(ledger_until(&net.s.ledger, " end", 50, STAGE_WAIT_MS));
    test_redis_kill(&net.s.redis, SIGKILL);
    for (int i = 0; i < HERD; i++)
        assert_true(test_laterd_says(&net.d[i], "state=down", STAGE_WAIT_MS));
    /* After the first, short waits between tries. */
    test_pause(2000);
    down = network_is_calm(0, 4000, 3) / 4;
    assert_in_range(down, 1, 2 * HERD - 1);
    test_redis_restart(&net.s.redis);
    begin = mono_now();
    for (int i = 0; i < HERD; i++)
        assert_true(test_until_lines(net.d[i].log, "state=up", 2, STAGE_WAIT_MS));
    up = test_ms_since(begin);
    assert_in_range(up, 0, 10000);
    network_drained(0);
    for (int i = 0; i < HERD; i++)
        assert_int_equal(test_lines(net.d[i].log, "event=reaped"), 0);
    print_message("figure N10: %d workers, %lld connects a second while Redis was away; all back "
                  "%lld ms after it\n",
                  HERD, (long long)down, (long long)up);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, network_setup_proxy, network_teardown)
#define T_AOF(f) cmocka_unit_test_setup_teardown(f, setup_aof, network_teardown)
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
