/*
 * The guard, with real processes. The worker is a child of the test and takes orders of single
 * letters; its handlers are shells and sleeps. A handler has ended, with all that it started, when
 * its pipe reports the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/proc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/exec/exec.h"
#include "run/guard/guard.h"
#include "run/process/origin.h"
#include "run/process/spawn.h"

#define UNACKED_MS 900
#define LONG_MS 600000
#define DEADLINE_MS 60000
#define BEAT_MS 20
#define HANDLERS 4

/* Orders for a worker. */
#define HUSH 'h'     /* stop beating */
#define LEAVE 'q'    /* stop in order */
#define RESTART 'r'  /* the guard has died: start the next one */
#define START 'A'    /* + i: start handler i; its fence is set before, its pid after */
#define STRANGER 'a' /* + i: start handler i, and tell the guard nothing */
#define UNKNOWN '0'  /* + i: start handler i; its fence is set before, its pid is not told */
#define CLEAR '5'    /* + i: nothing runs in place i any more */

struct shared {
    atomic_int done; /* orders carried out */
    _Atomic int64_t acked_us;
    atomic_int guard;
    atomic_int handlers[HANDLERS];
    atomic_bool was_up, is_up;
};

struct scene {
    struct shared *shared;
    pid_t worker;
    int orders; /* the write end */
    int sent;
    int out[HANDLERS], in[HANDLERS];
    int guard; /* a pidfd */
};

static const char *scripts[HANDLERS];
/* The fence of handler 0. No fence is used twice, since the guard of an earlier test may still be
 * looking for its own. */
static unsigned first_fence = 1000;

/* ---- the worker */

static void start_handler(struct shared *sh, struct guard *g, const struct scene *s, unsigned i,
                          bool is_set, bool has_pid)
{
    CLEANUP_FREE char *origin = origin_env(first_fence + i, "");
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                    (char *)(uintptr_t)scripts[i], NULL};
    char *envp[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin", origin, NULL};
    struct spawned child;
    struct err err = ERR_INIT;

    if (is_set)
        guard_set(g, i, first_fence + i);
    if (spawn(argv, envp, &(struct spawn_fds){-1, s->in[i], -1, -1}, NULL, &child, &err) < 0)
        abort();
    if (has_pid)
        guard_set_process(g, i, child.pid);
    sh->handlers[i] = child.pid;
    /* While it is open here, the end of the handler does not show. */
    (void)close(s->in[i]);
}

static void start_guard(struct shared *sh, struct guard *g)
{
    struct err err = ERR_INIT;

    if (guard_start(g, &err) < 0)
        abort();
    sh->guard = guard_pid(g);
}

static void restart(struct shared *sh, struct guard *g)
{
    struct pollfd p = {guard_pidfd(g), POLLIN, 0};

    (void)poll(&p, 1, DEADLINE_MS);
    (void)guard_ended(g);
    sh->was_up = guard_admits(g);
    start_guard(sh, g);
    sh->is_up = guard_admits(g);
}

static bool obey(struct shared *sh, struct guard *g, const struct scene *s, char order)
{
    if (order == HUSH)
        return true;
    if (order == LEAVE) {
        guard_free(g);
        _exit(0);
    }
    if (order == RESTART)
        restart(sh, g);
    else if (order >= START && order < START + HANDLERS)
        start_handler(sh, g, s, (unsigned)(order - START), true, true);
    else if (order >= STRANGER && order < STRANGER + HANDLERS)
        start_handler(sh, g, s, (unsigned)(order - STRANGER), false, false);
    else if (order >= UNKNOWN && order < UNKNOWN + HANDLERS)
        start_handler(sh, g, s, (unsigned)(order - UNKNOWN), true, false);
    else if (order >= CLEAR && order < CLEAR + HANDLERS)
        guard_clear(g, (unsigned)(order - CLEAR));
    return false;
}

static void work(const struct scene *s, int orders, int64_t unacked_ms)
{
    struct err err = ERR_INIT;
    struct guard *g = guard_new(HANDLERS, unacked_ms, &err);
    bool is_hushed = false;
    char order;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* A descriptor that the guard would inherit. */
    if (g == NULL || dup(STDERR_FILENO) < 0)
        abort();
    start_guard(s->shared, g);
    for (;;) {
        struct pollfd p = {orders, POLLIN, 0};

        if (!is_hushed) {
            struct boot now = boot_now();

            guard_alive(g, now);
            s->shared->acked_us = now.us;
        }
        if (poll(&p, 1, BEAT_MS) <= 0)
            continue;
        if (read(orders, &order, 1) != 1)
            _exit(1);
        is_hushed = obey(s->shared, g, s, order) || is_hushed;
        s->shared->done++;
    }
}

/* ---- the test's side */

static bool has_done(void *arg)
{
    const struct scene *s = arg;

    return s->shared->done >= s->sent;
}

static void tell(struct scene *s, int order)
{
    char c = (char)order;

    assert_int_equal(write(s->orders, &c, 1), 1);
    s->sent++;
    assert_true(test_until(has_done, s, DEADLINE_MS));
}

static int entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = 0;

    if (dir == NULL)
        return -1;
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
        n += e->d_name[0] != '.';
    (void)closedir(dir);
    return n;
}

/* The guard has its own name once it ignores signals. */
static bool has_guard(void *arg)
{
    const struct scene *s = arg;
    CLEANUP_FREE char *path = mem_printf("/proc/%d/comm", s->shared->guard);
    char name[32] = "";
    CLEANUP_CLOSE int fd = s->shared->guard > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    return fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 && strcmp(name, "later-guard\n") == 0;
}

static struct scene *begin(int64_t unacked_ms)
{
    struct scene *s = mem_new(sizeof(*s));
    int orders[2];

    s->shared =
        mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(s->shared, MAP_FAILED);
    assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
    for (size_t i = 0; i < HANDLERS; i++) {
        int fds[2];

        scripts[i] = "exec sleep 600";
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        s->out[i] = fds[0];
        s->in[i] = fds[1];
    }
    /* The second child lacks the variable: only killing the group ends it. */
    scripts[0] = "sleep 600 & env -u LATER_WORKER sleep 600 & wait";
    scripts[2] = "exec env -i /bin/sleep 600";
    scripts[3] = "setsid sleep 600";
    first_fence += HANDLERS;
    (void)fflush(NULL);
    s->worker = fork();
    assert_true(s->worker >= 0);
    if (s->worker == 0)
        work(s, orders[0], unacked_ms);
    s->orders = orders[1];
    (void)close(orders[0]);
    for (size_t i = 0; i < HANDLERS; i++)
        (void)close(s->in[i]);
    assert_true(test_until(has_guard, s, DEADLINE_MS));
    s->guard = pidfd_open(s->shared->guard, 0);
    assert_true(s->guard >= 0);
    return s;
}

static void end(struct scene *s)
{
    (void)kill(s->worker, SIGKILL);
    (void)waitpid(s->worker, NULL, 0);
    for (size_t i = 0; i < HANDLERS; i++) {
        if (s->shared->handlers[i] > 0)
            (void)kill(-s->shared->handlers[i], SIGKILL);
        (void)close(s->out[i]);
    }
    (void)close(s->orders);
    (void)close(s->guard);
    (void)munmap(s->shared, sizeof(*s->shared));
    free(s);
}

static bool is_readable(int fd, short events, int ms)
{
    struct pollfd p = {fd, events, 0};

    return poll(&p, 1, ms) > 0;
}

/* The handler ends, with all that it started. */
static void assert_ends(const struct scene *s, unsigned i)
{
    assert_true(is_readable(s->out[i], 0, DEADLINE_MS));
}

static void assert_lives(const struct scene *s, unsigned i)
{
    assert_false(is_readable(s->out[i], 0, 0));
}

static void assert_guard_ends(const struct scene *s)
{
    assert_true(is_readable(s->guard, POLLIN, DEADLINE_MS));
}

static int64_t unacked_for_ms(const struct scene *s)
{
    return (boot_now().us - s->shared->acked_us) / 1000;
}

/* ---- silence */

static void test_a_frozen_worker(void **state)
{
    struct scene *s = begin(UNACKED_MS);

    (void)state;
    tell(s, START + 0);
    tell(s, STRANGER + 1);
    assert_int_equal(kill(s->worker, SIGSTOP), 0);
    assert_lives(s, 0);
    assert_ends(s, 0);
    assert_true(unacked_for_ms(s) >= UNACKED_MS);
    assert_lives(s, 1);
    end(s);
}

static void test_whoever_hides_from_it(void **state)
{
    struct scene *s = begin(UNACKED_MS);

    (void)state;
    tell(s, START + 2);   /* its process has no fence: known by its pid */
    tell(s, UNKNOWN + 3); /* in a group of its own, and its pid is not told */
    tell(s, HUSH);
    assert_ends(s, 2);
    assert_ends(s, 3);
    assert_true(unacked_for_ms(s) >= UNACKED_MS);
    end(s);
}

static void test_what_was_cleared_lives(void **state)
{
    struct scene *s = begin(UNACKED_MS);

    (void)state;
    tell(s, START + 0);
    tell(s, START + 1);
    tell(s, CLEAR + 1);
    tell(s, HUSH);
    assert_ends(s, 0);
    assert_lives(s, 1);
    end(s);
}

/* Each beat puts the kill off. */
static void test_a_worker_that_beats(void **state)
{
    struct scene *s = begin(UNACKED_MS);

    (void)state;
    tell(s, START + 0);
    assert_false(is_readable(s->out[0], 0, 2 * UNACKED_MS));
    end(s);
}

/* Handlers that start during the silence are killed, too, also after the first ones were. */
static void test_later_starts(void **state)
{
    struct scene *s = begin(UNACKED_MS);

    (void)state;
    tell(s, START + 0);
    tell(s, HUSH);
    assert_ends(s, 0);
    tell(s, UNKNOWN + 1);
    assert_ends(s, 1);
    tell(s, CLEAR + 0);
    tell(s, CLEAR + 1);
    tell(s, START + 2);
    assert_ends(s, 2);
    end(s);
}

/* ---- the end of the worker */

static void test_the_worker_dies(void **state)
{
    struct scene *s = begin(LONG_MS);

    (void)state;
    tell(s, START + 0);
    tell(s, STRANGER + 1);
    tell(s, START + 2);
    tell(s, UNKNOWN + 3);
    assert_int_equal(kill(s->worker, SIGKILL), 0);
    assert_ends(s, 0);
    assert_ends(s, 2);
    assert_ends(s, 3);
    assert_guard_ends(s);
    assert_lives(s, 1);
    end(s);
}

static void test_the_worker_leaves(void **state)
{
    struct scene *s = begin(LONG_MS);
    char c = LEAVE;

    (void)state;
    tell(s, START + 0);
    assert_int_equal(write(s->orders, &c, 1), 1);
    assert_guard_ends(s);
    assert_lives(s, 0);
    end(s);
}

/* ---- the guard itself */

static void test_signals_do_not_end_it(void **state)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGPIPE};
    struct scene *s = begin(UNACKED_MS);

    (void)state;
    tell(s, START + 0);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        assert_int_equal(kill(s->shared->guard, signals[i]), 0);
    tell(s, HUSH);
    assert_ends(s, 0);
    assert_false(is_readable(s->guard, POLLIN, 0));
    end(s);
}

static void test_another_takes_its_place(void **state)
{
    struct scene *s = begin(UNACKED_MS);
    pid_t was = s->shared->guard;

    (void)state;
    tell(s, START + 0);
    assert_int_equal(kill(was, SIGKILL), 0);
    tell(s, RESTART);
    assert_false(s->shared->was_up);
    assert_true(s->shared->is_up);
    assert_int_not_equal(s->shared->guard, was);
    tell(s, HUSH);
    assert_ends(s, 0);
    end(s);
}

static void assert_link(pid_t pid, const char *what, const char *begins)
{
    CLEANUP_FREE char *path = mem_printf("/proc/%d/%s", (int)pid, what);
    char to[256] = "";

    assert_true(readlink(path, to, sizeof(to) - 1) > 0);
    assert_memory_equal(to, begins, strlen(begins));
}

static bool has_few(void *arg)
{
    const struct scene *s = arg;
    CLEANUP_FREE char *path = mem_printf("/proc/%d/fd", s->shared->guard);

    return entries(path) == 4;
}

static void test_it_holds_nothing(void **state)
{
    struct scene *s = begin(LONG_MS);
    pid_t guard = s->shared->guard;

    (void)state;
    tell(s, START + 0);
    assert_int_equal(getsid(guard), guard);
    if (geteuid() != 0) { /* only root may see them */
        end(s);
        skip();
    }
    /* Descriptors 0 to 2 and the timer. */
    assert_true(test_until(has_few, s, DEADLINE_MS));
    assert_link(guard, "fd/0", "pipe:");
    assert_link(guard, "fd/1", "/dev/null");
    assert_link(guard, "cwd", "/");
    end(s);
}

/* ---- what a worker asks before it starts a job */

static void test_fresh(void **state)
{
    struct err err = ERR_INIT;
    struct guard *g = guard_new(1, 0, &err);
    struct boot now = boot_now();

    (void)state;
    assert_false(guard_is_fresh(g, 0));
    guard_alive(g, (struct boot){now.us - 5000000});
    assert_false(guard_is_fresh(g, 0));
    guard_alive(g, (struct boot){now.us - 3000000});
    assert_true(guard_is_fresh(g, GUARD_SPARE_MS));
    assert_false(guard_is_fresh(g, 2000));
    guard_alive(g, (struct boot){now.us});
    assert_true(guard_is_fresh(g, 2000));
    guard_alive(g, (struct boot){now.us - 5000000}); /* a late answer */
    assert_true(guard_is_fresh(g, 0));
    assert_false(guard_is_up(g));
    assert_false(guard_admits(g));
    guard_free(g);
}

static void run(struct guard *g, const char *script, struct run_report *ret)
{
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                    (char *)(uintptr_t)script, NULL};
    CLEANUP_FREE char *origin = origin_env(77, "");
    char *envp[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin", origin, NULL};
    struct exec_order order = {.id = "j00000000001",
                               .queue = "q",
                               .argv = argv,
                               .envp = envp,
                               .payload = "",
                               .timeout_ms = DEADLINE_MS,
                               .kill_grace_ms = 100,
                               .guard = g,
                               .fence = 77};
    struct exec_slot *slot = exec_slot_new();

    (void)exec_slot_arm(slot);
    run_report_init(ret);
    exec_run(&order, slot, NULL, ret);
    exec_slot_free(slot);
}

static void test_jobs(void **state)
{
    struct err err = ERR_INIT;
    struct guard *g = guard_new(1, UNACKED_MS, &err);
    struct run_report r;

    (void)state;
    guard_alive(g, boot_now());
    run(g, "exit 0", &r);
    assert_int_equal(r.end, RUN_STOPPED);
    assert_int_equal(r.started.us, 0);
    assert_non_null(strstr(r.text, "no guard process"));
    run_report_done(&r);

    assert_int_equal(guard_start(g, &err), 0);
    guard_alive(g, boot_now());
    run(g, "exit 3", &r);
    assert_int_equal(r.end, RUN_EXITED);
    assert_int_equal(r.code, 3);
    run_report_done(&r);

    guard_alive(g, boot_now());
    run(g, "sleep 600 & wait", &r);
    assert_int_equal(r.end, RUN_STOPPED);
    assert_int_equal(r.code, SIGKILL);
    assert_non_null(strstr(r.text, "killed by the guard"));
    run_report_done(&r);

    run(g, "exit 0", &r);
    assert_int_equal(r.end, RUN_STOPPED);
    assert_int_equal(r.started.us, 0);
    assert_non_null(strstr(r.text, "no beat"));
    run_report_done(&r);

    guard_alive(g, boot_now());
    run(g, "kill -KILL $$", &r); /* the guard did not do this */
    assert_int_equal(r.end, RUN_SIGNALED);
    run_report_done(&r);
    guard_free(g);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_frozen_worker),
        cmocka_unit_test(test_whoever_hides_from_it),
        cmocka_unit_test(test_what_was_cleared_lives),
        cmocka_unit_test(test_a_worker_that_beats),
        cmocka_unit_test(test_later_starts),
        cmocka_unit_test(test_the_worker_dies),
        cmocka_unit_test(test_the_worker_leaves),
        cmocka_unit_test(test_signals_do_not_end_it),
        cmocka_unit_test(test_another_takes_its_place),
        cmocka_unit_test(test_it_holds_nothing),
        cmocka_unit_test(test_fresh),
        cmocka_unit_test(test_jobs),
    };

    if (argc > 1 && strcmp(argv[1], GUARD_ARG) == 0)
        return guard_main(NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    log_init(LOG_LEVEL_ERR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
