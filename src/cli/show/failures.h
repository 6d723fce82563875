/*
 * The last attempts of a job that failed, as the library keeps them (jobs.keep_failure in
 * src/lua/core/jobs.lua): lines "<when ms> <epoch> <host> <code> <text>" of the worker, the
 * newest first.
 */
#ifndef LATER_CLI_SHOW_FAILURES_H
#define LATER_CLI_SHOW_FAILURES_H

#include <jansson.h>
#include <stdint.h>

#include "redis/reply.h"

/* Print a line for each. now_ms 0: unknown. value NULL: print nothing. */
void failures_show(const struct reply *value, int64_t now_ms);
/* An array of objects; NULL for none. */
json_t *failures_to_json(const struct reply *value);

#endif
