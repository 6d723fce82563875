/*
 * Handlers with a cgroup of their own: the built laterd in a cgroup that was delegated to it. Needs
 * root and cgroup v2 with the controllers. Elsewhere only the refusal of such settings is tested.
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
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"

#define LONG_MS 60000
#define HUNGRY "exec tail /dev/zero" /* keeps all it reads of an endless line */

static char tree[256];  /* where cgroup v2 is mounted; empty: nowhere, or without controllers */
static char group[300]; /* the delegated cgroup */

static void find_tree(void)
{
    CLEANUP_BUF struct buf said = BUF_INIT;

    (void)test_sh_out("t=$(awk '$3 == \"cgroup2\" { print $2; exit }' /proc/mounts) && "
                      "grep -w memory $t/cgroup.controllers 2>&1 | grep -w cpu | grep -w pids "
                      ">/dev/null && printf '%s' $t",
                      &said);
    if (said.len > 0 && buf_str(&said)[0] == '/')
        (void)snprintf(tree, sizeof(tree), "%s", buf_str(&said));
}

static int open_group(void **state)
{
    (void)snprintf(group, sizeof(group), "%s/later-test-%d", tree, (int)getpid());
    assert_int_equal(test_shf(NULL,
                              "echo '+memory +cpu +pids' >%s/cgroup.subtree_control; mkdir %s",
                              tree, group),
                     0);
    return fx_open(state);
}

static int close_group(void **state)
{
    int status = fx_close(state);

    assert_int_equal(test_shf(NULL, "rmdir %s/.laterd 2>/dev/null; rmdir %s", group, group), 0);
    return status;
}

/* Start laterd in the group, with the command `as` in front to change the user. */
static void launch(const char *as)
{
    CLEANUP_FREE char *line = mem_printf("g=%s; if [ -e $g/.laterd ]; then g=$g/.laterd; fi; "
                                         "echo 0 >$g/cgroup.procs && exec %s %s/laterd --config %s",
                                         group, as, test_build_dir(), a.conf);
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", line, NULL};

    (void)unlink(a.log);
    proc_start(&a.proc, argv, NULL, a.log);
    a.runs = true;
}

static void until_said(const char *text)
{
    CLEANUP_BUF struct buf log = BUF_INIT;

    if (test_laterd_says(&a, text, LONG_MS))
        return;
    test_read(a.log, &log);
    fail_msg("no \"%s\" in:\n%s", text, buf_str(&log));
}

static void start_in_group(const char *yaml)
{
    test_laterd_conf(&a, dir, "a", redis.url, yaml);
    launch("");
    until_said("event=registered");
}

static void is_refused(const char *as, const char *yaml, const char *says)
{
    test_laterd_conf(&a, dir, "a", redis.url, yaml);
    launch(as);
    assert_int_equal(proc_wait(&a.proc, LONG_MS), 78);
    until_said(says);
    proc_done(&a.proc);
    a.runs = false;
}

/* Are there no cgroups of jobs any more? */
static bool none_left(void *arg)
{
    (void)arg;
    return test_shf(NULL, "! ls -d %s/job.* 2>/dev/null", group) == 0;
}

static char *add(const char *queue)
{
    char *id = test_add(&redis, queue, NULL, NULL, "x");

    assert_non_null(id);
    return id;
}

static void ends_as(const char *id, const char *state, const char *text)
{
    bool has_ended = test_until_state(&redis, id, state, LONG_MS);
    struct reply *r = test_fcall(&redis, "later_result", id, NULL);

    assert_non_null(r);
    if (!has_ended || strstr(reply_str(reply_at(r, 4)), text) == NULL)
        fail_msg("%s, \"%s\", and not \"%s\": %s", reply_str(reply_at(r, 0)),
                 reply_str(reply_at(r, 4)), text, reply_str(reply_at(r, 5)));
    reply_free(r);
    assert_true(test_until(none_left, NULL, LONG_MS));
}

static long resident_kib(void)
{
    CLEANUP_FREE char *path = mem_printf("/proc/%d/status", (int)a.proc.pid);
    CLEANUP_BUF struct buf text = BUF_INIT;
    const char *line;

    test_read(path, &text);
    line = strstr(buf_str(&text), "VmRSS:");
    assert_non_null(line);
    return strtol(line + 6, NULL, 10);
}

/* ---- limits that are met */

static void test_memory(void **state)
{
    CLEANUP_FREE char *calm = NULL, *hungry = NULL;
    long before;

    (void)state;
    test_handler(dir, "hungry", HUNGRY);
    test_handler(dir, "calm", "until [ -e %s ]; do sleep 0.05; done; echo well", out);
    start_in_group("queues:\n  hungry: { memory: 32MiB, attempts: 1 }\n  calm: { memory: 32MiB, "
                   "keep: 1h }\n");
    before = resident_kib();
    calm = add("calm");
    assert_true(test_until_state(&redis, calm, "running", LONG_MS));
    hungry = add("hungry");
    assert_true(test_until_state(&redis, hungry, "dead", LONG_MS));
    assert_true(test_state_is(&redis, calm, "running"));
    test_shf(NULL, "touch %s", out);
    ends_as(hungry, "dead", "over memory limit (32MiB): killed by signal 9");
    ends_as(calm, "done", "exit status 0");
    assert_true(resident_kib() < before + 2048);
}

/* When a job is over its limit, all its processes are killed: nobody asked for half a job. */
static void test_memory_of_a_child(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(dir, "work", "tail /dev/zero; echo survived >%s", out);
    start_in_group("queues:\n  work: { memory: 32MiB, attempts: 1 }\n");
    id = add("work");
    ends_as(id, "dead", "over memory limit (32MiB): killed by signal 9");
    assert_int_equal(access(out, F_OK), -1);
}

/* Its filters count, too. */
static void test_memory_of_a_filter(void **state)
{
    CLEANUP_FREE char *folder = mem_printf("%s/filters", dir), *id = NULL;
    CLEANUP_FREE char *yaml =
        mem_printf("filters_dir: %s/handlers\nqueues:\n  work: { memory: 32MiB, attempts: 1, "
                   "filters: [hungry] }\n",
                   folder);

    (void)state;
    test_shf(NULL, "mkdir -p %s/handlers", folder);
    test_handler(folder, "hungry", HUNGRY);
    test_handler(dir, "work", "echo survived >%s", out);
    start_in_group(yaml);
    id = add("work");
    ends_as(id, "dead", "over memory limit (32MiB)");
    assert_int_equal(access(out, F_OK), -1);
}

static void test_processes(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(dir, "work", "for i in 1 2 3 4 5 6 7 8 9; do sleep 600 & done; wait");
    start_in_group("queues:\n  work: { pids: 5, attempts: 1 }\n");
    id = add("work");
    ends_as(id, "dead", "over its limit of processes (5): exit status");
}

static void test_processor(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(dir, "work", "cat %s$(sed -n 's/^0:://p' /proc/self/cgroup)/cpu.max >%s", tree,
                 out);
    start_in_group("queues:\n  work: { cpu: 20%, keep: 1h }\n");
    id = add("work");
    ends_as(id, "done", "exit status 0");
    assert_int_equal(test_lines(out, "20000 100000"), 1);
}

static void test_stream(void **state)
{
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *yaml =
        mem_printf("queues:\n  work: { mode: stream, memory: 32MiB, attempts: 1, handler: "
                   "[%s/handlers/serve] }\n",
                   dir);

    (void)state;
    test_handler(dir, "serve", "echo later-stream 1; read -r line; " HUNGRY);
    start_in_group(yaml);
    id = add("work");
    assert_true(test_until_state(&redis, id, "dead", LONG_MS));
    until_said("over memory limit (32MiB)");
    assert_int_equal(test_laterd_stop(&a), 0);
    ends_as(id, "dead", "over memory limit (32MiB): killed by signal 9");
}

/* ---- what else a cgroup does */

static void test_nothing_is_left_behind(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(dir, "work", "setsid sleep 654321 & exit 0");
    start_in_group("queues:\n  work: { pids: 50, keep: 1h }\n");
    id = add("work");
    ends_as(id, "done", "exit status 0");
    assert_int_equal(test_sh("! pgrep -f 'sleep 65432[1]'"), 0);
}

/* A handler of another user cannot raise its limits. */
static void test_no_way_out(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(dir, "work",
                 "g=%s$(sed -n 's/^0:://p' /proc/self/cgroup); "
                 "if echo max >$g/memory.max; then exit 3; fi 2>/dev/null; "
                 "if echo 0 >%s/.laterd/cgroup.procs; then exit 4; fi 2>/dev/null; exit 0",
                 tree, group);
    assert_int_equal(chmod(dir, 0755), 0);
    start_in_group("queues:\n  work: { user: nobody, memory: 32MiB, keep: 1h, attempts: 1 }\n");
    id = add("work");
    ends_as(id, "done", "exit status 0");
}

static void test_killed_daemon(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(dir, "work",
                 "if [ -e %s ]; then exit 0; fi; touch %s; env -i setsid sleep 654322 & sleep 600",
                 out, out);
    start_in_group("queues:\n  work: { pids: 50, keep: 1h }\n");
    id = add("work");
    assert_true(test_until_lines(out, NULL, 0, LONG_MS));
    assert_true(test_until_state(&redis, id, "running", LONG_MS));
    while (test_sh("pgrep -f 'sleep 65432[2]' >/dev/null") != 0)
        assert_true(test_state_is(&redis, id, "running"));
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    start_in_group("queues:\n  work: { pids: 50, keep: 1h }\n");
    ends_as(id, "done", "exit status 0");
    assert_int_equal(test_sh("! pgrep -f 'sleep 65432[2]'"), 0);
}

static void test_reload(void **state)
{
    CLEANUP_FREE char *first = NULL, *id = NULL;

    (void)state;
    test_handler(dir, "work", "tail /dev/zero | head -c 100000000 >/dev/null");
    start_in_group("queues:\n  work: { memory: 64MiB, attempts: 1 }\n");
    first = add("work");
    ends_as(first, "dead", "over memory limit (64MiB)");
    assert_int_equal(test_shf(NULL, "sed -i s/64MiB/24MiB/ %s", a.conf), 0);
    test_laterd_kill(&a, SIGHUP);
    until_said("event=reload result=done");
    id = add("work");
    ends_as(id, "dead", "over memory limit (24MiB)");
}

/* ---- refused */

static void test_not_alone(void **state)
{
    struct proc sleeper;
    CLEANUP_FREE char *line = mem_printf("echo 0 >%s/cgroup.procs && exec sleep 600", group);
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", line, NULL};

    (void)state;
    proc_start(&sleeper, argv, NULL, NULL);
    while (test_shf(NULL, "grep -qx %d %s/cgroup.procs", (int)sleeper.pid, group) != 0)
        assert_int_equal(kill(sleeper.pid, 0), 0);
    is_refused("", "queues:\n  work: { memory: 32MiB }\n",
               ":6: work: other programs are in laterd's cgroup");
    proc_signal(&sleeper, SIGKILL);
    (void)proc_wait(&sleeper, LONG_MS);
    proc_done(&sleeper);
}

static void test_not_delegated(void **state)
{
    CLEANUP_FREE char *folder = mem_printf("%s/state-a", dir);

    (void)state;
    (void)mkdir(folder, 0700);
    assert_int_equal(chmod(dir, 0755), 0);
    is_refused("setpriv --reuid=1 --regid=1 --clear-groups", "queues:\n  work: { cpu: 50% }\n",
               ":6: work: cpu: laterd may not write to its cgroup");
}

/* A host has no cgroups, or only part of what is needed. */
static void test_without_cgroups(void **state)
{
    static const struct {
        const char *yaml, *says;
    } cases[] = {{"queues:\n  work: { memory: 32MiB }\n", ":6: work: memory: "},
                 {"queues:\n  work: { cpu: 50% }\n", ":6: work: cpu: "},
                 {"defaults: { pids: 20 }\n", ":5: defaults: pids: "}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_laterd_conf(&a, dir, "a", redis.url, cases[i].yaml);
        test_laterd_launch(&a);
        assert_int_equal(proc_wait(&a.proc, LONG_MS), 78);
        until_said(cases[i].says);
        proc_done(&a.proc);
        a.runs = false;
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_group, close_group)

int main(void)
{
    const struct CMUnitTest tests[] = {T(test_memory),
                                       T(test_memory_of_a_child),
                                       T(test_memory_of_a_filter),
                                       T(test_processes),
                                       T(test_processor),
                                       T(test_stream),
                                       T(test_nothing_is_left_behind),
                                       T(test_no_way_out),
                                       T(test_killed_daemon),
                                       T(test_reload),
                                       T(test_not_alone),
                                       T(test_not_delegated)};
    const struct CMUnitTest without[] = {
        cmocka_unit_test_setup_teardown(test_without_cgroups, fx_open, fx_close)};

    find_tree();
    if (geteuid() != 0 || tree[0] == '\0') {
        print_message("no root, or no cgroup v2 with memory, cpu and pids: only that is tried\n");
        return cmocka_run_group_tests(without, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
