#include "loop/loop.h"

#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

struct loop {
    struct ev_loop *ev;
    bool stopped;
};

struct loop_fd {
    ev_io io; /* first: the callback gets its address */
    struct loop *loop;
    loop_fd_f *cb;
    void *arg;
};

struct loop_hook {
    ev_prepare prepare; /* first */
    struct loop *loop;
    loop_hook_f *cb;
    void *arg;
};

struct loop_timer {
    ev_timer timer; /* first */
    struct loop *loop;
    loop_timer_f *cb;
    void *arg;
};

struct loop_alarm {
    struct loop_fd *watch;
    int fd;
    loop_timer_f *cb;
    void *arg;
};

/* libev's own allocator would abort without memory. */
static void *allocate(void *p, long n)
{
    if (n > 0)
        return mem_grow(p, (size_t)n, 1);
    free(p);
    return NULL;
}

/* A loop that cannot watch a descriptor never hears of it again, not even of a stop. End, as
 * without memory, so that a new process takes over the running jobs. */
static void give_up(const char *what)
{
    log_err(
        "event=loop result=failed reason=\"%s: %s\" effect=\"stopping; running jobs will be run "
        "again\"",
        what, strerror(errno));
    _exit(EX_OSERR);
}

struct loop *loop_new(void)
{
    struct ev_loop *ev;
    struct loop *loop;

    ev_set_allocator(allocate);
    ev_set_syserr_cb(give_up);
    ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
    if (ev == NULL)
        return NULL;
    loop = mem_new(sizeof(*loop));
    loop->ev = ev;
    return loop;
}

void loop_free(struct loop *loop)
{
    if (loop == NULL)
        return;
    ev_loop_destroy(loop->ev);
    free(loop);
}

void loop_run(struct loop *loop)
{
    /* ev_run forgets an ev_break that came before it; a stop asked for early must hold too. */
    if (!loop->stopped)
        (void)ev_run(loop->ev, 0);
    loop->stopped = false;
}

void loop_stop(struct loop *loop)
{
    loop->stopped = true;
    ev_break(loop->ev, EVBREAK_ALL);
}

static int events_to_ev(int events)
{
    return ((events & LOOP_READ) ? EV_READ : 0) | ((events & LOOP_WRITE) ? EV_WRITE : 0);
}

/* The callback comes last: it may free the watcher. */
static void on_io(struct ev_loop *ev, ev_io *io, int revents)
{
    struct loop_fd *w = (struct loop_fd *)io;

    (void)ev;
    /* epoll_ctl refused the descriptor, and libev has stopped the watcher. */
    if (revents & EV_ERROR)
        give_up("a descriptor cannot be watched");
    w->cb(w->arg, ((revents & EV_READ) ? LOOP_READ : 0) | ((revents & EV_WRITE) ? LOOP_WRITE : 0));
}

struct loop_fd *loop_fd_new(struct loop *loop, int fd, int events, loop_fd_f *cb, void *arg)
{
    struct loop_fd *w = mem_new(sizeof(*w));

    w->loop = loop;
    w->cb = cb;
    w->arg = arg;
    ev_io_init(&w->io, on_io, fd, events_to_ev(events));
    if (events != 0)
        ev_io_start(loop->ev, &w->io);
    return w;
}

void loop_fd_events(struct loop_fd *w, int events)
{
    if (w->io.events == events_to_ev(events) && ev_is_active(&w->io) == (events != 0))
        return;
    ev_io_stop(w->loop->ev, &w->io);
    ev_io_set(&w->io, w->io.fd, events_to_ev(events));
    if (events != 0)
        ev_io_start(w->loop->ev, &w->io);
}

void loop_fd_free(struct loop_fd *w)
{
    if (w == NULL)
        return;
    ev_io_stop(w->loop->ev, &w->io);
    free(w);
}

static void on_prepare(struct ev_loop *ev, ev_prepare *prepare, int revents)
{
    const struct loop_hook *h = (const struct loop_hook *)prepare;

    (void)ev;
    (void)revents;
    h->cb(h->arg);
}

struct loop_hook *loop_hook_new(struct loop *loop, enum loop_hook_when when, loop_hook_f *cb,
                                void *arg)
{
    struct loop_hook *h = mem_new(sizeof(*h));

    h->loop = loop;
    h->cb = cb;
    h->arg = arg;
    ev_prepare_init(&h->prepare, on_prepare);
    ev_set_priority(&h->prepare, when == LOOP_HOOK_GATHERED ? EV_MAXPRI : EV_MINPRI);
    ev_prepare_start(loop->ev, &h->prepare);
    return h;
}

void loop_hook_free(struct loop_hook *h)
{
    if (h == NULL)
        return;
    ev_prepare_stop(h->loop->ev, &h->prepare);
    free(h);
}

static void on_timer(struct ev_loop *ev, ev_timer *timer, int revents)
{
    struct loop_timer *t = (struct loop_timer *)timer;

    (void)ev;
    (void)revents;
    t->cb(t->arg);
}

struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_f *cb, void *arg)
{
    struct loop_timer *t = mem_new(sizeof(*t));

    t->loop = loop;
    t->cb = cb;
    t->arg = arg;
    ev_timer_init(&t->timer, on_timer, 0., 0.);
    return t;
}

void loop_timer_set(struct loop_timer *t, int64_t ms)
{
    ev_timer_stop(t->loop->ev, &t->timer);
    /* libev counts from the time it cached at the start of this iteration, which may be long ago.
     */
    ev_now_update(t->loop->ev);
    ev_timer_set(&t->timer, ms > 0 ? (double)ms / 1000. : 0., 0.);
    ev_timer_start(t->loop->ev, &t->timer);
}

void loop_timer_stop(struct loop_timer *t)
{
    ev_timer_stop(t->loop->ev, &t->timer);
}

bool loop_timer_is_set(const struct loop_timer *t)
{
    return ev_is_active(&t->timer);
}

void loop_timer_free(struct loop_timer *t)
{
    if (t == NULL)
        return;
    ev_timer_stop(t->loop->ev, &t->timer);
    free(t);
}

static void on_alarm(void *arg, int events)
{
    struct loop_alarm *a = arg;
    uint64_t times;

    (void)events;
    /* There is nothing to read if it was set anew after the loop saw it fire. */
    if (read(a->fd, &times, sizeof(times)) == (ssize_t)sizeof(times))
        a->cb(a->arg);
}

struct loop_alarm *loop_alarm_new(struct loop *loop, loop_timer_f *cb, void *arg)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct loop_alarm *a;

    if (fd < 0)
        return NULL;
    a = mem_new(sizeof(*a));
    a->fd = fd;
    a->cb = cb;
    a->arg = arg;
    a->watch = loop_fd_new(loop, fd, LOOP_READ, on_alarm, a);
    return a;
}

void loop_alarm_set(struct loop_alarm *a, struct mono at)
{
    struct itimerspec when = {0};

    if (at.us == INT64_MAX) {
        (void)timerfd_settime(a->fd, 0, &when, NULL);
        return;
    }
    if (at.us > 0) {
        when.it_value.tv_sec = at.us / 1000000;
        when.it_value.tv_nsec = at.us % 1000000 * 1000;
    } else {
        when.it_value.tv_nsec = 1; /* all zero would switch it off */
    }
    (void)timerfd_settime(a->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void loop_alarm_free(struct loop_alarm *a)
{
    if (a == NULL)
        return;
    loop_fd_free(a->watch);
    (void)close(a->fd);
    free(a);
}
