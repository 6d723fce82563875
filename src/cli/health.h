/*
 * What `later health` found: the lists that it shows.
 */
#ifndef LATER_CLI_HEALTH_H
#define LATER_CLI_HEALTH_H

#include <jansson.h>
#include <stddef.h>

#include "cli/cli.h"

/* Lists of objects with a "cause" (or "warning"), a "text", and what they are about. */
struct health {
    json_t *causes, *warnings;
    size_t live;
};

/* Append to h->causes or h->warnings. kind: "cause" or "warning", as the list. The new object,
 * owned by the list. */
json_t *health_add(json_t *list, const char *kind, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same of a queue, which the object names. */
void health_add_queue(json_t *list, const char *kind, const char *name, const char *queue,
                      const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Write which worker it is. w: as later_v1_workers and later_v1_health begin it. */
void health_worker_name(const struct reply *w, char out[160]);

/* From when on a queue counts as a cause: --late, --parked, --paused and --dead. */
struct health_limits {
    int64_t late_ms, parked_ms, paused_ms, dead; /* negative: not given */
};

/* Read them from the command line. 0, or -1 with code USAGE. */
int health_limits_read(struct health_limits *l, const struct cli *cli, struct err *err);
bool health_limits_any(const struct health_limits *l);
/* Add a cause for each queue that is beyond them, and each schedule whose pause is. Asks Redis only
 * if one was given. 0 or -1. */
int health_limits_judge(const struct health_limits *l, struct health *h, struct cli *cli,
                        struct err *err);

#endif
