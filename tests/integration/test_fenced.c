/*
 * Processes by their marks: those with a fence, those of a dead worker, and those of whom nobody
 * can tell.
 */
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
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/proc.h"
#include "run/fenced_end.h"
#include "run/pidstat.h"

#define WAIT_MS 20000
#define SHORT_MS 300 /* what cannot be known is not known behind that either */
#define THREADS 24

/* Others may run the same test on this host: marks of our own. */
static char worker[64], of_worker[96], of_other[96];

static int64_t fence(int i)
{
    return (int64_t)getpid() * 1000 + i;
}

static int setup(void **state)
{
    (void)state;
    (void)snprintf(worker, sizeof(worker), "test-%d", (int)getpid());
    (void)snprintf(of_worker, sizeof(of_worker), "LATER_WORKER=%s", worker);
    (void)snprintf(of_other, sizeof(of_other), "LATER_WORKER=%s9", worker);
    return 0;
}

static struct mono in_ms(int64_t ms)
{
    return mono_add_ms(mono_now(), ms);
}

/* A process with this environment, in a session of its own. */
static pid_t start(const char *a, const char *b, const char *script)
{
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                    (char *)(uintptr_t)script, NULL};
    char *envp[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin", (char *)(uintptr_t)a,
                    (char *)(uintptr_t)b, NULL};
    int ready[2];
    pid_t pid;
    char c;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setsid();
        (void)execve(argv[0], argv, envp);
        _exit(127);
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 0); /* it is another program now */
    (void)close(ready[0]);
    return pid;
}

static pid_t start_fenced(int i, const char *script)
{
    char mark[64];

    (void)snprintf(mark, sizeof(mark), "LATER_FENCE=%lld", (long long)fence(i));
    return start(mark, NULL, script);
}

/* 0: it lives; else the signal that ended it. */
static int end_of(pid_t pid)
{
    int status = 0;

    return waitpid(pid, &status, WNOHANG) == pid ? WTERMSIG(status) : 0;
}

static void finish(pid_t pid)
{
    (void)kill(-pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void drop(void *arg, const struct fenced *p)
{
    (void)arg;
    (void)close(p->pidfd);
}

static size_t count_with(int64_t number)
{
    const struct fenced_whom whom = {.fences = &number, .nfences = 1};

    return fenced_find(&whom, SIZE_MAX, drop, NULL).found;
}

/* One that forks while it is looked for. */
static void test_a_family_on_the_run(void **state)
{
    pid_t pid = start_fenced(0, "f() { setsid sh -c 'sleep 60' & }; f; f; f; f; f; f; f; f; wait");
    pid_t other = start_fenced(1, "exec sleep 60");

    (void)state;
    assert_true(fenced_end_one(fence(0), in_ms(WAIT_MS)));
    assert_int_equal(end_of(pid), SIGKILL);
    assert_int_equal(count_with(fence(0)), 0);
    assert_int_equal(end_of(other), 0);
    finish(other);
}

static void *end_mine(void *arg)
{
    return fenced_end_one(*(int64_t *)arg, in_ms(WAIT_MS)) ? arg : NULL;
}

/* Each is told of its own, whoever made the pass. */
static void test_many_threads_share(void **state)
{
    pthread_t threads[THREADS];
    int64_t fences[THREADS];
    pid_t pids[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        fences[i] = fence(10 + i);
        pids[i] = start_fenced(10 + i, "exec sleep 60");
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, end_mine, &fences[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *ret;

        assert_int_equal(pthread_join(threads[i], &ret), 0);
        assert_ptr_equal(ret, &fences[i]);
        assert_int_equal(end_of(pids[i]), SIGKILL);
    }
}

static bool end_of_worker(const char *const *jobs, size_t njobs, int64_t since, int64_t ms)
{
    const struct fenced_whom whom = {
        .worker = worker, .jobs = jobs, .njobs = njobs, .since = since};

    return fenced_end(&whom, in_ms(ms), NULL);
}

static void test_what_a_worker_ran(void **state)
{
    static const char *const jobs[] = {"j2", "j1"};
    pid_t runs = start(of_worker, "LATER_ID=j1", "exec sleep 60");
    pid_t ended = start(of_worker, "LATER_ID=j3", "exec sleep 60");
    pid_t stream = start(of_worker, NULL, "exec sleep 60");
    pid_t others = start(of_other, "LATER_ID=j1", "exec sleep 60");
    int64_t begin = pidstat_start(runs);

    (void)state;
    /* A worker that is younger did not start them. */
    assert_true(end_of_worker(jobs, 2, begin + 1000, WAIT_MS));
    assert_int_equal(end_of(runs), 0);
    assert_true(end_of_worker(jobs, 2, begin, WAIT_MS));
    assert_int_equal(end_of(runs), SIGKILL);
    assert_int_equal(end_of(stream), SIGKILL);
    assert_int_equal(end_of(ended), 0);
    assert_int_equal(end_of(others), 0);
    /* Whatever its job: the command of a `later lock` inside a handler has that one's id. */
    assert_true(end_of_worker(NULL, 0, begin, WAIT_MS));
    assert_int_equal(end_of(ended), SIGKILL);
    finish(others);
}

/* ---- who cannot be known */

/* An orphan without a program of its own; it is told to end by the pipe. */
static int start_orphan(const char *name, int dumpable)
{
    int hold[2], ready[2];
    char c;

    assert_int_equal(pipe(hold), 0);
    assert_int_equal(pipe(ready), 0);
    if (fork() == 0) {
        if (fork() == 0) {
            (void)prctl(PR_SET_NAME, name);
            (void)prctl(PR_SET_DUMPABLE, dumpable);
            (void)close(hold[1]);
            (void)close(ready[0]);
            while (getppid() != 1 && write(ready[1], "", 0) == 0)
                test_pause(1);
            (void)close(ready[1]);
            _exit(read(hold[0], &c, 1) == 0 ? 0 : 1);
        }
        _exit(0);
    }
    (void)wait(NULL);
    (void)close(hold[0]);
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 0);
    (void)close(ready[0]);
    return hold[1];
}

/* A worker dies with a process that has not become its handler yet. */
static void test_half_made(void **state)
{
    int64_t since = pidstat_start(getpid());
    int hold = start_orphan("later-job-3", 1);

    (void)state;
    assert_false(end_of_worker(NULL, 0, since, SHORT_MS));
    (void)close(hold);
    assert_true(end_of_worker(NULL, 0, since, WAIT_MS));
    /* Of another program it tells nothing. */
    hold = start_orphan("something", 1);
    assert_true(end_of_worker(NULL, 0, since, WAIT_MS));
    (void)close(hold);
}

/* As a user without rights: of its own one that is not dumpable may be anything; others' are not
 * its business, or nobody could ever tell. */
static int look_as_user(void)
{
    int64_t since = pidstat_start(getpid());
    siginfo_t info;
    pid_t pid;
    int hold;

    if (setgid(65534) < 0 || setuid(65534) < 0)
        return 10;
    if (!end_of_worker(NULL, 0, since, WAIT_MS))
        return 11;
    /* One that is dead, and that nobody has waited for, is nobody. */
    pid = fork();
    if (pid == 0)
        _exit(0);
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 ||
        !end_of_worker(NULL, 0, since, SHORT_MS))
        return 14;
    hold = start_orphan("secretive", 0);
    if (end_of_worker(NULL, 0, since, SHORT_MS))
        return 12;
    (void)waitpid(pid, NULL, 0);
    (void)close(hold);
    return end_of_worker(NULL, 0, since, WAIT_MS) ? 0 : 13;
}

static void test_hidden_ones(void **state)
{
    pid_t roots, pid;
    int status = 0;

    (void)state;
    if (geteuid() != 0)
        skip();
    roots = start(of_worker, NULL, "exec sleep 60");
    pid = fork();
    if (pid == 0)
        _exit(look_as_user());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(end_of(roots), 0);
    finish(roots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_family_on_the_run), cmocka_unit_test(test_many_threads_share),
        cmocka_unit_test(test_what_a_worker_ran),   cmocka_unit_test(test_half_made),
        cmocka_unit_test(test_hidden_ones),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, setup, NULL);
}
