#include "watched.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/fsck.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "redis/client.h"
#include "usage.h"

#define START_MS 30000
#define BATCH 500

struct watched watched;

static void bystander_stop(void);

static struct proc tracer = {0, -1, -1};
static int64_t canary_from_ms;
static int canary_n;

/* ---- around a test */

int watched_setup_with(const char *const *redis_args)
{
    memset(&watched, 0, sizeof(watched));
    canary_n = 0;
    test_redis_start(&watched.redis, redis_args);
    test_folder_make(watched.dir);
    (void)snprintf(watched.out, sizeof(watched.out), "%s/out", watched.dir);
    return 0;
}

int watched_setup(void **state)
{
    (void)state;
    return watched_setup_with(NULL);
}

static int stop_daemon(void)
{
    if (!watched.d.runs)
        return 0;
    (void)kill(watched.pid, SIGCONT);
    (void)kill(watched.pid, SIGTERM);
    return test_laterd_wait(&watched.d, 60000);
}

int watched_teardown(void **state)
{
    int status;

    (void)state;
    watched_inject_end();
    bystander_stop();
    status = stop_daemon();
    if (watched.unsound == NULL)
        status += test_fsck(&watched.redis);
    test_redis_stop(&watched.redis);
    test_folder_remove(watched.dir);
    return status;
}

static pid_t find_daemon(pid_t parent)
{
    CLEANUP_BUF struct buf found = BUF_INIT;
    pid_t pid;

    /* The process that was started may be the daemon itself, its parent or its grandparent. */
    if (watched_sh(&found,
                   "p=%d; for i in 1 2 3; do for q in $p; do "
                   "[ \"$(cat /proc/$q/comm)\" = laterd ] && echo $q && exit; done; "
                   "p=$(for q in $p; do pgrep -P $q; done); done; exit 1",
                   (int)parent) != 0)
        return 0;
    pid = (pid_t)strtol(buf_str(&found), NULL, 10);
    return pid;
}

void watched_remember(void)
{
    watched.pid = find_daemon(watched.d.proc.pid);
    assert_true(watched.pid > 0);
    watched.fds = usage_fds(watched.pid);
    watched.threads = usage_threads(watched.pid);
    watched.hwm_kib = usage_kib(watched.pid, "VmHWM");
}

/* Registered and subscribed: from now on its number of descriptors stays the same. */
static bool is_registered(void *arg)
{
    struct reply *r = test_redis_call(&watched.redis, "PUBSUB", "NUMSUB", ROOT ":wake", NULL);
    bool one = reply_int(reply_at(r, 1)) == 1;

    (void)arg;
    reply_free(r);
    return one && test_int(&watched.redis, "HLEN", ROOT ":workers") == 1;
}

static void await_registered(void)
{
    if (!test_until(is_registered, NULL, START_MS)) {
        CLEANUP_BUF struct buf log = BUF_INIT;

        test_read(watched.d.log, &log);
        fail_msg("laterd did not register:\n%s", buf_str(&log));
    }
    watched.since_ms = test_now_ms();
    watched_remember();
}

void watched_start(const char *yaml)
{
    test_laterd_conf(&watched.d, watched.dir, "a", watched.redis.url, yaml);
    test_laterd_launch(&watched.d);
    watched.pid = watched.d.proc.pid;
    await_registered();
}

void watched_start_under(const char *prefix, const char *suffix, const char *yaml, bool await)
{
    CLEANUP_FREE char *program = watched_program();
    CLEANUP_FREE char *cmd = NULL;
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", NULL, NULL};

    test_laterd_conf(&watched.d, watched.dir, "a", watched.redis.url, yaml);
    cmd = mem_printf("%s %s --config %s %s", prefix, program, watched.d.conf, suffix);
    argv[2] = cmd;
    (void)unlink(watched.d.log);
    proc_start(&watched.d.proc, argv, NULL, watched.d.log);
    watched.d.runs = true;
    watched.pid = watched.d.proc.pid;
    if (await)
        await_registered();
}

char *watched_program(void)
{
    char *path = mem_printf("%s/laterd", watched.dir);

    assert_int_equal(watched_sh(NULL, "cp %s/laterd %s", test_build_dir(), path), 0);
    return path;
}

/* ---- jobs */

char *watched_add_with(const char *queue, const char *name, const char *value, const char *payload)
{
    char *id = test_add(&watched.redis, queue, name, value, payload);

    assert_non_null(id);
    return id;
}

char *watched_add(const char *queue, const char *payload)
{
    return watched_add_with(queue, NULL, NULL, payload);
}

static struct client *open_client(void)
{
    struct err err = ERR_INIT;
    struct client *c;
    struct url url;

    assert_int_equal(url_parse(watched.redis.url, &url, &err), 0);
    c = client_open(&url, 60000, &err);
    assert_non_null(c);
    return c;
}

char *watched_add_bytes(const char *queue, const char *payload, size_t n)
{
    const char *argv[] = {"FCALL", "later_add", "1", ROOT, queue, "keep", "1h", payload};
    size_t len[] = {5, 9, 1, strlen(ROOT), strlen(queue), 4, 2, n};
    struct client *c = open_client();
    struct err err = ERR_INIT;
    struct reply *r = client_call(c, 8, argv, len, &err);
    char *id = r != NULL ? mem_strdup(reply_str(reply_at(r, 0))) : NULL;

    reply_free(r);
    client_close(c);
    return id;
}

void watched_add_many(const char *queue, int n)
{
    const char *argv[6 + BATCH] = {"FCALL", "later_add_many", "1", ROOT, queue, "--"};
    struct client *c = open_client();
    struct err err = ERR_INIT;

    for (int i = 0; i < BATCH; i++)
        argv[6 + i] = "x";
    for (int left = n; left > 0; left -= BATCH) {
        struct reply *r = client_call(c, 6 + (left < BATCH ? left : BATCH), argv, NULL, &err);

        if (r == NULL)
            fail_msg("later_add_many: %s", err.text);
        reply_free(r);
    }
    client_close(c);
}

bool watched_state_is(const char *id, const char *state)
{
    return test_state_is(&watched.redis, id, state);
}

bool watched_until_state(const char *id, const char *state)
{
    return test_until_state(&watched.redis, id, state, LONG_MS);
}

static bool is_empty(void *arg)
{
    struct reply *r = test_fcall(&watched.redis, "later_stats", NULL);
    const struct reply *queues = reply_at(r, 5);
    bool empty = reply_int(reply_at(r, 2)) == 0;

    (void)arg;
    for (size_t i = 0; i + 9 < reply_count(queues); i += 10)
        if (!reply_is(reply_at(queues, i), "canary") &&
            reply_int(reply_at(queues, i + 1)) + reply_int(reply_at(queues, i + 2)) > 0)
            empty = false;
    reply_free(r);
    return empty;
}

bool watched_until_empty(int deadline_ms)
{
    return test_until(is_empty, NULL, deadline_ms);
}

char *watched_result(const char *id, int field)
{
    struct reply *r = test_fcall(&watched.redis, "later_result", id, NULL);
    const struct reply *v = reply_at(r, (size_t)field);
    char *text = reply_kind(v) == REPLY_INT ? mem_printf("%lld", (long long)reply_int(v))
                                            : mem_dup(reply_str(v), reply_len(v));

    reply_free(r);
    return text;
}

/* ---- the canary */

/*
 * A process that starts another one four times a second and notes the longest delay. So a delay of
 * the whole machine is not blamed on the daemon.
 */
static pid_t bystander;
static int *slowest_ms;

static void watch_machine(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent) {
        struct mono begin = mono_now();
        int took;

        if (system("sleep 0.25") != 0)
            break;
        took = (int)test_ms_since(begin) - 250;
        if (took > *slowest_ms)
            *slowest_ms = took;
    }
    _exit(0);
}

static void bystander_start(void)
{
    pid_t parent = getpid();

    if (slowest_ms == NULL)
        slowest_ms = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(slowest_ms, MAP_FAILED);
    *slowest_ms = 0;
    (void)fflush(NULL);
    bystander = fork();
    assert_true(bystander >= 0);
    if (bystander == 0)
        watch_machine(parent);
}

static void bystander_stop(void)
{
    if (bystander == 0)
        return;
    (void)kill(bystander, SIGKILL);
    (void)waitpid(bystander, NULL, 0);
    bystander = 0;
}

void watched_canary_start(int seconds)
{
    bystander_start();
    test_handler(watched.dir, "canary", "echo \"$LATER_DUE_MS $LATER_LATE_MS\" >> %s/canary",
                 watched.dir);
    canary_from_ms = test_now_ms();
    canary_n = seconds;
    for (int i = 1; i <= seconds; i++) {
        char at[24];

        (void)snprintf(at, sizeof(at), "%lld", (long long)(canary_from_ms + (int64_t)i * 1000));
        free(watched_add_with("canary", "at", at, "x"));
    }
}

int watched_canary_check(int late_ms)
{
    CLEANUP_FREE char *path = mem_printf("%s/canary", watched.dir);
    CLEANUP_BUF struct buf all = BUF_INIT;
    int64_t due = (test_now_ms() - 3000 - canary_from_ms) / 1000;
    int worst = 0, n = 0;

    if (due > canary_n)
        due = canary_n;
    if (due <= 0)
        due = 1; /* a short test: check at least the first one */
    assert_true(test_until_lines(path, NULL, (int)due, 10000));
    test_read(path, &all);
    for (const char *l = buf_str(&all); *l != '\0'; l = strchr(l, '\n') + 1, n++) {
        long long due_ms = 0;
        int late = -1;

        assert_int_equal(sscanf(l, "%lld %d", &due_ms, &late), 2);
        if (due_ms < watched.since_ms)
            late -= (int)(watched.since_ms - due_ms);
        worst = late > worst ? late : worst;
        if (strchr(l, '\n') == NULL)
            break;
    }
    /* The claim, the start and the end may each meet this delay. */
    if (worst > late_ms + 4 * *slowest_ms)
        fail_msg("the canary was %d ms late; the machine's own delay was %d ms", worst,
                 *slowest_ms);
    bystander_stop();
    return worst;
}

/* ---- what the daemon takes */

int64_t watched_grown_kib(void)
{
    return usage_kib(watched.pid, "VmHWM") - watched.hwm_kib;
}

static bool is_clean(void *arg)
{
    (void)arg;
    return usage_fds(watched.pid) == watched.fds && usage_threads(watched.pid) == watched.threads &&
           usage_children(watched.pid, false) == 0;
}

void watched_assert_clean(void)
{
    if (!test_until(is_clean, NULL, 15000))
        fail_msg("left behind: %d descriptors instead of %d, %d threads instead of %d, %d children",
                 usage_fds(watched.pid), watched.fds, usage_threads(watched.pid), watched.threads,
                 usage_children(watched.pid, false));
}

void watched_assert_idle(void)
{
    int64_t before = usage_cpu_ms(watched.pid);

    test_pause(2000); /* a fixed time, because a rate is measured */
    assert_in_range(usage_cpu_ms(watched.pid) - before, 0, 100);
}

int watched_sh(struct buf *out, const char *command, ...)
{
    CLEANUP_FREE char *text = NULL;
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", NULL, NULL};
    va_list ap;

    va_start(ap, command);
    assert_true(vasprintf(&text, command, ap) >= 0);
    va_end(ap);
    argv[2] = text;
    return proc_run(argv, NULL, 0, out, NULL);
}

int watched_later(struct buf *out, const char *args, ...)
{
    CLEANUP_FREE char *text = NULL;
    va_list ap;

    va_start(ap, args);
    assert_true(vasprintf(&text, args, ap) >= 0);
    va_end(ap);
    return watched_sh(out, "%s/later --redis %s %s", test_build_dir(), watched.redis.url, text);
}

/* ---- system calls that fail */

/* strace attaches in the order of thread numbers: is the last one traced, or strace gone? */
static bool is_traced(void *arg)
{
    (void)arg;
    return proc_wait(&tracer, 0) >= 0 ||
           watched_sh(NULL,
                      "t=$(ls /proc/%d/task | sort -n | tail -n 1); "
                      "! grep -q 'TracerPid:.0$' /proc/%d/task/$t/status",
                      (int)watched.pid, (int)watched.pid) == 0;
}

/* Attach to each thread by number: -f would follow into the handlers. */
static bool attach(const char *threads, const char *inject)
{
    CLEANUP_FREE char *log = mem_printf("%s/strace.log", watched.dir);
    CLEANUP_FREE char *cmd = NULL;
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", NULL, NULL};

    cmd = mem_printf("exec strace -qq -o /dev/null $(for t in /proc/%d/task/*; do "
                     "case $(cat $t/comm) in %s) printf -- '-p %%s ' ${t##*/};; esac; done) "
                     "-e inject=%s",
                     (int)watched.pid, threads, inject);
    argv[2] = cmd;
    proc_start(&tracer, argv, NULL, log);
    return test_until(is_traced, NULL, 20000) && tracer.pid > 0;
}

bool watched_inject_begin(const char *inject)
{
    return attach("*", inject);
}

bool watched_inject_pool(const char *inject)
{
    return attach("later-job-*", inject);
}

void watched_inject_end(void)
{
    if (tracer.pid == 0) {
        proc_done(&tracer);
        return;
    }
    /* TERM first, so that strace detaches from the daemon. */
    proc_signal(&tracer, SIGTERM);
    (void)proc_wait(&tracer, 5000);
    proc_done(&tracer);
}
