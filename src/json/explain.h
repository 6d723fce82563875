/* What a job waits for, as later_explain tells it. */
#ifndef LATER_JSON_EXPLAIN_H
#define LATER_JSON_EXPLAIN_H

#include <jansson.h>

#include "redis/reply.h"

/* Values of a holder, and of a worker, in their lists. */
enum { EXPLAIN_HOLDER = 4, EXPLAIN_WORKER = 6 };

json_t *explain_to_json(const struct reply *r);

#endif
