/* A worker as later_v1_workers tells it. */
#ifndef LATER_JSON_WORKER_H
#define LATER_JSON_WORKER_H

#include <jansson.h>
#include <stdint.h>

#include "redis/reply.h"

/* How many of its jobs have a place. The others wait for one (sched/prefetch.h), or have ended and
 * Redis does not know it yet. */
int64_t worker_running(const struct reply *worker);
/* live, quiet or dead. */
const char *worker_state(const struct reply *worker);

json_t *worker_to_json(const struct reply *worker);

#endif
