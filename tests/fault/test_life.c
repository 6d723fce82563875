/*
 * The life of the daemon: stops at any time, floods of signals, threads that cannot be created, a
 * loop that stands still, an upgrade, a start without Redis.
 */
#include <errno.h>
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
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/notes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "stage.h"
#include "usage.h"

static struct stage stage;

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *fmt, ...)
{
    CLEANUP_FREE char *cmd = NULL;
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", NULL, NULL};
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&cmd, fmt, ap) < 0)
        abort();
    va_end(ap);
    argv[2] = cmd;
    assert_int_equal(proc_run(argv, NULL, 0, NULL, NULL), 0);
}

/* ---- stops */

static void L4_term_during_burst(void **state)
{
    int jobs = stage_number("LATER_JOBS", 2000, 10000);
    struct ledger_sum sum;
    struct mono begin;
    int at_term, at_exit;

    (void)state;
    stage_start(&stage, &stage.a, "a", "concurrency: 16\n");
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", jobs / 2, 0), jobs / 2);
    assert_true(ledger_until(&stage.ledger, " start", 20, STAGE_WAIT_MS));
    begin = mono_now();
    test_laterd_kill(&stage.a, SIGTERM);
    /* Adding works while it stops. */
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", jobs - jobs / 2, 0),
                     jobs - jobs / 2);
    assert_true(test_laterd_says(&stage.a, "event=stopping", STAGE_WAIT_MS));
    at_term = ledger_lines(&stage.ledger, " start");
    assert_int_equal(test_laterd_wait(&stage.a, 10000), 0);
    assert_in_range(test_ms_since(begin), 0, 10000);
    at_exit = ledger_lines(&stage.ledger, " start");
    /* No claims after the signal was handled. Jobs that were claimed and not started were
     * released. */
    assert_in_range(at_exit - at_term, 0, 16);
    assert_int_equal(ledger_lines(&stage.ledger, " end"), at_exit);
    assert_int_equal(test_int(&stage.redis, "ZCARD", STAGE_ROOT ":running"), 0);
    assert_int_equal(test_int(&stage.redis, "HLEN", STAGE_ROOT ":workers"), 0);
    assert_int_equal(test_int(&stage.redis, "ZCARD", STAGE_ROOT ":q:work:5"), jobs - at_exit);
    ledger_log(&stage.ledger, stage.a.log);
    test_laterd_start(&stage.a);
    assert_true(stage_is_sound(&stage, &sum, 4 * STAGE_WAIT_MS));
    assert_int_equal(sum.starts, jobs);
    assert_int_equal(ledger_lines(&stage.ledger, " 2 "), 0); /* no job had a second attempt */
    (void)printf("figure L4: stopped with %d of %d jobs left, each of them run once after the "
                 "restart\n",
                 jobs - at_exit, jobs);
}

static void stop_twice(int first, int second)
{
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *was = NULL;
    CLEANUP_FREE char *attempt = NULL;
    struct mono begin;

    test_handler(stage.dir, "slow", "echo begun >> %s; exec sleep 61", stage.out);
    (void)unlink(stage.out);
    stage_start_plain(&stage, &stage.a, "a", "stop_timeout: 1h\n");
    id = stage_add(&stage, "slow", NULL, NULL);
    assert_true(test_until_lines(stage.out, "begun", 1, STAGE_WAIT_MS));
    begin = mono_now();
    test_laterd_kill(&stage.a, first);
    assert_true(test_laterd_says(&stage.a, "event=stopping", STAGE_WAIT_MS));
    test_pause(100);
    test_laterd_kill(&stage.a, second);
    assert_int_equal(test_laterd_wait(&stage.a, STAGE_WAIT_MS), 0);
    /* It waits neither for the stop_timeout of an hour nor for the handler's minute. */
    assert_in_range(test_ms_since(begin), 0, 15000);
    was = test_shown(&stage.redis, id, "state");
    attempt = test_shown(&stage.redis, id, "attempt");
    assert_string_equal(was, "waiting");
    assert_string_equal(attempt, "0");
    assert_int_equal(test_int(&stage.redis, "ZCARD", STAGE_ROOT ":running"), 0);
    assert_int_equal(test_int(&stage.redis, "HLEN", STAGE_ROOT ":workers"), 0);
    reply_free(test_fcall(&stage.redis, "later_cancel", id, NULL));
}

static void L5_stopped_twice(void **state)
{
    (void)state;
    stop_twice(SIGTERM, SIGTERM);
    stop_twice(SIGINT, SIGTERM);
}

static void L6_drain_deadline(void **state)
{
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *attempt = NULL;
    CLEANUP_FREE char *pattern = mem_printf("62%d", (int)getpid());
    struct mono begin;

    (void)state;
    /* Handler and child ignore TERM; the odd argument of sleep identifies them. */
    test_handler(stage.dir, "deaf", "trap '' TERM; echo begun >> %s; sleep %s & sleep %s",
                 stage.out, pattern, pattern);
    stage_start_plain(&stage, &stage.a, "a", "stop_timeout: 1s\n");
    id = stage_add(&stage, "deaf", NULL, NULL);
    assert_true(test_until_lines(stage.out, "begun", 1, STAGE_WAIT_MS));
    begin = mono_now();
    test_laterd_kill(&stage.a, SIGTERM);
    assert_int_equal(test_laterd_wait(&stage.a, STAGE_WAIT_MS), 0);
    /* 1 s stop_timeout, then TERM, KILL at most 6 s later, and 2 s for Redis. */
    assert_in_range(test_ms_since(begin), 1000, 14000);
    run("! pgrep -f '[s]leep %s'", pattern);
    attempt = test_shown(&stage.redis, id, "attempt");
    assert_string_equal(attempt, "0");
    assert_int_equal(test_int(&stage.redis, "ZCARD", STAGE_ROOT ":running"), 0);
}

/* ---- signals */

/* Fork a child that sends the signals as fast as it can, or (paced) a thousand times a second. */
static pid_t flood(pid_t target, const int *sigs, bool is_paced)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            for (size_t i = 0; sigs[i] != 0; i++)
                (void)kill(target, sigs[i]);
            if (is_paced)
                test_pause(1);
        }
    }
    return pid;
}

static void end_flood(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void L8_hup_storm(void **state)
{
    static const int hup[] = {SIGHUP, 0};
    int64_t storm_ms = test_is_long() ? 30000 : 5000;
    struct ledger_sum sum;
    struct mono begin;
    int64_t cpu;
    int reloads;
    pid_t pid;

    (void)state;
    stage_start(&stage, &stage.a, "a", "concurrency: 8\n");
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 300, 0), 300);
    cpu = usage_cpu_ms(stage.a.proc.pid);
    begin = mono_now();
    /* As fast as possible: the worst that a loop of kill -HUP can do. */
    pid = flood(stage.a.proc.pid, hup, false);
    test_pause(storm_ms / 2);
    end_flood(pid);
    pid = flood(stage.a.proc.pid, hup, true);
    test_pause(storm_ms / 2);
    /* Jobs run meanwhile. */
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    end_flood(pid);
    cpu = usage_cpu_ms(stage.a.proc.pid) - cpu;
    reloads = test_lines(stage.a.log, "event=reload result=done");
    assert_in_range(reloads, 2, mono_until_us(begin, mono_now()) / 200000 + 2);
    /* The last reload is not lost. */
    run("sed -i 's/^concurrency.*/concurrency: 8\\nlog_level: notice/' %s", stage.a.conf);
    test_laterd_kill(&stage.a, SIGHUP);
    assert_true(
        test_until_lines(stage.a.log, "event=reload result=done", reloads + 1, STAGE_WAIT_MS));
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    assert_int_equal(sum.starts, 300);
    (void)printf("figure L8: %d reloads in %d s of storm, %d ms of processor time, 300 jobs done "
                 "meanwhile\n",
                 reloads, (int)(storm_ms / 1000), (int)cpu);
}

static void L10_signal_floods(void **state)
{
    static const int harmless[] = {SIGPIPE, SIGCHLD, SIGUSR2, SIGWINCH, SIGCONT, SIGURG, 0};
    static const int quiet[] = {SIGUSR1, 0}, quit[] = {SIGQUIT, SIGTERM, SIGINT, 0};
    CLEANUP_FREE char *id = NULL;
    struct ledger_sum sum;
    pid_t pid;

    (void)state;
    stage_start(&stage, &stage.a, "a", "concurrency: 8\n");
    pid = flood(stage.a.proc.pid, harmless, false);
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 300, 0), 300);
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    end_flood(pid);
    assert_int_equal(usage_children(stage.a.proc.pid, true), 0);
    /* USR1 means `quiet`, as documented, and nothing more however often it comes. */
    pid = flood(stage.a.proc.pid, quiet, true);
    assert_true(test_laterd_says(&stage.a, "event=quiet by=signal", STAGE_WAIT_MS));
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 1, 0), 1);
    test_pause(1500);
    end_flood(pid);
    assert_int_equal(test_int(&stage.redis, "ZCARD", STAGE_ROOT ":q:work:5"), 1);
    assert_int_equal(test_lines(stage.a.log, "event=quiet by=signal"), 1);
    /* QUIT, TERM and INT together stop it, with exit status 0. */
    pid = flood(stage.a.proc.pid, quit, true);
    assert_int_equal(test_laterd_wait(&stage.a, STAGE_WAIT_MS), 0);
    end_flood(pid);
    ledger_log(&stage.ledger, stage.a.log);
    stage_start(&stage, &stage.a, "a", "concurrency: 8\n");
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    assert_int_equal(sum.starts, 301);
    assert_int_equal(sum.ends, 301);
}

/* ---- threads */

static void L12_no_threads(void **state)
{
    CLEANUP_BUF struct buf log = BUF_INIT;
    struct mono begin;

    (void)state;
    /* No pool thread: the start fails and says why. */
    test_handler(stage.dir, "work", "echo x >> %s", stage.out);
    test_laterd_conf(&stage.a, stage.dir, "a", stage.redis.url, "concurrency: 16\n");
    stage_preload("point", "LATER_TEST_POINT", "threads:7");
    begin = mono_now();
    test_laterd_launch(&stage.a);
    assert_int_equal(test_laterd_wait(&stage.a, STAGE_WAIT_MS), 71);
    assert_in_range(test_ms_since(begin), 0, 10000);
    test_read(stage.a.log, &log);
    assert_non_null(strstr(buf_str(&log), "cannot start pool thread"));
    assert_int_equal(test_int(&stage.redis, "HLEN", STAGE_ROOT ":workers"), 0);
    /* No probe thread, once: the daemon tries again. */
    stage_preload("point", "LATER_TEST_POINT", "thread:17");
    test_laterd_start(&stage.a);
    stage_plain();
    free(stage_add(&stage, "work", NULL, NULL));
    assert_true(test_until_lines(stage.out, "x", 1, STAGE_WAIT_MS));
    assert_int_equal(stage_stop(&stage, &stage.a), 0);
    assert_int_equal(test_lines(stage.a.log, "state=down"), 1);
}

static void L12_no_threads_at_all(void **state)
{
    int64_t cpu;

    (void)state;
    test_handler(stage.dir, "work", "echo x >> %s", stage.out);
    test_laterd_conf(&stage.a, stage.dir, "a", stage.redis.url, "concurrency: 16\n");
    /* No probe thread ever: it stays up, logs that once, does not spin, and can be stopped. */
    stage_preload("point", "LATER_TEST_POINT", "threads:17");
    test_laterd_launch(&stage.a);
    stage_plain();
    assert_true(test_laterd_says(&stage.a, "state=down", STAGE_WAIT_MS));
    cpu = usage_cpu_ms(stage.a.proc.pid);
    test_pause(2000);
    assert_in_range(usage_cpu_ms(stage.a.proc.pid) - cpu, 0, 200);
    assert_int_equal(test_lines(stage.a.log, "state=down"), 1);
    assert_int_equal(stage_stop(&stage, &stage.a), 0);
}

/* ---- the service manager's side */

/* The loop stands still for 10 s. systemd's watchdog hears nothing and would restart the daemon.
 * Other workers do not take its jobs, and it goes on afterwards. */
static void L14_blocked_loop(void **state)
{
    struct ledger_sum sum;

    (void)state;
    notes_open(stage.dir);
    stage_start(&stage, &stage.a, "a", "concurrency: 4\n");
    notes_for_no_others();
    stage_start(&stage, &stage.b, "b", "concurrency: 4\n");
    assert_true(notes_told("READY=1", STAGE_WAIT_MS));
    assert_true(notes_told("WATCHDOG=1", STAGE_WAIT_MS));
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 40, 0), 40);
    assert_true(ledger_until(&stage.ledger, " start", 2, STAGE_WAIT_MS));
    test_laterd_kill(&stage.a, SIGSTOP);
    notes_drop();
    assert_false(notes_told("WATCHDOG=1", 10000)); /* WatchdogSec is 2 s here */
    test_laterd_kill(&stage.a, SIGCONT);
    assert_true(notes_told("WATCHDOG=1", STAGE_WAIT_MS));
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    assert_int_equal(sum.starts, 40);
    assert_int_equal(stage.ledger.reaped, 0);
    notes_close();
}

/* Boot order does not matter: the unit is ready at once, and jobs run when Redis is there. */
static void L17_ready_without_redis(void **state)
{
    (void)state;
    test_handler(stage.dir, "work", "echo x >> %s", stage.out);
    test_redis_kill(&stage.redis, SIGKILL);
    notes_open(stage.dir);
    test_laterd_conf(&stage.a, stage.dir, "a", stage.redis.url, "");
    test_laterd_launch(&stage.a);
    notes_for_no_others();
    assert_true(notes_told("READY=1", STAGE_WAIT_MS));
    assert_true(notes_told("STATUS=waiting for Redis", STAGE_WAIT_MS));
    assert_true(test_laterd_says(&stage.a, "state=down", STAGE_WAIT_MS));
    test_redis_restart(&stage.redis);
    assert_true(test_laterd_says(&stage.a, "event=registered", STAGE_WAIT_MS));
    assert_true(notes_told("STATUS=ready", STAGE_WAIT_MS));
    free(stage_add(&stage, "work", NULL, NULL));
    assert_true(test_until_lines(stage.out, "x", 1, STAGE_WAIT_MS));
    notes_close();
}

/* ---- identity and upgrade */

/* Without a state folder only the epochs tell two daemons of one machine apart. */
static void L13_two_of_one_kind(void **state)
{
    struct ledger_sum sum;

    (void)state;
    stage_start(&stage, &stage.a, "a", "concurrency: 4\n");
    run("sed -i 's/^state_dir:.*/state_dir: none/' %s", stage.a.conf);
    assert_int_equal(stage_stop(&stage, &stage.a), 0);
    test_laterd_start(&stage.a);
    stage.b = stage.a;
    (void)snprintf(stage.b.log, sizeof(stage.b.log), "%s/b.log", stage.dir);
    test_laterd_start(&stage.b);
    assert_int_equal(test_int(&stage.redis, "HLEN", STAGE_ROOT ":workers"), 2);
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 200, 0), 200);
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    assert_int_equal(ledger_lines(&stage.ledger, " start"), 200);
    /* One dies. The next to start finds that its process is gone, without a state folder. */
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 200, 0), 200);
    assert_true(ledger_until(&stage.ledger, " start", 220, STAGE_WAIT_MS));
    stage_kill(&stage, &stage.a);
    test_laterd_start(&stage.a);
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    /* Jobs that ran, that waited for a place, or that had ended without Redis knowing. */
    assert_in_range(sum.again, 0, 12);
    assert_in_range(stage.ledger.reaped, sum.again, 16);
}

/* The program is replaced while its jobs run. The new one takes over after a stop, then after a
 * kill. */
static void L15_upgrade(void **state)
{
    CLEANUP_FREE char *was = mem_strdup(test_build_dir());
    struct ledger_sum sum;

    (void)state;
    run("install -m755 %s/laterd %s/laterd", was, stage.dir);
    (void)setenv("LATER_BUILD_DIR", stage.dir, 1); /* the folder has only the daemon */
    stage_start(&stage, &stage.a, "a", "concurrency: 8\n");
    assert_int_equal(ledger_add(&stage.ledger, &stage.redis, "work", 300, 0), 300);
    assert_true(ledger_until(&stage.ledger, " start", 20, STAGE_WAIT_MS));
    run("install -m755 %s/laterd %s/new && mv %s/new %s/laterd", was, stage.dir, stage.dir,
        stage.dir);
    assert_int_equal(stage_stop(&stage, &stage.a), 0); /* its jobs have ended */
    test_laterd_start(&stage.a);
    assert_true(ledger_until(&stage.ledger, " start", 100, STAGE_WAIT_MS));
    run("install -m755 %s/laterd %s/new && mv %s/new %s/laterd", was, stage.dir, stage.dir,
        stage.dir);
    stage_kill(&stage, &stage.a); /* its jobs are taken back */
    test_laterd_start(&stage.a);
    (void)setenv("LATER_BUILD_DIR", was, 1);
    assert_true(stage_is_sound(&stage, &sum, STAGE_WAIT_MS));
    assert_in_range(sum.again, 0, 8);
    assert_int_equal(sum.again, sum.crashes);
}

int main(void)
{
#define T(f) cmocka_unit_test_prestate_setup_teardown(f, stage_setup, stage_teardown, &stage)
    const struct CMUnitTest tests[] = {
        T(L4_term_during_burst),  T(L5_stopped_twice),        T(L6_drain_deadline),
        T(L8_hup_storm),          T(L10_signal_floods),       T(L12_no_threads),
        T(L12_no_threads_at_all), T(L13_two_of_one_kind),     T(L14_blocked_loop),
        T(L15_upgrade),           T(L17_ready_without_redis),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
