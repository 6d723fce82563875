/*
 * redis/link.h on the virtual network: the same probing, backing off, timeouts and events, without
 * a socket. Kept close to redis/link.c and redis/async.c, which are not under test here.
 */
#include "virtual_link.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net.h"
#include "trouble.h"
#include "worker.h"

#define BACKOFF_FIRST_MS 50
#define BACKOFF_CAP_MS 1200
#define BACKOFF_DENIED_MS 10000
#define HEALTHY_US 5000000

struct link {
    struct worker *worker;
    int64_t timeout_us;
    struct link_events events;
    struct conn *conn; /* NULL: none */
    struct listener *listener;
    struct event *retry, *opening, *timer, *subscribing;
    struct mono up_since;
    unsigned failures;
    unsigned waiting; /* calls without an answer */
    bool is_up;
};

struct ask {
    struct link *link;
    async_reply_f *cb;
    void *arg;
};

static void on_retry(void *arg);

static struct event *later(struct link *l, int64_t us, event_f *fn)
{
    return world_in(us, &l->worker->owner, fn, l, NULL);
}

static void forget(struct event **e)
{
    world_cancel(*e);
    *e = NULL;
}

static void schedule(struct link *l, enum error_class class)
{
    int64_t cap = BACKOFF_FIRST_MS;

    for (unsigned i = 0; i < l->failures && cap < BACKOFF_CAP_MS; i++)
        cap *= 2;
    if (cap > BACKOFF_CAP_MS)
        cap = BACKOFF_CAP_MS;
    if (class == ERROR_CLASS_DENIED)
        cap = BACKOFF_DENIED_MS;
    l->failures++;
    l->retry = later(l, random_between(1, cap) * MS, on_retry);
}

static void close_all(struct link *l)
{
    forget(&l->timer);
    forget(&l->subscribing);
    if (l->conn != NULL)
        net_close(l->conn);
    net_unlisten(l->listener);
    l->conn = NULL;
    l->listener = NULL;
    l->waiting = 0;
}

static void lost(struct link *l, enum error_class class, const char *text)
{
    if (l->is_up && mono_until_us(l->up_since, mono_now()) > HEALTHY_US)
        l->failures = 0;
    l->is_up = false;
    close_all(l);
    schedule(l, class);
    l->events.down(l->events.arg, class, text);
}

static void on_broken(void *arg)
{
    lost(arg, ERROR_CLASS_LINK, "connection closed");
}

static void on_timeout(void *arg)
{
    struct link *l = arg;

    l->timer = NULL;
    lost(l, ERROR_CLASS_LINK, "no answer in time");
}

static void on_wake(void *arg, const char *text)
{
    struct link *l = arg;

    worker_did(l->worker);
    l->events.wake(l->events.arg, text, strlen(text));
}

static void on_subscribed(void *arg)
{
    struct link *l = arg;

    l->subscribing = NULL;
    l->listener = net_listen(&l->worker->owner, on_wake, l);
    l->events.subscribed(l->events.arg);
}

static void on_opened(void *arg)
{
    static const struct probe_result server = {
        .url = {.is_unix = true, .host = "virtual"}, .lib = {.number = 1}, .server = "7"};
    struct link *l = arg;

    l->opening = NULL;
    if (l->worker->cut_off_until > world.now_us || net_is_down() ||
        net_hangs_until() > world.now_us) {
        lost(l, ERROR_CLASS_LINK, "no connection could be made");
        return;
    }
    l->conn = net_open(&l->worker->owner, on_broken, l);
    l->is_up = true;
    l->up_since = mono_now();
    l->subscribing = later(l, random_between(100, 3 * MS), on_subscribed);
    l->events.up(l->events.arg, &server);
}

/* A server that hangs accepts the connection and does not answer the login. */
static void on_retry(void *arg)
{
    struct link *l = arg;
    int64_t us = random_between(200, 3 * MS);
    int64_t hangs_us = net_hangs_until() - world.now_us;

    l->retry = NULL;
    if (hangs_us > 0 && hangs_us < l->timeout_us)
        us += hangs_us;
    else if (hangs_us > 0)
        us = l->timeout_us;
    l->opening = later(l, us, on_opened);
}

struct link *link_new(struct loop *loop, const struct url *url, const char *ns, int64_t timeout_ms,
                      const struct link_events *events)
{
    struct link *l = mem_new(sizeof(*l));

    (void)url;
    (void)ns;
    l->worker = loop->worker;
    l->timeout_us = timeout_ms * MS;
    l->events = *events;
    return l;
}

void link_free(struct link *l)
{
    if (l == NULL)
        return;
    forget(&l->retry);
    forget(&l->opening);
    close_all(l);
    free(l);
}

void link_start(struct link *l)
{
    on_retry(l);
}

void link_reset(struct link *l, enum error_class class, const char *text)
{
    if (l->conn != NULL)
        lost(l, class, text);
}

void virtual_link_break(struct link *l)
{
    if (l->conn != NULL)
        net_break(l->conn);
}

bool link_is_up(const struct link *l)
{
    return l->is_up;
}

/* An answer on the open connection; the net drops the answers of others. */
static void on_answer(void *arg, const struct reply *reply)
{
    struct ask ask = *(struct ask *)arg;
    struct link *l = ask.link;

    forget(&l->timer);
    if (--l->waiting > 0)
        l->timer = later(l, l->timeout_us, on_timeout);
    worker_did(l->worker);
    ask.cb(ask.arg, reply);
}

int link_call(struct link *l, int argc, const char *const *argv, const size_t *lens,
              async_reply_f *cb, void *arg)
{
    struct ask *ask;

    if (!l->is_up)
        return -1;
    worker_did(l->worker);
    world_say("asks %s", argv[argc > 1]);
    trouble_sent(l->worker, argv[argc > 1]);
    ask = mem_new(sizeof(*ask));
    *ask = (struct ask){l, cb, arg};
    if (l->waiting++ == 0)
        l->timer = later(l, l->timeout_us, on_timeout);
    net_call(l->conn, argc, argv, lens, on_answer, ask);
    return 0;
}

/* The server sends no keyspace events. */
void link_watch(struct link *l, const char *const *keys)
{
    (void)l;
    (void)keys;
}
