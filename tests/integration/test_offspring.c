/*
 * Processes by their origins: those with a fence, those of a worker that died, and those whose
 * origin cannot be known.
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

#include "../support/env.h"
#include "../support/proc.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "run/process/offspring_end.h"
#include "run/process/origin.h"
#include "run/process/pidstat.h"

#define WAIT_MS 60000
#define SHORT_MS 300 /* what cannot be known will not be known after this either */
#define THREADS 24
#define LARGE 100000
#define END_FIRST_THREAD "--end-first-thread"

/* A worker of our own that died, and another one, since others may run the same test on this host.
 */
static char worker[64], other[64];

static int64_t fence(int i)
{
    return (int64_t)getpid() * 1000 + i;
}

static int setup(void **state)
{
    (void)state;
    (void)snprintf(worker, sizeof(worker), "test-%d", (int)getpid());
    (void)snprintf(other, sizeof(other), "test-%d9", (int)getpid());
    return 0;
}

static struct mono in_ms(int64_t ms)
{
    return mono_add_ms(mono_now(), ms);
}

/* Start a process with this environment in a session of its own. Returns after its exec. */
static pid_t start_program(char *const argv[], char *const envp[])
{
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
    assert_int_equal(read(ready[0], &c, 1), 0);
    (void)close(ready[0]);
    return pid;
}

static pid_t start(const char *origins, const char *script)
{
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                    (char *)(uintptr_t)script, NULL};
    char variable[600];
    char *envp[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin", variable, NULL};

    (void)snprintf(variable, sizeof(variable), ORIGIN_NAME "%s", origins);
    return start_program(argv, envp);
}

static pid_t start_of(const char *of, const char *job)
{
    char origin[128];

    (void)snprintf(origin, sizeof(origin), "%s/7/%s", of, job);
    return start(origin, "exec sleep 60");
}

/* Start a process as this process starts its handlers. */
static pid_t start_fenced(int i, const char *script)
{
    CLEANUP_FREE char *variable = origin_env(fence(i), "j1");

    return start(variable + strlen(ORIGIN_NAME), script);
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

static void drop(void *arg, const struct offspring *p)
{
    (void)arg;
    (void)close(p->pidfd);
}

static size_t count_with(int64_t number)
{
    char own[ORIGIN_WORKER];
    const struct offspring_query whom = {.worker = own, .fences = &number, .nfences = 1};

    origin_own(own);
    return offspring_find(&whom, SIZE_MAX, in_ms(WAIT_MS), drop, NULL).found;
}

/* A process forks while it is being looked for. */
static void test_a_family_on_the_run(void **state)
{
    pid_t pid = start_fenced(0, "f() { setsid sh -c 'sleep 60' & }; f; f; f; f; f; f; f; f; wait");
    pid_t sibling = start_fenced(1, "exec sleep 60");

    (void)state;
    assert_true(offspring_end_one(fence(0), in_ms(WAIT_MS)));
    assert_int_equal(end_of(pid), SIGKILL);
    assert_int_equal(count_with(fence(0)), 0);
    assert_int_equal(end_of(sibling), 0);
    finish(sibling);
}

/* Another worker's process has the same fence: another namespace has a clock of its own, and thus
 * the same numbers. */
static void test_same_fence_of_another(void **state)
{
    char origin[128];
    pid_t pid;

    (void)state;
    (void)snprintf(origin, sizeof(origin), "%s/%lld/j1", other, (long long)fence(2));
    pid = start(origin, "exec sleep 60");
    assert_true(offspring_end_one(fence(2), in_ms(WAIT_MS)));
    assert_int_equal(end_of(pid), 0);
    finish(pid);
}

/* A process has two origins, as a command of `later sem` in a handler: it ends with the handler. */
static void test_inside_another_start(void **state)
{
    CLEANUP_FREE char *outer = origin_env(fence(3), "j1");
    char origins[512];
    pid_t pid;

    (void)state;
    (void)snprintf(origins, sizeof(origins), "%s/7/ %s", other, outer + strlen(ORIGIN_NAME));
    pid = start(origins, "exec sleep 60");
    assert_true(offspring_end_one(fence(3), in_ms(WAIT_MS)));
    assert_int_equal(end_of(pid), SIGKILL);
}

/* The origin is behind much other environment: a shell passes its variables on in any order. */
static void test_behind_a_large_environment(void **state)
{
    CLEANUP_FREE char *origin = origin_env(fence(4), "j1");
    char *argv[] = {(char *)(uintptr_t) "/bin/sleep", (char *)(uintptr_t) "60", NULL};
    char *envp[] = {mem_new(LARGE + 1), mem_new(LARGE + 1), mem_new(LARGE + 1), origin, NULL};
    pid_t pid;

    (void)state;
    for (int i = 0; i < 3; i++) {
        memset(envp[i], 'x', LARGE);
        memcpy(envp[i], "L=", 2);
    }
    pid = start_program(argv, envp);
    assert_true(offspring_end_one(fence(4), in_ms(WAIT_MS)));
    assert_int_equal(end_of(pid), SIGKILL);
    for (int i = 0; i < 3; i++)
        free(envp[i]);
}

static void *sleep_on(void *arg)
{
    (void)pause();
    return arg;
}

/* End the first thread of this process and let another one go on. The next test starts this program
 * for that. */
static void end_first_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, sleep_on, NULL) == 0)
        pthread_exit(NULL);
}

static bool is_without_first_thread(void *arg)
{
    struct pidstat p;

    return pidstat_read(*(pid_t *)arg, &p) == 0 && pidstat_is_dead(&p);
}

static void test_first_thread_has_ended(void **state)
{
    CLEANUP_FREE char *origin = origin_env(fence(5), "j1");
    char *argv[] = {(char *)(uintptr_t) "/proc/self/exe", (char *)(uintptr_t)END_FIRST_THREAD,
                    NULL};
    char *envp[] = {origin, NULL};
    pid_t pid = start_program(argv, envp);

    (void)state;
    assert_true(test_until(is_without_first_thread, &pid, WAIT_MS));
    assert_int_equal(end_of(pid), 0);
    assert_int_equal(count_with(fence(5)), 1);
    assert_true(offspring_end_one(fence(5), in_ms(WAIT_MS)));
    assert_int_equal(end_of(pid), SIGKILL);
}

static void *end_mine(void *arg)
{
    return offspring_end_one(*(int64_t *)arg, in_ms(WAIT_MS)) ? arg : NULL;
}

/* Each thread learns of its own processes, whichever thread searched. */
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
    const struct offspring_query whom = {
        .worker = worker, .jobs = jobs, .njobs = njobs, .since = since};

    return offspring_end(&whom, in_ms(ms), NULL);
}

static void test_what_a_worker_ran(void **state)
{
    static const char *const jobs[] = {"j2", "j1"};
    pid_t runs = start_of(worker, "j1");
    pid_t ended = start_of(worker, "j3");
    pid_t stream = start_of(worker, "");
    pid_t others = start_of(other, "j1");
    int64_t begin = pidstat_start(runs);

    (void)state;
    /* A worker that started later did not start them. */
    assert_true(end_of_worker(jobs, 2, begin + 1000, WAIT_MS));
    assert_int_equal(end_of(runs), 0);
    assert_true(end_of_worker(jobs, 2, begin, WAIT_MS));
    assert_int_equal(end_of(runs), SIGKILL);
    assert_int_equal(end_of(stream), SIGKILL);
    assert_int_equal(end_of(ended), 0);
    assert_int_equal(end_of(others), 0);
    /* Whichever job they have. */
    assert_true(end_of_worker(NULL, 0, begin, WAIT_MS));
    assert_int_equal(end_of(ended), SIGKILL);
    finish(others);
}

/* ---- processes whose origin cannot be known */

/* Start an orphan without a program of its own. It ends when the returned descriptor is closed. */
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

/* A worker died with a process that had not become its handler yet. */
static void test_half_made(void **state)
{
    int64_t since = pidstat_start(getpid());
    int hold = start_orphan("later-job-3", 1);

    (void)state;
    assert_false(end_of_worker(NULL, 0, since, SHORT_MS));
    (void)close(hold);
    assert_true(end_of_worker(NULL, 0, since, WAIT_MS));
    /* The name of another program tells nothing. */
    hold = start_orphan("something", 1);
    assert_true(end_of_worker(NULL, 0, since, WAIT_MS));
    (void)close(hold);
}

/* As a user without rights: a process of that user that is not dumpable may have any origin.
 * Processes of other users do not count, or nobody could ever know. */
static int search_as_user(void)
{
    int64_t since = pidstat_start(getpid());
    siginfo_t info;
    pid_t pid;
    int hold;

    if (setgid(65534) < 0 || setuid(65534) < 0)
        return 10;
    if (!end_of_worker(NULL, 0, since, WAIT_MS))
        return 11;
    /* A dead process that nobody has waited for does not count. */
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
    roots = start_of(worker, "");
    pid = fork();
    if (pid == 0)
        _exit(search_as_user());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(end_of(roots), 0);
    finish(roots);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_family_on_the_run),
        cmocka_unit_test(test_same_fence_of_another),
        cmocka_unit_test(test_inside_another_start),
        cmocka_unit_test(test_behind_a_large_environment),
        cmocka_unit_test(test_first_thread_has_ended),
        cmocka_unit_test(test_many_threads_share),
        cmocka_unit_test(test_what_a_worker_ran),
        cmocka_unit_test(test_half_made),
        cmocka_unit_test(test_hidden_ones),
    };

    if (argc > 1 && strcmp(argv[1], END_FIRST_THREAD) == 0)
        end_first_thread();
    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, setup, NULL);
}
