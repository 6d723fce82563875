/*
 * A job as a line of JSON, in both directions: `later export` makes it of a row of later_v1_export,
 * and `later import` makes words for later_v1_import of it. The names are those of `later show
 * --json`. Pure. Rows and lines are not trusted.
 */
#ifndef LATER_CLI_BULK_JOB_JSON_H
#define LATER_CLI_BULK_JOB_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/bulk/call_args.h"
#include "redis/reply.h"

/* A new object, which the caller frees. NULL if the row's record or payload is missing or corrupt,
 * or the score of a raw member is no time. */
json_t *job_to_json(const struct reply *row, const char *queue, const char *state);

struct import_how {
    bool is_once;    /* add a token made of its id, so that it is added only once */
    bool keeps_dead; /* a line of a dead job becomes a dead job, else a waiting one */
};

/*
 * Append the words of one job: the number of options, their names and values, the payload.
 * *is_alone: it must have a call of its own. 0, or -1 with code FORMAT; then the caller cuts the
 * words that were appended.
 */
int job_from_json(const char *line, size_t n, const struct import_how *how, struct call_args *words,
                  bool *is_alone, struct err *err);

#endif
