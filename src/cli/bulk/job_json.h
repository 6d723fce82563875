/*
 * A job as a line of JSON, both ways: what `later export` writes of a row of later_v1_export, and
 * what `later import` makes of a line for later_v1_import. The names are those of `later show
 * --json`. Pure; rows and lines are data from elsewhere.
 */
#ifndef LATER_CLI_BULK_JOB_JSON_H
#define LATER_CLI_BULK_JOB_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/bulk/call_args.h"
#include "redis/reply.h"

/* A new object, or NULL when the row's record is missing or corrupt, or its payload is. */
json_t *record_to_json(const struct reply *row, const char *queue, const char *state);

/*
 * Append the words of one job: how many options, their names and values, the payload. is_once: a
 * token made of its id sees to it that it is added once. *is_alone: it cannot share a call. 0, or
 * -1 with code FORMAT; words that were appended are the caller's to cut.
 */
int record_from_json(const char *line, size_t n, bool is_once, struct call_args *words,
                     bool *is_alone, struct err *err);

#endif
