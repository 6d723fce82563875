/* A gate as later_v1_gates tells it. */
#ifndef LATER_JSON_GATE_H
#define LATER_JSON_GATE_H

#include <jansson.h>
#include <stdbool.h>

#include "redis/reply.h"

/* The elements of a row, and the values per holder and waiter in its lists. */
enum { GATE, LIMIT, HOLDERS, LIST, WAITING, WAITERS, OPENS };
enum { HOLDER = 4, WAITER = 3 };

/* Does nobody hold it or wait for it? */
bool gate_is_idle(const struct reply *row);
/* The row of later_v1_workers for @EPOCH, or NULL. */
const struct reply *gate_worker(const struct reply *workers, const char *who);

/* workers: of later_v1_workers, which names the hosts of programs. */
json_t *gate_to_json(const struct reply *row, const struct reply *workers);

#endif
