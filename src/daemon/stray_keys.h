/*
 * A slow scan for keys that look like ours but are not. A key without braces, or with a misspelt
 * name, is the most common mistake of a producer, and nothing else reports it. Each is reported
 * once in ten minutes. Queues that have raw jobs, and that this daemon does not serve, are made
 * known to Redis. One page of SCAN every ten seconds. Main thread.
 */
#ifndef LATER_DAEMON_STRAY_KEYS_H
#define LATER_DAEMON_STRAY_KEYS_H

#include "loop/loop.h"
#include "redis/link.h"
#include "store/store_redis.h"

struct stray_keys;
/* Does this daemon serve the queue? */
typedef bool stray_keys_serves_f(void *arg, const char *queue);

struct stray_keys *stray_keys_new(struct loop *loop, struct link *link, struct store_redis *store,
                                  const char *ns);
void stray_keys_free(struct stray_keys *s);
/* Until it is called, no queue is made known. */
void stray_keys_set_serves(struct stray_keys *s, stray_keys_serves_f *serves, void *arg);

#endif
