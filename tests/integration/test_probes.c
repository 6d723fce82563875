/*
 * `later health --live` and `--ready`, which a container's probes ask the daemon beside them, with
 * the real programs: a frozen daemon, one that has lost Redis, two daemons, and strangers that
 * pretend to be one.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"

#define LONG_MS 60000
#define ANSWER_MS 50000 /* a probe does not wait for redis_timeout */
#define NOBODY 65534

static char ns[32]; /* ours alone: other tests run at the same time */

static void launch(struct test_laterd *d, const char *name, const char *yaml)
{
    CLEANUP_FREE char *all = mem_printf("namespace: %s\nredis_timeout: 60s\n%s", ns, yaml);

    test_laterd_conf(d, dir, name, redis.url, all);
    test_laterd_launch(d);
    assert_true(test_laterd_says(d, "event=registered", LONG_MS));
}

/* Run later health --WHAT with the daemon's file. Its exit status and output must be these. */
static void assert_probe(const char *what, int status, const char *says)
{
    CLEANUP_FREE char *line = mem_printf("$LATER --config $DIR/a.yaml health --%s", what);
    struct mono begin = mono_now();

    test_says(line, status, says);
    assert_in_range(test_ms_since(begin), 0, ANSWER_MS);
}

static bool is_ready(void *arg)
{
    (void)arg;
    return test_sh("$LATER --config $DIR/a.yaml health --ready >/dev/null") == 0;
}

static bool is_not_ready(void *arg)
{
    return !is_ready(arg);
}

static void test_live_and_ready(void **state)
{
    (void)state;
    test_handler(dir, "mail", "true");
    (void)setenv("LATERD_STATE_DIR", "none", 1);
    launch(&a, "a", "");
    (void)unsetenv("LATERD_STATE_DIR");
    assert_probe("live", 0, "live: 1 daemon of namespace");
    assert_true(test_until(is_ready, NULL, LONG_MS));
    assert_probe("ready", 0, "ready: 1 daemon of namespace");
    test_says("$LATER --config $DIR/a.yaml --json health --live", 0, "\"status\":\"live\"");
    test_says("$LATER --config $DIR/a.yaml --namespace other health --live", 1, "no-daemon");
    test_laterd_kill(&a, SIGUSR1);
    assert_true(test_until(is_not_ready, NULL, LONG_MS));
    assert_probe("ready", 1, "it is quiet");
    assert_probe("live", 0, "live");
    assert_int_equal(test_laterd_stop(&a), 0);
    assert_probe("live", 1, "no-daemon");
    assert_probe("ready", 1, "no-daemon");
}

static void test_frozen(void **state)
{
    CLEANUP_FREE char *named = NULL;

    (void)state;
    test_handler(dir, "mail", "true");
    launch(&a, "a", "");
    named = mem_printf("silent: laterd (pid %d,", (int)a.proc.pid);
    test_laterd_kill(&a, SIGSTOP);
    assert_probe("live", 1, named);
    assert_probe("ready", 1, named);
    test_laterd_kill(&a, SIGCONT);
    assert_probe("live", 0, "live");
}

/* A healthy daemon does not hide one that hangs. */
static void test_two(void **state)
{
    CLEANUP_FREE char *named = NULL;

    (void)state;
    test_handler(dir, "mail", "true");
    launch(&a, "a", "");
    launch(&b, "b", "");
    assert_probe("live", 0, "live: 2 daemons");
    named = mem_printf("silent: laterd (pid %d,", (int)b.proc.pid);
    test_laterd_kill(&b, SIGSTOP);
    assert_probe("live", 1, named);
    test_laterd_kill(&b, SIGCONT);
    assert_probe("live", 0, "live: 2 daemons");
}

static void test_redis_away(void **state)
{
    (void)state;
    test_handler(dir, "mail", "true");
    launch(&a, "a", "");
    assert_true(test_until(is_ready, NULL, LONG_MS));
    test_redis_kill(&redis, SIGKILL);
    assert_probe("live", 0, "live");
    assert_probe("ready", 1, "degraded");
    test_redis_restart(&redis);
    assert_true(test_until(is_ready, NULL, LONG_MS));
    /* Redis does not answer: the probe still does, in time. */
    test_redis_kill(&redis, SIGSTOP);
    assert_probe("live", 0, "live");
    test_redis_kill(&redis, SIGCONT);
}

/* A Redis that accepts and does not answer. */
static void test_redis_hangs(void **state)
{
    struct mono begin;

    (void)state;
    test_handler(dir, "mail", "true");
    launch(&a, "a", "");
    assert_true(test_until(is_ready, NULL, LONG_MS));
    test_redis_kill(&redis, SIGSTOP);
    begin = mono_now();
    test_says("$LATER --config $DIR/a.yaml health --ready", 1, "redis: ");
    assert_in_range(test_ms_since(begin), 2000, ANSWER_MS);
    test_redis_kill(&redis, SIGCONT);
    assert_true(test_until(is_ready, NULL, LONG_MS));
}

static void test_no_handler(void **state)
{
    (void)state;
    launch(&a, "a", "");
    assert_probe("live", 0, "live");
    assert_probe("ready", 1, "it serves no queue");
}

/* ---- strangers: needs root, for another user */

/* Start a process of another user that listens where a daemon would. says NULL: it says nothing. */
static pid_t start_impostor(const char *says, int backlog)
{
    int ready[2];
    char c;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        /* The name says that it is process 1. */
        int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "laterd/%s/1-0123abcd", ns);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        if (setuid(NOBODY) != 0 ||
            bind(fd, (struct sockaddr *)&name,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) != 0 ||
            listen(fd, backlog) != 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;) {
            int caller = says != NULL ? accept(fd, NULL, NULL) : pause();

            (void)!write(caller, says, strlen(says));
            (void)close(caller);
        }
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return pid;
}

static void end_impostor(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* As a user that is neither root nor the impostor. */
#define AS_DAEMON "setpriv --reuid=1 --clear-groups $DIR/later --config $DIR/a.yaml "

static void test_impostors(void **state)
{
    pid_t pid;

    (void)state;
    if (geteuid() != 0)
        skip();
    test_handler(dir, "mail", "true");
    test_says("cp $LATER $DIR/later && chmod 755 $DIR $DIR/later", 0, "");
    launch(&a, "a", "");
    test_says("chmod 644 $DIR/a.yaml", 0, "");
    /* Root's own daemon counts; a mute or talkative stranger does not. */
    pid = start_impostor(NULL, 1);
    test_says(AS_DAEMON "health --live", 0, "live: 1 daemon");
    end_impostor(pid);
    pid = start_impostor(NULL, 0);
    test_says(AS_DAEMON "health --live", 0, "live: 1 daemon");
    test_says("$LATER --config $DIR/a.yaml health --live", 0, "live: 1 daemon"); /* as root */
    /* The impostor's backlog is full now. */
    test_says(AS_DAEMON "health --live", 0, "live: 1 daemon");
    end_impostor(pid);
    assert_int_equal(test_laterd_stop(&a), 0);
    pid = start_impostor("laterd epoch=1 linked=1 registered=1 quiet=0 stopping=0 queues=1\n", 8);
    test_says(AS_DAEMON "health --live", 1, "no-daemon");
    end_impostor(pid);
}

/* Endless callers that do not even take their answers cost a bounded part of the daemon. */
static void flood(const char *name, size_t n)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    memcpy(to.sun_path + 1, name, n);
    for (;;) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

        (void)connect(fd, (struct sockaddr *)&to,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n));
        (void)close(fd);
    }
}

static void test_flood(void **state)
{
    CLEANUP_FREE char *find = mem_printf(
        "grep -o 'laterd/%s/[0-9]*-[0-9a-f]*' /proc/net/unix | head -n 1 | tr -d '\\n'", ns);
    CLEANUP_BUF struct buf name = BUF_INIT;
    pid_t pid;

    (void)state;
    test_handler(dir, "mail", "true");
    launch(&a, "a", "");
    assert_int_equal(test_sh_out(find, &name), 0);
    assert_true(name.len > 0);
    pid = fork();
    if (pid == 0)
        flood(name.data, name.len);
    for (int i = 0; i < 20; i++)
        test_says("$LATER --config $DIR/a.yaml add mail x", 0, "j");
    assert_true(test_until_lines(a.log, "outcome=done", 20, LONG_MS));
    end_impostor(pid);
    assert_true(test_until(is_ready, NULL, LONG_MS));
}

/* ---- cmocka */

static int setup(void **state)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());

    (void)setenv("LATER", later, 1);
    (void)snprintf(ns, sizeof(ns), "probes%d", (int)getpid());
    if (fx_open(state) != 0)
        return -1;
    (void)setenv("DIR", dir, 1);
    return 0;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, fx_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_live_and_ready), T(test_frozen),     T(test_two),       T(test_redis_away),
        T(test_redis_hangs),    T(test_no_handler), T(test_impostors), T(test_flood)};

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
