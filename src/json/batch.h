/* A batch as later_batch_show and later_v1_batches tell it. */
#ifndef LATER_JSON_BATCH_H
#define LATER_JSON_BATCH_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "json/fields.h"
#include "redis/reply.h"

/* What later_batch_show tells beside the payload. */
extern const struct field batch_fields[];
extern const size_t batch_nfields;

/* How fast it goes, in members that end in a second, from its opening on. */
struct pace {
    double per_s;
    int64_t left_ms; /* -1: unknown, or none are left */
};
struct pace batch_pace(const struct reply *r, int64_t now_ms);

/* All but the payload. r: of later_batch_show. now_ms: 0 if unknown. */
json_t *batch_to_json(const struct reply *r, int64_t now_ms);
/* Add the payload to that. */
void batch_put_payload(json_t *line, const struct reply *r);
/* A row of later_v1_batches. */
json_t *batch_row_to_json(const struct reply *row);

#endif
