/* Does the work of a namespace go on, and if not, why? */
#ifndef LATER_HEALTH_NAMESPACE_H
#define LATER_HEALTH_NAMESPACE_H

#include "ask/ask.h"
#include "health/health.h"

/* Ask and judge, all but whether there is a worker at all (h->live): the caller may know more of
 * that. 0, or -1 with err when Redis cannot be asked. */
int health_namespace(struct health *h, struct ask_server *s, struct err *err);

/* Say that no worker runs here. */
void health_no_worker(struct health *h);

#endif
