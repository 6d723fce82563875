#include "network.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "../support/env.h"
#include "base/mem.h"
#include "usage.h"

struct network net;

/* ---- open and close */

int network_setup_with(const char *const *redis_args)
{
    memset(&net, 0, sizeof(net));
    (void)signal(SIGPIPE, SIG_IGN); /* servers die while we are connected */
    stage_begin(&net.s);
    test_redis_start(&net.s.redis, redis_args);
    ledger_script(&net.s.ledger, "work", "");
    ledger_script(&net.s.ledger, "slow", "sleep 1");
    ledger_script(&net.s.ledger, "flaky", "[ \"$LATER_ATTEMPT\" != 1 ] || exit 1");
    return 0;
}

int network_setup(void **state)
{
    (void)state;
    return network_setup_with(NULL);
}

int network_setup_aof(void **state)
{
    static const char *const aof[] = {"--appendonly", "yes", NULL};

    (void)state;
    return network_setup_with(aof);
}

int network_setup_proxy(void **state)
{
    (void)network_setup(state);
    network_proxy();
    return 0;
}

int network_teardown(void **state)
{
    int status = 0;

    (void)state;
    if (net.s.redis.pid != 0)
        test_redis_kill(&net.s.redis, SIGCONT);
    if (net.proxy.proc.pid != 0)
        (void)proxy_tell(&net.proxy, "pass");
    for (int i = 0; i < NETWORK_DAEMONS; i++)
        status += test_laterd_stop(&net.d[i]);
    proxy_stop(&net.proxy);
    return status + stage_end(&net.s);
}

void network_proxy(void)
{
    proxy_start(&net.proxy, &net.s.redis);
}

void network_launch(int i, const char *url, const char *yaml)
{
    CLEANUP_FREE char *all = mem_printf(
        "%s%s", strstr(yaml, "redis_timeout") == NULL ? "redis_timeout: 2s\n" : "", yaml);
    char name[16];

    if (url == NULL)
        url = net.proxy.proc.pid != 0 ? net.proxy.url : net.s.redis.url;
    (void)snprintf(name, sizeof(name), "d%d", i);
    test_laterd_conf(&net.d[i], net.s.dir, name, url, all);
    test_laterd_launch(&net.d[i]);
}

void network_daemon(int i, const char *url, const char *yaml)
{
    network_launch(i, url, yaml);
    if (!test_laterd_says(&net.d[i], "event=registered", STAGE_WAIT_MS))
        fail_msg("daemon %d did not register", i);
}

/* ---- adding */

struct client *network_client(void)
{
    struct err err = ERR_INIT;

    return test_redis_client(&net.s.redis, &err);
}

void network_add_large(const char *queue, int n, int bytes)
{
    struct client *c = network_client();

    for (int i = 0; i < n; i++)
        if (!ledger_try_add(&net.s.ledger, c, queue, net.s.ledger.njobs, bytes))
            fail_msg("an add was not taken");
    client_close(c);
}

void network_add(const char *queue, int n)
{
    network_add_large(queue, n, 0);
}

int network_later_add(char *url, struct buf *out, struct buf *err)
{
    CLEANUP_FREE char *program = mem_printf("%s/later", test_build_dir());
    CLEANUP_FREE char *number = mem_printf("%d", net.s.ledger.njobs);
    char *argv[] = {program,
                    (char *)(uintptr_t) "--redis",
                    url,
                    (char *)(uintptr_t) "add",
                    (char *)(uintptr_t) "work",
                    number,
                    NULL};
    int status = proc_run(argv, NULL, 0, out, err);

    ledger_note(&net.s.ledger, net.s.ledger.njobs, status == 0 ? "" : NULL);
    return status;
}

/* ---- the ledger */

static bool drained(void *arg)
{
    struct ledger_sum sum;

    (void)arg;
    if (test_int(&net.s.redis, "HLEN", STAGE_ROOT ":jobs") > 0)
        return false;
    ledger_sum(&net.s.ledger, &sum);
    return sum.lost == 0;
}

bool network_is_drained(int deadline_ms)
{
    return test_until(drained, NULL, deadline_ms);
}

void network_drained(int again)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    bool is_drained = network_is_drained(2 * STAGE_WAIT_MS);
    struct ledger_sum sum;
    bool is_sound = ledger_is_sound(&net.s.ledger, again, &sum);

    ledger_print(&sum, &text);
    print_message("%s\n", buf_str(&text));
    assert_true(is_drained);
    assert_true(is_sound);
}

/* Milliseconds from the add of one more job to its end. */
static int64_t time_of_a_job(void)
{
    struct mono begin = mono_now();
    int before = ledger_lines(&net.s.ledger, " end");

    network_add("work", 1);
    if (!ledger_until(&net.s.ledger, " end", before + 1, STAGE_WAIT_MS))
        fail_msg("no job is run any more");
    return test_ms_since(begin);
}

int64_t network_works(int within_ms)
{
    int64_t ms = time_of_a_job();

    /* Allow for a slow machine: up to five times what a job takes without a fault. */
    if (ms > within_ms && ms - 5 * time_of_a_job() > within_ms)
        fail_msg("work went on after %lld ms only", (long long)ms);
    return ms;
}

/* ---- watching */

static int64_t connects(void)
{
    return net.proxy.proc.pid != 0 ? proxy_tell(&net.proxy, "accepted") : 0;
}

int64_t network_is_calm(int i, int ms, int lines)
{
    const struct test_laterd *d = &net.d[i];
    int written = test_lines(d->log, NULL), permille;
    int64_t cpu_ms = usage_cpu_ms(d->proc.pid), begin = connects();

    test_pause(ms);
    permille = (int)((usage_cpu_ms(d->proc.pid) - cpu_ms) * 1000 / ms);
    written = test_lines(d->log, NULL) - written;
    print_message("%d ms of trouble: %d.%d %% of a processor, %d lines\n", ms, permille / 10,
                  permille % 10, written);
    assert_in_range(permille, 0, 49);
    assert_in_range(written, 0, lines);
    return connects() - begin;
}

void network_redis(const char *command, ...)
{
    const char *argv[16] = {command};
    struct client *c = network_client();
    struct err err = ERR_INIT;
    struct reply *r = NULL;
    int argc = 1;
    va_list ap;

    va_start(ap, command);
    while (argc < 16 && (argv[argc] = va_arg(ap, const char *)) != NULL)
        argc++;
    va_end(ap);
    if (c == NULL || (r = client_call(c, argc, argv, NULL, &err)) == NULL)
        fail_msg("%s: %s", command, err.text);
    reply_free(r);
    client_close(c);
}
