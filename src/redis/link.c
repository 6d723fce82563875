#include "redis/link.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

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
    struct probe_result server;
    struct mono up_since;
    unsigned failures;
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
    if (class == ERROR_CLASS_DENIED)
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
    schedule(l, class);
    l->events.down(l->events.arg, class, text);
}

static void on_opened(void *arg)
{
    struct link *l = arg;

    l->is_up = true;
    l->up_since = mono_now();
    sub_start(l->sub, &l->server.url);
    l->events.up(l->events.arg, &l->server);
}

static void on_closed(void *arg, enum error_class class, const char *text)
{
    lost(arg, class, text);
}

static void on_probe(void *arg, const struct probe_result *result)
{
    struct link *l = arg;
    struct async_events events = {on_opened, on_closed, NULL, l};

    /* The refused password has been replaced meanwhile: try the new one at once. */
    if (result->class == ERROR_CLASS_DENIED && strcmp(result->url.password, l->url.password) != 0) {
        loop_timer_set(l->retry, 1);
        return;
    }
    if (result->class != ERROR_CLASS_NONE) {
        lost(l, result->class, result->text);
        return;
    }
    /* link_set_password may have asked for another try while this one was under way. */
    loop_timer_stop(l->retry);
    l->server = *result;
    l->async = async_open(l->loop, &result->url, l->timeout_ms, &events);
    if (l->async == NULL)
        lost(l, ERROR_CLASS_LINK, "no connection could be made");
}

static void on_retry(void *arg)
{
    struct link *l = arg;

    if (probe_start(l->probe, &l->url, l->ns, l->timeout_ms) < 0)
        lost(l, ERROR_CLASS_LINK, "no thread for the probe");
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
    l->sub = sub_new(loop, ns, timeout_ms, &sub_events);
    if (l->probe == NULL) {
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
    loop_timer_free(l->retry);
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

void link_set_password(struct link *l, const struct url *url)
{
    memcpy(l->url.password, url->password, sizeof(l->url.password));
    sub_set_password(l->sub, url);
    if (l->async == NULL)
        loop_timer_set(l->retry, 1);
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
