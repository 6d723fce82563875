/* A schedule as later_schedules tells it. */
#ifndef LATER_JSON_SCHEDULE_H
#define LATER_JSON_SCHEDULE_H

#include <jansson.h>
#include <stddef.h>

#include "json/fields.h"
#include "redis/reply.h"

/* What later_schedules tells beside the pause and the payload. */
extern const struct field schedule_fields[];
extern const size_t schedule_nfields;

/* The payload is the caller's to add. */
json_t *schedule_to_json(const struct reply *row);

#endif
