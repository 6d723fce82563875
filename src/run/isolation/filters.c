#include "run/isolation/filters.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/isolation/isolation.h"

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

/* Tell the daemon what runs now. It may have gone. */
static void tell(const char *word, const char *rest)
{
    char line[256];
    int n = snprintf(line, sizeof(line), "%s%s%s\n", word, rest[0] != '\0' ? " " : "", rest);

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

/* Copy to the end. *ret_n: bytes. 0, or -1 with errno; EFBIG: there are more than `most`. */
static int copy(int from, int to, size_t most, size_t *ret_n)
{
    static char step[STEP_BYTES];

    for (*ret_n = 0;;) {
        ssize_t n = read(from, step, sizeof(step));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 ? 0 : -1;
        if ((size_t)n > most - *ret_n) {
            errno = EFBIG;
            return -1;
        }
        if (write_all(to, step, (size_t)n) < 0)
            return -1;
        *ret_n += (size_t)n;
    }
}

/* Start it with these as standard input and output. 0, or an errno. */
static int start(const char *path, int payload, int out, char *const *envp, pid_t *ret_pid)
{
    char *const argv[] = {(char *)(uintptr_t)path, NULL};
    posix_spawn_file_actions_t fa;
    int e;

    if (lseek(payload, 0, SEEK_SET) != 0)
        return errno;
    e = posix_spawn_file_actions_init(&fa);
    if (e != 0)
        return e;
    e = posix_spawn_file_actions_adddup2(&fa, payload, STDIN_FILENO);
    if (e == 0)
        e = posix_spawn_file_actions_adddup2(&fa, out, STDOUT_FILENO);
    if (e == 0)
        e = posix_spawn(ret_pid, path, &fa, NULL, argv, envp);
    (void)posix_spawn_file_actions_destroy(&fa);
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

/* Run one; it prints into `to`. Returns the exit status. */
static int run(const char *path, int payload, int to, size_t most, char *const *envp,
               size_t *ret_printed)
{
    char text[64];
    int ends[2];
    pid_t pid = 0;
    int rc;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return complain(path, "no pipe");
    rc = start(path, payload, ends[1], envp, &pid);
    (void)close(ends[1]);
    if (rc != 0) {
        (void)close(ends[0]);
        errno = rc;
        (void)complain(path, "cannot be started");
        return rc == ENOENT ? 127 : 126;
    }
    rc = copy(ends[0], to, most, ret_printed);
    (void)close(ends[0]);
    if (rc == 0)
        return wait_for(path, pid);
    (void)snprintf(text, sizeof(text), "prints more than %zu bytes", most);
    if (errno == EFBIG)
        tell("reason", text);
    rc = complain(path, "its output");
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return rc;
}

/* A file without a name. -1 with errno. */
static int make_file(void)
{
    return memfd_create("payload", MFD_CLOEXEC);
}

int filters_run(char *const *paths, size_t n, size_t most, char *const *envp)
{
    int payload = make_file();
    size_t printed;

    if (payload < 0 || copy(STDIN_FILENO, payload, SIZE_MAX, &printed) < 0)
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
    if (lseek(payload, 0, SEEK_SET) != 0 || dup2(payload, STDIN_FILENO) < 0)
        return complain(paths[n - 1], "the payload");
    return 0;
}
