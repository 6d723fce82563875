/*
 * What is wrong in a namespace, in sentences: what `later health` shows, and the page of later web.
 */
#ifndef LATER_HEALTH_HEALTH_H
#define LATER_HEALTH_HEALTH_H

#include <jansson.h>
#include <stddef.h>

#include "redis/reply.h"

/* Lists of objects with a "cause" (or "warning"), a "text", and what they are about. */
struct health {
    json_t *causes, *warnings;
    size_t live;
};

void health_init(struct health *h);
void health_done(struct health *h);

/* Append to h->causes or h->warnings. kind: "cause" or "warning", as the list. The new object,
 * owned by the list. */
json_t *health_add(json_t *list, const char *kind, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same of a queue, which the object names. */
void health_add_queue(json_t *list, const char *kind, const char *name, const char *queue,
                      const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Write which worker it is. w: as later_v1_workers and later_v1_health begin it. */
void health_worker_name(const struct reply *w, char out[160]);

/* {"status", "workers", "causes", "warnings"}; it takes the lists over. */
json_t *health_to_json(struct health *h, const char *status);

#endif
