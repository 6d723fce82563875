/*
 * The fields of a reply of names and values (json/fields.h) for people, one a line.
 */
#ifndef LATER_CLI_SHOW_FIELDS_H
#define LATER_CLI_SHOW_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "json/fields.h"
#include "redis/reply.h"

/* The fields that the reply has, in the order of the table. now_ms: 0 if unknown. */
void fields_show(const struct field *fields, size_t n, const struct reply *r, int64_t now_ms);

/* "2030-01-31 09:00:00 +0100 (in 5m)" */
void fields_put_instant(int64_t ms, int64_t now_ms);

#endif
