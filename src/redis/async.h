/*
 * Calls over one wire on the loop, with a timeout for answers. An answer that nobody asked for, or
 * of an ill shape, ends the connection. Main thread. After `closed`, or after async_close, no
 * callback is called any more. A call whose reply never came is dropped: its effect is unknown.
 */
#ifndef LATER_REDIS_ASYNC_H
#define LATER_REDIS_ASYNC_H

#include <stddef.h>
#include <stdint.h>

#include "base/error_class.h"
#include "loop/loop.h"
#include "redis/reply.h"
#include "redis/wire.h"

struct async;

struct async_events {
    /* The connection ended by itself; the owner still has to call async_close. */
    void (*closed)(void *arg, enum error_class class, const char *text);
    void (*message)(void *arg, const struct reply *message); /* NULL: it does not subscribe */
    void *arg;
};

typedef void async_reply_f(void *arg, const struct reply *reply); /* never NULL; may be an ERROR */

/* wire: connected and logged in, with no answer outstanding; it belongs to the result. */
struct async *async_new(struct loop *loop, struct wire *wire, int64_t timeout_ms,
                        const struct async_events *events);
void async_close(struct async *a); /* NULL is fine; allowed in its own callbacks */

/* Send a command; -1 when the connection has ended. lens as for client_call. */
int async_call(struct async *a, int argc, const char *const *argv, const size_t *lens,
               async_reply_f *cb, void *arg);

/* SUBSCRIBE or PSUBSCRIBE: cb gets the confirmation or the error, events.message every message. -1
 * when the connection has ended. */
int async_subscribe(struct async *a, const char *verb, const char *channel, async_reply_f *cb,
                    void *arg);

#endif
