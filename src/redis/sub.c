#include "redis/sub.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "redis/async.h"

#define RETRY_MS 500
#define HEARTBEAT_MS 15000
#define DENIED_MS 60000

struct sub {
    struct loop *loop;
    struct async *async;
    struct loop_timer *timer; /* reconnect, heartbeat, or the heartbeat's answer */
    struct sub_events events;
    struct url url;
    int64_t timeout_ms;
    char wake[96];     /* channel */
    char pattern[128]; /* keyspace events of later:{NS}:due:* */
    char **watched;    /* NULL-ended, or NULL: none */
    bool is_open;
    bool unanswered; /* the last SUBSCRIBE has no answer yet */
    bool was_told;   /* `subscribed` was called for this connection; heartbeats do not repeat it */
    bool no_watch;   /* something was refused: do without events of watched keys */
    bool no_events;  /* something was refused again: do without the pattern, too */
};

static void connect_now(struct sub *s);

static void on_opened(void *arg)
{
    struct sub *s = arg;

    s->is_open = true;
    s->was_told = false;
    s->unanswered = true;
    loop_timer_set(s->timer, s->timeout_ms);
    (void)async_subscribe(s->async, "SUBSCRIBE", s->wake);
    if (s->no_events)
        return;
    (void)async_subscribe(s->async, "PSUBSCRIBE", s->pattern);
    for (char **key = s->watched; !s->no_watch && key != NULL && *key != NULL; key++) {
        CLEANUP_FREE char *channel = mem_printf("__keyspace@%d__:%s", s->url.db, *key);

        (void)async_subscribe(s->async, "SUBSCRIBE", channel);
    }
}

static void on_closed(void *arg, enum error_class class, const char *text)
{
    struct sub *s = arg;

    s->is_open = false;
    if (class != ERROR_CLASS_DENIED) {
        loop_timer_set(s->timer, RETRY_MS);
        return;
    }
    /* hiredis closes a subscribed connection at any error reply, and does not say to which command.
     * We take the first refusal as one of a watched key, if there are any, the next one as of the
     * pattern: we can do without. Another one is of the channel itself. */
    s->events.denied(s->events.arg, text);
    loop_timer_set(s->timer, s->no_events ? DENIED_MS : RETRY_MS);
    s->no_events = s->no_watch || s->watched == NULL;
    s->no_watch = true;
}

static void on_timer(void *arg)
{
    struct sub *s = arg;

    if (!s->is_open || s->unanswered) {
        connect_now(s);
        return;
    }
    s->unanswered = true;
    (void)async_subscribe(s->async, "SUBSCRIBE", s->wake);
    loop_timer_set(s->timer, s->timeout_ms);
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

/* [subscribe, channel, n] | [message, channel, text] | [pmessage, pattern, channel, event] */
static void on_push(void *arg, const struct reply *push)
{
    struct sub *s = arg;
    const struct reply *kind = reply_at(push, 0);
    const char *at;

    if (reply_is(kind, "subscribe")) {
        s->unanswered = false;
        loop_timer_set(s->timer, HEARTBEAT_MS);
        if (!s->was_told)
            s->events.subscribed(s->events.arg);
        s->was_told = true;
    } else if (reply_is(kind, "message")) {
        on_message(s, reply_str(reply_at(push, 1)), reply_at(push, 2));
    } else if (reply_is(kind, "pmessage") && reply_is(reply_at(push, 3), "zadd")) {
        at = strstr(reply_str(reply_at(push, 2)), ":due:");
        if (at != NULL)
            s->events.wake(s->events.arg, at + 5, strlen(at + 5));
    }
}

static void connect_now(struct sub *s)
{
    struct async_events events = {on_opened, on_closed, on_push, s};

    async_close(s->async);
    s->is_open = false;
    s->async = async_open(s->loop, &s->url, s->timeout_ms, &events);
    if (s->async == NULL)
        loop_timer_set(s->timer, RETRY_MS);
    else
        loop_timer_stop(s->timer);
}

struct sub *sub_new(struct loop *loop, const char *ns, int64_t timeout_ms,
                    const struct sub_events *events)
{
    struct sub *s = mem_new(sizeof(*s));

    s->loop = loop;
    s->events = *events;
    s->timeout_ms = timeout_ms;
    s->timer = loop_timer_new(loop, on_timer, s);
    (void)snprintf(s->wake, sizeof(s->wake), "later:{%s}:wake", ns);
    return s;
}

void sub_free(struct sub *s)
{
    if (s == NULL)
        return;
    async_close(s->async);
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
    if (s->is_open)
        connect_now(s);
}

void sub_set_password(struct sub *s, const struct url *url)
{
    memcpy(s->url.password, url->password, sizeof(s->url.password));
}

void sub_stop(struct sub *s)
{
    async_close(s->async);
    s->async = NULL;
    s->is_open = false;
    loop_timer_stop(s->timer);
}

/* A namespace has no glob characters, and { } are none either, so it can be part of a pattern. */
void sub_start(struct sub *s, const struct url *url)
{
    s->url = *url;
    s->no_watch = s->no_events = false;
    (void)snprintf(s->pattern, sizeof(s->pattern), "__keyspace@%d__:%.*s:due:*", url->db,
                   (int)(strlen(s->wake) - strlen(":wake")), s->wake);
    connect_now(s);
}
