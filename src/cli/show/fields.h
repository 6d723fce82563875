/*
 * The fields of a reply of names and values (later_show, later_batch_show), one a line for people,
 * or as members of a JSON object.
 */
#ifndef LATER_CLI_SHOW_FIELDS_H
#define LATER_CLI_SHOW_FIELDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/reply.h"

enum field_kind {
    FIELD_TEXT,
    FIELD_NUMBER,
    FIELD_INSTANT, /* ms since 1970 */
    FIELD_LENGTH,  /* ms */
    FIELD_STATE    /* a text that is coloured */
};

struct field {
    const char *name;  /* in the reply and in JSON */
    const char *label; /* for people */
    enum field_kind kind;
};

/* The fields that the reply has, in the order of the table. now_ms: 0 if unknown. */
void fields_show(const struct field *fields, size_t n, const struct reply *r, int64_t now_ms);
void fields_to_json(const struct field *fields, size_t n, const struct reply *r, json_t *object);

/* "2030-01-31 09:00:00 +0100 (in 5m)" */
void fields_put_instant(int64_t ms, int64_t now_ms);

#endif
