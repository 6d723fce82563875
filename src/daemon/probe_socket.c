#include "daemon/probe_socket.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "daemon/abstract_socket.h"

#define CALLERS 16 /* most that are answered in one iteration of the loop */
#define REST_MS 20 /* then none is answered for this long */

struct probe_socket {
    int fd;
    struct loop_fd *watch;
    struct loop_timer *rest;
    probe_socket_f *say;
    void *arg;
};

static void answer(const struct probe_socket *l, int fd)
{
    CLEANUP_BUF struct buf line = BUF_INIT;

    l->say(l->arg, &line);
    buf_puts(&line, "\n");
    (void)!send(fd, line.data, line.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Pause after each round, also when no descriptor is left for a caller: it waits in the backlog. */
static void on_callers(void *arg, int events)
{
    struct probe_socket *l = arg;

    (void)events;
    for (int i = 0; i < CALLERS; i++) {
        CLEANUP_CLOSE int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
            break;
        answer(l, fd);
    }
    loop_fd_events(l->watch, 0);
    loop_timer_set(l->rest, REST_MS);
}

static void on_rested(void *arg)
{
    const struct probe_socket *l = arg;

    loop_fd_events(l->watch, LOOP_READ);
}

struct probe_socket *probe_socket_new(struct loop *loop, const char *ns, probe_socket_f *say,
                                      void *arg, struct err *err)
{
    char name[ABSTRACT_SOCKET_NAME];
    int fd = abstract_socket_listen(ns, "", "the socket of later health --live", name, err);
    struct probe_socket *l;

    if (fd < 0)
        return NULL;
    l = mem_new(sizeof(*l));
    *l = (struct probe_socket){.fd = fd, .say = say, .arg = arg};
    l->watch = loop_fd_new(loop, fd, LOOP_READ, on_callers, l);
    l->rest = loop_timer_new(loop, on_rested, l);
    return l;
}

void probe_socket_free(struct probe_socket *l)
{
    if (l == NULL)
        return;
    loop_fd_free(l->watch);
    loop_timer_free(l->rest);
    (void)close(l->fd);
    free(l);
}
