#include "web/tail.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "json/put.h"
#include "json/tail_event.h"
#include "redis/async.h"
#include "web/call.h"
#include "web/refusal.h"

#define FOLLOW_MS "15000" /* for so long Redis is asked to publish */
#define RENEW_MS 5000     /* how often we ask again, and see who has gone */
#define BEAT ": \n\n"     /* a comment, which nobody shows */

struct viewer {
    struct http_stream *stream; /* NULL: this place is free */
    int64_t left_out;           /* events that he did not take */
};

struct tail {
    struct loop *loop;
    struct ask_server *server;
    struct async *ears;
    struct loop_timer *renew;
    struct viewer viewers[TAIL_MAX];
    size_t n;
};

/* ---- events */

static bool put(struct viewer *v, const struct buf *event)
{
    return http_stream_add(v->stream, event->data, event->len);
}

/* Before his next event: how many he lacks. */
static bool tell_left_out(struct viewer *v)
{
    CLEANUP_BUF struct buf text = BUF_INIT;

    if (v->left_out == 0)
        return true;
    buf_printf(&text, "event: left\ndata: {\"n\":%lld}\n\n", (long long)v->left_out);
    if (!put(v, &text))
        return false;
    v->left_out = 0;
    return true;
}

/* To all; n: how many events it is. */
static void put_all(struct tail *t, const struct buf *event, int64_t n)
{
    for (size_t i = 0; i < TAIL_MAX; i++) {
        struct viewer *v = &t->viewers[i];

        if (v->stream != NULL && !(tell_left_out(v) && put(v, event)))
            v->left_out += n;
    }
}

static void take_event(struct tail *t, const struct tail_event *e, int64_t now_ms)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    json_t *object = tail_event_to_json(e, now_ms);

    buf_puts(&text, "data: ");
    json_write(&text, object);
    buf_puts(&text, "\n\n");
    json_decref(object);
    put_all(t, &text, 1);
}

static void take_left_out(struct tail *t, int64_t n)
{
    for (size_t i = 0; i < TAIL_MAX; i++)
        t->viewers[i].left_out += t->viewers[i].stream != NULL ? n : 0;
}

static void on_message(void *arg, const struct reply *message)
{
    struct tail *t = arg;
    const char *p = reply_str(reply_at(message, 2)), *lf;
    size_t n = reply_len(reply_at(message, 2));
    struct tail_page page;
    struct tail_event event;

    lf = n > 0 ? memchr(p, '\n', n) : NULL;
    if (tail_page_parse(p, lf != NULL ? (size_t)(lf - p) : n, &page) < 0)
        return;
    take_left_out(t, page.left_out);
    while (lf != NULL) {
        n -= (size_t)(lf - p) + 1;
        p = lf + 1;
        lf = n > 0 ? memchr(p, '\n', n) : NULL;
        if (tail_event_parse(p, lf != NULL ? (size_t)(lf - p) : n, &event) == 0)
            take_event(t, &event, page.now_ms);
    }
}

/* ---- the subscription */

static void hang_up(struct tail *t)
{
    async_close(t->ears);
    t->ears = NULL;
    loop_timer_stop(t->renew);
}

/* They all come again, and hear why it does not work. */
static void end_all(struct tail *t)
{
    hang_up(t);
    for (size_t i = 0; i < TAIL_MAX; i++)
        if (t->viewers[i].stream != NULL)
            http_stream_end(t->viewers[i].stream);
}

static void on_closed(void *arg, enum error_class class, const char *text)
{
    (void)class;
    (void)text;
    end_all(arg);
}

static void on_subscribed(void *arg, const struct reply *reply)
{
    if (reply_kind(reply) == REPLY_ERROR)
        end_all(arg);
}

/* Ask Redis to go on publishing. 0, or -1 with err. */
static int ask_to_publish(struct tail *t, struct err *err)
{
    struct reply *r;

    ask_within(t->server, ANSWER_MS);
    r = ask_words(t->server, err, "later_v1_tail", FOLLOW_MS, NULL);
    if (r == NULL && ask_is_broken(t->server))
        ask_disconnect(t->server);
    reply_free(r);
    return r != NULL ? 0 : -1;
}

static void on_renew(void *arg)
{
    static char beat[] = BEAT;
    const struct buf text = {.data = beat, .len = sizeof(beat) - 1};
    struct tail *t = arg;
    struct err err = ERR_INIT;

    if (ask_to_publish(t, &err) < 0) {
        end_all(t);
        return;
    }
    loop_timer_set(t->renew, RENEW_MS);
    put_all(t, &text, 0);
}

/* 0, or -1 with err. */
static int call_up(struct tail *t, struct err *err)
{
    const struct async_events events = {.closed = on_closed, .message = on_message, .arg = t};
    CLEANUP_FREE char *channel = NULL;
    struct client *c;
    struct wire *wire;

    if (ask_to_publish(t, err) < 0)
        return -1;
    c = client_open(&t->server->target.url, t->server->target.timeout_ms, err);
    wire = c != NULL ? client_take_wire(c, err) : NULL;
    if (wire == NULL)
        return -1;
    t->ears = async_new(t->loop, wire, t->server->target.timeout_ms, &events);
    channel = mem_printf("later:{%s}:events", t->server->target.ns);
    if (async_subscribe(t->ears, "SUBSCRIBE", channel, on_subscribed, t) < 0) {
        hang_up(t);
        return err_set(err, ERR_UNAVAILABLE, "the connection to Redis broke");
    }
    loop_timer_set(t->renew, RENEW_MS);
    return 0;
}

/* ---- viewers */

static void on_gone(void *arg, struct http_stream *s)
{
    struct tail *t = arg;

    for (size_t i = 0; i < TAIL_MAX; i++) {
        if (t->viewers[i].stream == s) {
            t->viewers[i].stream = NULL;
            t->n--;
        }
    }
    if (t->n == 0)
        hang_up(t);
}

/* A place for one more. */
static struct http_stream *seat(struct tail *t)
{
    size_t i = 0;

    while (t->viewers[i].stream != NULL)
        i++;
    t->viewers[i] = (struct viewer){.stream = http_stream_new(on_gone, t)};
    t->n++;
    (void)http_stream_add(t->viewers[i].stream, BEAT, strlen(BEAT));
    return t->viewers[i].stream;
}

bool tail_answer(struct tail *t, const struct http_request *r, struct http_answer *a)
{
    struct err err = ERR_INIT;

    if (t->n == TAIL_MAX) {
        refuse(a, 503, NULL, "24 others follow already: somebody has to close the page");
        return true;
    }
    if (!r->is_head && t->ears == NULL && call_up(t, &err) < 0) {
        refuse_err(a, &err);
        return false;
    }
    a->status = 200;
    a->type = "text/event-stream";
    a->stream = r->is_head ? NULL : seat(t);
    return true;
}

struct tail *tail_new(struct loop *loop, struct ask_server *server)
{
    struct tail *t = mem_new(sizeof(*t));

    t->loop = loop;
    t->server = server;
    t->renew = loop_timer_new(loop, on_renew, t);
    return t;
}

void tail_free(struct tail *t)
{
    if (t == NULL)
        return;
    hang_up(t);
    loop_timer_free(t->renew);
    free(t);
}
