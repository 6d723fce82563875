/*
 * The calls with which later lock, later sem and later once ask for a permit of their one gate. The
 * calls that every worker makes are in store_redis.h. Main thread.
 *
 * An answer of an unknown shape is a ERROR_CLASS_CALL. When the link is lost, answers that have not
 * come will not come.
 */
#ifndef LATER_STORE_GATE_REDIS_H
#define LATER_STORE_GATE_REDIS_H

#include "redis/link.h"
#include "store/store.h"

struct gate_events {
    void (*entered)(void *arg, const struct gate_enter_reply *r);
    void (*limit)(void *arg, const char *limit); /* its text in R:limits, "" if there is none */
    void (*beats)(void *arg, const struct gate_beats_reply *r);
    void (*done_asked)(void *arg, bool is_done);
    void (*done_told)(void *arg);
    void (*failed)(void *arg, enum error_class class, const char *text);
    void *arg;
};

struct gate_redis;

/* gate: lock:NAME or sem:NAME. link and gate must outlive it. */
struct gate_redis *gate_redis_new(struct link *link, const char *ns, const char *gate,
                                  const struct gate_events *events);
void gate_redis_free(struct gate_redis *g);

/* Each returns 0 when the call was sent, -1 when the link is down. */

/* Take a permit; with is_waiting, wait for it. */
int gate_enter(struct gate_redis *g, int64_t epoch, bool is_waiting);
/* Ask for the definition of the semaphore. */
int gate_ask_limit(struct gate_redis *g);
/* Ask when the last beat of each worker came, by the clock of Redis. Good for an estimate only. */
int gate_ask_beats(struct gate_redis *g);

/*
 * "Done" is kept in Redis as the lease of a lock of this name (given without lock:), whose owner is
 * "once@HOST". So `later gates` shows it, and it ends by itself.
 */
int gate_ask_done(struct gate_redis *g, const char *done);
/* Hold it for per_ms from now, at most 7 days. If this or another host holds it, that is prolonged;
 * what else holds it is a ERROR_CLASS_CALL. done must live until the answer. */
int gate_tell_done(struct gate_redis *g, const char *done, const char *host, int64_t per_ms);

#endif
