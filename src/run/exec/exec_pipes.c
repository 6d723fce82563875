#include "run/exec/exec_pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define LOWEST 4 /* 0-3 have fixed meanings: the log must never write to a pipe of ours */

static void close_at(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* Move a descriptor above 0-3, which pipe2 returns if the daemon was started with closed stdio. */
static int lift(int *fd)
{
    int high;

    if (*fd >= LOWEST)
        return 0;
    high = fcntl(*fd, F_DUPFD_CLOEXEC, LOWEST);
    if (high < 0)
        return -1;
    (void)close(*fd);
    *fd = high;
    return 0;
}

static int open_one(struct exec_pipes *p, int i)
{
    int *reader = i == PIPE_IN ? &p->theirs[i] : &p->ours[i];
    int *writer = i == PIPE_IN ? &p->ours[i] : &p->theirs[i];
    int fd[2];

    if (pipe2(fd, O_CLOEXEC) != 0)
        return -1;
    *reader = fd[0];
    *writer = fd[1];
    if (lift(reader) != 0 || lift(writer) != 0)
        return -1;
    /* Only our end: programs expect their end to block. */
    return fcntl(p->ours[i], F_SETFL, O_NONBLOCK);
}

int exec_pipes_open(struct exec_pipes *p, struct err *err)
{
    for (int i = 0; i < PIPES; i++)
        p->ours[i] = p->theirs[i] = -1;
    p->sent = 0;
    p->errnum = 0;
    for (int i = 0; i < PIPES; i++) {
        if (open_one(p, i) != 0) {
            int e = errno;

            exec_pipes_close(p);
            return err_sys(err, e, "pipe");
        }
    }
    return 0;
}

void exec_pipes_close_theirs(struct exec_pipes *p)
{
    for (int i = 0; i < PIPES; i++)
        close_at(&p->theirs[i]);
}

void exec_pipes_close(struct exec_pipes *p)
{
    exec_pipes_close_theirs(p);
    for (int i = 0; i < PIPES; i++)
        close_at(&p->ours[i]);
}

void exec_pipes_close_one(struct exec_pipes *p, enum exec_pipe which)
{
    close_at(&p->ours[which]);
}

void exec_pipes_feed(struct exec_pipes *p, const char *payload, size_t len)
{
    while (p->sent < len) {
        ssize_t n = write(p->ours[PIPE_IN], payload + p->sent, len - p->sent);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        /* EPIPE: the handler did not read all of it, which is allowed. */
        if (n < 0 && errno != EPIPE)
            p->errnum = errno;
        if (n < 0)
            break;
        p->sent += (size_t)n;
    }
    close_at(&p->ours[PIPE_IN]);
}

bool exec_pipes_are_over(const struct exec_pipes *p)
{
    return p->ours[PIPE_OUT] < 0 && p->ours[PIPE_ERR] < 0 && p->ours[PIPE_CTL] < 0;
}
