/* A bulk as later_bulk_show tells it. */
#ifndef LATER_JSON_BULK_H
#define LATER_JSON_BULK_H

#include <jansson.h>
#include <stddef.h>

#include "json/fields.h"
#include "redis/reply.h"

extern const struct field bulk_fields[];
extern const size_t bulk_nfields;

/* r: of later_bulk_show with an ID, or an element of its list. */
json_t *bulk_to_json(const struct reply *r);

#endif
