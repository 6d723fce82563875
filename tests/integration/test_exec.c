/*
 * One attempt, with real processes. Each test is named after what a handler does (H1 to H23 of the
 * fault catalogue). Tests wait for conditions, with generous deadlines. Long, since it is one list
 * of small cases over one helper.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/exec/exec.h"
#include "run/exec/output.h"
#include "run/process/origin.h"
#include "run/process/spawn.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define EXIT_SKIPPED 77 /* tells the test driver: skipped */
#define FOREVER INT64_MAX
#define GRACE_MS 20000 /* for what ends by TERM */
#define LONG_MS 60000

static char dir[] = "/tmp/later-exec-XXXXXX";
static char path[256]; /* the last result of in_dir */

static const char *in_dir(const char *name)
{
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

/* Under valgrind the parent cannot learn of a failed exec, since vfork is fork there. */
static bool on_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

static int setup(void **state)
{
    struct rlimit none = {0, 0};

    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setrlimit(RLIMIT_CORE, &none);
    log_init(LOG_LEVEL_ERR);
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    char command[64];

    (void)state;
    (void)snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

/* ---- one attempt ---- */

struct attempt {
    const char *script;  /* for sh -c */
    const char *program; /* run this instead */
    const void *payload;
    size_t payload_len;
    int64_t timeout_ms, grace_ms;
    unsigned on_progress; /* controls to send at the first `progress` of the handler */
    unsigned on_progress_again;
    struct exec_slot *slot;
    uint64_t serial;
    struct run_report ret;
    pid_t pid;
    int ended, progresses;
    bool has_stderr; /* our own descriptor 2 was open while it ran */
    char progress[64];
    int checkpoints;
    char checkpoint[64];
    int64_t took_ms;
};

static void on_spawned(void *arg, pid_t pid)
{
    struct attempt *a = arg;

    assert_true(pid > 0);
    a->pid = pid;
    a->has_stderr = fcntl(2, F_GETFD) >= 0;
}

static void on_ended(void *arg)
{
    struct attempt *a = arg;

    a->ended++;
    /* The process is reaped: no child of ours has its pid. */
    assert_int_equal(waitpid(a->pid, NULL, WNOHANG), -1);
}

static void on_told(void *arg, enum run_word word, const char *text, size_t n)
{
    struct attempt *a = arg;
    unsigned what = a->progresses == 0 ? a->on_progress : a->on_progress_again;

    if (word == RUN_CHECKPOINT) {
        (void)snprintf(a->checkpoint, sizeof(a->checkpoint), "%.*s", (int)n, text);
        a->checkpoints++;
        return;
    }
    a->progresses++;
    (void)snprintf(a->progress, sizeof(a->progress), "%.*s", (int)n, text);
    if (what != 0)
        exec_slot_control(a->slot, a->serial, (enum exec_control)what);
}

static void attempt_on_slot(struct attempt *a, struct exec_slot *slot)
{
    CLEANUP_FREE char *origin = origin_env((int64_t)getpid() * 1000, "");
    char *env[] = {origin, (char *)"PATH=/usr/local/bin:/usr/bin:/bin",
                   (char *)"LATER_CONTROL_FD=3", NULL};
    const struct exec_hooks hooks = {on_spawned, on_ended, on_told, a};
    char *sh[] = {(char *)"/bin/sh", (char *)"-c", (char *)a->script, NULL};
    char *program[] = {(char *)a->program, NULL};
    struct exec_order order = {"j0123456789a",
                               "mail",
                               a->program != NULL ? program : sh,
                               env,
                               a->payload,
                               a->payload_len,
                               a->timeout_ms != 0 ? a->timeout_ms : FOREVER,
                               a->grace_ms != 0 ? a->grace_ms : GRACE_MS,
                               NULL,
                               0,
                               (int64_t)getpid() * 1000};
    struct mono start = mono_now();

    a->slot = slot;
    run_report_init(&a->ret);
    exec_run(&order, slot, &hooks, &a->ret);
    a->took_ms = mono_until_us(start, mono_now()) / 1000;
    assert_int_equal(a->ended, a->pid > 0);
}

static void attempt(struct attempt *a)
{
    struct exec_slot *slot = exec_slot_new();

    assert_non_null(slot);
    a->serial = exec_slot_arm(slot);
    attempt_on_slot(a, slot);
    exec_slot_free(slot);
}

static void attempt_done(struct attempt *a)
{
    run_report_done(&a->ret);
}

static void expect(const struct attempt *a, enum run_end end, int code, const char *text)
{
    if (strcmp(a->ret.text, text) != 0)
        print_error("said: %s\n", a->ret.text);
    assert_string_equal(a->ret.text, text);
    assert_int_equal(a->ret.end, end);
    assert_int_equal(a->ret.code, code);
}

static void run_expect(struct attempt *a, enum run_end end, int code, const char *text)
{
    attempt(a);
    expect(a, end, code, text);
    attempt_done(a);
}

/* Waits until a process that is not our child has ended; false: it still runs at the deadline. */
static bool is_gone(pid_t pid, int deadline_ms)
{
    int fd = pidfd_open(pid, 0);
    struct pollfd p = {fd, POLLIN, 0};
    int n;

    if (fd < 0)
        return errno == ESRCH;
    n = poll(&p, 1, deadline_ms);
    (void)close(fd);
    return n == 1;
}

static pid_t pid_in_output(struct attempt *a)
{
    pid_t pid = (pid_t)strtol(buf_str(&a->ret.output), NULL, 10);

    assert_true(pid > 1);
    return pid;
}

static char *slurp(const char *file, size_t *n)
{
    FILE *f = fopen(file, "rb");
    struct buf all = BUF_INIT;
    char chunk[4096];
    size_t got;

    assert_non_null(f);
    while ((got = fread(chunk, 1, sizeof(chunk), f)) > 0)
        buf_add(&all, chunk, got);
    (void)fclose(f);
    *n = all.len;
    return buf_take(&all);
}

static void make_file(const char *name, const char *content, mode_t mode)
{
    FILE *f = fopen(in_dir(name), "w");

    assert_non_null(f);
    (void)fputs(content, f);
    (void)fclose(f);
    assert_int_equal(chmod(in_dir(name), mode), 0);
}

/* ---- payload ---- */

static void copies_payload(const char *payload, size_t n)
{
    char script[320];
    struct attempt a = {.script = script, .payload = payload, .payload_len = n};
    char *got;
    size_t got_n;

    (void)snprintf(script, sizeof(script), "cat >%s", in_dir("payload"));
    run_expect(&a, RUN_EXITED, 0, "exit status 0");
    got = slurp(in_dir("payload"), &got_n);
    assert_int_equal(got_n, n);
    assert_memory_equal(got, payload, n);
    free(got);
}

static void test_payload_byte_exact(void **state)
{
    size_t big = 1 << 20;
    char *random = mem_new(big);
    uint32_t x = 2463534242u;

    (void)state;
    for (size_t i = 0; i < big; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        random[i] = (char)x;
    }
    copies_payload("", 0);
    copies_payload("\0\0a\0", 4);
    copies_payload("last line without end", 21);
    copies_payload(random, 65536);
    copies_payload(random, 65537);
    copies_payload(random, big);
    free(random);
}

static void test_h10_exits_before_reading(void **state)
{
    size_t n = 10 << 20;
    char *payload = mem_new(n);
    struct attempt a = {.script = "exit 0", .payload = payload, .payload_len = n};

    (void)state;
    run_expect(&a, RUN_EXITED, 0, "exit status 0");
    free(payload);
}

static void test_h11_closes_stdin_and_runs_on(void **state)
{
    size_t n = 1 << 20;
    char *payload = mem_new(n);
    struct attempt a = {
        .script = "exec <&-; sleep 0.3; exit 4", .payload = payload, .payload_len = n};

    (void)state;
    run_expect(&a, RUN_EXITED, 4, "exit status 4");
    assert_in_range(a.took_ms, 290, LONG_MS);
    free(payload);
}

static void test_h12_slow_reader_can_be_stopped(void **state)
{
    size_t n = 1 << 20;
    char *payload = mem_new(n);
    struct attempt a = {.script = "head -c 1 >/dev/null; echo progress x >&3; exec sleep 600",
                        .payload = payload,
                        .payload_len = n,
                        .on_progress = EXEC_CONTROL_STOP};

    (void)state;
    run_expect(&a, RUN_STOPPED, SIGTERM, "stopped: terminated");
    free(payload);
}

/* ---- how it ends ---- */

static void test_h18_exit_statuses(void **state)
{
    (void)state;
    for (int n = 0; n < 256; n++) {
        char script[32], text[32];
        struct attempt a = {.script = script};

        (void)snprintf(script, sizeof(script), "exit %d", n);
        (void)snprintf(text, sizeof(text), "exit status %d", n);
        run_expect(&a, RUN_EXITED, n, text);
    }
}

static void test_h17_signals(void **state)
{
    (void)state;
    for (int n = 1; n <= SIGRTMAX; n++) {
        char script[32];
        struct attempt a = {.script = script};

        /* Signals that do not kill, and those that libc keeps for itself. */
        if ((n >= SIGCHLD && n <= SIGURG) || n == SIGWINCH || (n > 31 && n < SIGRTMIN))
            continue;
        (void)snprintf(script, sizeof(script), "kill -%d $$", n);
        attempt(&a);
        assert_int_equal(a.ret.end, RUN_SIGNALED);
        assert_int_equal(a.ret.code, n);
        if (n == SIGSEGV)
            assert_string_equal(a.ret.text, "killed by signal 11 (Segmentation fault)");
        if (n == SIGRTMAX)
            assert_string_equal(a.ret.text, "killed by signal 64");
        attempt_done(&a);
    }
}

static void test_h6_hangs(void **state)
{
    struct attempt a = {.script = "exec sleep 600", .timeout_ms = 1000};

    (void)state;
    run_expect(&a, RUN_TIMED_OUT, SIGTERM, "timed out after 1s: terminated");
    assert_in_range(a.took_ms, 1000, LONG_MS);
}

static void test_timeout_of_one_that_cleans_up(void **state)
{
    struct attempt a = {.script = "trap 'exit 3' TERM; sleep 600 & wait", .timeout_ms = 1000};

    (void)state;
    run_expect(&a, RUN_TIMED_OUT, 3, "timed out after 1s: terminated (exit status 3)");
}

static void test_h7_ignores_term(void **state)
{
    struct attempt a = {
        .script = "trap '' TERM; while :; do sleep 600; done", .timeout_ms = 1000, .grace_ms = 200};

    (void)state;
    run_expect(&a, RUN_TIMED_OUT, SIGKILL, "timed out after 1s: killed after a grace of 200ms");
    assert_in_range(a.took_ms, 1200, LONG_MS);
}

static void test_h20_stops_itself(void **state)
{
    struct attempt a = {.script = "kill -STOP $$; exit 0", .timeout_ms = 1000};

    (void)state;
    run_expect(&a, RUN_TIMED_OUT, SIGTERM, "timed out after 1s: terminated");
}

/* ---- its children ---- */

static void test_h8_leaves_a_child_with_the_pipes(void **state)
{
    struct attempt a = {.script = "sleep 600 & echo $!; exit 3"};
    pid_t child;

    (void)state;
    attempt(&a);
    expect(&a, RUN_EXITED, 3, "exit status 3");
    assert_in_range(a.took_ms, EXEC_DRAIN_MS - 50, LONG_MS);
    /* The duration is that of the job, without the wait for the pipes. */
    assert_true(a.ret.duration_us / 1000 <= a.took_ms - EXEC_DRAIN_MS + 100);
    child = pid_in_output(&a);
    assert_false(is_gone(child, 0)); /* the job ended by itself, so what it left behind may go on */
    assert_int_equal(kill(child, SIGKILL), 0);
    attempt_done(&a);
}

static void test_child_without_pipes_costs_no_time(void **state)
{
    struct attempt a = {.script = "sleep 600 >/dev/null 2>&1 3>&- & echo $!"};

    (void)state;
    attempt(&a);
    expect(&a, RUN_EXITED, 0, "exit status 0");
    assert_true(a.took_ms - a.ret.duration_us / 1000 < EXEC_DRAIN_MS - 50);
    assert_int_equal(kill(pid_in_output(&a), SIGKILL), 0);
    attempt_done(&a);
}

static void grandchild_dies(const char *script, enum run_end end, int code, const char *text)
{
    struct attempt a = {.script = script, .timeout_ms = 1000, .grace_ms = 1000};

    attempt(&a);
    expect(&a, end, code, text);
    assert_true(is_gone(pid_in_output(&a), LONG_MS));
    attempt_done(&a);
}

static void test_timeout_takes_the_grandchild_too(void **state)
{
    (void)state;
    grandchild_dies("sleep 600 & echo $!; wait", RUN_TIMED_OUT, SIGTERM,
                    "timed out after 1s: terminated");
    /* TERM ends the leader, but not the grandchild. */
    grandchild_dies("(trap '' TERM; exec sleep 600) & echo $!; wait", RUN_TIMED_OUT, SIGTERM,
                    "timed out after 1s: killed after a grace of 1s");
    /* The same, and the grandchild holds no pipe. */
    grandchild_dies("(trap '' TERM; exec sleep 600 >/dev/null 2>&1 3>&-) & echo $!; wait",
                    RUN_TIMED_OUT, SIGTERM, "timed out after 1s: terminated");
    /* TERM ends neither. */
    grandchild_dies("trap '' TERM; sleep 600 & echo $!; while :; do wait; done", RUN_TIMED_OUT,
                    SIGKILL, "timed out after 1s: killed after a grace of 1s");
}

static void test_grandchild_gets_the_grace_too(void **state)
{
    static const char script[] =
        "(exec 2>/dev/null; trap 'sleep 0.3; echo cleaned; exit' TERM; echo progress x >&3;"
        " while :; do sleep 0.05; done) & wait";
    struct attempt a = {.script = script, .grace_ms = 20000, .on_progress = EXEC_CONTROL_STOP};

    (void)state;
    attempt(&a);
    expect(&a, RUN_STOPPED, SIGTERM, "stopped: terminated");
    assert_string_equal(buf_str(&a.ret.output), "cleaned\n");
    assert_in_range(a.took_ms, 300, 19000); /* the grace is 20 s */
    attempt_done(&a);
}

static void test_h9_escaped_session_does_not_hold_the_slot(void **state)
{
    struct attempt a = {.script = "setsid sleep 600 & echo $!; exec sleep 600",
                        .timeout_ms = 1000,
                        .grace_ms = 200};

    (void)state;
    attempt(&a);
    expect(&a, RUN_TIMED_OUT, SIGTERM, "timed out after 1s: killed after a grace of 200ms");
    assert_in_range(a.took_ms, 1200, LONG_MS);
    (void)kill(pid_in_output(&a), SIGKILL);
    attempt_done(&a);
}

/* ---- controls ---- */

static void test_stop_and_cancel(void **state)
{
    static const char script[] = "echo progress x >&3; exec sleep 600";
    static const char deaf[] = "trap '' TERM; echo progress x >&3; exec sleep 600";
    struct attempt stop = {.script = script, .on_progress = EXEC_CONTROL_STOP};
    struct attempt cancel = {.script = script, .on_progress = EXEC_CONTROL_CANCEL};
    struct attempt both = {.script = script,
                           .on_progress = EXEC_CONTROL_STOP | EXEC_CONTROL_CANCEL};
    struct attempt late = {.script = deaf, .grace_ms = 200, .on_progress = EXEC_CONTROL_CANCEL};
    struct attempt at_once = {.script = deaf, .grace_ms = 60000, .on_progress = EXEC_CONTROL_KILL};

    (void)state;
    run_expect(&stop, RUN_STOPPED, SIGTERM, "stopped: terminated");
    run_expect(&cancel, RUN_CANCELLED, SIGTERM, "cancelled: terminated");
    run_expect(&both, RUN_CANCELLED, SIGTERM, "cancelled: terminated");
    run_expect(&late, RUN_CANCELLED, SIGKILL, "cancelled: killed after a grace of 200ms");
    run_expect(&at_once, RUN_STOPPED, SIGKILL, "stopped: killed");
    assert_in_range(at_once.took_ms, 0, 50000); /* the grace is 60 s */
}

static void test_kill_cuts_the_grace_short(void **state)
{
    static const char script[] = "trap 'echo progress again >&3' TERM; echo progress x >&3;"
                                 " while :; do sleep 0.05; done";
    struct attempt a = {.script = script,
                        .grace_ms = 60000,
                        .on_progress = EXEC_CONTROL_STOP,
                        .on_progress_again = EXEC_CONTROL_CANCEL | EXEC_CONTROL_KILL};

    (void)state;
    run_expect(&a, RUN_CANCELLED, SIGKILL, "cancelled: killed");
    assert_in_range(a.took_ms, 0, 50000);
}

static void test_called_off_before_the_start(void **state)
{
    struct exec_slot *slot = exec_slot_new();
    struct attempt a = {.script = "exit 0"}, b = {.script = "exit 0"};

    (void)state;
    a.serial = exec_slot_arm(slot);
    exec_slot_control(slot, a.serial, EXEC_CONTROL_CANCEL);
    attempt_on_slot(&a, slot);
    expect(&a, RUN_CANCELLED, 0, "cancelled before it was started");
    assert_int_equal(a.pid, 0);
    assert_int_equal(a.ret.started.us, 0);
    b.serial = exec_slot_arm(slot);
    exec_slot_control(slot, b.serial, EXEC_CONTROL_STOP);
    attempt_on_slot(&b, slot);
    expect(&b, RUN_STOPPED, 0, "stopped before it was started");
    exec_slot_free(slot);
    attempt_done(&a);
    attempt_done(&b);
}

/* A control for a job that has ended does not reach the next job in its slot. */
static void test_late_control_is_dropped(void **state)
{
    struct exec_slot *slot = exec_slot_new();
    struct attempt first = {.script = "exit 1"}, second = {.script = "exit 2"};

    (void)state;
    first.serial = exec_slot_arm(slot);
    attempt_on_slot(&first, slot);
    exec_slot_control(slot, first.serial, EXEC_CONTROL_CANCEL);
    second.serial = exec_slot_arm(slot);
    assert_true(second.serial != first.serial);
    exec_slot_control(slot, first.serial, EXEC_CONTROL_KILL);
    attempt_on_slot(&second, slot);
    expect(&second, RUN_EXITED, 2, "exit status 2");
    exec_slot_free(slot);
    attempt_done(&first);
    attempt_done(&second);
}

/* ---- cannot start ---- */

static void refused(const char *name, int errnum, const char *cure)
{
    struct attempt a = {.program = in_dir(name)};

    attempt(&a);
    if (strstr(a.ret.text, cure) == NULL || a.ret.end != RUN_NOT_RUN)
        print_error("%s said: %s\n", name, a.ret.text);
    assert_int_equal(a.ret.end, RUN_NOT_RUN);
    assert_int_equal(a.ret.code, errnum);
    assert_ptr_equal(strstr(a.ret.text, "cannot start: "), a.ret.text);
    assert_non_null(strstr(a.ret.text, cure));
    assert_int_equal(a.pid, 0);
    attempt_done(&a);
}

static void test_h1_cannot_start(void **state)
{
    char own[300];

    (void)state;
    if (on_valgrind())
        skip();
    make_file("noexec", "#!/bin/sh\n", 0644);
    make_file("plain", "echo hello\n", 0755);
    make_file("empty", "", 0755);
    make_file("crlf", "#!/bin/sh\r\nexit 0\r\n", 0755);
    make_file("lost", "#!/no/such/interpreter -x\n", 0755);
    make_file("elf", "\177ELF\1\1\1", 0755);
    (void)snprintf(own, sizeof(own), "#!%s\n", in_dir("own"));
    make_file("own", own, 0755);
    assert_int_equal(mkdir(in_dir("folder"), 0755), 0);
    refused("missing", ENOENT, "does not exist");
    refused("noexec", EACCES, "is not executable: chmod +x ");
    refused("folder", EACCES, "is a folder");
    refused("plain", ENOEXEC, "has no interpreter line");
    refused("empty", ENOEXEC, "is empty");
    refused("crlf", ENOENT, "CRLF");
    refused("lost", ENOENT, "interpreter /no/such/interpreter does not exist");
    refused("elf", ENOEXEC, "Exec format error");
    refused("own", ELOOP, "script of a script");
    refused("plain/x", ENOTDIR, "Not a directory");
}

static void *close_soon(void *arg)
{
    struct pollfd none = {-1, 0, 0};

    (void)poll(&none, 1, 70);
    (void)close(*(int *)arg);
    return NULL;
}

static void test_h2_text_file_busy(void **state)
{
    struct attempt busy = {0}, freed = {0};
    char copy[300];
    pthread_t thread;
    int fd;

    (void)state;
    if (on_valgrind())
        skip();
    /* A binary, since the busy file of a script would be its interpreter. */
    (void)snprintf(copy, sizeof(copy), "cp /bin/true %s", in_dir("true"));
    assert_int_equal(system(copy), 0);
    fd = open(in_dir("true"), O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    busy.program = freed.program = path;
    attempt(&busy);
    assert_int_equal(busy.ret.end, RUN_NOT_RUN);
    assert_int_equal(busy.ret.code, ETXTBSY);
    assert_non_null(strstr(busy.ret.text, "Text file busy (it is open for writing"));
    assert_in_range(busy.took_ms, 150, LONG_MS);
    assert_int_equal(pthread_create(&thread, NULL, close_soon, &fd), 0);
    attempt(&freed);
    expect(&freed, RUN_EXITED, 0, "exit status 0");
    assert_int_equal(pthread_join(thread, NULL), 0);
    attempt_done(&busy);
    attempt_done(&freed);
}

/* H5: a lack of descriptors makes the host ill, at each point where one is needed. */
static void test_h5_no_descriptors(void **state)
{
    struct exec_slot *slot = exec_slot_new();
    int failures = 0, next = dup(STDERR_FILENO);
    struct rlimit was, few;

    (void)state;
    (void)close(next);
    if (on_valgrind()) {
        exec_slot_free(slot);
        skip();
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    for (int spare = 0; spare < 12; spare++) {
        struct attempt a = {.script = "exit 0"};

        few = (struct rlimit){(rlim_t)(next + spare), was.rlim_max};
        a.serial = exec_slot_arm(slot);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        attempt_on_slot(&a, slot);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        if (a.ret.end == RUN_HOST_ILL) {
            assert_non_null(strstr(a.ret.text, "Too many open files"));
            failures++;
        } else {
            expect(&a, RUN_EXITED, 0, "exit status 0");
        }
        assert_int_equal(dup(STDERR_FILENO), next);
        (void)close(next);
        attempt_done(&a);
    }
    /* The number depends on the inherited descriptors; a lack of them must show at least once. */
    assert_in_range(failures, 1, 11);
    exec_slot_free(slot);
}

/* ---- what it inherits ---- */

static void test_h22_descriptors(void **state)
{
    struct attempt a = {.script = "i=0; while [ $i -lt 256 ]; do"
                                  " [ -e /proc/$$/fd/$i ] && printf '%s ' $i; i=$((i+1)); done"};
    int leak[3] = {dup(0), dup(1), dup(2)};

    (void)state;
    attempt(&a);
    assert_string_equal(buf_str(&a.ret.output), "0 1 2 3 ");
    for (int i = 0; i < 3; i++)
        (void)close(leak[i]);
    attempt_done(&a);
}

static void test_h23_signals(void **state)
{
    struct attempt a = {.script = "exec grep -E 'Sig(Ign|Blk)' /proc/self/status"};
    sigset_t all, was;

    (void)state;
    (void)sigfillset(&all);
    (void)signal(SIGUSR1, SIG_IGN);
    (void)pthread_sigmask(SIG_SETMASK, &all, &was);
    attempt(&a);
    (void)pthread_sigmask(SIG_SETMASK, &was, NULL);
    (void)signal(SIGUSR1, SIG_DFL);
    assert_string_equal(buf_str(&a.ret.output),
                        "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    attempt_done(&a);
}

static void test_environment_and_session(void **state)
{
    struct attempt env = {.script = "exec env"};
    struct attempt ids = {.script = "cut -d' ' -f1,5,6 /proc/$$/stat"};
    char want[64];

    (void)state;
    attempt(&env);
    assert_non_null(strstr(buf_str(&env.ret.output), "LATER_CONTROL_FD=3\n"));
    assert_null(strstr(buf_str(&env.ret.output), "HOME="));
    attempt_done(&env);
    attempt(&ids);
    (void)snprintf(want, sizeof(want), "%d %d %d\n", ids.pid, ids.pid, ids.pid);
    assert_string_equal(buf_str(&ids.ret.output), want);
    attempt_done(&ids);
}

/* Run f in a child of this test, where it may close descriptors 0 to 3. */
static void in_child(int (*f)(void))
{
    pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(f());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int runs_with_closed_stdio(void)
{
    static char payload[1 << 20]; /* so that the pipe stays open while it runs */
    struct attempt a = {.script = "wc -c; echo err >&2; echo result ok >&3",
                        .payload = payload,
                        .payload_len = sizeof(payload)};
    int rc = 0;

    for (int fd = 0; fd <= 3; fd++)
        (void)close(fd);
    attempt(&a);
    if (a.ret.end != RUN_EXITED || a.ret.code != 0)
        rc = 1;
    else if (strstr(buf_str(&a.ret.output), "1048576\n") == NULL ||
             strstr(buf_str(&a.ret.output), "err\n") == NULL || a.ret.output.len != 12)
        rc = 2;
    else if (strcmp(buf_str(&a.ret.result), "ok") != 0)
        rc = 3;
    else if (a.has_stderr) /* our log would go into a pipe of the job */
        rc = 4;
    attempt_done(&a);
    return rc;
}

static int spawns_with_crossed_fds(void)
{
    char *argv[] = {(char *)"/bin/cat", NULL}, *env[] = {NULL};
    struct err err = ERR_INIT;
    struct spawned child;
    int in[2], out[2], status = -1;
    char got[8] = "";

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return 1;
    /* The child's input is our descriptor 1, its output our descriptor 0. */
    if (dup2(in[0], 1) < 0 || dup2(out[1], 0) < 0)
        return 2;
    if (spawn(argv, env, &(struct spawn_fds){1, 0, -1, -1}, "/", &child, &err) != 0)
        return 3;
    (void)close(0);
    (void)close(1);
    (void)close(out[1]);
    if (write(in[1], "cross", 5) != 5 || close(in[1]) != 0)
        return 4;
    if (waitpid(child.pid, &status, 0) != child.pid || status != 0)
        return 5;
    if (read(out[0], got, sizeof(got)) != 5 || memcmp(got, "cross", 5) != 0)
        return 6;
    (void)close(child.pidfd);
    (void)close(in[0]);
    (void)close(out[0]);
    return 0;
}

static int starts_without_a_process_to_have(void)
{
    struct attempt a = {.script = "exit 0"};
    struct rlimit none = {0, 0};
    int rc = 0;

    if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setuid(65534) != 0))
        return 1;
    attempt(&a);
    if (a.ret.end != RUN_HOST_ILL || strstr(a.ret.text, "temporarily unavailable") == NULL)
        rc = 2;
    attempt_done(&a);
    return rc;
}

static void test_h3_no_processes(void **state)
{
    (void)state;
    in_child(starts_without_a_process_to_have);
}

static void test_descriptors_zero_to_three_are_closed(void **state)
{
    (void)state;
    in_child(runs_with_closed_stdio);
    in_child(spawns_with_crossed_fds);
}

/* ---- output ---- */

static long rss_peak_kib(void)
{
    struct rusage ru;

    (void)getrusage(RUSAGE_SELF, &ru);
    return ru.ru_maxrss;
}

static void test_h13_a_gigabyte_of_output(void **state)
{
    bool slow = SANITIZED || on_valgrind();
    int64_t bytes = slow ? 64 << 20 : 1 << 30;
    char script[64];
    struct attempt a = {.script = script};
    long before = rss_peak_kib();

    (void)state;
    (void)snprintf(script, sizeof(script), "yes | head -c %lld", (long long)bytes);
    run_expect(&a, RUN_EXITED, 0, "exit status 0");
    assert_int_equal(a.ret.output_bytes, bytes);
    if (!slow)
        assert_in_range(rss_peak_kib() - before, 0, 2048);
}

static void test_h14_no_line_ends(void **state)
{
    struct attempt a = {.script = "head -c 20000000 /dev/zero | tr '\\0' x >&2; printf END >&2"};
    long before = rss_peak_kib();

    (void)state;
    attempt(&a);
    assert_int_equal(a.ret.output_bytes, 20000003);
    assert_int_equal(a.ret.output.len, RUN_OUTPUT_BYTES);
    assert_string_equal(a.ret.output.data + RUN_OUTPUT_BYTES - 4, "xEND");
    if (!SANITIZED && !on_valgrind())
        assert_in_range(rss_peak_kib() - before, 0, 2048);
    attempt_done(&a);
}

/* Run the attempt with the log at info in a file. -> the text of the log; the caller frees it */
static char *logged(struct attempt *a)
{
    int saved = dup(2), fd = open(in_dir("log"), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
    size_t n;

    assert_true(saved >= 0 && fd >= 0);
    (void)dup2(fd, 2);
    (void)close(fd);
    log_set_level(LOG_LEVEL_INFO);
    attempt(a);
    log_set_level(LOG_LEVEL_ERR);
    (void)dup2(saved, 2);
    (void)close(saved);
    return slurp(in_dir("log"), &n);
}

static int count_lines(const char *text, const char *with)
{
    int n = 0;

    for (const char *p = text; (p = strstr(p, with)) != NULL; p++)
        n++;
    return n;
}

static void test_output_reaches_the_log(void **state)
{
    struct attempt a = {.script = "echo one; echo two >&2; printf '%s\\n' 'x\" job=forged' >&2;"
                                  " echo log three >&3; printf 'no end'"};
    char *log = logged(&a);

    (void)state;
    assert_non_null(strstr(log, "job=j0123456789a queue=mail stream=stdout msg=\"one\"\n"));
    assert_non_null(strstr(log, "job=j0123456789a queue=mail stream=stderr msg=\"two\"\n"));
    assert_non_null(strstr(log, "stream=stderr msg=\"x\\x22 job=forged\"\n"));
    assert_non_null(strstr(log, "stream=log msg=\"three\"\n"));
    assert_non_null(strstr(log, "stream=stdout msg=\"no end\"\n"));
    assert_int_equal(count_lines(log, "\n"), 5);
    free(log);
    attempt_done(&a);
}

static void test_h15_bytes_are_kept_and_escaped(void **state)
{
    char payload[256], line[] = "\033[31mred\033[0m \303\244 \377 \302\205\r";
    struct attempt a = {.script = "cat", .payload = payload, .payload_len = sizeof(payload)};
    struct attempt b = {.script = "cat", .payload = line, .payload_len = sizeof(line) - 1};
    char *log;

    (void)state;
    for (int i = 0; i < 256; i++)
        payload[i] = (char)i;
    log = logged(&a);
    assert_int_equal(a.ret.output.len, sizeof(payload));
    assert_memory_equal(a.ret.output.data, payload, sizeof(payload));
    for (const char *p = log; *p != '\0'; p++)
        assert_true((unsigned char)*p >= ' ' || *p == '\n');
    free(log);
    log = logged(&b);
    assert_non_null(strstr(log, "\\x1b[31mred\\x1b[0m \303\244 \\xff \\xc2\\x85\\x0d"));
    free(log);
    attempt_done(&a);
    attempt_done(&b);
}

static void test_log_is_bounded(void **state)
{
    struct attempt a = {.script = "i=0; while [ $i -lt 1500 ]; do echo $i; i=$((i+1)); done;"
                                  " printf unended"};
    struct attempt b = {.script = "head -c 5000 /dev/zero | tr '\\0' x"};
    char *log = logged(&a);

    (void)state;
    assert_int_equal(count_lines(log, "stream=stdout"), OUTPUT_LOG_LINES);
    assert_non_null(strstr(log, "left_out_lines=501 "));
    assert_string_equal(a.ret.output.data + a.ret.output.len - 12, "1499\nunended");
    free(log);
    log = logged(&b);
    assert_in_range(strlen(log), OUTPUT_LINE_BYTES, OUTPUT_LINE_BYTES + 200);
    assert_non_null(strstr(log, "\" cut=1\n"));
    free(log);
    attempt_done(&a);
    attempt_done(&b);
}

/* ---- why it failed ---- */

static void test_the_reason_is_in_words(void **state)
{
    static const struct {
        const char *script, *says;
    } rows[] = {
        {"echo begins >&2; echo 'no answer' >&2; exit 1", "no answer"},
        {"echo 'no answer' >&2; echo >&2; echo '  ' >&2; exit 1", "no answer"},
        {"printf '  no \\033[31manswer' >&2; exit 1", "no \\x1b[31manswer"},
        {"echo x >&2; echo 'reason disk full' >&3; exit 65", "disk full"},
        {"echo 'reason a' >&3; echo 'reason b' >&3; exit 65", "b"},
        {"echo out; exit 1", "exit status 1"},
        {"i=0; while [ $i -lt 400 ]; do echo line $i >&2; i=$((i+1)); done; exit 1", "line 399"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct attempt a = {.script = rows[i].script};

        attempt(&a);
        assert_string_equal(a.ret.text, rows[i].says);
        assert_int_equal(a.ret.end, RUN_EXITED);
        attempt_done(&a);
    }
    /* It did not fail. */
    {
        struct attempt a = {.script = "echo warning >&2; echo 'reason none' >&3"};

        attempt(&a);
        expect(&a, RUN_EXITED, 0, "exit status 0");
        attempt_done(&a);
    }
}

/* ---- a stream handler without its mode ---- */

/* It finds no jobs on its input and ends with status 0: that is no success. */
static void test_a_greeting_is_no_success(void **state)
{
    static const char *const scripts[] = {"echo later-stream 1",
                                          "printf 'later-stream 1 inflight=8\r\n'; cat >/dev/null",
                                          "printf later-; sleep 0.05; echo stream 1",
                                          "echo warning >&2; echo later-stream 1; exit 3"};

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        struct attempt a = {.script = scripts[i]};

        attempt(&a);
        expect(
            &a, RUN_NOT_RUN, 0,
            "it is a stream handler (its output begins with later-stream 1): set mode: stream for "
            "its queue");
        attempt_done(&a);
    }
}

static void test_other_output_is_no_greeting(void **state)
{
    static const char *const scripts[] = {"echo x; echo later-stream 1", "echo later-stream 1 >&2",
                                          "echo later-streams 1", "printf later-stream"};

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        struct attempt a = {.script = scripts[i]};

        attempt(&a);
        expect(&a, RUN_EXITED, 0, "exit status 0");
        attempt_done(&a);
    }
}

/* ---- descriptor 3 ---- */

static void test_fd3(void **state)
{
    struct attempt a = {.script = "printf 'progress 40 resizing\\nretry-in 5m\\nretry-in soon\\n"
                                  "result one\\nnonsense\\n\\nresult two\\nresult\\nresult 4' >&3"};

    (void)state;
    attempt(&a);
    expect(&a, RUN_EXITED, 0, "exit status 0");
    assert_string_equal(a.progress, "40 resizing");
    assert_int_equal(a.ret.retry_in_ms, 300000);
    assert_string_equal(buf_str(&a.ret.result), "one\ntwo\n\n4");
    assert_int_equal(a.ret.output_bytes, 0);
    attempt_done(&a);
}

static void test_fd3_is_not_used(void **state)
{
    struct attempt a = {.script = "echo retry-in 5m; echo result forged >&2; exec 3>&-"};

    (void)state;
    attempt(&a);
    expect(&a, RUN_EXITED, 0, "exit status 0");
    assert_int_equal(a.ret.retry_in_ms, -1);
    assert_int_equal(a.ret.result.len, 0);
    attempt_done(&a);
}

static void test_fd3_is_bounded(void **state)
{
    struct attempt a = {.script = "i=0; while [ $i -lt 9 ]; do printf 'result %05000d\\n' 0 >&3;"
                                  " i=$((i+1)); done"};
    struct attempt c = {.script = "printf 'result %020000d\\n' 0 >&3"};
    struct attempt b = {.script = "i=0; while [ $i -lt 3000 ]; do echo progress $i;"
                                  " i=$((i+1)); done >&3"};

    (void)state;
    attempt(&a);
    assert_int_equal(a.ret.result.len, RUN_RESULT_BYTES);
    assert_int_equal(strchr(a.ret.result.data, '\n') - a.ret.result.data, 5000);
    attempt_done(&a);
    attempt(&c);
    assert_int_equal(c.ret.result.len, RUN_RESULT_BYTES);
    attempt_done(&c);
    attempt(&b);
    assert_string_equal(b.progress, "2999");
    assert_in_range(b.progresses, 1, 3 + b.took_ms / 100);
    attempt_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_payload_byte_exact),
        cmocka_unit_test(test_h10_exits_before_reading),
        cmocka_unit_test(test_h11_closes_stdin_and_runs_on),
        cmocka_unit_test(test_h12_slow_reader_can_be_stopped),
        cmocka_unit_test(test_h18_exit_statuses),
        cmocka_unit_test(test_h17_signals),
        cmocka_unit_test(test_h6_hangs),
        cmocka_unit_test(test_timeout_of_one_that_cleans_up),
        cmocka_unit_test(test_h7_ignores_term),
        cmocka_unit_test(test_h20_stops_itself),
        cmocka_unit_test(test_h8_leaves_a_child_with_the_pipes),
        cmocka_unit_test(test_child_without_pipes_costs_no_time),
        cmocka_unit_test(test_timeout_takes_the_grandchild_too),
        cmocka_unit_test(test_grandchild_gets_the_grace_too),
        cmocka_unit_test(test_h9_escaped_session_does_not_hold_the_slot),
        cmocka_unit_test(test_stop_and_cancel),
        cmocka_unit_test(test_kill_cuts_the_grace_short),
        cmocka_unit_test(test_called_off_before_the_start),
        cmocka_unit_test(test_late_control_is_dropped),
        cmocka_unit_test(test_h1_cannot_start),
        cmocka_unit_test(test_h2_text_file_busy),
        cmocka_unit_test(test_h5_no_descriptors),
        cmocka_unit_test(test_h22_descriptors),
        cmocka_unit_test(test_h23_signals),
        cmocka_unit_test(test_environment_and_session),
        cmocka_unit_test(test_h3_no_processes),
        cmocka_unit_test(test_descriptors_zero_to_three_are_closed),
        cmocka_unit_test(test_h13_a_gigabyte_of_output),
        cmocka_unit_test(test_h14_no_line_ends),
        cmocka_unit_test(test_output_reaches_the_log),
        cmocka_unit_test(test_h15_bytes_are_kept_and_escaped),
        cmocka_unit_test(test_log_is_bounded),
        cmocka_unit_test(test_the_reason_is_in_words),
        cmocka_unit_test(test_a_greeting_is_no_success),
        cmocka_unit_test(test_other_output_is_no_greeting),
        cmocka_unit_test(test_fd3),
        cmocka_unit_test(test_fd3_is_not_used),
        cmocka_unit_test(test_fd3_is_bounded),
    };

    int probe = pidfd_open(getpid(), 0);

    /* An emulated kernel (valgrind before 3.22) may not know pidfds: nothing can be tested. */
    if (probe < 0 && errno == ENOSYS)
        return EXIT_SKIPPED;
    (void)close(probe);
    return cmocka_run_group_tests(tests, setup, teardown);
}
