/* A job as later_show tells it. */
#ifndef LATER_JSON_JOB_H
#define LATER_JSON_JOB_H

#include <jansson.h>
#include <stddef.h>

#include "json/fields.h"
#include "redis/reply.h"

/* What later_show tells beside outcome, failures and payload. */
extern const struct field job_fields[];
extern const size_t job_nfields;

/* All of it. The payload is the caller's to add: it may be large. */
json_t *shown_job_to_json(const struct reply *r);

#endif
