/*
 * What gates in the configuration must be beyond their rows: names, and the settings of a limit
 * that go together. Errors are CONFIG; the caller adds the place.
 */
#ifndef LATER_CONF_CONF_GATES_H
#define LATER_CONF_CONF_GATES_H

#include "base/err.h"
#include "conf/conf.h"

/* A name that a queue may give: 1 to 256 bytes, no spaces or control characters, {key} once. */
int conf_gate_check_name(const char *name, struct err *err);
/* The same for one that `limits:` defines, which has something beside {key}. */
int conf_limit_check_name(const char *name, struct err *err);

/*
 * Find out what the limit is. given: by row of conf_limit_rows, whether it was written. On failure
 * *ret_row is the row that is to blame, -1 when it is what was not written.
 */
int conf_limit_settle(struct conf_limit *limit, const bool *given, int *ret_row, struct err *err);

/* Where a queue names a limit of this file as what it is not, *ret_path is the row. */
int conf_queue_check_gates(const struct conf *conf, const struct conf_queue *queue,
                           const char **ret_path, struct err *err);

#endif
