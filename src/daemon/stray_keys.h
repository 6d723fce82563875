/*
 * The slow scan for keys that look like ours and are not: a key without braces, or misspelt, is the
 * commonest mistake of a producer, and silent. Reports each once in ten minutes, and makes queues
 * known that have raw jobs but no worker. A page of SCAN every few seconds; main thread.
 */
#ifndef LATER_DAEMON_STRAY_KEYS_H
#define LATER_DAEMON_STRAY_KEYS_H

#include "loop/loop.h"
#include "redis/link.h"
#include "store/store_redis.h"

struct stray_keys;
typedef bool stray_keys_serves_f(void *arg, const char *queue);

struct stray_keys *stray_keys_new(struct loop *loop, struct link *link, struct store_redis *store,
                                  const char *ns);
void stray_keys_free(struct stray_keys *s);
void stray_keys_set_serves(struct stray_keys *s, stray_keys_serves_f *serves, void *arg);

#endif
