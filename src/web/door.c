#include "web/door.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "web/listen.h"

/* A head that came in part stays readable, so it is not watched: it is looked at after so long, and
 * then after twice as long. */
#define LOOK_AGAIN_MS 10
#define LOOK_AGAIN_MOST_MS 640
#define ACCEPT_AGAIN_MS 100 /* after accept was refused, for example for want of descriptors */
#define DRAIN_MAX 65536

/* Somebody at the door. */
struct guest {
    struct door *door;
    struct guest *next;
    int fd;
    struct mono until;
    int64_t wait_ms;
    struct loop_fd *watch;
    struct loop_timer *again;
};

struct door {
    struct loop *loop;
    const struct head_rules *rules;
    door_in_f *in;
    void *arg;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *accept_again;
    struct guest *guests;
    size_t n; /* at the door and inside */
};

static void watch_door(struct door *d)
{
    bool is_open = d->n < DOOR_MAX && !loop_timer_is_set(d->accept_again);

    loop_fd_events(d->watch, is_open ? LOOP_READ : 0);
}

static void free_guest(struct guest *g)
{
    loop_fd_free(g->watch);
    loop_timer_free(g->again);
    free(g);
}

/* Forget a guest; his descriptor stays open. */
static void drop(struct guest *g)
{
    struct guest **at = &g->door->guests;

    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    free_guest(g);
}

static void turn_away(struct guest *g)
{
    struct door *d = g->door;
    int fd = g->fd;

    drop(g);
    (void)close(fd);
    d->n--;
    watch_door(d);
}

/* An answer that the peer still reads: input that is not taken would make the kernel reset the
 * connection. */
static void refuse(struct guest *g, const struct head_refusal *why)
{
    CLEANUP_BUF struct buf answer = BUF_INIT;
    char ignored[4096];
    ssize_t n;

    for (size_t all = 0; all < DRAIN_MAX && (n = recv(g->fd, ignored, sizeof(ignored), 0)) > 0;)
        all += (size_t)n;
    buf_printf(&answer,
               "HTTP/1.1 %u Refused\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
               "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
               "{\"error\":\"HTTP_%u\",\"text\":\"%s\"}",
               why->status, strlen(why->text) + strlen("{\"error\":\"HTTP_400\",\"text\":\"\"}"),
               why->status, why->text);
    (void)send(g->fd, answer.data, answer.len, MSG_NOSIGNAL);
    (void)shutdown(g->fd, SHUT_WR);
    turn_away(g);
}

static void let_in(struct guest *g)
{
    struct door *d = g->door;
    int fd = g->fd;

    drop(g);
    if (d->in(d->arg, fd))
        return;
    d->n--;
    watch_door(d);
}

/* Will no more of his head come? His bytes hide the end behind them. */
static bool has_gone(const struct guest *g)
{
    struct pollfd one = {.fd = g->fd, .events = POLLRDHUP};

    return poll(&one, 1, 0) == 1;
}

static void look(struct guest *g)
{
    char head[HEAD_MAX];
    struct head_refusal why;
    ssize_t n = recv(g->fd, head, sizeof(head), MSG_PEEK);

    if (n <= 0 && (n == 0 || errno != EAGAIN)) {
        turn_away(g);
        return;
    }
    switch (head_check(head, n > 0 ? (size_t)n : 0, g->door->rules, &why)) {
    case HEAD_GOOD:
        let_in(g);
        return;
    case HEAD_REFUSED:
        refuse(g, &why);
        return;
    case HEAD_MORE:
    default:
        break;
    }
    if (has_gone(g)) {
        turn_away(g);
        return;
    }
    if (!mono_before(mono_now(), g->until)) {
        refuse(g, &(struct head_refusal){408, "the request did not come within 10 s"});
        return;
    }
    loop_fd_events(g->watch, 0);
    loop_timer_set(g->again, g->wait_ms);
    if (g->wait_ms < LOOK_AGAIN_MOST_MS)
        g->wait_ms *= 2;
}

static void on_readable(void *arg, int events)
{
    (void)events;
    look(arg);
}

/* Only this timer looks at one whose head came in part, or did not come at all. */
static void on_again(void *arg)
{
    look(arg);
}

static void welcome(struct door *d, int fd)
{
    struct guest *g = mem_new(sizeof(*g));

    g->door = d;
    g->fd = fd;
    g->wait_ms = LOOK_AGAIN_MS;
    g->until = mono_add_ms(mono_now(), DOOR_HEAD_MS);
    g->watch = loop_fd_new(d->loop, fd, LOOP_READ, on_readable, g);
    g->again = loop_timer_new(d->loop, on_again, g);
    loop_timer_set(g->again, DOOR_HEAD_MS);
    g->next = d->guests;
    d->guests = g;
    d->n++;
}

static void on_knock(void *arg, int events)
{
    struct door *d = arg;

    (void)events;
    while (d->n < DOOR_MAX) {
        int fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            welcome(d, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            loop_timer_set(d->accept_again, ACCEPT_AGAIN_MS);
        if (errno != EINTR && errno != ECONNABORTED)
            break;
    }
    watch_door(d);
}

static void on_accept_again(void *arg)
{
    watch_door(arg);
}

struct door *door_new(struct loop *loop, const char *listen, const struct head_rules *rules,
                      door_in_f *in, void *arg, struct err *err)
{
    int fd = listen_at(listen, err);
    struct door *d;

    if (fd < 0)
        return NULL;
    d = mem_new(sizeof(*d));
    d->loop = loop;
    d->rules = rules;
    d->in = in;
    d->arg = arg;
    d->fd = fd;
    d->watch = loop_fd_new(loop, fd, LOOP_READ, on_knock, d);
    d->accept_again = loop_timer_new(loop, on_accept_again, d);
    return d;
}

void door_free(struct door *d)
{
    struct guest *g;

    if (d == NULL)
        return;
    while ((g = d->guests) != NULL) {
        d->guests = g->next;
        (void)close(g->fd);
        free_guest(g);
    }
    loop_fd_free(d->watch);
    loop_timer_free(d->accept_again);
    (void)close(d->fd);
    free(d);
}

void door_left(struct door *d)
{
    d->n--;
    watch_door(d);
}
