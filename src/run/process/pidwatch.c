#include "run/process/pidwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"

#define STACK_BYTES (64 * 1024)

struct watched {
    pid_t child;
    int fd;
};

static void *wait_for_it(void *arg)
{
    struct watched *w = arg;
    siginfo_t info;

    /* WNOWAIT: the status stays for the owner to collect. */
    while (waitid(P_PID, (id_t)w->child, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    (void)close(w->fd);
    free(w);
    return NULL;
}

static int open_pipe(pid_t child)
{
    struct watched *w;
    int fds[2], e;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    w = mem_new(sizeof(*w));
    *w = (struct watched){child, fds[1]};
    e = thread_start(wait_for_it, w, STACK_BYTES, NULL);
    if (e == 0)
        return fds[0];
    (void)close(fds[0]);
    (void)close(fds[1]);
    free(w);
    errno = e;
    return -1;
}

int pidwatch_open(pid_t child)
{
    int fd = pidfd_open(child, 0);

    return fd < 0 && (errno == ENOSYS || errno == EPERM) ? open_pipe(child) : fd;
}
