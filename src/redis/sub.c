#include "redis/sub.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "redis/async.h"
#include "redis/probe.h"

#define RETRY_MS 500
#define HEARTBEAT_MS 15000
#define DENIED_MS 60000
#define REFUSED_MS 10000 /* a wrong password: quick retries do not cure it */

struct sub {
    struct loop *loop;
    struct probe *probe;      /* makes the connection */
    struct async *async;      /* NULL: none */
    struct loop_timer *timer; /* reconnect, or heartbeat */
    struct sub_events events;
    struct url url;
    int64_t timeout_ms;
    char wake[96];     /* channel */
    char pattern[128]; /* keyspace events of later:{NS}:due:* */
    char **watched;    /* NULL-ended, or NULL: none */
    bool is_stale;     /* the connection that is open is not as it should be: make another */
    bool was_told; /* `subscribed` was called for this connection; heartbeats do not repeat it */
};

/* An older connection goes on until the new one is there. */
static void connect_now(struct sub *s)
{
    probe_cancel(s->probe);
    s->is_stale = probe_start(s->probe, PROBE_CONNECT, &s->url, "", s->timeout_ms) < 0;
    if (s->is_stale)
        loop_timer_set(s->timer, RETRY_MS);
    else
        loop_timer_stop(s->timer);
}

static void on_subscribed(void *arg, const struct reply *reply)
{
    struct sub *s = arg;

    if (reply_kind(reply) == REPLY_ERROR) {
        async_close(s->async);
        s->async = NULL;
        loop_timer_set(s->timer, DENIED_MS);
        s->events.denied(s->events.arg, reply_str(reply));
        return;
    }
    if (!s->is_stale)
        loop_timer_set(s->timer, HEARTBEAT_MS);
    if (!s->was_told)
        s->events.subscribed(s->events.arg);
    s->was_told = true;
}

/* Without keyspace events the looks find what they would have told. */
static void on_extra(void *arg, const struct reply *reply)
{
    struct sub *s = arg;

    if (reply_kind(reply) == REPLY_ERROR)
        s->events.denied(s->events.arg, reply_str(reply));
}

static void subscribe(struct sub *s)
{
    (void)async_subscribe(s->async, "SUBSCRIBE", s->wake, on_subscribed, s);
    (void)async_subscribe(s->async, "PSUBSCRIBE", s->pattern, on_extra, s);
    for (char **key = s->watched; key != NULL && *key != NULL; key++) {
        CLEANUP_FREE char *channel = mem_printf("__keyspace@%d__:%s", s->url.db, *key);

        (void)async_subscribe(s->async, "SUBSCRIBE", channel, on_extra, s);
    }
}

static void on_closed(void *arg, enum error_class class, const char *text)
{
    struct sub *s = arg;

    (void)class;
    (void)text;
    async_close(s->async);
    s->async = NULL;
    loop_timer_set(s->timer, RETRY_MS);
}

static void on_timer(void *arg)
{
    struct sub *s = arg;

    if (s->async == NULL || s->is_stale)
        connect_now(s);
    else
        (void)async_subscribe(s->async, "SUBSCRIBE", s->wake, on_subscribed, s);
}

/* text: of a message on R:wake, or an event of a watched key */
static void on_message(struct sub *s, const char *channel, const struct reply *text)
{
    const char *key = strstr(channel, "__:");

    if (strcmp(channel, s->wake) == 0)
        s->events.wake(s->events.arg, reply_str(text), reply_len(text));
    else if (key != NULL && (reply_is(text, "zadd") || reply_is(text, "zincr")))
        s->events.changed(s->events.arg, key + 3);
}

/* [message, channel, text] | [pmessage, pattern, channel, event] */
static void on_push(void *arg, const struct reply *push)
{
    struct sub *s = arg;
    const char *at;

    if (reply_is(reply_at(push, 0), "message")) {
        on_message(s, reply_str(reply_at(push, 1)), reply_at(push, 2));
    } else if (reply_is(reply_at(push, 3), "zadd")) {
        at = strstr(reply_str(reply_at(push, 2)), ":due:");
        if (at != NULL)
            s->events.wake(s->events.arg, at + 5, strlen(at + 5));
    }
}

static void on_probe(void *arg, struct probe_result *result)
{
    struct sub *s = arg;
    struct async_events events = {on_closed, on_push, s};

    if (result->wire == NULL) {
        s->is_stale = true;
        loop_timer_set(s->timer, result->class == ERROR_CLASS_DENIED ? REFUSED_MS : RETRY_MS);
        if (result->class == ERROR_CLASS_DENIED)
            s->events.denied(s->events.arg, result->text);
        return;
    }
    s->was_told = false;
    async_close(s->async);
    s->async = async_new(s->loop, TAKE_PTR(result->wire), s->timeout_ms, &events);
    subscribe(s);
}

struct sub *sub_new(struct loop *loop, const char *ns, int64_t timeout_ms,
                    const struct sub_events *events)
{
    struct sub *s = mem_new(sizeof(*s));

    s->loop = loop;
    s->events = *events;
    s->timeout_ms = timeout_ms;
    s->timer = loop_timer_new(loop, on_timer, s);
    s->probe = probe_new(loop, on_probe, s);
    if (s->probe == NULL) {
        sub_free(s);
        return NULL;
    }
    (void)snprintf(s->wake, sizeof(s->wake), "later:{%s}:wake", ns);
    return s;
}

void sub_free(struct sub *s)
{
    if (s == NULL)
        return;
    async_close(s->async);
    probe_free(s->probe);
    loop_timer_free(s->timer);
    mem_free_list(s->watched);
    explicit_bzero(s->url.password, sizeof(s->url.password));
    free(s);
}

static bool is_same(char *const *a, const char *const *b)
{
    while (a != NULL && *a != NULL && *b != NULL && strcmp(*a, *b) == 0) {
        a++;
        b++;
    }
    return (a == NULL || *a == NULL) && *b == NULL;
}

void sub_watch(struct sub *s, const char *const *keys)
{
    size_t n = 0;

    if (is_same(s->watched, keys))
        return;
    mem_free_list(s->watched);
    s->watched = NULL;
    for (; *keys != NULL; keys++)
        mem_list_add(&s->watched, &n, mem_strdup(*keys));
    if (s->async != NULL)
        connect_now(s);
}

/* Redis takes no AUTH on a connection that is subscribed. */
void sub_set_login(struct sub *s, const struct url *url)
{
    url_set_login(&s->url, url);
    connect_now(s);
}

void sub_stop(struct sub *s)
{
    async_close(s->async);
    s->async = NULL;
    probe_cancel(s->probe);
    loop_timer_stop(s->timer);
}

/* A namespace has no glob characters, and { } are none either, so it can be part of a pattern. */
void sub_start(struct sub *s, const struct url *url)
{
    s->url = *url;
    (void)snprintf(s->pattern, sizeof(s->pattern), "__keyspace@%d__:%.*s:due:*", url->db,
                   (int)(strlen(s->wake) - strlen(":wake")), s->wake);
    connect_now(s);
}
