/*
 * The store in Redis: encodes the scheduler's requests as calls of the library's private functions,
 * decodes the answers and passes them to the scheduler's events. Main thread.
 *
 * An answer of an unknown shape is a ERROR_CLASS_CALL.
 */
#ifndef LATER_STORE_STORE_REDIS_H
#define LATER_STORE_STORE_REDIS_H

#include <stdint.h>

#include "redis/link.h"
#include "store/store.h"

struct store_redis;

/* Name-value pairs, as of a registration: host, boot …, and max_payload… for R:config. */
struct store_fields {
    const char *const *at; /* 2 * n */
    size_t n;
};

struct store_redis *store_redis_new(struct link *link, const char *ns,
                                    const struct store_events *events);
void store_redis_free(struct store_redis *s);
/* The link was lost: answers that have not come will not come. */
void store_redis_reset(struct store_redis *s);

/* Each returns 0 when the call was sent, -1 when the link is down. */
int store_register(struct store_redis *s, const struct store_register *req, const char *instance,
                   const struct store_fields *fields, const struct store_fields *config);
int store_beat(struct store_redis *s, int64_t epoch, const char *queues);
int store_reconcile(struct store_redis *s, int64_t epoch, int64_t link, int64_t seen,
                    const struct store_held *held, size_t nheld);
int store_sync(struct store_redis *s, const struct store_sync *sync);
/* Ask which of these queues, 1 to 1,000, a sync has to name. Heads count that are due within
 * soon_ms. */
int store_look(struct store_redis *s, int64_t soon_ms, const char *const *queues, size_t n);
int store_fetch(struct store_redis *s, const char *id);
int store_reap(struct store_redis *s, int64_t epoch, int64_t victim, const char *counter,
               int64_t crashes, int64_t dead_max);
/* queues: queue, dead_keep ms pairs. state: how the worker is, for later_v1_health, and its counts
 * (job/counts.h). */
int store_tidy(struct store_redis *s, int64_t epoch, const struct store_fields *queues,
               const struct store_fields *state);
/*
 * Tell what the configuration says of gates: limits are name, definition pairs, queues are queue,
 * gates pairs; at most 1000 and 2000. `declared` also gets a refusal, `failed` does not: no other
 * call depends on it.
 */
int store_declare(struct store_redis *s, int64_t epoch, const struct store_fields *limits,
                  const struct store_fields *queues);
int store_leave(struct store_redis *s, int64_t epoch);
/* The answer is ignored. */
int store_note(struct store_redis *s, const char *kind, const char *name);

#endif
