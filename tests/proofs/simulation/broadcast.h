/*
 * Jobs that one call adds for several receivers: a copy of what is published for each queue that
 * subscribes, and a job of a broadcast for each worker or host. Only its worker, or a worker of its
 * host, may claim a job of a broadcast, and it is cancelled only when that is gone.
 */
#ifndef LATER_TESTS_SIMULATION_BROADCAST_H
#define LATER_TESTS_SIMULATION_BROADCAST_H

#include <stdbool.h>

#include "ledger.h"
#include "plan.h"

#define BROADCAST_TOPIC "news"

/* Each queue subscribes. */
void broadcast_begin(const struct plan *p);
/* Redis executed later_publish or later_broadcast; a: the arguments behind the root. */
void broadcast_published(int argc, const char *const *a, const struct reply *r);
void broadcast_added(int argc, const char *const *a, const struct reply *r);

/* The worker of this epoch claims the job. */
void broadcast_check_claim(const struct entry *e, int64_t epoch);
/* Does the job wait for its worker or its host? By the data of Redis. */
bool broadcast_is_waiting(const struct entry *e);
/* Redis has cancelled the job. */
void broadcast_check_cancelled(const struct entry *e);

#endif
