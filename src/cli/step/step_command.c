#include "cli/step/step_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/hold/command.h"
#include "cli/show/out.h"
#include "run/process/spawn.h"

#define READ_BYTES 65536

/* ---- the process */

/* As spawn_command: it gets the signals that this program ignores. */
static int start(char *const *argv, int output, struct spawned *ret, struct err *err)
{
    sigset_t mask, ours;
    struct spawn_command how = {
        .is_in_our_group = true, .tty = -1, .out = output, .mask = &mask, .defaults = &ours};

    (void)sigprocmask(SIG_SETMASK, NULL, &mask);
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGPIPE);
    return spawn_command(argv, environ, &how, ret, err);
}

static int wait_for(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- its output */

struct catch
{
    int fd;
    struct buf *output;
    size_t max;
    bool is_long;
};

/* More than can be kept: from now on all is printed at once. */
static void print(struct catch *c)
{
    c->is_long = true;
    out_bytes(c->output->data, c->output->len);
    (void)out_flush();
    buf_clear(c->output);
}

/* False: nothing is there now, or will be. */
static bool read_some(struct catch *c)
{
    ssize_t n = read(c->fd, buf_reserve(c->output, READ_BYTES), READ_BYTES);

    if (n <= 0)
        return n < 0 && errno == EINTR;
    c->output->len += (size_t)n;
    if (c->is_long || c->output->len > c->max)
        print(c);
    return true;
}

/* Until the process has ended, and what it has written was read. */
static void watch(struct catch *c, int pidfd)
{
    struct pollfd p[] = {{c->fd, POLLIN, 0}, {pidfd, POLLIN, 0}};

    for (;;) {
        if (poll(p, 2, -1) < 0)
            continue;
        if (p[0].revents != 0 && !read_some(c) && (p[0].revents & POLLIN) == 0)
            p[0].fd = -1; /* nobody writes any more */
        if (p[1].revents == 0)
            continue;
        while (read_some(c))
            continue;
        return;
    }
}

int step_command_run(char *const *argv, size_t max, struct buf *output, bool *is_long,
                     struct err *err)
{
    int pipe_fds[2];
    CLEANUP_CLOSE int theirs = -1, ours = -1;
    struct catch c = {.output = output, .max = max};
    struct spawned child = {-1, -1};

    if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
        (void)err_sys(err, errno, "a pipe");
        return command_not_run(argv[0], err);
    }
    ours = pipe_fds[0];
    theirs = pipe_fds[1];
    (void)fcntl(ours, F_SETFL, O_NONBLOCK);
    if (start(argv, theirs, &child, err) < 0)
        return command_not_run(argv[0], err);
    (void)close(TAKE_FD(theirs));
    c.fd = ours;
    watch(&c, child.pidfd);
    (void)close(child.pidfd);
    *is_long = c.is_long;
    return wait_for(child.pid);
}
