/* The queues of a namespace as later_stats tells them. */
#ifndef LATER_JSON_STATS_H
#define LATER_JSON_STATS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/pause.h"
#include "redis/reply.h"

/* Values of a queue in STATS_STATES (ask/replies.h). */
enum { IN_RUNNING, IN_PARKED, STATE_VALUES };

size_t stats_nqueues(const struct reply *r);
/* A value of enum QUEUE_* of a queue. */
const struct reply *stats_queue(const struct reply *r, size_t queue, size_t value);
/* How many jobs of the queue run or are parked. NULL: that is not known. */
const struct reply *stats_state(const struct reply *r, size_t queue, size_t value);
/* Is the queue paused now? */
bool stats_pause(const struct reply *r, size_t queue, struct pause *ret);

json_t *stats_queue_to_json(const struct reply *r, size_t queue);
/* All of it: counts of the namespace, queues, what needs attention. */
json_t *stats_to_json(const struct reply *r);

#endif
