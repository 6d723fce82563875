/* A row of later_v1_list. */
#ifndef LATER_JSON_JOB_ROW_H
#define LATER_JSON_JOB_ROW_H

#include <jansson.h>
#include <stddef.h>

#include "ask/replies.h"
#include "json/outcome.h"
#include "redis/reply.h"

/* The outcome in ROW_LAST. 0, or -1 if there is none. */
int job_row_outcome(const struct reply *row, struct outcome *ret);

/* starts, attempts, crashes; zeros for a job that was never started. */
void job_row_tries(const struct reply *row, long long ret[3]);

/* Bytes of the preview without a character that was cut at its end (after 64 bytes). */
size_t job_row_preview(const struct reply *row);

/* All but the payload. state: as the library names it (due parked running dead done). queue: NULL
 * for a running job of any queue, which names its own. */
json_t *job_row_to_json(const struct reply *row, const char *queue, const char *state);
/* Add the begin of the payload to that. */
void job_row_put_start(json_t *line, const struct reply *row);

#endif
