/*
 * The daemon's link to Redis: probe, connect, call, and connect anew with full jitter, for ever.
 *
 * Two connections: one for calls, one subscribed to the wake channels. While the second is missing
 * only wake-ups are lost, which the looks make good. Main thread.
 */
#ifndef LATER_REDIS_LINK_H
#define LATER_REDIS_LINK_H

#include <stdbool.h>

#include "loop/loop.h"
#include "redis/async.h"
#include "redis/probe.h"
#include "redis/url.h"

struct link;

struct link_events {
    void (*up)(void *arg, const struct probe_result *server);
    /* After up, the link was lost; or an attempt to get it up failed. Calls under way are unknown.
     */
    void (*down)(void *arg, enum fault fault, const char *text);
    void (*subscribed)(void *arg);
    void (*wake)(void *arg, const char *text,
                 size_t n);                      /* a message on R:wake, or a raw queue's name */
    void (*denied)(void *arg, const char *text); /* some wake-ups will not come */
    void *arg;
};

/* ns: namespace. url is copied. NULL: no descriptors. */
struct link *link_new(struct loop *loop, const struct url *url, const char *ns, int64_t timeout_ms,
                      const struct link_events *events);
void link_free(struct link *l);
void link_start(struct link *l);
/* Drop the connection and make it anew (after an error reply that says so). Calls down first. */
void link_reset(struct link *l, enum fault fault, const char *text);
/* From now on with the password of this url; tries at once if it is down. */
void link_set_password(struct link *l, const struct url *url);
bool link_is_up(const struct link *l);
int link_call(struct link *l, int argc, const char *const *argv, const size_t *lens,
              async_reply_f *cb, void *arg);

#endif
