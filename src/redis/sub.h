/*
 * The subscribed connection: R:wake, and keyspace events of the sets of raw members, and of keys
 * that are watched, where the server sends them. It reconnects by itself while the main link is up.
 * Its heartbeat is a repeated SUBSCRIBE, which needs no other right.
 */
#ifndef LATER_REDIS_SUB_H
#define LATER_REDIS_SUB_H

#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"
#include "redis/url.h"

struct sub;

struct sub_events {
    void (*subscribed)(void *arg); /* messages may have been missed before */
    void (*wake)(void *arg, const char *text, size_t n);
    /* A member was added to a watched key, or got another score. */
    void (*changed)(void *arg, const char *key);
    /* A right is missing, or the login is refused: only the looks find what is due. */
    void (*denied)(void *arg, const char *text);
    void *arg;
};

struct sub *sub_new(struct loop *loop, const char *ns, int64_t timeout_ms,
                    const struct sub_events *events); /* NULL: no descriptor */
void sub_free(struct sub *s);
/* (Re)connect to this server (numeric address). */
void sub_start(struct sub *s, const struct url *url);
/* The main link is down: close, and do not reconnect until the next sub_start. */
void sub_stop(struct sub *s);
/* Ask for keyspace events of these keys, NULL-ended, and no longer of others. They are copied. */
void sub_watch(struct sub *s, const char *const *keys);
/* Use the user and password of this url from now on: connect anew. */
void sub_set_login(struct sub *s, const struct url *url);

#endif
