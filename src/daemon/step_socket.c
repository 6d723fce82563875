#include "daemon/step_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "daemon/abstract_socket.h"

#define CALLERS 64      /* at once; others wait in the backlog */
#define SEND_MS 10000   /* in which a caller has to send its request */
#define READ_BYTES 4096 /* by one read */
#define REST_MS 100 /* after a caller for whom there is no descriptor: it waits in the backlog */

struct step_caller {
    struct step_socket *socket;
    struct step_caller *next, *before; /* the newest first */
    int fd;
    struct loop_fd *watch;
    struct loop_timer *deadline;
    struct buf got;
    bool is_asking; /* its request is whole, and not answered */
};

struct step_socket {
    struct loop *loop;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *rest; /* set: nobody is accepted */
    char name[ABSTRACT_SOCKET_NAME];
    struct step_caller *first;
    unsigned n;
    step_socket_f *cb;
    void *arg;
};

/* Accept callers while there is room for them. */
static void heed(struct step_socket *s)
{
    bool is_full = s->n >= CALLERS || loop_timer_is_set(s->rest);

    loop_fd_events(s->watch, is_full ? 0 : LOOP_READ);
}

/* ---- callers */

static void caller_free(struct step_caller *c)
{
    struct step_socket *s = c->socket;

    if (c->before != NULL)
        c->before->next = c->next;
    else
        s->first = c->next;
    if (c->next != NULL)
        c->next->before = c->before;
    s->n--;
    heed(s);
    loop_fd_free(c->watch);
    loop_timer_free(c->deadline);
    (void)close(c->fd);
    buf_done(&c->got);
    free(c);
}

/* The answer fits into the socket. If the caller is gone, it is nobody's. */
static void answer(struct step_caller *c, const struct buf *b)
{
    (void)!send(c->fd, b->data, b->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    caller_free(c);
}

void step_caller_say(struct step_caller *c, const char *word, const char *text)
{
    CLEANUP_BUF struct buf line = BUF_INIT;

    buf_printf(&line, "%s%s%s\n", word, text[0] != '\0' ? " " : "", text);
    answer(c, &line);
}

void step_caller_kept(struct step_caller *c, const char *output, size_t n)
{
    CLEANUP_BUF struct buf all = BUF_INIT;

    buf_printf(&all, "kept %zu\n", n);
    buf_add(&all, output, n);
    answer(c, &all);
}

void step_socket_say_again(struct step_socket *s, const char *text)
{
    struct step_caller *next;

    for (struct step_caller *c = s->first; c != NULL; c = next) {
        next = c->next;
        if (c->is_asking)
            step_caller_say(c, "again", text);
    }
}

static void on_late(void *arg)
{
    step_caller_say(arg, "refused", "the request did not come in time");
}

/* ---- requests */

static void ask(struct step_caller *c, const struct step_request *r, size_t line)
{
    loop_timer_stop(c->deadline);
    loop_fd_events(c->watch, 0);
    c->is_asking = true;
    c->socket->cb(c->socket->arg, c, r, c->got.data + line);
}

/* Look at what has come. */
static void take(struct step_caller *c)
{
    const char *lf = memchr(c->got.data, '\n', c->got.len);
    size_t line = lf != NULL ? (size_t)(lf - c->got.data) + 1 : 0;
    struct step_request r;

    if (lf == NULL && c->got.len <= STEP_LINE_MAX)
        return;
    if (lf == NULL || !step_request_parse(c->got.data, line - 1, &r))
        step_caller_say(c, "refused", "this is no request of later step");
    else if (c->got.len - line >= r.output_len)
        ask(c, &r, line);
}

static void on_readable(void *arg, int events)
{
    struct step_caller *c = arg;
    ssize_t n = read(c->fd, buf_reserve(&c->got, READ_BYTES), READ_BYTES);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        caller_free(c);
        return;
    }
    c->got.len += (size_t)n;
    take(c);
}

static void caller_new(struct step_socket *s, int fd)
{
    struct step_caller *c = mem_new(sizeof(*c));

    *c = (struct step_caller){.socket = s, .fd = fd, .next = s->first};
    if (s->first != NULL)
        s->first->before = c;
    s->first = c;
    c->watch = loop_fd_new(s->loop, fd, LOOP_READ, on_readable, c);
    c->deadline = loop_timer_new(s->loop, on_late, c);
    loop_timer_set(c->deadline, SEND_MS);
    s->n++;
}

static void on_callers(void *arg, int events)
{
    struct step_socket *s = arg;

    (void)events;
    while (s->n < CALLERS) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            loop_timer_set(s->rest, REST_MS);
        if (fd < 0)
            break;
        caller_new(s, fd);
    }
    heed(s);
}

static void on_rested(void *arg)
{
    heed(arg);
}

/* ---- the socket */

struct step_socket *step_socket_new(struct loop *loop, const char *ns, step_socket_f *cb, void *arg,
                                    struct err *err)
{
    struct step_socket *s = mem_new(sizeof(*s));

    *s = (struct step_socket){.loop = loop, .cb = cb, .arg = arg};
    s->fd = abstract_socket_listen(ns, "/steps", "the socket of later step", s->name, err);
    if (s->fd < 0) {
        free(s);
        return NULL;
    }
    s->watch = loop_fd_new(loop, s->fd, LOOP_READ, on_callers, s);
    s->rest = loop_timer_new(loop, on_rested, s);
    return s;
}

void step_socket_free(struct step_socket *s)
{
    if (s == NULL)
        return;
    for (struct step_caller *c = s->first, *next; c != NULL; c = next) {
        next = c->next;
        caller_free(c);
    }
    loop_fd_free(s->watch);
    loop_timer_free(s->rest);
    (void)close(s->fd);
    free(s);
}

const char *step_socket_name(const struct step_socket *s)
{
    return s->name;
}
