#include "redis/async.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "redis/error_reply.h"

#define CHUNKS_A_TURN 16 /* the loop has more to do than to read what one connection sends */

/* A call without an answer yet. */
struct call {
    async_reply_f *cb;
    void *arg;
    bool is_subscribe;
};

/* First in, first out, as Redis answers. */
struct call_queue {
    struct call *at;
    size_t first, n, cap;
};

struct async {
    struct wire *wire; /* NULL: the connection has ended */
    struct loop_fd *fd;
    struct loop_hook *send;
    struct loop_timer *timer; /* of the next answer */
    struct loop_timer *more;  /* what TLS has taken off the socket wakes no loop */
    struct async_events events;
    int64_t timeout_ms;
    struct call_queue calls;
    bool has_output;  /* for the end of this iteration of the loop */
    bool is_in_use;   /* a function of ours is using it: it frees it if is_unwanted */
    bool is_unwanted; /* async_close was called */
};

static void queue_add(struct call_queue *q, const struct call *call)
{
    if (q->first > 0 && q->first + q->n == q->cap) {
        memmove(q->at, q->at + q->first, q->n * sizeof(*q->at));
        q->first = 0;
    }
    if (q->n == q->cap) {
        q->cap = q->cap == 0 ? 8 : q->cap * 2;
        q->at = mem_grow(q->at, q->cap, sizeof(*q->at));
    }
    q->at[q->first + q->n++] = *call;
}

static struct call queue_take(struct call_queue *q)
{
    struct call call = q->at[q->first];

    q->first = --q->n == 0 ? 0 : q->first + 1;
    return call;
}

/* ---- the end */

static void hang_up(struct async *a)
{
    loop_fd_free(a->fd);
    loop_hook_free(a->send);
    loop_timer_stop(a->timer);
    loop_timer_stop(a->more);
    wire_close(a->wire);
    a->fd = NULL;
    a->send = NULL;
    a->wire = NULL;
}

static void end(struct async *a, enum error_class class, const char *text)
{
    char copy[192];

    text_copy(copy, sizeof(copy), text[0] != '\0' ? text : "an error without a text");
    hang_up(a);
    a->events.closed(a->events.arg, class, copy);
}

static void broke(struct async *a, const struct err *err)
{
    end(a, err->code == ERR_CONFIG ? ERROR_CLASS_DENIED : ERROR_CLASS_LINK, err->text);
}

static void done_using(struct async *a)
{
    a->is_in_use = false;
    if (a->is_unwanted)
        async_close(a);
}

/* ---- answers */

static bool is_message(const struct reply *r)
{
    const struct reply *kind = reply_at(r, 0);

    return reply_is(kind, "message") || reply_is(kind, "pmessage");
}

static bool is_confirmation(const struct reply *r)
{
    const struct reply *kind = reply_at(r, 0);

    return reply_kind(r) == REPLY_ERROR || reply_is(kind, "subscribe") ||
           reply_is(kind, "psubscribe");
}

/* A server that has no place for us says so before we ask anything. */
static void unasked(struct async *a, const struct reply *r)
{
    if (reply_kind(r) == REPLY_ERROR)
        end(a, error_reply_class(reply_str(r)), reply_str(r));
    else
        end(a, ERROR_CLASS_LINK, "Protocol error, an answer that nobody asked for");
}

static void take(struct async *a, const struct reply *r)
{
    struct call call;

    if (a->events.message != NULL && is_message(r)) {
        a->events.message(a->events.arg, r);
        return;
    }
    if (a->calls.n == 0) {
        unasked(a, r);
        return;
    }
    call = queue_take(&a->calls);
    if (a->calls.n > 0)
        loop_timer_set(a->timer, a->timeout_ms);
    else
        loop_timer_stop(a->timer);
    if (call.is_subscribe && !is_confirmation(r))
        end(a, ERROR_CLASS_LINK, "Protocol error, SUBSCRIBE was not answered");
    else
        call.cb(call.arg, r);
}

static bool is_over(const struct async *a)
{
    return a->wire == NULL || a->is_unwanted;
}

static void receive(struct async *a)
{
    struct err err = ERR_INIT;
    int more, got = 0, chunks = 0;

    do {
        struct reply *r;

        more = wire_receive(a->wire, &err);
        while (more >= 0 && (got = wire_next(a->wire, &r, &err)) == 1) {
            take(a, r);
            reply_free(r);
            if (is_over(a))
                return;
        }
    } while (more == 1 && got == 0 && ++chunks < CHUNKS_A_TURN);
    if (more < 0 || got < 0)
        broke(a, &err);
    else if (more == 1)
        loop_timer_set(a->more, 0);
}

/* ---- the loop */

/* All output of an iteration of the loop is written together at its end. LOOP_WRITE is watched
 * only for what did not fit. */
static void watch(struct async *a)
{
    loop_fd_events(a->fd, LOOP_READ | (wire_events(a->wire) & WIRE_WRITE ? LOOP_WRITE : 0));
}

static void send_output(struct async *a)
{
    struct err err = ERR_INIT;
    int all = wire_send(a->wire, &err);

    a->has_output = false;
    if (all < 0)
        broke(a, &err);
    else
        watch(a);
}

static void on_fd(void *arg, int events)
{
    struct async *a = arg;

    /* TLS may have to write before it can read, and the other way round. */
    a->is_in_use = true;
    receive(a);
    if ((events & LOOP_WRITE) && !is_over(a))
        send_output(a);
    else if (!is_over(a))
        watch(a);
    done_using(a);
}

static void on_more(void *arg)
{
    on_fd(arg, LOOP_READ);
}

/* This process may have been stopped meanwhile, and the answer be there: libev calls timers first.
 */
static void on_timeout(void *arg)
{
    struct async *a = arg;

    a->is_in_use = true;
    receive(a);
    if (!is_over(a) && a->calls.n > 0 && !loop_timer_is_set(a->timer))
        end(a, ERROR_CLASS_LINK, "no answer in time");
    done_using(a);
}

static void on_send(void *arg)
{
    struct async *a = arg;

    if (!a->has_output)
        return;
    a->is_in_use = true;
    send_output(a);
    done_using(a);
}

struct async *async_new(struct loop *loop, struct wire *wire, int64_t timeout_ms,
                        const struct async_events *events)
{
    struct async *a = mem_new(sizeof(*a));

    a->wire = wire;
    a->events = *events;
    a->timeout_ms = timeout_ms;
    a->timer = loop_timer_new(loop, on_timeout, a);
    a->more = loop_timer_new(loop, on_more, a);
    loop_timer_set(a->more, 0); /* something may have come with the answer to the login */
    a->fd = loop_fd_new(loop, wire_fd(wire), LOOP_READ, on_fd, a);
    a->send = loop_hook_new(loop, LOOP_HOOK_SEND, on_send, a);
    return a;
}

void async_close(struct async *a)
{
    if (a == NULL)
        return;
    a->is_unwanted = true;
    if (a->is_in_use)
        return;
    if (a->wire != NULL)
        hang_up(a);
    loop_timer_free(a->timer);
    loop_timer_free(a->more);
    free(a->calls.at);
    free(a);
}

static int send_command(struct async *a, const struct call *call, int argc, const char *const *argv,
                        const size_t *lens)
{
    if (a == NULL || is_over(a))
        return -1;
    wire_put(a->wire, argc, argv, lens);
    a->has_output = true;
    if (a->calls.n == 0)
        loop_timer_set(a->timer, a->timeout_ms);
    queue_add(&a->calls, call);
    return 0;
}

int async_call(struct async *a, int argc, const char *const *argv, const size_t *lens,
               async_reply_f *cb, void *arg)
{
    return send_command(a, &(struct call){cb, arg, false}, argc, argv, lens);
}

int async_subscribe(struct async *a, const char *verb, const char *channel, async_reply_f *cb,
                    void *arg)
{
    const char *argv[] = {verb, channel};

    return send_command(a, &(struct call){cb, arg, true}, 2, argv, NULL);
}
