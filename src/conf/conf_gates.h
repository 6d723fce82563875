/*
 * Checks of gates that their rows cannot express: names, and which settings of a limit go together.
 * Errors are CONFIG; the caller adds where it was written.
 */
#ifndef LATER_CONF_CONF_GATES_H
#define LATER_CONF_CONF_GATES_H

#include "base/err.h"
#include "conf/conf.h"

/* A name that a queue may give: 1 to 256 bytes, no spaces or control characters, {key} once. */
int conf_gate_check_name(const char *name, struct err *err);
/* The same for a name that `limits:` defines; it must have more than {key}. */
int conf_limit_check_name(const char *name, struct err *err);

/* "KEY=WEIGHT" of a tenant of a fair queue. */
int conf_weight_check(const char *item, struct err *err);

/*
 * Find out whether the limit is a semaphore or a rate, and check it. given: for each of
 * conf_limit_rows, whether it was written. On failure *ret_row is the wrong row, or -1 when a row
 * is missing.
 */
int conf_limit_check(struct conf_limit *limit, const bool *given, int *ret_row, struct err *err);

/* -1 when the queue names a rate as semaphore, a semaphore as rate, or weights without being fair:
 * *ret_path is the row. */
int conf_queue_check_gates(const struct conf *conf, const struct conf_queue *queue,
                           const char **ret_path, struct err *err);

#endif
