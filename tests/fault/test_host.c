/*
 * A host that lacks something (entries S of the fault catalogue), and configuration that changes
 * while jobs run (entries C8, C9, C11), with the real daemon.
 */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/shared.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "usage.h"
#include "watched.h"

static bool may_mount; /* we are in a mount namespace of our own, which ends with us */
static char small[96]; /* the mounted folder; "": none */

/* Mount a small file system at NAME in the folder. */
static void mount_small(const char *name, const char *options)
{
    (void)snprintf(small, sizeof(small), "%s/%s", watched.dir, name);
    assert_true(mkdir(small, 0700) == 0);
    assert_int_equal(mount("none", small, "tmpfs", MS_NOSUID, options), 0);
}

static int setup(void **state)
{
    small[0] = '\0';
    return watched_setup(state);
}

static void unmount_small(void)
{
    if (small[0] != '\0')
        (void)umount2(small, MNT_DETACH);
    small[0] = '\0';
}

/* Unmount lazily, because the daemon still uses the file system, and before the folder is
 * removed. */
static int teardown(void **state)
{
    unmount_small();
    return watched_teardown(state);
}

/* ---- the log cannot be written */

static void goes_on(int n)
{
    int had = test_lines(watched.out, "ran");

    watched_add_many("work", n);
    assert_true(test_until_lines(watched.out, "ran", had + n, LONG_MS));
    assert_true(watched_until_empty(LONG_MS));
}

static void make_work(void)
{
    test_handler(watched.dir, "work", "echo chatter; echo ran $LATER_ATTEMPT >> %s", watched.out);
}

static void S1_log_device_full(void **state)
{
    (void)state;
    make_work();
    watched_start_under("exec", "2>/dev/full", "log_level: debug", true);
    goes_on(50);
    watched_assert_clean();
    watched_assert_idle();
}

static void S1_log_disk_full(void **state)
{
    CLEANUP_FREE char *suffix = NULL;
    CLEANUP_FREE char *log = NULL;

    (void)state;
    if (!may_mount)
        skip(); /* a file system of its own needs root */
    make_work();
    mount_small("small", "size=64k");
    log = mem_printf("%s/log", small);
    suffix = mem_printf("2>>%s", log);
    watched_start_under("exec", suffix, "", true);
    (void)watched_sh(NULL, "cat /dev/zero > %s/filler", small);
    goes_on(50);
    watched_assert_idle();
    assert_int_equal(test_lines(log, "dropped_lines="), 0);
    assert_int_equal(watched_sh(NULL, "rm %s/filler", small), 0);
    goes_on(1);
    assert_true(test_until_lines(log, "dropped_lines=", 1, LONG_MS));
    watched_assert_clean();
    assert_int_equal(watched_sh(NULL,
                                "sed -n 's/.*dropped_lines=\\([0-9]*\\).*/figure S1: disk full: "
                                "50 jobs ran, \\1 lines lost and counted/p' %s > %s/figure",
                                log, watched.dir),
                     0);
    {
        CLEANUP_FREE char *path = mem_printf("%s/figure", watched.dir);
        CLEANUP_BUF struct buf text = BUF_INIT;

        test_read(path, &text);
        printf("%s", buf_str(&text));
    }
}

static void S2_log_deleted_and_made_a_folder(void **state)
{
    (void)state;
    make_work();
    watched_start("");
    assert_int_equal(watched_sh(NULL, "mv %s %s.1", watched.d.log, watched.d.log), 0);
    goes_on(5);
    assert_int_equal(watched_sh(NULL, "rm %s.1 && mkdir %s", watched.d.log, watched.d.log), 0);
    goes_on(5);
    watched_assert_clean();
    watched_assert_idle();
    assert_int_equal(watched_sh(NULL, "rmdir %s", watched.d.log), 0);
}

static void S2_log_reader_gone(void **state)
{
    (void)state;
    make_work();
    watched_start_under("", "2>&1 | head -n 2 >/dev/null", "log_level: debug", true);
    goes_on(50);
    watched_assert_clean();
    watched_assert_idle();
}

/* ---- the state folder */

static void refuses_state(const char *options, int status, const char *says)
{
    CLEANUP_BUF struct buf log = BUF_INIT;

    mount_small("state-a", options);
    test_laterd_conf(&watched.d, watched.dir, "a", watched.redis.url, "");
    test_laterd_launch(&watched.d);
    assert_int_equal(test_laterd_wait(&watched.d, LONG_MS), status);
    test_read(watched.d.log, &log);
    if (strstr(buf_str(&log), says) == NULL || strstr(buf_str(&log), "state-a") == NULL)
        fail_msg("\"%s\" does not say \"%s\"", buf_str(&log), says);
}

static void S3_state_folder_full(void **state)
{
    (void)state;
    if (!may_mount)
        skip(); /* a file system of its own needs root */
    refuses_state("size=4k,mode=700", 71, "No space left on device");
}

static void S3_state_folder_read_only(void **state)
{
    (void)state;
    if (!may_mount)
        skip(); /* a file system of its own needs root */
    refuses_state("ro,mode=700", 71, "Read-only file system");
}

static void S3_state_folder_gone(void **state)
{
    (void)state;
    make_work();
    watched_start("");
    assert_int_equal(watched_sh(NULL, "rm -rf %s/state-a", watched.dir), 0);
    goes_on(20);
    watched_assert_clean();
}

/* Somebody empties the file under a daemon that writes to it, and then the daemon is killed. */
static void S3_state_file_truncated(void **state)
{
    (void)state;
    make_work();
    watched_start("");
    assert_int_equal(watched_sh(NULL, "truncate -s 0 %s/state-a/worker", watched.dir), 0);
    goes_on(20);
    assert_true(test_laterd_says(&watched.d, "state=made-again", LONG_MS));
    assert_int_equal(
        watched_sh(NULL, "test $(stat -c %%s %s/state-a/worker) -gt 8192", watched.dir), 0);
    watched_assert_clean();
}

/* Beyond the limit of a file's size a write is a signal, unless that is ignored. */
static void S3_log_at_its_limit(void **state)
{
    (void)state;
    make_work();
    watched_start_under("ulimit -f 64; exec", "", "log_level: debug", true);
    goes_on(200);
    watched_assert_clean();
}

/* With descriptors for a few jobs and places for sixteen: it goes on at the pace of the few, says
 * so, and no attempt is spent. */
static void H5_few_descriptors(void **state)
{
    CLEANUP_FREE char *health = NULL;

    (void)state;
    make_work();
    watched_start_under("ulimit -n 64; exec", "", "concurrency: 16", true);
    goes_on(300);
    assert_int_equal(test_lines(watched.out, "ran 1"), 300);
    assert_true(test_laterd_says(&watched.d, "event=small-host state=begun", LONG_MS));
    health = mem_printf("%s/later --redis %s health", test_build_dir(), watched.redis.url);
    assert_true(watched_sh(NULL,
                           "for i in $(seq 300); do %s | grep small-host && exit 0; sleep "
                           "0.1; done; exit 1",
                           health) == 0);
    watched_assert_clean();
}

static bool add_works(void *arg)
{
    struct reply *r = test_fcall(arg, "later_add", "work", "x", NULL);
    bool works = r != NULL;

    reply_free(r);
    return works;
}

static bool add_fails(void *arg)
{
    return !add_works(arg);
}

static void S3_embedded_disk_full(void **state)
{
    struct test_redis inner = {0};
    int64_t cpu;
    int had;

    (void)state;
    if (!may_mount)
        skip(); /* a file system of its own needs root */
    make_work();
    mount_small("state-a", "size=4m,mode=700");
    test_laterd_conf(&watched.d, watched.dir, "a", "embedded", "");
    test_laterd_start(&watched.d);
    watched.pid = watched.d.proc.pid;
    (void)snprintf(inner.url, sizeof(inner.url), "unix:%s/redis.sock", small);
    assert_true(add_works(&inner));
    assert_true(test_until_lines(watched.out, "ran", 1, LONG_MS));
    (void)watched_sh(NULL, "cat /dev/zero > %s/filler", small);
    assert_true(test_until(add_fails, &inner, LONG_MS));
    assert_true(test_laterd_says(&watched.d, "class=full", LONG_MS));
    cpu = usage_cpu_ms(watched.pid);
    assert_int_equal(watched_sh(NULL, "sleep 3"), 0);
    assert_in_range(usage_cpu_ms(watched.pid) - cpu, 0, 300);
    had = test_lines(watched.out, "ran");
    assert_int_equal(watched_sh(NULL, "rm %s/filler", small), 0);
    assert_true(test_until(add_works, &inner, LONG_MS));
    assert_true(test_until_lines(watched.out, "ran", had + 1, LONG_MS));
    /* Stop it before its state folder is unmounted. */
    assert_int_equal(test_laterd_stop(&watched.d), 0);
}

/* ---- system calls that fail */

static void S4_interrupted_calls(void **state)
{
    (void)state;
    make_work();
    watched_start("concurrency: 4");
    /* Not epoll_wait: when strace detaches, the current call returns ENOSYS, and an idle daemon is
     * in epoll_wait. */
    assert_true(watched_inject_begin("read,write,readv,writev,poll,ppoll,waitid,recvfrom,sendto:"
                                     "error=EINTR:when=1+2"));
    goes_on(40);
    watched_inject_end();
    goes_on(5);
    assert_int_equal(test_lines(watched.out, "ran 1"), 45);
    assert_int_equal(test_lines(watched.d.log, "outcome=retry"), 0);
    assert_int_equal(test_lines(watched.d.log, "outcome=released"), 0);
    watched_assert_clean();
}

/* Output that cannot be read is lost, but the exit status still decides. */
static void S5_output_cannot_be_read(void **state)
{
    CLEANUP_FREE char *good = NULL;
    CLEANUP_FREE char *bad = NULL;

    (void)state;
    test_handler(watched.dir, "good", "echo chatter; sleep 0.1; exit 0");
    test_handler(watched.dir, "bad", "echo chatter; sleep 0.1; exit 4");
    watched_start("concurrency: 2\ndefaults: { attempts: 1 }");
    assert_true(watched_inject_pool("read:error=EIO"));
    good = watched_add_with("good", "keep", "1h", "x");
    bad = watched_add("bad", "x");
    assert_true(watched_until_state(bad, "dead"));
    assert_true(watched_until_state(good, "done"));
    watched_inject_end();
    watched_assert_clean();
}

/* A job whose payload was not fully written is not done, whatever its handler does. */
static void S5_payload_cannot_be_written(void **state)
{
    CLEANUP_FREE char *payload = mem_new(300001);
    CLEANUP_FREE char *id = NULL;

    (void)state;
    memset(payload, 'p', 300000);
    test_handler(watched.dir, "count", "wc -c >> %s; exit 0", watched.out);
    watched_start("concurrency: 1\ndefaults: { attempts: 9, backoff: { first: 100ms } }");
    /* Pool threads write only to the pipes of payloads and to the mailbox of the main thread. */
    assert_true(watched_inject_pool("write:error=EIO:when=2"));
    id = watched_add_with("count", "keep", "1h", payload);
    assert_true(watched_until_state(id, "done"));
    watched_inject_end();
    assert_int_equal(test_lines(watched.d.log, "Input/output error"), 1);
    assert_int_equal(test_lines(watched.out, "300000"), 1);
    {
        CLEANUP_FREE char *start = watched_result(id, 3);

        assert_string_equal(start, "2");
    }
    watched_assert_clean();
}

/* ---- processor, memory */

static void S6_starved_of_processor(void **state)
{
    int seconds = test_is_long() ? 60 : 12;
    struct test_laterd other;
    struct proc hogs;
    CLEANUP_FREE char *cmd =
        mem_printf("for i in 1 2 3 4 5 6 7 8; do taskset -c 0 sh -c 'while :; do :; done' & done; "
                   "sleep %d; kill 0", /* its process group, of its own */
                   seconds);
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", cmd, NULL};
    int runs, ids;

    (void)state;
    test_handler(watched.dir, "work", "echo \"$LATER_ID.$LATER_ATTEMPT\" >> %s; sleep 0.1",
                 watched.out);
    watched_start_under("exec nice -n 19 taskset -c 0", "", "concurrency: 4", true);
    test_laterd_conf(&other, watched.dir, "b", watched.redis.url, "concurrency: 4");
    test_laterd_start(&other);
    proc_start(&hogs, argv, NULL, NULL);
    watched_add_many("work", 100);
    assert_int_equal(proc_wait(&hogs, seconds * 1000 + 30000), 128 + SIGTERM);
    proc_done(&hogs);
    assert_true(watched_until_empty(4 * LONG_MS));
    runs = test_lines(watched.out, NULL);
    {
        CLEANUP_BUF struct buf n = BUF_INIT;

        assert_int_equal(watched_sh(&n, "sort -u %s | wc -l", watched.out), 0);
        ids = (int)strtol(buf_str(&n), NULL, 10);
    }
    /* Each job started once, and the starved worker was not taken for dead. */
    assert_int_equal(runs, ids);
    assert_int_equal(runs, 100);
    assert_int_equal(test_lines(other.log, "event=reaped"), 0);
    assert_int_equal(test_lines(watched.d.log, "event=given-up"), 0);
    assert_int_equal(test_laterd_stop(&other), 0);
    printf("figure S6: %d s with 8 spinners on its processor at nice 19: 100 jobs once each, not "
           "given up\n",
           seconds);
}

/*
 * The daemon and its handlers are in a memory cgroup that is always full, of pages that a handler
 * writes. So everything else in the cgroup is pressed to give up pages.
 */
static void S7_memory_pressure(void **state)
{
    static const char enter[] =
        "g=/sys/fs/cgroup/memory/later-test-$$; v=memory.limit_in_bytes; "
        "[ -d /sys/fs/cgroup/memory ] || { g=/sys/fs/cgroup/later-test-$$; v=memory.max; }; "
        "mkdir $g && echo 24M > $g/$v && echo $$ > $g/cgroup.procs && echo $g > %s/group; exec";
    CLEANUP_FREE char *prefix = mem_printf(enter, watched.dir);

    (void)state;
    if (geteuid() != 0)
        skip(); /* a cgroup needs root */
    make_work();
    test_handler(watched.dir, "press", "dd if=/dev/zero of=%s/pages bs=1M count=200 2>/dev/null",
                 watched.dir);
    watched_canary_start(15);
    watched_start_under(prefix, "", "concurrency: 4", true);
    watched_add_many("press", 2);
    goes_on(40);
    assert_true(watched_until_empty(LONG_MS));
    assert_int_equal(test_lines(watched.out, "ran 1"), 40);
    (void)watched_canary_check(4000);
    {
        CLEANUP_BUF struct buf failcnt = BUF_INIT;

        assert_int_equal(watched_sh(&failcnt,
                                    "cd $(cat %s/group); cat memory.failcnt 2>/dev/null || "
                                    "sed -n 's/^max //p' memory.events",
                                    watched.dir),
                         0);
        assert_true(strtol(buf_str(&failcnt), NULL, 10) > 0); /* otherwise there was no pressure */
        printf("figure S7: at its memory limit %ld times: 40 jobs once each\n",
               strtol(buf_str(&failcnt), NULL, 10));
    }
    watched_assert_clean();
    assert_int_equal(test_laterd_stop(&watched.d), 0);
    assert_int_equal(watched_sh(NULL, "rmdir $(cat %s/group)", watched.dir), 0);
}

/* ---- what is not there */

static void S8_no_proc(void **state)
{
    (void)state;
    if (!may_mount)
        skip(); /* hiding it needs root */
    make_work();
    watched_start_under(
        "exec unshare --mount sh -c 'mount -t tmpfs none /proc && mount -t tmpfs none "
        "/sys && exec \"$@\"' sh",
        "", "", true);
    goes_on(20);
    watched_assert_clean();
}

static void S8_no_entropy(void **state)
{
    (void)state;
    make_work();
    watched_start_under("exec strace -f -qq -o /dev/null -e inject=getrandom:error=ENOSYS", "", "",
                        true);
    goes_on(20);
    assert_int_equal(test_lines(watched.out, "ran 1"), 20);
}

static void S9_slow_clock(void **state)
{
    CLEANUP_FREE char *file = mem_printf("%s/calls", watched.dir);
    CLEANUP_FREE char *prefix = mem_printf(
        "exec env LATER_TEST_CLOCK_CALLS=%s LD_PRELOAD=%s/tests/support/preload/slow_clock.so",
        file, test_build_dir());
    int64_t *calls = test_shared_make(file, sizeof(*calls)), few, many;

    (void)state;
    make_work();
    watched_start_under(prefix, "", "concurrency: 4", true);
    few = *calls;
    assert_true(few > 0);
    goes_on(20);
    few = *calls - few;
    many = *calls;
    goes_on(200);
    many = *calls - many;
    (void)munmap(calls, sizeof(*calls));
    /* Ten times the jobs need at most ten times as many clock reads, plus those that only depend on
     * the time it takes. */
    assert_in_range(many / 200, 1, 100);
    assert_in_range(many, 1, 12 * few);
    printf("figure S9: %lld questions for the time a job, of a millisecond each\n",
           (long long)many / 200);
    watched_assert_clean();
}

/* ---- secrets */

static const char *const open_to_all[] = {"--unixsocketperm", "777", NULL};

static int setup_open(void **state)
{
    (void)state;
    small[0] = '\0';
    if (watched_setup_with(open_to_all) != 0)
        return -1;
    return chmod(watched.redis.dir, 0755) == 0 && chmod(watched.dir, 0777) == 0 ? 0 : -1;
}

/*
 * A handler runs as the daemon's own user. What the daemon knows (the password of Redis, payloads
 * of other jobs) must be out of its reach: not in its environment, not in the daemon's /proc files,
 * not in a core file of the daemon.
 */
static void S10_core_and_memory_are_closed(void **state)
{
    CLEANUP_FREE char *prefix =
        mem_printf("cd %s; ulimit -c unlimited; exec env NOTE=hunter2 REDISCLI_AUTH=hunter2 "
                   "setpriv %s --pdeathsig KILL",
                   watched.dir, geteuid() == 0 ? "--reuid 54321 --regid 54321 --clear-groups" : "");

    (void)state;
    test_handler(watched.dir, "spy",
                 "for f in environ mem maps auxv; do head -c 1 /proc/$PPID/$f >/dev/null "
                 "2>/dev/null && echo \"read $f\" >> %s; done; "
                 "ls /proc/$PPID/fd/ >/dev/null 2>&1 && echo 'read fd' >> %s; "
                 "env | grep -q hunter2 && echo 'read env' >> %s; echo end >> %s",
                 watched.out, watched.out, watched.out, watched.out);
    watched_start_under(prefix, "", "check_permissions: off", true);
    watched_add_many("spy", 1);
    assert_true(test_until_lines(watched.out, "end", 1, LONG_MS));
    assert_int_equal(test_lines(watched.out, "read "), 0);
    assert_int_equal(kill(watched.pid, SIGSEGV), 0);
    assert_int_equal(proc_wait(&watched.d.proc, LONG_MS), 128 + SIGSEGV);
    proc_done(&watched.d.proc);
    watched.d.runs = false;
    assert_int_equal(watched_sh(NULL, "ls %s/core*", watched.dir), 2);
}

/* ---- configuration that changes */

static void reload_with(const char *yaml)
{
    struct test_laterd edited;
    int had = test_lines(watched.d.log, "event=reload result=");

    test_laterd_conf(&edited, watched.dir, "a", watched.redis.url, yaml);
    assert_int_equal(kill(watched.pid, SIGHUP), 0);
    assert_true(test_until_lines(watched.d.log, "event=reload result=", had + 1, LONG_MS));
}

static bool ten_run(void *arg)
{
    (void)arg;
    return test_int(&watched.redis, "ZCARD", ROOT ":running") == 10;
}

static void C8_limit_lowered_below_what_runs(void **state)
{
    CLEANUP_BUF struct buf most = BUF_INIT;

    (void)state;
    test_handler(watched.dir, "slow",
                 "echo begin >> %s; n=0; while [ ! -e %s/go ]; do sleep 0.05; done; "
                 "if [ -e %s/low ]; then ls %s/at | wc -l >> %s/most; fi; "
                 "touch %s/at/$LATER_ID; sleep 0.2; rm %s/at/$LATER_ID; echo end >> %s",
                 watched.out, watched.dir, watched.dir, watched.dir, watched.dir, watched.dir,
                 watched.dir, watched.out);
    assert_int_equal(watched_sh(NULL, "mkdir %s/at", watched.dir), 0);
    watched_start("concurrency: 16\nqueues: { slow: { concurrency: 10 } }");
    watched_add_many("slow", 25);
    assert_true(test_until(ten_run, NULL, LONG_MS));
    reload_with("concurrency: 16\nqueues: { slow: { concurrency: 2 } }");
    watched_add_many("slow", 5);
    assert_int_equal(watched_sh(NULL, "sleep 2.5"), 0); /* two looks: no more jobs are claimed */
    assert_int_equal(test_lines(watched.out, "begin"), 10);
    assert_int_equal(test_lines(watched.out, "end"), 0);
    assert_int_equal(watched_sh(NULL, "touch %s/go", watched.dir), 0);
    assert_true(test_until_lines(watched.out, "end", 10, LONG_MS));
    assert_int_equal(watched_sh(NULL, "touch %s/low", watched.dir), 0);
    assert_true(test_until_lines(watched.out, "end", 30, LONG_MS));
    /* Each later job counted the others that ran when it started: one at most. */
    assert_int_equal(watched_sh(&most, "sort -rn %s/most | head -n 1", watched.dir), 0);
    assert_in_range(strtol(buf_str(&most), NULL, 10), 0, 1);
    assert_int_equal(test_lines(watched.d.log, "outcome=done"), 30);
    watched_assert_clean();
}

static void C9_queue_removed_while_its_jobs_run(void **state)
{
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *waits = NULL;
    CLEANUP_FREE char *start = NULL;

    (void)state;
    test_handler(watched.dir, "other", "echo other >> %s", watched.out);
    watched_start("concurrency: 1\nqueues: { slow: { handler: [/bin/sh, -c, 'sleep 3'] } }");
    id = watched_add_with("slow", "keep", "1h", "x");
    assert_true(watched_until_state(id, "running"));
    waits = watched_add_with("slow", "keep", "1h", "x");
    reload_with("concurrency: 1");
    assert_true(watched_state_is(id, "running"));
    assert_true(watched_until_state(id, "done"));
    start = watched_result(id, 3);
    assert_string_equal(start, "1");
    watched_add_many("other", 1);
    assert_true(test_until_lines(watched.out, "other", 1, LONG_MS));
    assert_true(watched_state_is(waits, "waiting"));
    reload_with("queues: { slow: { handler: [/bin/true] } }");
    assert_true(watched_until_state(waits, "done"));
    watched_assert_clean();
}

static void C11_half_written_at_the_reload(void **state)
{
    CLEANUP_BUF struct buf good = BUF_INIT;
    struct mono end;
    size_t n = 0;

    (void)state;
    make_work();
    watched_canary_start(10);
    watched_start(
        "concurrency: 4\ndefaults: { attempts: 3 }\nqueues: { extra: { handler: [/bin/true] "
        "} }");
    test_read(watched.d.conf, &good);
    end = mono_add_ms(mono_now(), 4000);
    /* Write some bytes more each time, in place, and reload at once. */
    while (mono_before(mono_now(), end)) {
        int fd = open(watched.d.conf, O_WRONLY | O_TRUNC | O_CLOEXEC);

        n = (n + 7) % good.len;
        assert_true(fd >= 0 && write(fd, good.data, n) == (ssize_t)n);
        assert_int_equal(kill(watched.pid, SIGHUP), 0);
        (void)close(fd);
        watched_add_many("work", 1);
    }
    {
        int fd = open(watched.d.conf, O_WRONLY | O_TRUNC | O_CLOEXEC);

        assert_true(fd >= 0 && write(fd, good.data, good.len) == (ssize_t)good.len);
        (void)close(fd);
    }
    assert_true(test_lines(watched.d.log, "event=reload result=refused") > 0);
    n = (size_t)test_lines(watched.d.log, "event=reload result=done");
    assert_int_equal(kill(watched.pid, SIGHUP), 0);
    assert_true(test_until_lines(watched.d.log, "event=reload result=done", (int)n + 1, LONG_MS));
    assert_true(watched_until_empty(LONG_MS));
    watched_add_many("extra", 1);
    assert_true(watched_until_empty(LONG_MS));
    assert_int_equal(test_lines(watched.d.log, "outcome=retry"), 0);
    /* Half a file may be valid and lack the line with handlers_dir, which the canary needs. */
    (void)watched_canary_check(6000);
    watched_assert_clean();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define T_OPEN(f) cmocka_unit_test_setup_teardown(f, setup_open, teardown)
    const struct CMUnitTest tests[] = {
        T(S1_log_device_full),
        T(S1_log_disk_full),
        T(S2_log_deleted_and_made_a_folder),
        T(S2_log_reader_gone),
        T(S3_state_folder_full),
        T(S3_state_folder_read_only),
        T(S3_state_folder_gone),
        T(S3_state_file_truncated),
        T(S3_log_at_its_limit),
        T(H5_few_descriptors),
        T(S3_embedded_disk_full),
        T(S4_interrupted_calls),
        T(S5_output_cannot_be_read),
        T(S5_payload_cannot_be_written),
        T(S6_starved_of_processor),
        T(S7_memory_pressure),
        T(S8_no_proc),
        T(S8_no_entropy),
        T(S9_slow_clock),
        T_OPEN(S10_core_and_memory_are_closed),
        T(C8_limit_lowered_below_what_runs),
        T(C9_queue_removed_while_its_jobs_run),
        T(C11_half_written_at_the_reload),
    };

    may_mount = geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
                mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
