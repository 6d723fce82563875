/*
 * One non-blocking connection on the loop. It wraps hiredis' async API, adds what 0.14 lacks
 * (timeouts for connects and answers, close-on-exec) and hides when hiredis frees its context.
 *
 * The address must be numeric or a socket's path: hiredis would resolve a name on the loop (probe.h
 * does it off the loop). Main thread. After `closed`, or after async_close, no callback is called
 * any more. A call whose reply never came is dropped: its effect is unknown.
 */
#ifndef LATER_REDIS_ASYNC_H
#define LATER_REDIS_ASYNC_H

#include <stddef.h>
#include <stdint.h>

#include "base/error_class.h"
#include "loop/loop.h"
#include "redis/reply.h"
#include "redis/url.h"

struct async;

struct async_events {
    void (*opened)(void *arg); /* logged in */
    /* The connection ended by itself; the owner still has to call async_close. */
    void (*closed)(void *arg, enum error_class class, const char *text);
    void (*push)(void *arg, const struct reply *push); /* may be NULL */
    void *arg;
};

typedef void async_reply_f(void *arg, const struct reply *reply); /* never NULL; may be an ERROR */

/* NULL when it fails at once (no descriptor, no such socket …); `closed` reports later failures. */
struct async *async_open(struct loop *loop, const struct url *url, int64_t timeout_ms,
                         const struct async_events *events);
void async_close(struct async *a); /* NULL is fine; allowed in its own callbacks */

/* Send a command; -1 when the connection is not open. lens as for client_call. */
int async_call(struct async *a, int argc, const char *const *argv, const size_t *lens,
               async_reply_f *cb, void *arg);

/* SUBSCRIBE or PSUBSCRIBE: events.push gets the confirmation and every message. No timeout. -1 when
 * the connection is not open. */
int async_subscribe(struct async *a, const char *verb, const char *channel);

#endif
