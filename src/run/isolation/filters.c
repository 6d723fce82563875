#include "run/isolation/filters.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/isolation/isolation.h"
#include "run/process/spawn.h"

#define STEP_BYTES 65536

static const char *name_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

static int complain(const char *path, const char *what)
{
    (void)fprintf(stderr, "laterd: filter %s: %s: %s\n", name_of(path), what, strerror(errno));
    return ISOLATION_EXIT;
}

/* Tell the daemon something; it may have gone. A filter may have left a line without its end. */
static void tell(const char *word, const char *rest)
{
    char line[256];
    int n = snprintf(line, sizeof(line), "\n%s%s%s\n", word, rest[0] != '\0' ? " " : "", rest);

    (void)!write(FILTERS_CONTROL_FD, line, (size_t)n);
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, p, n);

        if (done < 0 && errno != EINTR)
            return -1;
        p += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

/* Copy what can be read now; at the end of the file, or where nothing is there, it stops. *n:
 * bytes so far. 1: there may be more later; 0: that was all; -1 with errno, EFBIG: more than
 * `most`. */
static int copy_some(int from, int to, size_t most, size_t *n)
{
    static char step[STEP_BYTES];

    for (;;) {
        ssize_t got = read(from, step, sizeof(step));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 ? 0 : errno == EAGAIN ? 1 : -1;
        if ((size_t)got > most - *n) {
            errno = EFBIG;
            return -1;
        }
        if (write_all(to, step, (size_t)got) < 0)
            return -1;
        *n += (size_t)got;
    }
}

/* Take what a program prints until it has ended, whoever else has its output open. 0 or -1. */
static int collect(int from, int to, int pidfd, size_t most, size_t *ret_n)
{
    struct pollfd ready[] = {{.fd = pidfd, .events = POLLIN}, {.fd = from, .events = POLLIN}};

    for (*ret_n = 0;;) {
        int more;

        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            return -1;
        more = copy_some(from, to, most, ret_n);
        if (more < 0)
            return -1;
        if (ready[0].revents != 0)
            return 0;
        if (more == 0)
            ready[1].fd = -1;
    }
}

/* Another opening of a file: its own offset, and nobody can write through it. */
static int open_anew(int fd)
{
    char path[48];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* As run/process/spawn.c, but in our session and process group. */
static int spawn_with(const char *path, posix_spawn_file_actions_t *fa, char *const *envp,
                      pid_t *ret_pid)
{
    char *const argv[] = {(char *)(uintptr_t)path, NULL};
    posix_spawnattr_t attr;
    int e = posix_spawnattr_init(&attr);

    if (e != 0)
        return e;
    e = spawn_clean_signals(&attr, 0);
    if (e == 0)
        e = posix_spawn(ret_pid, path, fa, &attr, argv, envp);
    (void)posix_spawnattr_destroy(&attr);
    return e;
}

/* Start it with these as standard input and output. 0, or an errno. */
static int start(const char *path, int payload, int out, char *const *envp, pid_t *ret_pid)
{
    posix_spawn_file_actions_t fa;
    int in = open_anew(payload), e;

    if (in < 0)
        return errno;
    e = posix_spawn_file_actions_init(&fa);
    if (e != 0) {
        (void)close(in);
        return e;
    }
    e = posix_spawn_file_actions_adddup2(&fa, in, STDIN_FILENO);
    if (e == 0)
        e = posix_spawn_file_actions_adddup2(&fa, out, STDOUT_FILENO);
    if (e == 0)
        e = spawn_with(path, &fa, envp, ret_pid);
    (void)posix_spawn_file_actions_destroy(&fa);
    (void)close(in);
    return e;
}

/* Wait for it. Returns the exit status. */
static int wait_for(const char *path, pid_t pid)
{
    char text[64];
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return complain(path, "cannot be waited for");
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    (void)snprintf(text, sizeof(text), "killed by signal %d", WTERMSIG(status));
    tell("reason", text);
    return 128 + WTERMSIG(status);
}

static void kill_it(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

/* It runs: take what it prints. Returns the exit status. */
static int follow(const char *path, pid_t pid, int from, int to, size_t most, size_t *ret_printed)
{
    int pidfd = pidfd_open(pid, 0);
    int rc = pidfd < 0 ? -1 : collect(from, to, pidfd, most, ret_printed);
    char text[64];

    if (rc == 0) {
        (void)close(pidfd);
        return wait_for(path, pid);
    }
    (void)snprintf(text, sizeof(text), "prints more than %zu bytes", most);
    if (errno == EFBIG)
        tell("reason", text);
    rc = complain(path, "its output");
    kill_it(pid);
    return rc;
}

/* SIGTERM goes to the whole group. While a filter runs, ours waits: when we have ended and nobody
 * has our pipes, the daemon kills the group without its grace. */
static void hold_term(int how)
{
    sigset_t term;

    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigprocmask(how, &term, NULL);
}

/* It may have come before the filter was there. */
static void pass_term_on(pid_t pid)
{
    sigset_t came;

    if (sigpending(&came) == 0 && sigismember(&came, SIGTERM) == 1)
        (void)kill(pid, SIGTERM);
}

/* Run one; it prints into `to`. Returns the exit status. */
static int run(const char *path, int payload, int to, size_t most, char *const *envp,
               size_t *ret_printed)
{
    pid_t pid = 0;
    int ends[2];
    int rc;

    if (pipe2(ends, O_CLOEXEC) < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
        return complain(path, "no pipe");
    hold_term(SIG_BLOCK);
    rc = start(path, payload, ends[1], envp, &pid);
    (void)close(ends[1]);
    if (rc == 0) {
        pass_term_on(pid);
        rc = follow(path, pid, ends[0], to, most, ret_printed);
    } else {
        errno = rc;
        (void)complain(path, "cannot be started");
        rc = rc == ENOENT ? 127 : 126;
    }
    (void)close(ends[0]);
    hold_term(SIG_UNBLOCK); /* ends us if it has come */
    return rc;
}

/* A file without a name. -1 with errno. */
static int make_file(void)
{
    return memfd_create("payload", MFD_CLOEXEC);
}

/* Make the handler read this. 0 or -1. */
static int hand_over(int payload)
{
    int in = open_anew(payload);

    return in >= 0 && dup2(in, STDIN_FILENO) == STDIN_FILENO ? 0 : -1;
}

int filters_run(char *const *paths, size_t n, size_t most, char *const *envp)
{
    int payload = make_file();
    size_t printed = 0;

    if (payload < 0 || copy_some(STDIN_FILENO, payload, SIZE_MAX, &printed) != 0)
        return complain(paths[0], "the payload");
    for (size_t i = 0; i < n; i++) {
        int to = make_file(), status;

        if (to < 0)
            return complain(paths[i], "no file");
        tell("filter", name_of(paths[i]));
        status = run(paths[i], payload, to, most, envp, &printed);
        if (status != 0)
            return status;
        (void)close(printed > 0 ? payload : to);
        payload = printed > 0 ? to : payload;
    }
    tell("filter", "");
    return hand_over(payload) == 0 ? 0 : complain(paths[n - 1], "the payload");
}
