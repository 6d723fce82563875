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

/* Queues as later_stats, later_v1_queues and later_v1_summary tell them. */
struct stats_rows {
    const struct reply *queues, *states;
    int64_t now_ms;
};
/* Those of later_stats. */
struct stats_rows stats_rows(const struct reply *r);
/* Those of a page of later_v1_queues. */
struct stats_rows stats_page(const struct reply *r);

size_t stats_nqueues(const struct stats_rows *rows);
/* A value of enum QUEUE_* of a queue. */
const struct reply *stats_queue(const struct stats_rows *rows, size_t queue, size_t value);
/* How many jobs of the queue run or are parked. NULL: that is not known. */
const struct reply *stats_state(const struct stats_rows *rows, size_t queue, size_t value);
/* Is the queue paused now? */
bool stats_pause(const struct stats_rows *rows, size_t queue, struct pause *ret);

json_t *stats_queue_to_json(const struct stats_rows *rows, size_t queue);
/* All of them, as an array. */
json_t *stats_queues_to_json(const struct stats_rows *rows);
/* All of later_stats: counts of the namespace, queues, what needs attention. */
json_t *stats_to_json(const struct reply *r);

#endif
