#include "redis/link.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "redis/sub.h"

/* Full jitter (AWS Architecture Blog, "Exponential Backoff And Jitter", 2015). The cap keeps the
 * promise that work resumes within two seconds of Redis coming back. */
#define BACKOFF_FIRST_MS 50
#define BACKOFF_CAP_MS 1200
/* Quick retries do not cure a wrong password or a missing right. */
#define BACKOFF_DENIED_MS 10000
/* A connection that lived this long resets the backoff. */
#define HEALTHY_US 5000000
/* With sentinels: how soon a master is left that lives on, but is not the master any more. */
#define LOOK_MS 1000
/* With a cluster: MOVED tells at once; but a primary that has joined lacks the library. */
#define LOOK_CLUSTER_MS 60000

struct link {
    struct loop *loop;
    struct url url;
    char ns[80];
    int64_t timeout_ms;
    struct link_events events;
    struct probe *probe;
    struct async *async; /* NULL: none */
    struct sub *sub;
    struct loop_timer *retry;
    struct probe *password; /* asks for it while the link is up */
    struct loop_timer *renew;
    int64_t renew_ms;     /* 0: never */
    struct probe *master; /* of a guided url, while the link is up: looks whether it still is */
    struct loop_timer *look;
    struct url at;   /* what was named, for that */
    char replid[48]; /* history of the server of the last link */
    struct mono up_since;
    unsigned failures;
    bool is_refused; /* the password was: send it again when it is asked for next */
    bool is_up;
};

static uint32_t random_below(uint32_t n)
{
    uint32_t r = 0;

    (void)getrandom(&r, sizeof(r), GRND_NONBLOCK);
    return n > 0 ? r % n : 0;
}

static void schedule(struct link *l, enum error_class class)
{
    int64_t cap = BACKOFF_FIRST_MS;

    for (unsigned i = 0; i < l->failures && cap < BACKOFF_CAP_MS; i++)
        cap *= 2;
    if (cap > BACKOFF_CAP_MS)
        cap = BACKOFF_CAP_MS;
    if (class == ERROR_CLASS_DENIED || class == ERROR_CLASS_UNFIT)
        cap = BACKOFF_DENIED_MS;
    l->failures++;
    loop_timer_set(l->retry, (int64_t)random_below((uint32_t)cap) + 1);
}

static void lost(struct link *l, enum error_class class, const char *text)
{
    if (l->is_up && mono_until_us(l->up_since, mono_now()) > HEALTHY_US)
        l->failures = 0;
    l->is_up = false;
    async_close(l->async);
    l->async = NULL;
    /* Without a link a wake is of no use, and the subscription would reconnect without backoff. */
    sub_stop(l->sub);
    probe_cancel(l->master);
    loop_timer_stop(l->look);
    schedule(l, class);
    l->events.down(l->events.arg, class, text);
}

static void on_closed(void *arg, enum error_class class, const char *text)
{
    lost(arg, class, text);
}

/* ---- an old master that lives on, cut off from the sentinels or not demoted yet */

static void look_later(struct link *l)
{
    loop_timer_set(l->look, l->url.nodes[0] != '\0' ? LOOK_CLUSTER_MS : LOOK_MS);
}

static void on_look(void *arg)
{
    struct link *l = arg;

    /* Without a thread now, the next time. */
    if (probe_start(l->master, PROBE_MASTER, &l->at, l->ns, l->timeout_ms) < 0)
        look_later(l);
}

static void on_master(void *arg, struct probe_result *result)
{
    struct link *l = arg;

    if (result->has_moved)
        lost(l, ERROR_CLASS_MOVED,
             l->url.nodes[0] != '\0' ? "the slot of the namespace has moved to another node"
                                     : "the sentinels name another master");
    else
        look_later(l);
}

static void watch_master(struct link *l, const struct probe_result *result)
{
    if (!url_is_guided(&l->url))
        return;
    l->at = l->url;
    text_copy(l->at.name, sizeof(l->at.name), result->url.name);
    text_copy(l->at.host, sizeof(l->at.host), result->url.host);
    l->at.port = result->url.port;
    look_later(l);
}

/* ---- up */

/* Another history than that of the last link, continued by a replica: a failover. A server that was
 * only started anew is none. */
static void hear_history(struct link *l, struct probe_result *server)
{
    bool is_other = l->replid[0] != '\0' && strcmp(l->replid, server->replid) != 0;

    server->has_failed_over = is_other && server->is_promoted;
    if (server->replid[0] != '\0')
        memcpy(l->replid, server->replid, sizeof(l->replid));
}

static void on_probe(void *arg, struct probe_result *result)
{
    struct link *l = arg;
    struct async_events events = {on_closed, NULL, l};

    if (result->wire == NULL) {
        lost(l, result->class, result->text);
        return;
    }
    /* link_ask_password may have asked for another try while this one was under way. */
    loop_timer_stop(l->retry);
    l->is_refused = false;
    url_set_login(&l->url, &result->url);
    l->async = async_new(l->loop, TAKE_PTR(result->wire), l->timeout_ms, &events);
    l->is_up = true;
    l->up_since = mono_now();
    sub_start(l->sub, &result->url);
    watch_master(l, result);
    hear_history(l, result);
    l->events.up(l->events.arg, result);
}

static void on_retry(void *arg)
{
    struct link *l = arg;

    if (probe_start(l->probe, PROBE_SERVER, &l->url, l->ns, l->timeout_ms) < 0)
        lost(l, ERROR_CLASS_LINK, "no thread for the probe");
}

/* ---- a password that changes */

static void tell_password(struct link *l, const char *text)
{
    if (l->events.password != NULL)
        l->events.password(l->events.arg, text);
}

static void on_login(void *arg, const struct reply *reply)
{
    struct link *l = arg;

    l->is_refused = reply_kind(reply) == REPLY_ERROR;
    if (l->is_refused)
        tell_password(l, reply_str(reply));
}

static void log_in_again(struct link *l)
{
    const char *auth[3];
    int n = url_login(&l->url, auth);

    if (n > 0)
        (void)async_call(l->async, n, auth, NULL, on_login, l);
    sub_set_login(l->sub, &l->url);
}

static void on_password(void *arg, struct probe_result *result)
{
    struct link *l = arg;

    if (result->class != ERROR_CLASS_NONE) {
        tell_password(l, result->text);
        return;
    }
    if (!l->is_refused && strcmp(result->url.password, l->url.password) == 0 &&
        strcmp(result->url.user, l->url.user) == 0)
        return;
    url_set_login(&l->url, &result->url);
    if (l->async != NULL)
        log_in_again(l);
}

/* Without a link, the next connect asks. */
static void on_renew(void *arg)
{
    struct link *l = arg;

    if (l->async != NULL)
        (void)probe_start(l->password, PROBE_PASSWORD, &l->url, l->ns, l->timeout_ms);
    loop_timer_set(l->renew, l->renew_ms);
}

struct link *link_new(struct loop *loop, const struct url *url, const char *ns, int64_t timeout_ms,
                      const struct link_events *events)
{
    struct link *l = mem_new(sizeof(*l));
    struct sub_events sub_events = {events->subscribed, events->wake, events->changed,
                                    events->denied, events->arg};

    l->loop = loop;
    l->url = *url;
    text_copy(l->ns, sizeof(l->ns), ns);
    l->timeout_ms = timeout_ms;
    l->events = *events;
    l->retry = loop_timer_new(loop, on_retry, l);
    l->probe = probe_new(loop, on_probe, l);
    l->renew = loop_timer_new(loop, on_renew, l);
    l->password = probe_new(loop, on_password, l);
    l->look = loop_timer_new(loop, on_look, l);
    l->master = probe_new(loop, on_master, l);
    l->sub = sub_new(loop, ns, timeout_ms, &sub_events);
    if (l->probe == NULL || l->password == NULL || l->master == NULL || l->sub == NULL) {
        link_free(l);
        return NULL;
    }
    return l;
}

void link_free(struct link *l)
{
    if (l == NULL)
        return;
    async_close(l->async);
    sub_free(l->sub);
    probe_free(l->probe);
    probe_free(l->password);
    probe_free(l->master);
    loop_timer_free(l->look);
    loop_timer_free(l->retry);
    loop_timer_free(l->renew);
    explicit_bzero(l, sizeof(*l));
    free(l);
}

void link_start(struct link *l)
{
    on_retry(l);
}

void link_reset(struct link *l, enum error_class class, const char *text)
{
    if (l->async != NULL)
        lost(l, class, text);
}

void link_watch(struct link *l, const char *const *keys)
{
    sub_watch(l->sub, keys);
}

void link_ask_password(struct link *l)
{
    if (l->url.ask_password == NULL)
        return;
    if (l->async != NULL) {
        (void)probe_start(l->password, PROBE_PASSWORD, &l->url, l->ns, l->timeout_ms);
    } else {
        probe_cancel(l->probe); /* it may have the old one */
        on_retry(l);
    }
}

void link_renew_password(struct link *l, int64_t every_ms)
{
    l->renew_ms = every_ms;
    if (every_ms > 0 && l->url.ask_password != NULL)
        loop_timer_set(l->renew, every_ms);
    else
        loop_timer_stop(l->renew);
}

bool link_is_up(const struct link *l)
{
    return l->is_up;
}

int link_call(struct link *l, int argc, const char *const *argv, const size_t *lens,
              async_reply_f *cb, void *arg)
{
    return l->is_up ? async_call(l->async, argc, argv, lens, cb, arg) : -1;
}
