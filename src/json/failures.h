/*
 * The last attempts of a job that failed, as the library keeps them (jobs.keep_failure in
 * src/lua/core/jobs.lua): lines "<when ms> <epoch> <host> <code> <text>" of the worker, the
 * newest first.
 */
#ifndef LATER_JSON_FAILURES_H
#define LATER_JSON_FAILURES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/reply.h"

struct failure {
    int64_t when_ms, epoch, code;
    char host[256];   /* "-": unknown */
    const char *text; /* not NUL-ended */
    size_t len;
};

/* Read the line at *at and move behind it. False at the end, and at what is no such line. */
bool failures_next(const char **at, struct failure *ret);

/* An array of objects; NULL for none. */
json_t *failures_to_json(const struct reply *value);

#endif
