/*
 * What a program asks Redis of the one gate it wants a place at (later lock, later sem), beside
 * what every worker asks (store_redis.h). Main thread.
 *
 * An answer that is not of the agreed shape counts as a fault of the library (FAULT_CALL). Answers
 * that have not come when the link is lost will not come.
 */
#ifndef LATER_STORE_GATE_REDIS_H
#define LATER_STORE_GATE_REDIS_H

#include "redis/link.h"
#include "store/store.h"

struct gate_events {
    void (*entered)(void *arg, const struct gate_enter_reply *r);
    void (*defined)(void *arg, const char *limit); /* its text in R:limits, "" if there is none */
    void (*beats)(void *arg, const struct gate_beats_reply *r);
    void (*fault)(void *arg, enum fault fault, const char *text);
    void *arg;
};

struct gate_redis;

/* gate: lock:NAME or sem:NAME. link and gate must outlive it. */
struct gate_redis *gate_redis_new(struct link *link, const char *ns, const char *gate,
                                  const struct gate_events *events);
void gate_redis_free(struct gate_redis *g);

/* Each returns 0 when the question was sent, -1 when the link is down. */

/* Take a place; with is_waiting stand in line for it. */
int gate_enter(struct gate_redis *g, int64_t epoch, bool is_waiting);
/* How is it defined? */
int gate_define(struct gate_redis *g);
/* When was each worker heard of, by the clock of Redis? For a guess, not for a verdict. */
int gate_beats(struct gate_redis *g);

#endif
