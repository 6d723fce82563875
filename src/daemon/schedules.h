/*
 * Schedules of the namespace, whoever defined them: this daemon computes when each is due, and asks
 * Redis to add its job then. Every daemon does so, and Redis takes what comes first
 * (src/lua/calls/fire.lua); the others are told what it has now.
 *
 * All schedules are read again when the beat or a wake says that one was changed. All functions
 * but schedules_new take NULL. Main thread.
 */
#ifndef LATER_DAEMON_SCHEDULES_H
#define LATER_DAEMON_SCHEDULES_H

#include "loop/loop.h"
#include "redis/link.h"
#include "store/store_redis.h"

struct schedules;

/* answer_ms: how long an answer may take at most. NULL: no descriptors. */
struct schedules *schedules_new(struct loop *loop, struct link *link, struct store_redis *store,
                                const char *ns, int64_t answer_ms);
void schedules_free(struct schedules *s);

void schedules_registered(struct schedules *s, int64_t epoch);
/* An answer tells the time of Redis. The more often, the more exact the next occurrence is. */
void schedules_note_time(struct schedules *s, int64_t now_us);
/* A beat was answered. changed: of later_v1_beat. */
void schedules_beat(struct schedules *s, const char *changed);
/* A wake says that a schedule has changed. */
void schedules_wake(struct schedules *s);
/* Answers that have not come will not come. */
void schedules_link_down(struct schedules *s);
/* Ask for no more jobs: the daemon stops. */
void schedules_stop(struct schedules *s);

#endif
