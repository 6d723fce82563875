/* What `later health` says of what workers tell. */
#ifndef LATER_HEALTH_WORKERS_H
#define LATER_HEALTH_WORKERS_H

#include <stdbool.h>

#include "ask/ask.h"
#include "health/health.h"

/* Add warnings for what live workers say of their queues: those that they cannot run, unless that
 * is a cause already, and those that run in different modes. Nothing if they cannot be asked. */
void health_workers_judge(struct health *h, struct ask_server *s);

/* Add a cause for each worker that misses a right or a command. r: the reply of later_v1_health. */
void health_rights_judge(struct health *h, const struct reply *r);
/* Does this worker miss one? */
bool health_is_hindered(const struct reply *r, const char *epoch);

#endif
