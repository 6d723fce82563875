/*
 * Handlers that fail, hang, escape or come in great numbers: entries H of the fault catalogue, with
 * the real daemon. tests/integration/test_exec.c tests in more detail how a run handles pipes and
 * signals.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "run/exec/exec.h"
#include "run/exec/exec_slot.h"
#include "usage.h"
#include "watched.h"

#define ONE_TRY "defaults: { attempts: 1, kill_grace: 500ms, timeout: 20s }\n"

static void assert_outcome(const char *id, const char *state, const char *code, const char *text)
{
    CLEANUP_FREE char *got_code = NULL;
    CLEANUP_FREE char *got_text = NULL;

    assert_true(watched_until_state(id, state));
    got_code = watched_result(id, 1);
    got_text = watched_result(id, 4);
    assert_string_equal(got_code, code);
    if (strstr(got_text, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", got_text, text);
}

/* ---- cannot start */

static void H1_handlers_that_cannot_start(void **state)
{
    static const struct {
        const char *queue, *break_it, *says;
    } cases[] = {
        {"missing", "rm missing", "does not exist"},
        {"plainfile", "chmod 644 plainfile", "is not executable: chmod +x"},
        {"folder", "rm folder; mkdir folder", "is a folder"},
        {"noexec", "echo hello > noexec", "has no interpreter line"},
        {"crlf", "printf '#!/bin/sh\\r\\n' > crlf", "CRLF"},
    };
    char *ids[5];

    (void)state;
    assert_int_equal(
        watched_sh(NULL,
                   "mkdir -m 755 %s/bin; for q in missing plainfile folder noexec crlf; "
                   "do printf '#!/bin/sh\\n' > %s/bin/$q; chmod 755 %s/bin/$q; done",
                   watched.dir, watched.dir, watched.dir),
        0);
    {
        CLEANUP_BUF struct buf yaml = BUF_INIT;

        buf_puts(&yaml, "concurrency: 2\ndefaults: { attempts: 1 }\nqueues:\n");
        for (size_t i = 0; i < 5; i++)
            buf_printf(&yaml, "  %s: { handler: [%s/bin/%s] }\n", cases[i].queue, watched.dir,
                       cases[i].queue);
        watched_canary_start(8);
        watched_start(buf_str(&yaml));
    }
    /* The daemon is stopped, so it starts these jobs before it notices the broken handlers (150 ms
     * later). After that it does not serve the queues. */
    assert_int_equal(kill(watched.pid, SIGSTOP), 0);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(watched_sh(NULL, "cd %s/bin; %s", watched.dir, cases[i].break_it), 0);
        ids[i] = watched_add(cases[i].queue, "x");
    }
    assert_int_equal(kill(watched.pid, SIGCONT), 0);
    for (size_t i = 0; i < 5; i++) {
        assert_outcome(ids[i], "dead", "127", cases[i].says);
        free(ids[i]);
    }
    /* Both places are free again. */
    test_handler(watched.dir, "fine", "echo fine >> %s; sleep 0.2", watched.out);
    watched_add_many("fine", 4);
    assert_true(test_until_lines(watched.out, "fine", 4, LONG_MS));
    assert_int_equal(test_lines(watched.d.log, "cannot start"), 5); /* one line for each attempt */
    (void)watched_canary_check(2000);
    watched_assert_clean();
}

static void H2_open_for_writing_for_a_second(void **state)
{
    CLEANUP_FREE char *path = mem_printf("%s/busy", watched.dir);
    CLEANUP_FREE char *yaml =
        mem_printf("queues: { busy: { handler: [%s], attempts: 9, backoff: { first: 300ms, "
                   "factor: 1 }, keep: 1h } }",
                   path);
    CLEANUP_FREE char *id = NULL;
    int fd;

    (void)state;
    assert_int_equal(watched_sh(NULL, "cp /bin/true %s", path), 0);
    watched_start(yaml);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    id = watched_add("busy", "x");
    assert_true(test_until_lines(watched.d.log,
                                 "Text file busy (it is open for writing: replace it", 2, LONG_MS));
    (void)close(fd);
    assert_true(watched_until_state(id, "done"));
    watched_assert_clean();
}

struct writer {
    pthread_t thread;
    char path[96];
    int failed, busy;
};

/* Write a program and start it at once, over and over, while other threads fork. */
static void *write_then_exec(void *arg)
{
    static char *const env[] = {(char *)(uintptr_t) "PATH=/bin", NULL};
    static const char script[] = "#!/bin/sh\nexit 0\n";
    struct writer *w = arg;
    struct exec_slot *slot = exec_slot_new();

    for (int i = 0; i < 20; i++) {
        char *argv[] = {w->path, NULL};
        struct exec_order order = {"j0123456789a", "mail", argv, env, "", 0,
                                   60000,          1000,   NULL, 0,   0};
        struct run_report ret;
        int fd = open(w->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

        if (fd < 0 || write(fd, script, sizeof(script) - 1) != (ssize_t)sizeof(script) - 1)
            w->failed++;
        (void)close(fd);
        run_report_init(&ret);
        (void)exec_slot_arm(slot);
        exec_run(&order, slot, NULL, &ret);
        w->busy += ret.code == ETXTBSY && ret.end == RUN_NOT_RUN;
        w->failed += ret.end != RUN_EXITED || ret.code != 0;
        run_report_done(&ret);
        (void)unlink(w->path);
    }
    exec_slot_free(slot);
    return NULL;
}

static void H2_twenty_threads_write_and_start(void **state)
{
    struct writer writers[20];

    (void)state;
    memset(writers, 0, sizeof(writers));
    for (int i = 0; i < 20; i++) {
        (void)snprintf(writers[i].path, sizeof(writers[i].path), "%s/prog%d", watched.dir, i);
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_then_exec, &writers[i]), 0);
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
        assert_int_equal(writers[i].busy, 0);
        assert_int_equal(writers[i].failed, 0);
    }
    printf("figure H2: 400 programs written and started at once by 20 threads, 0 ETXTBSY left\n");
}

/* While no process can be started, the job is released and no attempt counted. The pause between
 * claims grows. */
static void released_while(const char *what, void (*begin)(void), void (*end)(void))
{
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *attempt = NULL;
    int64_t cpu;
    int tries;

    begin();
    id = watched_add_with("work", "keep", "1h", "x");
    assert_true(test_until_lines(watched.d.log, "outcome=released", 4, LONG_MS));
    cpu = usage_cpu_ms(watched.pid);
    tries = test_lines(watched.d.log, "outcome=released");
    assert_true(test_until_lines(watched.d.log, "outcome=released", tries + 1, LONG_MS));
    /* At least 0.8 s lie between the last two. */
    assert_in_range(usage_cpu_ms(watched.pid) - cpu, 0, 300);
    assert_true(test_lines(watched.d.log, what) >= 4);
    assert_int_equal(test_lines(watched.out, NULL), 0);
    attempt = test_shown(&watched.redis, id, "attempt");
    assert_string_equal(attempt, "0");
    end();
    assert_true(watched_until_state(id, "done"));
    assert_true(test_until_lines(watched.out, "attempt 1", 1, LONG_MS));
    assert_int_equal(test_lines(watched.d.log, "outcome=retry"), 0);
    watched_assert_clean();
}

/* Set a soft limit of the daemon, as the daemon's own user: root may lack the right. */
static void limit(const char *what, const char *soft)
{
    assert_int_equal(
        watched_sh(NULL,
                   "u=$(stat -c %%u /proc/%d); [ $u = $(id -u) ] || as=\"setpriv --reuid "
                   "$u --regid $u --clear-groups\"; $as prlimit --pid %d --%s=%s:",
                   (int)watched.pid, (int)watched.pid, what, soft),
        0);
}

static void no_more_processes(void)
{
    limit("nproc", "1");
}

static void more_processes(void)
{
    limit("nproc", "1000");
}

static const char *const open_to_all[] = {"--unixsocketperm", "777", NULL};

static int setup_open(void **state)
{
    (void)state;
    if (watched_setup_with(open_to_all) != 0)
        return -1;
    return chmod(watched.redis.dir, 0755) == 0 && chmod(watched.dir, 0777) == 0 ? 0 : -1;
}

/* Start laterd as a user without any rights; as our own user if we are not root. */
static void start_as_nobody(const char *options, const char *yaml)
{
    CLEANUP_FREE char *all =
        mem_printf("exec setpriv %s %s --pdeathsig KILL", options,
                   geteuid() == 0 ? "--reuid 54321 --regid 54321 --clear-groups" : "");

    watched_start_under(all, "", yaml, true);
}

static void H3_no_process_to_have(void **state)
{
    (void)state;
    test_handler(watched.dir, "work", "echo attempt $LATER_ATTEMPT >> %s", watched.out);
    start_as_nobody("", "concurrency: 2\ncheck_permissions: off");
    released_while("Resource temporarily unavailable", no_more_processes, more_processes);
}

static void clone_fails(void)
{
    assert_true(watched_inject_begin("clone3:error=ENOMEM"));
}

static void H3_no_memory_for_a_process(void **state)
{
    (void)state;
    test_handler(watched.dir, "work", "echo attempt $LATER_ATTEMPT >> %s", watched.out);
    watched_start("concurrency: 2");
    released_while("Cannot allocate memory", clone_fails, watched_inject_end);
}

static void no_more_files(void)
{
    char few[16];

    (void)snprintf(few, sizeof(few), "%d", usage_fds(watched.pid) + 2);
    limit("nofile", few);
}

static void more_files(void)
{
    limit("nofile", "512");
}

static void H5_no_descriptors(void **state)
{
    (void)state;
    test_handler(watched.dir, "work", "echo attempt $LATER_ATTEMPT >> %s", watched.out);
    watched_start("concurrency: 2");
    released_while("Too many open files", no_more_files, more_files);
}

static void H4_payload_is_no_argument(void **state)
{
    CLEANUP_FREE char *payload = mem_new(200001);
    CLEANUP_FREE char *argument = mem_new(140001);
    CLEANUP_FREE char *yaml = NULL;
    CLEANUP_FREE char *fine = NULL;
    CLEANUP_FREE char *bad = NULL;

    (void)state;
    memset(payload, 'p', 200000);
    memset(argument, 'a', 140000);
    test_handler(watched.dir, "large", "wc -c >> %s", watched.out);
    yaml = mem_printf("queues: { argued: { handler: [/bin/echo, %s], attempts: 1 } }", argument);
    watched_start(yaml);
    fine = watched_add_with("large", "keep", "1h", payload);
    bad = watched_add("argued", "x");
    assert_outcome(fine, "done", "0", "exit status 0");
    assert_int_equal(test_lines(watched.out, "200000"), 1);
    assert_outcome(bad, "dead", "127", "its arguments and environment are too large");
    watched_assert_clean();
}

/* ---- handlers that do not end */

/* Returns how long after the timeout of 500 ms the end was recorded, in ms. */
static int64_t ended_by_us(const char *handler, const char *code, const char *says)
{
    CLEANUP_FREE char *id = NULL;
    struct mono begin;

    test_handler(watched.dir, "hang", "echo begun >> %s; %s", watched.out, handler);
    watched_canary_start(6);
    watched_start("defaults: { attempts: 1, timeout: 500ms, kill_grace: 1s }\nconcurrency: 2");
    id = watched_add("hang", "x");
    assert_true(test_until_lines(watched.out, "begun", 1, LONG_MS));
    begin = mono_now();
    assert_outcome(id, "dead", code, says);
    return test_ms_since(begin) - 500;
}

static void H6_hangs_for_ever(void **state)
{
    int64_t ms = ended_by_us("exec sleep inf", "124", "timed out after 500ms: terminated");

    (void)state;
    assert_true(ms <= 2000);
    (void)watched_canary_check(2000);
    watched_assert_clean();
    printf("figure H6: ended and recorded %lld ms after the timeout\n", (long long)ms);
}

static void H7_ignores_term(void **state)
{
    int64_t ms = ended_by_us("trap '' TERM; while :; do sleep 60; done", "124",
                             "timed out after 500ms: killed after a grace of 1s");

    (void)state;
    assert_in_range(ms, 700, 1000 + 2000);
    (void)watched_canary_check(2000);
    watched_assert_clean();
    printf("figure H7: TERM ignored: killed, recorded %lld ms after the timeout (grace 1000)\n",
           (long long)ms);
}

static void H7_blocks_all_signals(void **state)
{
    int64_t ms = ended_by_us("exec env --block-signal --ignore-signal=TERM sleep 600", "124",
                             "killed after a grace of 1s");

    (void)state;
    assert_in_range(ms, 700, 1000 + 2000);
    watched_assert_clean();
}

static void H20_stops_itself(void **state)
{
    int64_t ms = ended_by_us("kill -STOP $$; exit 0", "124", "timed out after 500ms: terminated");

    (void)state;
    assert_true(ms <= 2000);
    (void)watched_canary_check(2000);
    watched_assert_clean();
}

/* ---- handlers that leave processes behind */

static int64_t leaves_behind(const char *body, const char *pattern)
{
    CLEANUP_FREE char *id = NULL;
    struct mono begin;
    int64_t ms;

    test_handler(watched.dir, "leave", "%s\necho ends >> %s; exit 3", body, watched.out);
    watched_start(ONE_TRY "concurrency: 1");
    id = watched_add("leave", "x");
    assert_true(test_until_lines(watched.out, "ends", 1, LONG_MS));
    begin = mono_now();
    assert_outcome(id, "dead", "3", "exit status 3");
    ms = test_ms_since(begin);
    assert_in_range(ms, 0, 3000);
    /* The handler ended by itself, so the processes that it left are not ended (doc/handlers.md),
     * and they are no children of the daemon. */
    assert_int_equal(watched_sh(NULL, "pgrep -f '^%s' > %s/left", pattern, watched.dir), 0);
    watched_assert_clean();
    /* The only place is free again. */
    test_handler(watched.dir, "next", "echo next >> %s", watched.out);
    watched_add_many("next", 1);
    assert_true(test_until_lines(watched.out, "next", 1, LONG_MS));
    assert_int_equal(watched_sh(NULL, "kill -9 $(cat %s/left)", watched.dir), 0);
    assert_true(proc_until_none(pattern, 10000));
    return ms;
}

static void H8_grandchild_keeps_the_pipe(void **state)
{
    CLEANUP_FREE char *pattern = mem_printf("sleep 81%d", (int)getpid());
    CLEANUP_FREE char *body = mem_printf("%s & %s &", pattern, pattern);
    int64_t ms;

    (void)state;
    ms = leaves_behind(body, pattern);
    printf("figure H8: a grandchild keeps the pipes: exit status 3 recorded after %lld ms, "
           "0 descriptors left\n",
           (long long)ms);
}

static void H8_grandchild_in_a_session_of_its_own(void **state)
{
    CLEANUP_FREE char *pattern = mem_printf("sleep 82%d", (int)getpid());
    CLEANUP_FREE char *body = mem_printf("setsid %s & sleep 0.2", pattern);

    (void)state;
    (void)leaves_behind(body, pattern);
}

static void H9_double_fork_daemon(void **state)
{
    CLEANUP_FREE char *pattern = mem_printf("sleep 83%d", (int)getpid());
    CLEANUP_FREE char *body =
        mem_printf("(setsid sh -c '(cd /; umask 0; %s) &' &); sleep 0.3", pattern);

    (void)state;
    (void)leaves_behind(body, pattern);
}

/* The handler changes all that a process can change of itself. The daemon must not be affected. */
static void H21_changes_what_is_its_own(void **state)
{
    CLEANUP_FREE char *pattern = mem_printf("sleep 84%d", (int)getpid());
    CLEANUP_FREE char *id = NULL;
    CLEANUP_BUF struct buf before = BUF_INIT;
    CLEANUP_BUF struct buf after = BUF_INIT;
    static const char look[] = "cut -d' ' -f5,6,19 /proc/%d/stat; readlink /proc/%d/cwd; "
                               "grep Umask /proc/%d/status; ulimit -a";

    (void)state;
    test_handler(watched.dir, "wild",
                 "cd %s; umask 0; renice 19 $$ >/dev/null; ulimit -n 20; "
                 "dd if=/dev/zero of=%s/litter bs=1M count=20 2>/dev/null; "
                 "setsid %s & echo begun >> %s; wait",
                 watched.dir, watched.dir, pattern, watched.out);
    watched_canary_start(6);
    watched_start("defaults: { attempts: 1, timeout: 500ms, kill_grace: 500ms }");
    assert_int_equal(watched_sh(&before, look, watched.pid, watched.pid, watched.pid), 0);
    id = watched_add("wild", "x");
    /* The child left the session but holds the pipes, so the end comes only after the grace. */
    assert_outcome(id, "dead", "124", "killed after a grace of 500ms");
    assert_int_equal(watched_sh(&after, look, watched.pid, watched.pid, watched.pid), 0);
    assert_string_equal(buf_str(&before), buf_str(&after));
    /* The child has the fence of its job in its environment: it is killed before the outcome is
     * there. */
    assert_int_equal(watched_sh(NULL, "pgrep -x -f '%s'", pattern), 1);
    (void)watched_canary_check(2000);
    watched_assert_clean();
}

/* ---- handlers that do not read their payload */

#define TEN_MIB (10 << 20)

static char *add_ten_mib(const char *queue)
{
    CLEANUP_FREE char *payload = mem_new(TEN_MIB);
    char *id;

    memset(payload, 'p', TEN_MIB);
    id = watched_add_bytes(queue, payload, TEN_MIB);
    assert_non_null(id);
    return id;
}

static void start_for_ten_mib(void)
{
    /* For a moment a payload is in memory twice: as it comes and as it is passed on. */
    watched_start("concurrency: 4\ndefaults: { max_payload: 16MiB, attempts: 1 }");
    watched_canary_start(10);
}

static void H10_exits_before_reading(void **state)
{
    (void)state;
    test_handler(watched.dir, "deaf", "exit 0");
    start_for_ten_mib();
    for (int i = 0; i < 5; i++) {
        CLEANUP_FREE char *id = add_ten_mib("deaf");

        assert_outcome(id, "done", "0", "exit status 0");
    }
    watched_assert_clean();
    assert_in_range(watched_grown_kib(), 0, 48 * 1024);
    printf("figure H10: 5 jobs of 10 MiB, none reads: done, memory +%lld MiB at most\n",
           (long long)watched_grown_kib() / 1024);
}

static void H11_closes_stdin_and_runs_on(void **state)
{
    CLEANUP_FREE char *id = NULL;
    struct mono begin = mono_now();

    (void)state;
    test_handler(watched.dir, "deaf", "exec <&-; sleep 3; exit 4");
    start_for_ten_mib();
    id = add_ten_mib("deaf");
    assert_outcome(id, "dead", "4", "exit status 4");
    assert_true(test_ms_since(begin) >= 3000);
    (void)watched_canary_check(2000);
    watched_assert_clean();
}

static void H12_reads_a_byte_a_second(void **state)
{
    CLEANUP_FREE char *ids[3] = {NULL};
    int64_t cpu;

    (void)state;
    test_handler(watched.dir, "slow",
                 "for i in 1 2 3 4 5; do head -c 1 >/dev/null; sleep 1; done; exit 0");
    start_for_ten_mib();
    cpu = usage_cpu_ms(watched.pid);
    for (int i = 0; i < 3; i++)
        ids[i] = add_ten_mib("slow");
    for (int i = 0; i < 3; i++) {
        assert_outcome(ids[i], "done", "0", "exit status 0");
        free(TAKE_PTR(ids[i]));
    }
    assert_in_range(usage_cpu_ms(watched.pid) - cpu, 0, 1500);
    printf("figure H12: 3 jobs of 10 MiB read at 1 byte/s: other queue at most %d ms late\n",
           watched_canary_check(2000));
    watched_assert_clean();
}

/* ---- how it ends */

static void H17_killed_by_each_signal(void **state)
{
    char *ids[65] = {NULL};
    CLEANUP_BUF struct buf cores = BUF_INIT;

    (void)state;
    test_handler(watched.dir, "sig", "ulimit -c 0; kill -$(cat) $$; sleep 600");
    watched_start("concurrency: 8\n" ONE_TRY);
    for (int n = 1; n <= 64; n++) {
        char text[8];

        /* Skip signals that do not kill, and those that libc reserves. */
        if ((n >= SIGCHLD && n <= SIGURG) || n == SIGWINCH || n == 32 || n == 33)
            continue;
        (void)snprintf(text, sizeof(text), "%d", n);
        ids[n] = watched_add("sig", text);
    }
    for (int n = 1; n <= 64; n++) {
        char code[8], text[40];

        if (ids[n] == NULL)
            continue;
        (void)snprintf(code, sizeof(code), "%d", 128 + n);
        (void)snprintf(text, sizeof(text), "killed by signal %d", n);
        assert_outcome(ids[n], "dead", code, text);
        free(ids[n]);
    }
    assert_int_equal(test_lines(watched.d.log, "outcome=dead"), 64 - 7 - 1 - 2);
    watched_assert_clean();
}

static void H18_every_exit_status(void **state)
{
    char *ids[256];

    (void)state;
    test_handler(watched.dir, "exit", "exit $(cat)");
    watched_start("concurrency: 8\ndefaults: { attempts: 2, keep: 1h, backoff: { first: 1h } }");
    for (int n = 0; n < 256; n++) {
        char text[8];

        (void)snprintf(text, sizeof(text), "%d", n);
        ids[n] = watched_add("exit", text);
    }
    assert_true(test_until_lines(watched.d.log, "event=end", 256, 2 * LONG_MS));
    for (int n = 0; n < 256; n++) {
        CLEANUP_FREE char *attempt = NULL;
        CLEANUP_FREE char *outcome = NULL;
        char want[24];

        if (n == 0 || n == 65) {
            assert_true(watched_until_state(ids[n], n == 0 ? "done" : "dead"));
            free(ids[n]);
            continue;
        }
        attempt = test_shown(&watched.redis, ids[n], "attempt");
        outcome = test_shown(&watched.redis, ids[n], "outcome");
        assert_string_equal(attempt, "1");
        (void)snprintf(want, sizeof(want), "failed %d ", n);
        assert_int_equal(strncmp(outcome, want, strlen(want)), 0);
        free(ids[n]);
    }
    /* Exit status 75 asks for a retry: no warning. */
    assert_int_equal(test_lines(watched.d.log, " warn event=end"), 253);
    watched_assert_clean();
}

/* ---- what it inherits */

static void H22_inherits_four_descriptors(void **state)
{
    CLEANUP_FREE char *payload = mem_new(TEN_MIB);
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *seen = NULL;

    (void)state;
    memset(payload, 'p', TEN_MIB);
    test_handler(watched.dir, "pad", "sleep 1");
    /* The daemon has inherited descriptors, and pipes of other jobs are open. */
    watched_start_under(
        "exec 7</dev/null 8>/dev/null 9</etc/passwd; exec", "",
        "concurrency: 4\ndefaults: { max_payload: 16MiB }\nqueues: { fds: { handler: "
        "[/bin/sh, -c, 'i=0; while [ $i -lt 512 ]; do [ -e /proc/$$/fd/$i ] && "
        "echo $i $(readlink /proc/$$/fd/$i | cut -d: -f1); i=$((i+1)); done; exit 0'] "
        "} }",
        true);
    watched_add_many("pad", 3);
    id = watched_add_bytes("fds", payload, TEN_MIB);
    assert_non_null(id);
    assert_true(watched_until_state(id, "done"));
    seen = watched_result(id, 5);
    assert_string_equal(seen, "0 pipe\n1 pipe\n2 pipe\n3 pipe\n");
    assert_true(watched_until_empty(LONG_MS));
    printf("figure H22: descriptors of a handler: 0, 1, 2 and the control descriptor 3, all "
           "pipes\n");
}

static void H23_signals_are_at_their_defaults(void **state)
{
    CLEANUP_BUF struct buf seen = BUF_INIT;

    (void)state;
    test_handler(watched.dir, "sigs", "grep -E 'Sig(Blk|Ign)' /proc/self/status > %s", watched.out);
    /* The daemon was started with many signals ignored and blocked. */
    watched_start_under("exec env --ignore-signal=HUP,PIPE,INT,QUIT,USR2,ALRM "
                        "--block-signal=TERM,CHLD,USR1,WINCH,ALRM",
                        "", "", true);
    watched_add_many("sigs", 1);
    assert_true(test_until_lines(watched.out, "Sig", 2, LONG_MS));
    test_read(watched.out, &seen);
    assert_string_equal(buf_str(&seen), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    printf("figure H23: SigBlk 0, SigIgn 0 in a handler of a daemon started with signals ignored "
           "and blocked\n");
}

static void H27_started_with_sigchld_ignored(void **state)
{
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *good = NULL;

    (void)state;
    test_handler(watched.dir, "three", "exit 3");
    test_handler(watched.dir, "good", "exit 0");
    watched_start_under("exec env --ignore-signal=CHLD --block-signal=CHLD", "", ONE_TRY, true);
    id = watched_add("three", "x");
    good = watched_add_with("good", "keep", "1h", "x");
    assert_outcome(id, "dead", "3", "exit status 3");
    assert_outcome(good, "done", "0", "exit status 0");
    watched_assert_clean();
}

/* ---- storms */

static void H24_zombie_storm(void **state)
{
    int seconds = test_is_long() ? 60 : 6, n = seconds * 1000, most = 0;
    struct mono begin;
    int64_t ms, left;

    (void)state;
    watched_start("concurrency: 16\nlog_level: warn\nqueues: { storm: { handler: [/bin/true] } }");
    watched_add_many("storm", n);
    begin = mono_now();
    do {
        int zombies = usage_children(watched.pid, true);

        most = zombies > most ? zombies : most;
        assert_true(test_ms_since(begin) < 120000 + seconds * 1000);
        left = test_int(&watched.redis, "HLEN", ROOT ":jobs");
    } while (left > 0);
    ms = test_ms_since(begin);
    assert_in_range(most, 0, 16); /* at most one a place, until its thread has reaped it */
    watched_assert_clean();
    assert_int_equal(usage_children(watched.pid, true), 0);
    assert_in_range(watched_grown_kib(), 0, 8192);
    watched_assert_idle();
    printf(
        "figure H24: %d jobs in %.1f s (%lld a second), at most %d zombies at once of 16 places, "
        "0 at the end, memory +%lld KiB\n",
        n, (double)ms / 1000, (long long)n * 1000 / ms, most, (long long)watched_grown_kib());
}

/*
 * A pid namespace in which the last pid is set back all the time, so that the same few numbers are
 * reused. Bystander processes have some of them: a daemon that signals by number hits one sooner or
 * later.
 */
static void H25_pid_reuse(void **state)
{
    static const char world[] = "exec unshare --pid --fork --kill-child --mount-proc sh -c '"
                                "trap \"kill -TERM \\$d\" TERM; "
                                "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do setsid sleep 6%d & done; "
                                "(while :; do echo 20 > /proc/sys/kernel/ns_last_pid; done) & "
                                "%s/laterd --config %s & d=$!; "
                                "while kill -0 $d 2>/dev/null; do wait $d; done'";
    CLEANUP_FREE char *program = NULL;
    CLEANUP_FREE char *cmd = NULL;
    CLEANUP_FREE char *pattern = mem_printf("sleep 6%d", (int)getpid());
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", NULL, NULL};
    int n = test_is_long() ? 20000 : 1500;

    (void)state;
    if (geteuid() != 0)
        skip(); /* a namespace needs root */
    program = watched_program();
    test_handler(watched.dir, "late", "sleep 0.0$((LATER_FENCE %% 90 + 10)); echo late >> %s",
                 watched.out);
    test_handler(watched.dir, "pids", "echo $$ >> %s/pids", watched.dir);
    test_laterd_conf(&watched.d, watched.dir, "a", watched.redis.url,
                     "concurrency: 8\nqueues:\n  late: { timeout: 50ms, kill_grace: 10ms, "
                     "attempts: 1 }\n");
    cmd = mem_printf(world, (int)getpid(), watched.dir, watched.d.conf);
    argv[2] = cmd;
    proc_start(&watched.d.proc, argv, NULL, watched.d.log);
    watched.d.runs = true;
    watched.pid = watched.d.proc.pid;
    assert_true(test_laterd_says(&watched.d, "event=registered", LONG_MS));
    watched_remember();
    /* Handlers that end just when they are killed, among many short ones. */
    for (int i = 0; i < n; i += 100) {
        watched_add_many("pids", 80);
        watched_add_many("late", 20);
    }
    assert_true(watched_until_empty(4 * LONG_MS));
    {
        CLEANUP_BUF struct buf alive = BUF_INIT;
        CLEANUP_BUF struct buf numbers = BUF_INIT;
        CLEANUP_BUF struct buf done = BUF_INIT;

        assert_int_equal(watched_sh(&alive, "pgrep -c -f '^%s'", pattern), 0);
        assert_int_equal(strtol(buf_str(&alive), NULL, 10), 12);
        assert_int_equal(watched_sh(&numbers, "sort -u %s/pids | wc -l", watched.dir), 0);
        /* Otherwise no number was reused, and nothing was tested. */
        assert_in_range(strtol(buf_str(&numbers), NULL, 10), 1, n * 8 / 100);
        /* All jobs of `pids` ended in their first attempt. Some were released while slow ones had
         * the places, so their start number is higher. */
        assert_int_equal(watched_sh(&done,
                                    "grep -c 'queue=pids start=[0-9]* attempt=1 outcome=done' %s",
                                    watched.d.log),
                         0);
        assert_int_equal(strtol(buf_str(&done), NULL, 10), n * 8 / 10);
        printf("figure H25: %d handlers shared %ld pids; 12 bystanders among them untouched\n",
               n * 8 / 10, strtol(buf_str(&numbers), NULL, 10));
    }
    assert_int_equal(test_lines(watched.d.log, "killed by signal"), 0);
    watched_assert_clean();
}

/* ---- exit status taken by other code */

static void reap_it(void *arg, pid_t pid)
{
    int status;

    (void)arg;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void H26_waited_for_by_somebody_else(void **state)
{
    static char *const env[] = {NULL};
    char *argv[] = {(char *)(uintptr_t) "/bin/true", NULL};
    const struct exec_hooks hooks = {.spawned = reap_it};
    struct exec_order order = {"j0123456789a", "mail", argv, env, "", 0, 60000, 1000, NULL, 0, 0};
    struct exec_slot *slot = exec_slot_new();
    struct run_report ret;

    (void)state;
    run_report_init(&ret);
    (void)exec_slot_arm(slot);
    exec_run(&order, slot, &hooks, &ret);
    exec_slot_free(slot);
    /* It ended well, but we cannot know: it counts as a failure and is retried, never as a
     * success. */
    assert_string_equal(ret.text, "ended, but somebody else took its exit status");
    assert_int_equal(ret.end, RUN_SIGNALED);
    run_report_done(&ret);
}

/* ---- rights */

static void H28_setuid_under_no_new_privileges(void **state)
{
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *output = NULL;

    (void)state;
    if (geteuid() != 0)
        skip(); /* a setuid program must belong to root */
    assert_int_equal(
        watched_sh(NULL, "cp /usr/bin/id %s/suid && chmod 4755 %s/suid", watched.dir, watched.dir),
        0);
    test_handler(watched.dir, "suid",
                 "[ \"$(%s/suid -u)\" = 0 ] && exit 0; echo 'no privileges' >&2; exit 9",
                 watched.dir);
    start_as_nobody("--no-new-privs", ONE_TRY "check_permissions: off");
    id = watched_add("suid", "x");
    assert_outcome(id, "dead", "9", "no privileges");
    output = watched_result(id, 5);
    assert_non_null(strstr(output, "no privileges"));
    watched_assert_clean();
}

static void *swap_loop(void *arg)
{
    const bool *stop = arg;
    CLEANUP_FREE char *path = mem_printf("%s/handlers/swap", watched.dir);
    CLEANUP_FREE char *next = mem_printf("%s/handlers/.next", watched.dir);

    for (int i = 0; !__atomic_load_n(stop, __ATOMIC_SEQ_CST); i++) {
        const char *target = i % 2 == 0 ? "../versions/one" : "../versions/two";

        if (symlink(target, next) != 0 || rename(next, path) != 0)
            break;
    }
    return NULL;
}

/*
 * Only root and the service user can swap the link; the folder's permissions keep all others out.
 * So a swap is an upgrade, and each attempt runs one version or the other.
 */
static void H29_symlink_swapped_between_check_and_start(void **state)
{
    static bool stop;
    bool ended, noticed;
    pthread_t thread;
    int runs;

    (void)state;
    stop = false;
    assert_int_equal(
        watched_sh(NULL,
                   "mkdir -m 755 %s/versions && cd %s/versions && for v in one two; do "
                   "printf '#!/bin/sh\\necho ran '$v' >> %s\\n' > $v; chmod 755 $v; done"
                   " && ln -s ../versions/one ../handlers/swap",
                   watched.dir, watched.dir, watched.out),
        0);
    watched_start("concurrency: 4\n" ONE_TRY);
    assert_int_equal(pthread_create(&thread, NULL, swap_loop, &stop), 0);
    watched_add_many("swap", 300);
    ended = watched_until_empty(LONG_MS);
    /* The folder changes all the time, and still the daemon rescans it now and then. */
    test_handler(watched.dir, "fresh", "echo fresh >> %s", watched.out);
    watched_add_many("fresh", 1);
    noticed = test_until_lines(watched.out, "fresh", 1, 10000);
    __atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(ended);
    assert_true(noticed);
    runs = test_lines(watched.out, "ran one") + test_lines(watched.out, "ran two");
    assert_int_equal(runs, 300);
    assert_true(test_lines(watched.out, "ran one") > 0 && test_lines(watched.out, "ran two") > 0);
    assert_int_equal(test_lines(watched.d.log, "outcome=dead"), 0);
    watched_assert_clean();
}

/* ---- long runs */

/*
 * A job has no lease of its own. A worker lives while its beats come (every 5 s) and is reaped
 * after five that are missing. It must not lose its jobs by missing two.
 */
static void H30_two_missed_beats(void **state)
{
    struct test_laterd other;

    (void)state;
    test_handler(watched.dir, "slow", "echo begin >> %s; sleep 15; echo end >> %s", watched.out,
                 watched.out);
    watched_start("concurrency: 4");
    test_laterd_conf(&other, watched.dir, "b", watched.redis.url, "concurrency: 4");
    watched_add_many("slow", 4);
    assert_true(test_until_lines(watched.out, "begin", 4, LONG_MS));
    test_laterd_start(&other);
    assert_int_equal(kill(watched.pid, SIGSTOP), 0);
    (void)watched_sh(NULL, "sleep 12"); /* the fault: no beat for 12 s */
    assert_int_equal(kill(watched.pid, SIGCONT), 0);
    assert_true(watched_until_empty(LONG_MS));
    assert_int_equal(test_lines(watched.out, "begin"), 4);
    assert_int_equal(test_lines(watched.out, "end"), 4);
    assert_int_equal(test_lines(other.log, "event=reaped"), 0);
    assert_int_equal(test_laterd_stop(&other), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, watched_setup, watched_teardown)
#define T_OPEN(f) cmocka_unit_test_setup_teardown(f, setup_open, watched_teardown)
    const struct CMUnitTest tests[] = {
        T(H1_handlers_that_cannot_start),
        T(H2_open_for_writing_for_a_second),
        T(H2_twenty_threads_write_and_start),
        T_OPEN(H3_no_process_to_have),
        T(H3_no_memory_for_a_process),
        T(H4_payload_is_no_argument),
        T(H5_no_descriptors),
        T(H6_hangs_for_ever),
        T(H7_ignores_term),
        T(H7_blocks_all_signals),
        T(H8_grandchild_keeps_the_pipe),
        T(H8_grandchild_in_a_session_of_its_own),
        T(H9_double_fork_daemon),
        T(H10_exits_before_reading),
        T(H11_closes_stdin_and_runs_on),
        T(H12_reads_a_byte_a_second),
        T(H17_killed_by_each_signal),
        T(H18_every_exit_status),
        T(H20_stops_itself),
        T(H21_changes_what_is_its_own),
        T(H22_inherits_four_descriptors),
        T(H23_signals_are_at_their_defaults),
        T(H24_zombie_storm),
        T(H25_pid_reuse),
        T(H26_waited_for_by_somebody_else),
        T(H27_started_with_sigchld_ignored),
        T_OPEN(H28_setuid_under_no_new_privileges),
        T(H29_symlink_swapped_between_check_and_start),
        T(H30_two_missed_beats),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
