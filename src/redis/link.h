/*
 * A worker's link to Redis: it probes, connects, calls, and reconnects for ever with full jitter.
 *
 * Two connections: one for calls, one subscribed to the wake channels. While the second is missing
 * only wakes are lost; the looks find what they would have told. Main thread.
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
    /* The link was lost, or could not be made. It is unknown what calls under way did. */
    void (*down)(void *arg, enum error_class class, const char *text);
    void (*subscribed)(void *arg);
    void (*wake)(void *arg, const char *text,
                 size_t n); /* a message on R:wake, or the name of a queue with a new raw member */
    void (*changed)(void *arg, const char *key); /* a watched key, see link_watch */
    void (*denied)(void *arg, const char *text); /* a right is missing: some wakes will not come */
    /* The password could not be asked for, or the new one was refused; the link goes on with the
     * one that it has. May be NULL. */
    void (*password)(void *arg, const char *text);
    void *arg;
};

/* ns: namespace. url is copied. NULL: no descriptors. */
struct link *link_new(struct loop *loop, const struct url *url, const char *ns, int64_t timeout_ms,
                      const struct link_events *events);
void link_free(struct link *l);
void link_start(struct link *l);
/* Close the connection and connect again, after an error reply that needs it. Calls `down` before
 * it returns. */
void link_reset(struct link *l, enum error_class class, const char *text);
/* Be told when a member is added to one of these sorted sets, NULL-ended, or gets another score;
 * only where the server sends keyspace events. */
void link_watch(struct link *l, const char *const *keys);
/* Ask for the password now. What is new is sent on the connections that are open; if the link is
 * down, it connects at once. */
void link_ask_password(struct link *l);
/* Ask for it this often from now on; 0: only at each connect. */
void link_renew_password(struct link *l, int64_t every_ms);
bool link_is_up(const struct link *l);
/* As async_call. */
int link_call(struct link *l, int argc, const char *const *argv, const size_t *lens,
              async_reply_f *cb, void *arg);

#endif
