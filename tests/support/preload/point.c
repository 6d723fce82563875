/*
 * Lets something happen at one point of laterd or later, into which it is preloaded.
 * LATER_TEST_POINT is the point:
 *
 *   spawn        SIGKILL instead of starting the process of a job
 *   freeze       SIGSTOP before the process of a job is started
 *   stop         SIGSTOP before the process of the command is started; then, like on a busy
 *                machine, 300 ms pass after the start until the parent goes on
 *   thread:N     the Nth new thread (from 1) cannot be created, later ones can
 *   threads:N    from the Nth on, no thread can be created
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int threads;

static const char *point(void)
{
    const char *text = getenv("LATER_TEST_POINT");

    return text != NULL ? text : "";
}

typedef int spawn_f(pid_t *, const char *, const posix_spawn_file_actions_t *,
                    const posix_spawnattr_t *, char *const[], char *const[]);

int posix_spawn(pid_t *restrict pid, const char *restrict path,
                const posix_spawn_file_actions_t *restrict actions,
                const posix_spawnattr_t *restrict attr, char *const argv[restrict],
                char *const envp[restrict])
{
    spawn_f *real = (spawn_f *)dlsym(RTLD_NEXT, "posix_spawn");

    bool is_guard = argv[1] != NULL && strcmp(argv[1], "--guard") == 0;

    if (strcmp(point(), "spawn") == 0 && !is_guard)
        (void)raise(SIGKILL);
    if (strcmp(point(), "freeze") == 0 && !is_guard)
        (void)raise(SIGSTOP);
    return real(pid, path, actions, attr, argv, envp);
}

int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                 const posix_spawn_file_actions_t *restrict actions,
                 const posix_spawnattr_t *restrict attr, char *const argv[restrict],
                 char *const envp[restrict])
{
    spawn_f *real = (spawn_f *)dlsym(RTLD_NEXT, "posix_spawnp");
    int rc;

    if (strcmp(point(), "stop") != 0)
        return real(pid, file, actions, attr, argv, envp);
    (void)raise(SIGSTOP);
    rc = real(pid, file, actions, attr, argv, envp);
    (void)usleep(300000);
    return rc;
}

typedef int create_f(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *restrict id, const pthread_attr_t *restrict attr,
                   void *(*start)(void *), void *restrict arg)
{
    create_f *real = (create_f *)dlsym(RTLD_NEXT, "pthread_create");
    int n = __atomic_add_fetch(&threads, 1, __ATOMIC_SEQ_CST);

    if (strncmp(point(), "thread:", 7) == 0 && n == atoi(point() + 7))
        return EAGAIN;
    if (strncmp(point(), "threads:", 8) == 0 && n >= atoi(point() + 8))
        return EAGAIN;
    return real(id, attr, start, arg);
}
