/*
 * What a service manager or a container gives to the built laterd: a credential, and the role of
 * process 1.
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
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"

#define LONG_MS 60000

static void write_credential(char folder[96])
{
    CLEANUP_FREE char *line = NULL;

    (void)snprintf(folder, 96, "%s/credentials", dir);
    line = mem_printf("mkdir %s && echo s3cret >%s/redis-password && chmod 440 %s/redis-password",
                      folder, folder, folder);
    assert_int_equal(test_sh(line), 0);
}

static void launch_with_credential(const char *yaml)
{
    char folder[96];

    write_credential(folder);
    assert_int_equal(setenv("CREDENTIALS_DIRECTORY", folder, 1), 0);
    test_laterd_conf(&a, dir, "a", redis.url, yaml);
    test_laterd_launch(&a);
    assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
}

static void test_credential(void **state)
{
    (void)state;
    test_handler(dir, "work", "env >>%s", out);
    test_redis_load(&redis);
    free(test_add(&redis, "work", NULL, NULL, "x"));
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "requirepass", "s3cret", NULL));
    launch_with_credential("defaults: { env_pass: ['*'] }\n");
    assert_true(test_laterd_says(&a, "event=registered", LONG_MS));
    assert_true(test_laterd_says(&a, "outcome=done", LONG_MS));
    assert_int_equal(test_lines(out, "LATER_ID="), 1);
    assert_int_equal(test_lines(out, "CREDENTIALS_DIRECTORY"), 0);
    assert_int_equal(test_lines(out, "s3cret"), 0);
    assert_int_equal(test_lines(a.log, "s3cret"), 0);
}

/* The password file that the configuration names wins over the credential. */
static void test_named_file_wins(void **state)
{
    CLEANUP_FREE char *line = mem_printf("echo other >%s/pass && chmod 600 %s/pass", dir, dir);
    CLEANUP_FREE char *yaml = mem_printf("redis_password_file: %s/pass\n", dir);

    (void)state;
    assert_int_equal(test_sh(line), 0);
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "requirepass", "other", NULL));
    launch_with_credential(yaml);
    assert_true(test_laterd_says(&a, "event=registered", LONG_MS));
}

/* ---- process 1 */

static void launch_as_process_1(struct test_laterd *d)
{
    CLEANUP_FREE char *program = mem_printf("%s/laterd", test_build_dir());
    char *argv[] = {(char *)(uintptr_t) "unshare",
                    (char *)(uintptr_t) "--pid",
                    (char *)(uintptr_t) "--fork",
                    (char *)(uintptr_t) "--mount-proc",
                    (char *)(uintptr_t) "--kill-child",
                    program,
                    (char *)(uintptr_t) "--config",
                    d->conf,
                    NULL};

    test_laterd_conf(d, dir, "a", redis.url, "");
    (void)unlink(d->log);
    proc_start(&d->proc, argv, NULL, d->log);
    d->runs = true;
    assert_true(test_laterd_says(d, "event=registered", LONG_MS));
}

/* Signal process 1 of the namespace, as a container's engine does. */
static void tell_process_1(const struct test_laterd *d, const char *sig)
{
    CLEANUP_FREE char *line = mem_printf("kill -%s $(pgrep -P %d)", sig, (int)d->proc.pid);

    assert_int_equal(test_sh(line), 0);
}

static void test_process_1_reaps(void **state)
{
    if (geteuid() != 0)
        skip();
    (void)state;
    test_handler(dir, "orphan", "setsid sleep 0.2 </dev/null >/dev/null 2>&1 & echo $! >%s.pid",
                 out);
    test_handler(dir, "look",
                 "for i in $(seq 100); do [ -e /proc/$(cat %s.pid) ] || { echo gone >>%s; exit; }; "
                 "sleep 0.05; done; cat /proc/$(cat %s.pid)/stat >>%s",
                 out, out, out, out);
    launch_as_process_1(&a);
    free(test_add(&redis, "orphan", NULL, NULL, "x"));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    free(test_add(&redis, "look", NULL, NULL, "x"));
    assert_true(test_until_lines(out, NULL, 1, LONG_MS));
    assert_int_equal(test_lines(out, "gone"), 1);
    tell_process_1(&a, "TERM");
    assert_int_equal(test_laterd_wait(&a, LONG_MS), 0);
}

static void test_process_1_hands_signals_on(void **state)
{
    if (geteuid() != 0)
        skip();
    (void)state;
    test_handler(dir, "work", "echo begun >>%s; sleep 0.5; echo ended >>%s", out, out);
    launch_as_process_1(&a);
    tell_process_1(&a, "HUP");
    assert_true(test_laterd_says(&a, "event=reload result=done", LONG_MS));
    free(test_add(&redis, "work", NULL, NULL, "x"));
    assert_true(test_until_lines(out, "begun", 1, LONG_MS));
    tell_process_1(&a, "TERM");
    assert_int_equal(test_laterd_wait(&a, LONG_MS), 0); /* in order: the job has ended */
    assert_int_equal(test_lines(out, "ended"), 1);
    assert_int_equal(test_lines(a.log, "event=stopped"), 1);
}

/* When laterd ends, process 1 ends with the same status, and so does the container. */
static void test_process_1_ends_with_it(void **state)
{
    CLEANUP_FREE char *line = NULL;

    if (geteuid() != 0)
        skip();
    (void)state;
    launch_as_process_1(&a);
    line = mem_printf("kill -KILL $(pgrep -P $(pgrep -P %d) laterd)", (int)a.proc.pid);
    assert_int_equal(test_sh(line), 0);
    assert_int_equal(test_laterd_wait(&a, LONG_MS), 128 + SIGKILL);
    a.runs = false;
}

static void test_root_is_warned(void **state)
{
    (void)state;
    start_a("");
    assert_int_equal(test_lines(a.log, "event=root"), geteuid() == 0 ? 1 : 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fx_open, fx_close)

int main(void)
{
    const struct CMUnitTest tests[] = {T(test_credential),
                                       T(test_named_file_wins),
                                       T(test_process_1_reaps),
                                       T(test_process_1_hands_signals_on),
                                       T(test_process_1_ends_with_it),
                                       T(test_root_is_warned)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
