#include "daemon/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/mem.h"

#define SIGNALS_MAX 8 /* at most one of each kind is pending */

struct signals {
    int fd;
    struct loop_fd *watch;
    signals_f *cb;
    void *arg;
};

static void listened(sigset_t *set)
{
    static const int list[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2};

    (void)sigemptyset(set);
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        (void)sigaddset(set, list[i]);
}

void signals_block(void)
{
    sigset_t set;

    listened(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* the log has reached a limit of its size: go on without it */
    (void)signal(SIGCHLD, SIG_DFL);
}

/* One read each time the loop goes round: a flood of signals must not block the loop. */
static void on_readable(void *arg, int events)
{
    struct signals *s = arg;
    struct signalfd_siginfo info[SIGNALS_MAX];
    ssize_t n = read(s->fd, info, sizeof(info));

    (void)events;
    for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(info[0]); i++)
        s->cb(s->arg, (int)info[i].ssi_signo);
}

struct signals *signals_new(struct loop *loop, signals_f *cb, void *arg)
{
    struct signals *s = mem_new(sizeof(*s));
    sigset_t set;

    listened(&set);
    s->cb = cb;
    s->arg = arg;
    s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->fd < 0) {
        free(s);
        return NULL;
    }
    s->watch = loop_fd_new(loop, s->fd, LOOP_READ, on_readable, s);
    return s;
}

void signals_free(struct signals *s)
{
    if (s == NULL)
        return;
    loop_fd_free(s->watch);
    (void)close(s->fd);
    free(s);
}
