/*
 * The slow scan for keys that look like ours and are not: a key without braces, or misspelt, is the
 * commonest mistake of a producer, and silent. Reports each once in ten minutes, and makes queues
 * known that have raw jobs but no worker. A page of SCAN every few seconds; main thread.
 */
#ifndef LATER_DAEMON_STRAYS_H
#define LATER_DAEMON_STRAYS_H

#include "loop/loop.h"
#include "redis/link.h"
#include "store/store_redis.h"

struct strays;
typedef bool strays_serves_f(void *arg, const char *queue);

struct strays *strays_new(struct loop *loop, struct link *link, struct store_redis *store,
                          const char *ns);
void strays_free(struct strays *s);
void strays_set_serves(struct strays *s, strays_serves_f *serves, void *arg);

#endif
